"""What is wrong with a config is said with file, line, key, reason and the nearest valid name."""

import pytest
from config_texts import MINIMAL, load, minimal, refuse, write

from nel.config.eval_config import EvalConfig, parse_eval_config
from nel.config.load import load_config
from nel.core.errors import ConfigError, ExitCode


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (minimal(**{"url:": "ulr:"}), "config:4: services.m.ulr: unknown key; did you mean `url`?"),
        (minimal(**{"type: api": "type: apii"}), "config:3: services.m.type: unknown type 'apii'; did you mean 'api'?"),
        (minimal(**{"    type: api\n": ""}), "config:2: services.m: `type` is missing\nOne of: api, llama_cpp, vllm"),
        (minimal("benchmark: []\n"), "config:9: benchmark: unknown key; did you mean `benchmarks`?"),
        (minimal("    repeats: 0\n"), "config:9: benchmarks[0].repeats: must be at least 1, not 0"),
        (minimal("    repeats: true\n"), "config:9: benchmarks[0].repeats: expected a number, not true"),
        (minimal("    repeats: 1.5\n"), "config:9: benchmarks[0].repeats: expected a whole number, not 1.5"),
        (minimal("    repeats: many\n"), "config:9: benchmarks[0].repeats: expected a whole number, not 'many'"),
        (minimal("    repeats: [1]\n"), "config:9: benchmarks[0].repeats: expected a whole number, not a list"),
        (minimal("    timeout: .inf\n"), "config:9: benchmarks[0].timeout: expected a finite number"),
        (
            minimal("    skip_failed: maybe\n"),
            "config:9: benchmarks[0].skip_failed: expected true or false, not 'maybe'",
        ),
        (minimal("    max_error_rate: 5\n"), "config:9: benchmarks[0].max_error_rate: must be at most 1"),
        (minimal("    error_policy: exlude\n"), "'exlude' is none of exclude, zero, abort; did you mean 'exclude'?"),
        (minimal("    problem_range: [3]\n"), "config:9: benchmarks[0].problem_range: needs more than 1 items"),
        (minimal("    problem_range: [3, 3]\n"), "[3, 3) holds no problem"),
        (minimal("    instruction_template: hello\n"), "has no {prompt} in it"),
        (minimal("    id: a/b\n"), "config:9: benchmarks[0].id: is made of letters"),
        (minimal(**{"model: tiny": "model: 4"}), "config:5: services.m.model: expected text, not 4; put it in quotes"),
        (minimal(**{"url: https": "url: ftp"}), "config:4: services.m.url: is not an http:// or https:// URL"),
        (minimal(**{"model: tiny": "urls: [https://a/v1/responses]"}), "needs either `url` or `urls`, not both"),
        (minimal(**{"    url: https://host/v1/chat/completions\n": ""}), "services.m: needs either `url` or `urls`"),
        (minimal(**{"model: tiny": "cache: true"}), "config:5: services.m.cache: names the cache's directory"),
        (
            minimal("    sandbox: fast\nsandboxes: {fastt: {type: none}}\n"),
            "no sandbox 'fast' in `sandboxes`; did you mean",
        ),
        (minimal("sandboxes: {none: {type: none}}\n"), "config:9: sandboxes.none: is a reserved name"),
        (
            minimal("    fewshot: 5\n    params: {num_fewshot: 5}\n"),
            "benchmarks[0].fewshot: the same as params.num_fewshot",
        ),
        (
            minimal("    skip_failed: true\n    error_policy: zero\n"),
            "benchmarks[0].skip_failed: contradicts error_policy",
        ),
        (minimal("    solver: {type: simple, service: m}\n"), "second time"),
        (minimal("cluster: {type: slurm}\n"), "config:9: cluster: `node_pools` is missing"),
        (minimal("cluster: {type: slurm, node_pools: {}}\n"), "config:9: cluster.node_pools: is empty"),
        (minimal("cluster: {type: slurm, walltime: 4h, node_pools: {g: {partition: p}}}\n"), "HH:MM:SS"),
        ("benchmarks: []\n", "config:1: benchmarks: is empty"),
        ("services: {}\n", "config:1: `benchmarks` is missing"),
        ("benchmarks: [{name: x}]\n", "config:1: benchmarks[0]: `solver` is missing"),
        ("benchmarks: [5]\n", "config:1: benchmarks[0]: expected a map, not 5"),
    ],
)
def test_a_bad_key_or_value_is_refused(text, message):
    error = refuse(text)
    assert message in str(error)
    assert error.exit_code == ExitCode.USAGE


def test_a_generation_parameter_without_a_name_is_sent_to_extra_body():
    error = refuse(minimal(**{"model: tiny": "generation: {best_of: 2}"}))
    assert "config:5: services.m.generation.best_of: unknown key" in str(error)
    assert "proxy.extra_body" in str(error)


def test_all_that_is_wrong_is_listed_in_the_order_of_its_lines():
    error = refuse(
        minimal("    max_problems: 0\nextra: 1\n", **{"model: tiny": "generation: {temprature: 1, top_p: 2}"})
    )
    assert str(error).splitlines() == [
        "4 problems in the config:",
        "  config:5: services.m.generation.top_p: must be at most 1, not 2",
        "  config:5: services.m.generation.temprature: unknown key; did you mean `temperature`?",
        "  config:9: benchmarks[0].max_problems: must be at least 1, not 0",
        f"  config:10: extra: unknown key (Known keys: {', '.join(EvalConfig.model_fields)}, defaults, _base_)",
    ]
    assert (error.file, error.line, error.key) == ("config", 5, "services.m.generation.top_p")


def test_a_long_list_of_errors_is_cut():
    entries = "".join(f"  - {{name: b{n}, solver: {{type: simple, service: m}}, repeats: 0}}\n" for n in range(30))
    text = minimal(**{"  - name: gsm8k\n    solver: {type: simple, service: m}\n": entries})
    lines = str(refuse(text)).splitlines()
    assert lines[0] == "30 problems in the config:"
    assert lines[-1] == "  and 10 more"


def test_the_error_names_the_file_that_holds_the_value(tmp_path):
    path = write(tmp_path, {"c.yaml": "_base_: base\noutput: {dirr: x}\n", "base.yaml": MINIMAL + "    repeats: -1\n"})
    with pytest.raises(ConfigError) as caught:
        load_config(path, env={"HOME": str(tmp_path)})
    assert f"{tmp_path}/base.yaml:9: benchmarks[0].repeats" in str(caught.value)
    assert f"{tmp_path}/c.yaml:2: output.dirr" in str(caught.value)


def test_a_type_whose_name_is_also_a_key_is_told_from_it():
    assert "config:3: services.api.api: unknown key" in str(refuse("services:\n  api:\n    {type: api, api: 1}\n"))


def test_null_is_the_same_as_leaving_a_key_out():
    loaded = load(
        minimal(
            "    timeout: null\n    params:\noutput:\ncluster: null\nservices2: null\n".replace("services2: null\n", "")
        )
    )
    assert loaded.config == load(MINIMAL).config


def test_an_unknown_key_is_refused_even_when_it_is_null():
    assert "unknown key" in str(refuse(minimal("outputs: null\n")))


def test_numbers_may_come_as_texts_from_the_environment():
    loaded = load(minimal("    repeats: ${N}\n    skip_failed: ${SKIP}\n"), env={"N": "3", "SKIP": "no"})
    assert (loaded.config.benchmarks[0].repeats, loaded.config.benchmarks[0].skip_failed) == (3, False)


def test_a_plain_map_is_parsed_with_the_same_checks():
    raw = {
        "services": {"m": {"type": "api", "url": "https://h/v1/completions", "api_key": "${K}"}},
        "benchmarks": [{"name": "gsm8k", "solver": {"type": "simple", "service": "m"}}],
    }
    config = parse_eval_config(raw, env={"K": "key"})
    assert isinstance(config, EvalConfig)
    assert (config.services["m"].protocol, config.services["m"].api_key) == ("completions", "key")
    raw["benchmarks"][0]["solver"]["service"] = "n"
    with pytest.raises(ConfigError, match=r"config: benchmarks\[0\]\.solver\.service: no service 'n'"):
        parse_eval_config(raw, env={"K": "key"})
