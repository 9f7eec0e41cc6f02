"""Names that refer to each other must exist and fit; sizes must not exceed what they are part of."""

import pytest
from config_texts import MINIMAL, load, minimal, refuse

SERVER = "type: vllm, model: x"
GYM = "  g: {type: gym}\n"


def services(*lines, entry="solver: {type: simple, service: m}", rest=""):
    text = "services:\n  m: {type: api, url: 'https://h/v1/chat/completions'}\n"
    text += "".join(f"  {line}\n" for line in lines)
    return text + f"benchmarks:\n  - name: gsm8k\n    {entry}\n" + rest


SLURM = "cluster: {type: slurm, node_pools: {gpu: {partition: p, nodes: 2, gres: 'gpu:8'}, cpu: {partition: q}}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (services(entry="solver: {type: simple, service: n}"), "solver.service: no service 'n' in `services`"),
        (
            services("gym: {type: gym}", entry="solver: {type: simple, service: gym}"),
            "is of type gym; a model is needed",
        ),
        (services(entry="solver: {type: nat, service: m}"), "is of type api; a nat service is needed"),
        (services(entry="solver: {type: gym_delegation, service: m, gym_service: m}"), "a gym service is needed"),
        (services(entry="solver: {type: tool_calling, service: m, resource_service: m}"), "a gym service is needed"),
        (services(entry="solver: {type: tool_calling, service: m}"), "needs tools"),
        (
            services(entry="{solver: {type: simple, service: m}, verifier: m}").replace(
                "name: gsm8k\n    {", "{name: gsm8k, "
            ),
            "a gym service is needed",
        ),
        (services(entry="solver: {type: harbor, service: m, agent: a}"), "a harbor solver needs a sandbox"),
        (
            services(entry="solver: {type: tool_calling, service: m, sandbox_tools: true}"),
            "`sandbox_tools` needs a sandbox",
        ),
        (services("default: {type: gym}"), "services.default: is a reserved name"),
        (services("a: {type: gym, depends_on: [b]}"), "services.a.depends_on[0]: no service 'b'"),
        (
            services(
                "a: {type: gym, depends_on: [b]}", "b: {type: gym, depends_on: [c]}", "c: {type: gym, depends_on: [a]}"
            ),
            "wait for each other: a -> b -> c -> a",
        ),
        (
            services(f"v: {{{SERVER}, tensor_parallel_size: 4, gpus: 2}}"),
            "v.gpus: 2 GPUs, but the parallel sizes need 4",
        ),
        (services("d: {type: dynamo, model: x, prefill: {}}"), "`prefill` and `decode` go together"),
        (
            services("v: {type: vllm, model: x, node_pool: gpus}", rest=SLURM),
            "no node pool 'gpus' in cluster.node_pools; did",
        ),
        (
            services(f"v: {{{SERVER}, node_pool: gpu, tensor_parallel_size: 16}}", rest=SLURM),
            "a node of pool 'gpu' has 8",
        ),
        (services(f"v: {{{SERVER}, node_pool: gpu, num_nodes: 3}}", rest=SLURM), "3 nodes, but pool 'gpu' has 2"),
        (
            services(*(f"{n}: {{{SERVER}, node_pool: gpu, num_nodes: 2}}" for n in "vw"), rest=SLURM),
            "pool 'gpu' runs 'v' on several nodes already",
        ),
        (services(rest=SLURM.replace("type: slurm", "type: slurm, shards: 2")), "shards need a single node pool"),
        (
            services(rest=SLURM.replace("type: slurm", "type: slurm, hostname: login")),
            "output.dir: is a path on the cluster",
        ),
        (
            services(rest=SLURM.replace("type: slurm", "type: slurm, sbatch_extra_flags: {--qos: x}")),
            "is no sbatch option",
        ),
        (
            services(rest='cluster: {type: slurm, sbatch_comment: "a\\nb", node_pools: {g: {partition: p}}}\n'),
            "is one line",
        ),
        (
            services(
                "m2: {type: api, url: 'http://h/v1/responses', max_output_tokens: 9, generation: {max_tokens: 10}}"
            ),
            "services.m2.generation.max_tokens: 10 is more than max_output_tokens, 9",
        ),
        (
            minimal(
                ", generation: {max_tokens: 10}}\n",
                **{"service: m}\n": "service: m", "tiny": "tiny\n    max_output_tokens: 9"},
            ),
            "config:9: benchmarks[0].solver.generation.max_tokens: 10 is more than",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(text, message):
    assert message in str(refuse(text))


def judged(metric):
    return services(
        "j: {type: api, url: 'https://j/v1/chat/completions'}", rest=f"    scoring: {{metrics: [{metric}]}}\n"
    )


def test_a_model_does_not_judge_itself_unless_allowed():
    assert "'m' would judge its own answers" in str(refuse(judged("{type: judge, name: q, service: m}")))
    assert load(judged("{type: judge, name: q, service: m, allow_self_judge: true}")).config
    assert load(judged("{type: judge, name: q, service: j}")).config
    assert "scoring.metrics[0].services[1]" in str(refuse(judged("{type: ensemble_judge, name: q, services: [j, m]}")))
    assert load(judged("{type: pairwise_judge, name: q, judge_service: j, baseline_service: m}")).config


def test_metrics_have_names_of_their_own_and_a_primary():
    two = "{type: scorer, name: a}, {type: scorer, name: b}"
    assert "need `primary`" in str(refuse(services(rest=f"    scoring: {{metrics: [{two}]}}\n")))
    assert "'c' is none of the metrics: a, b, default" in str(
        refuse(services(rest=f"    scoring: {{metrics: [{two}], primary: c}}\n"))
    )
    assert "a second metric with the name 'a'" in str(
        refuse(services(rest=f"    scoring: {{metrics: [{two.replace('b', 'a')}], primary: a}}\n"))
    )


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("{type: judge, name: q, service: j, rubric: a, rubric_file: b}", "either `rubric` or `rubric_file`"),
        ("{type: judge, name: q, service: j, swap_check: true, reference_free: true}", "nothing to swap"),
        ("{type: judge, name: q, service: j, min_score: 5}", "5 is not below max_score, 5"),
        ("{type: judge, name: q, service: j, labels: {a: 1, b: 0}, max_score: 3}", "the labels say what"),
        ("{type: judge, name: q, service: j, labels: {a: 1, b: 1}}", "different scores"),
        ("{type: judge, name: q, service: j, labels: {a: 1, A: 0}}", "differ only in case"),
        ("{type: judge, name: default, service: j}", "is the benchmark's own score"),
        ("{type: ensemble_judge, name: q, services: [j, j]}", "'j' is a judge already"),
        ("{type: reward_model, name: q, service: j, mode: multi_aspect}", "goes with mode `multi_aspect`"),
        ("{type: reward_model, name: q, service: j, aspect: x}", "goes with mode `multi_aspect`"),
        ("{type: reward_model, name: q, service: j, threshold: 2}", "outside `score_range`"),
        ("{type: reward_model, name: q, service: j, mode: pairwise, threshold: 0.5}", "has no threshold"),
        ("{type: pairwise_judge, name: q, judge_service: m}", "would judge its own answers"),
    ],
)
def test_a_metric_that_contradicts_itself_is_refused(metric, message):
    assert message in str(refuse(judged(metric)))


def test_the_worst_score_is_1_unless_the_best_is_not_above_it():
    def worst(rest):
        metric = load(judged(f"{{type: judge, name: q, service: j{rest}}}")).config.benchmarks[0].scoring.metrics[0]
        return metric.worst

    assert (worst(""), worst(", max_score: 10"), worst(", max_score: 1"), worst(", min_score: -1")) == (1, 1, 0, -1)


def test_the_reward_is_the_primary_metrics_or_the_only_ones():
    def reward(scoring):
        return load(services(rest=f"    scoring: {scoring}\n")).config.benchmarks[0].scoring.reward

    assert reward("{}") == "default"
    assert reward("{metrics: [{type: scorer, name: a}]}") == "a"
    assert reward("{primary: default, metrics: [{type: scorer, name: a}]}") == "default"
    assert "is none of the metrics: a" in str(
        refuse(
            services(
                rest="    scoring: {include_defaults: false, primary: default, metrics: [{type: scorer, name: a}]}\n"
            )
        )
    )
    assert "nothing would be measured" in str(refuse(services(rest="    scoring: {include_defaults: false}\n")))


def entry(extra):
    return minimal(f"  - {{name: gsm8k, solver: {{type: simple, service: m}}{extra}}}\n")


def test_two_entries_of_one_benchmark_differ_in_something():
    assert "benchmarks[1]: is the same as benchmarks[0]" in str(refuse(entry("")))
    assert len(load(entry(", max_problems: 5")).config.benchmarks) == 2
    text = entry(", id: x, repeats: 2") + "  - {name: gsm8k, id: x, solver: {type: simple, service: m}}\n"
    assert "benchmarks[2].id: benchmarks[1] has this id already" in str(refuse(text))


def test_two_servers_do_not_listen_on_one_port():
    two = "{name: a, solver: {type: simple, service: v}}, {name: b, solver: {type: simple, service: w}}"
    text = f"services: {{v: {{{SERVER}}}, w: {{{SERVER}}}}}\nbenchmarks: [{two}]\n"
    assert "services.w.port: 8000 is also that of 'v'; 0 takes a free one" in str(refuse(text))
    assert load(text.replace("w: {", "w: {port: 0, ")).config


def test_services_are_used_in_the_order_of_their_dependencies():
    text = services(
        "unused: {type: gym}",
        "late: {type: vllm, model: x, depends_on: [base]}",
        "base: {type: vllm, model: x, port: 0}",
        entry="solver: {type: simple, service: late}",
    )
    assert load(text).config.used_services() == ["base", "late"]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (minimal(**{"v1/chat/completions": "v1"}), "config:4: services.m.url: ends in none of the paths of a protocol"),
        (services("g: {type: gym}"), "config:3: services.g: no benchmark uses this service"),
        (minimal("sandboxes: {s: {type: none, stateful: true}}\n"), "config:9: sandboxes.s: no benchmark uses this"),
        (
            minimal("    sandbox: {type: docker, stateful: true, capture_cmd: x}\n"),
            "config:9: benchmarks[0].sandbox: a stateful sandbox uses neither",
        ),
        (
            services(rest=SLURM.replace("type: slurm", "type: slurm, auto_resume: false, walltime: '00:20:00'")),
            "cluster.walltime: shorter than starting the services and one attempt may take (1800 s)",
        ),
    ],
)
def test_what_is_probably_not_meant_is_warned_of(text, warning):
    assert any(found.startswith(warning) or warning in found for found in load(text).warnings)


def test_a_plain_config_has_no_warnings():
    assert load(MINIMAL).warnings == []
