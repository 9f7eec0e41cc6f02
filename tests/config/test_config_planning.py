"""What this version cannot do is parsed, and refused at planning with its line; nothing is accepted and ignored."""

import pytest
from config_texts import MINIMAL, load, minimal

from nel.config.planning import plan_check
from nel.config.schema import all_models, rows, type_of
from nel.core.errors import ConfigError


def planned(text, **options):
    loaded = load(text, **options)
    with pytest.raises(ConfigError) as caught:
        plan_check(loaded)
    return str(caught.value)


def used_service(line):
    return f"services:\n  m: {line}\nbenchmarks:\n  - name: gsm8k\n    solver: {{type: simple, service: m}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            minimal("    sandbox: {type: slurm}\n"),
            "config:9: benchmarks[0].sandbox.type: sandboxes of type slurm are not",
        ),
        (minimal("cluster: {type: docker}\n"), "config:9: cluster.type: clusters of type docker are not available yet"),
        (
            minimal("cluster: {type: slurm, node_pools: {g: {partition: p}}}\n"),
            "clusters of type slurm are not available",
        ),
        (minimal("cluster: {type: local, gpus: [0]}\n"), "config:9: cluster.gpus: not available yet"),
        (minimal("    playbook: pinchbench\n"), "config:9: benchmarks[0].playbook: not available yet"),
        (minimal("    context_window: 5\n"), "config:9: benchmarks[0].context_window: not available yet"),
        (minimal("output: {export: [wandb]}\n"), "config:9: output.export: not available yet"),
        (minimal("output: {trajectories: {enrich: true}}\n"), "output.trajectories.enrich: not available yet"),
        (minimal(**{"model: tiny": "tokenizer: x"}), "config:5: services.m.tokenizer: not available yet"),
        (
            minimal(**{"model: tiny": "proxy: {interceptors: [{name: x}]}"}),
            "config:5: services.m.proxy.interceptors: not",
        ),
        (minimal(**{"model: tiny": "proxy: {verbose: true}"}), "config:5: services.m.proxy.verbose: not available yet"),
        (
            minimal(**{"model: tiny": "proxy: {finish_reason_fixup: true}"}),
            "proxy.finish_reason_fixup: not available yet",
        ),
        (
            minimal(**{"model: tiny": "proxy: {model_traffic: {capture_messages: false}}"}),
            "capture_messages: not available",
        ),
        (
            minimal(**{"model: tiny": "protocol: responses"}),
            "services.m.url: is a URL of the protocol chat_completions, but",
        ),
        (
            used_service("{type: nim, model: x}"),
            "config:2: services.m.type: services of type nim are not available yet",
        ),
        (used_service("{type: vllm, model: x, image: y}"), "config:2: services.m.image: not available yet"),
        (used_service("{type: vllm, model: x, num_nodes: 2}"), "config:2: services.m.num_nodes: not available yet"),
        (
            used_service("{type: api, url: 'http://h/v1/responses'}").replace(
                "simple", "tool_calling, sandbox_tools: true"
            )
            + "    sandbox: {type: docker}\n",
            "benchmarks[0].solver.type: solvers of type tool_calling are not available yet",
        ),
    ],
)
def test_what_is_not_available_yet_is_refused_with_its_line(text, message):
    assert message in planned(text)


def test_what_is_refused_is_listed_together():
    message = planned(minimal("    context_window: 5\ncluster: {type: docker}\n", **{"model: tiny": "tokenizer: x"}))
    assert [line.split(": ")[0].strip() for line in message.splitlines()[1:]] == ["config:5", "config:9", "config:10"]


@pytest.mark.parametrize(
    "text",
    [
        MINIMAL,
        minimal("cluster: {type: local, container_env: {A: b}}\noutput: {export: [], trajectories: {enrich: false}}\n"),
        minimal("    sandbox: none\n    scoring: {include_defaults: true, metrics: []}\n    verifier: null\n"),
        minimal(
            **{"model: tiny": "proxy: {interceptors: [], verbose: false, model_traffic: {capture_messages: true}}"}
        ),
        minimal(**{"    model: tiny\n": "  idle: {type: gym}\n  big: {type: nim, model: x}\n"}),
        minimal("sandboxes: {box: {type: docker}}\n"),
        minimal("    scoring: {metrics: [{type: scorer, name: x}]}\n"),
        minimal("    scoring: {metrics: [{type: judge, name: q, service: m, allow_self_judge: true}]}\n"),
        used_service("{type: llama_cpp, model: x.gguf}"),
        used_service("{type: vllm, model: x, gpus: 2, tensor_parallel_size: 2, extra_args: [-x], port: 0}"),
        used_service("{type: api, urls: ['https://a/v1/responses', 'https://b/v1/responses']}"),
    ],
)
def test_what_can_be_done_or_is_not_used_is_planned(text):
    plan_check(load(text))


def test_a_sandbox_by_name_is_refused_where_it_is_used():
    message = planned(minimal("    sandbox: box\nsandboxes: {box: {type: slurm}}\n"))
    assert message == "config:9: benchmarks[0].sandbox.type: sandboxes of type slurm are not available yet"


def test_every_key_that_is_not_available_says_what_nel_does_by_its_default():
    for model in all_models():
        for row in rows(model):
            if row.status == "later":
                assert not row.field.is_required(), (model, row.name)


def test_what_is_available_now():
    types = {type_of(model) for model in all_models() if type_of(model) and not model.later}
    sandboxes = {"none", "auto", "bwrap", "docker", "podman", "local"}
    measures = {"scorer", "judge", "pairwise_judge", "ensemble_judge", "reward_model", "sandbox", "custom"}
    assert (
        types
        == {"api", "llama_cpp", "vllm", "sglang", "trt_llm", "simple", "loglikelihood", "custom"} | sandboxes | measures
    )
