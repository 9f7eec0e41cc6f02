"""The whole schema parses, and a NeMo Evaluator config of an API model and a built-in benchmark runs unchanged."""

import re

import pytest
from config_texts import MINIMAL, load, minimal

from nel.config.planning import plan_check
from nel.config.services import Generation, merge_generation

EVERYTHING = """
_team: ours
services:
  api1:
    type: api
    url: https://host/v1/chat/completions
    protocol: chat_completions
    model: org/model
    api_key: ${KEY}
    health_path: /health
    max_input_tokens: 8000
    max_output_tokens: 4000
    tokenizer: org/model
    generation: {temperature: 1, top_p: 0.9, max_tokens: 100, seed: 1, stop: [a],
                 frequency_penalty: -2, presence_penalty: 2}
    proxy:
      interceptors: [{name: drop_params, config: {params: [max_tokens]}}, {name: caching}]
      verbose: true
      extra_body: {chat_template_kwargs: {enable_thinking: true}}
      extra_headers: {X-Team: "${._team}"}
      request_timeout: 60
      max_retries: 2
      retry_on_status: [429, 503]
      max_concurrent_upstream: 8
      model_traffic: {capture_tool_calls: true, capture_reasoning: false, capture_messages: true,
                      capture_request_body: false, max_content_chars: 0}
      finish_reason_fixup: true
  replicas:
    type: api
    urls: [https://a/v1/completions, https://b/v1/completions]
    identity: model-2026-01
    max_concurrent: 8
    requests_per_minute: 100
    tokens_per_minute: 1e6
    adaptive_concurrency: false
    prices: {prompt: 1, completion: 2.5, cached: 0.1, currency: EUR}
    cache: ./cache
    stream: true
    reasoning_pattern: <think>(.*)</think>
    generation: {top_k: 5, min_p: 0.1, n: 4, logprobs: true, top_logprobs: 3, response_format: {type: json_object},
                 reasoning_effort: high, repetition_penalty: 1.1, logit_bias: {"5": -1}, stop: one}
  vllm1: &server
    type: vllm
    model: org/model
    served_model_name: m
    port: 5000
    protocol: chat_completions
    tensor_parallel_size: 2
    pipeline_parallel_size: 2
    data_parallel_size: 2
    num_nodes: 1
    gpus: [0, 1, 2, 3, 4, 5, 6, 7]
    image: vllm:1
    health_path: /health
    startup_timeout: 1800.0
    extra_env: {HF_HOME: /cache}
    extra_args: [--dtype=auto]
    setup_commands: ["echo $HOME"]
    container_mounts: [/a:/b]
    pre_cmd: ulimit -n 100
    ray_binary: ray
    reasoning_pattern: x
    max_input_tokens: 1
    max_output_tokens: 2
    tokenizer: t
    generation: {temperature: 0}
    proxy: {max_retries: 0}
    depends_on: [api1]
    node_pool: gpu
  sglang1: {<<: *server, type: sglang, port: 5001}
  trt: {<<: *server, type: trt_llm, port: 5002}
  nim1: {<<: *server, type: nim, port: 5003}
  docker1: {<<: *server, type: docker_model, port: 5004, gpus: 8}
  dyn:
    type: dynamo
    model: org/model
    protocol: chat_completions
    engine: sglang
    prefill: &worker {tensor_parallel_size: 8, pipeline_parallel_size: 1, data_parallel_size: 1, num_nodes: 1,
                      num_workers: 2, node_pool: gpu, extra_args: [-x], extra_env: {A: b}}
    decode: *worker
  small: {type: llama_cpp, model: "package://weights/model.gguf", port: 0, threads: 1, context: 4096, parallel: 2,
          chat_template: x, extra_args: [-v], extra_env: {A: b}, protocol: completions}
  gym1: {type: gym, url: "http://h:8000", port: 8000, image: i, benchmark: b, server_cmd: c, startup_timeout: 5,
         depends_on: [api1], node_pool: gpu}
  nat1: {type: nat, port: 8001, image: i, nat_config_file: f, startup_timeout: 5, depends_on: [], node_pool: gpu}
  own: {type: custom, class_path: "pkg.mod:Class", config: {a: 1}}
sandboxes:
  nothing: {type: none, capture_cmd: c, verify_timeout: 5}
  box: {type: docker, image: i, image_template: t, memory: 4g, cpus: 2, timeout: 60, concurrency: 4, network: none,
        container_env: {A: b}, capture_cmd: c, verify_timeout: 5, stateful: false, scrub_git_history: true}
  bare: {type: bwrap, root: /r, memory: 1g, cpus: 1, network: none}
  trusted: {type: local, isolation: none}
  node: {type: slurm, image: i, memory: 4g, cpus: 1, node_pool: gpu, slots_per_node: 2, concurrency: 4}
  sif: {type: apptainer, node_pool: gpu, sif_cache_dir: /c}
  cloud:
    type: ecs_fargate
    region: us-west-2
    cluster: c
    subnets: [s]
    security_groups: [g]
    assign_public_ip: true
    cpu: "4096"
    memory: "8192"
    container_port: 80
    ephemeral_storage_gib: 50
    execution_role_arn: a
    task_role_arn: a
    log_group: l
    log_stream_prefix: p
    max_task_lifetime_sec: 100
    ssh_sidecar: {sshd_port: 52222, ssh_ready_timeout_sec: 300, public_key_secret_arn: a, private_key_secret_arn: b,
                  image: i, exec_server_port: 19542}
    s3_bucket: b
    s3_prefix: p
    ecr_repository: r
    codebuild_project: p
    codebuild_service_role: r
    codebuild_build_timeout: 60
    codebuild_compute_type: t
    dockerhub_secret_arn: a
    efs_filesystem_id: i
    efs_access_point_id: i
    ssm_project: harbor
  mine: {type: custom, class_path: "m:C", config: {}}
benchmarks:
  - name: gsm8k
    id: five-shot
    repeats: 2
    max_problems: 10
    max_concurrent: 8
    fewshot: 5
    context_window: 8000
    timeout: 60
    skip_failed: true
    max_system_retries: 1
    instruction_template: "Q: {prompt}"
    verifier: gym1
    shuffle_seed: null
    sandbox: nothing
    playbook: pinchbench
    params: {level: 3}
    dataset: {path: hf://a/b, revision: main, split: test, config: c}
    problem_range: [0, 5]
    select: {ids: [a, 7], where: {subject: math, level: [1, 2]}}
    max_error_rate: 1
    scoring:
      include_defaults: false
      primary: q
      metrics:
        - {type: scorer, name: exact_match}
        - {type: scorer, name: letters, scorer: multichoice_regex, params: {letters: ABC}}
        - {type: judge, name: q, service: replicas, system_prompt: s, rubric: r, min_score: 0, max_score: 5,
           swap_check: true, reference_free: false, structured_output: true, temperature: 0, timeout: 5,
           max_retries: 1, allow_self_judge: false}
        - {type: judge, name: l, service: replicas, labels: {right: 1, wrong: 0}}
        - {type: pairwise_judge, name: p, judge_service: replicas, baseline_service: api1, rubric_file: f}
        - {type: ensemble_judge, name: e, services: [replicas, vllm1], aggregation: majority_vote}
        - {type: sandbox, name: s, command: pytest, verify_timeout: 5}
        - {type: reward_model, name: r, service: replicas, mode: multi_aspect, aspect: a, score_range: [0, 1],
           threshold: 0.5}
        - {type: custom, name: c, class_path: "m:C", config: {}}
    solver: {type: simple, service: api1, system_prompt: s, generation: {temperature: 0.5}, image_detail: high}
  - {name: a, solver: {type: custom, service: own, class_path: "m:C", config: {a: 1}}, dataset: rows.jsonl}
  - name: b
    sandbox: box
    solver: {type: harbor, service: api1, agent: x, agent_kwargs: {a: 1}, container_env: {A: b}, run_timeout: 5,
             cmd_timeout: 5, timeout_strategy: max, max_agent_timeout: 5, skill: s, skill_dir: d}
  - {name: c, sandbox: box, solver: {type: agent, service: api1, framework: harbor, agent: x, agent_kwargs: {}}}
  - name: d
    sandbox: box
    solver: {type: tool_calling, service: api1, resource_service: gym1, sandbox_tools: true, max_turns: 5,
             system_prompt: s, generation: {}, tool_timeout: 5, max_output_chars: 5, response_mode: sandbox_artifact}
  - {name: e, solver: {type: gym_delegation, service: api1, gym_service: gym1, gym_agent: a, trust_reward: true}}
  - {name: f, solver: {type: nat, service: nat1}}
  - name: g
    sandbox: {type: docker}
    solver: {type: openclaw, service: api1, thinking: high, context_window: 5, max_concurrent: 4,
             idle_timeout_seconds: 5,
             run_timeout: 5, timeout_strategy: task, max_agent_timeout: 5, web_search_provider: tavily, config_path: c,
             skip_preflight: true, openclaw_bin: o}
  - {name: "container://i#t", solver: {type: container, service: api1, endpoint_type: chat, adapter_config: {},
     env_vars: {A: b}, mounts: {/a: /b}, uri: "container://i#t", params: {}}}
  - {name: h, solver: {type: oracle, run_timeout: 5, timeout_strategy: task, max_agent_timeout: 5}}
  - name: gsm8k
    id: sure
    solver: {type: simple, service: replicas}
    stop_when: {half_width: 0.02}
  - name: gsm8k
    id: not-worse
    solver: {type: simple, service: replicas}
    stop_when: {decides: {baseline: runs/a, max_drop: 0.02}}
cluster:
  type: slurm
  account: a
  walltime: 1-04:00:00
  node_pools:
    gpu: {partition: p, nodes: 2, ntasks_per_node: 1, gres: "gpu:h100:8", gpus_per_node: 8,
          sbatch_extra_flags: {qos: high}}
  conda_env: e
  eval_image: i
  container_mounts: [/a:/b]
  container_env: {A: b}
  shm_size: 2g
  mount_home: no
  auto_resume: true
  max_retries: 3
  max_walltime: 24:00:00
  shards: 4
  sbatch_comment: c
  sbatch_extra_flags: {exclusive: true}
  hostname: login
  username: me
output:
  dir: /lustre/out
  timestamped: true
  progress_interval: 60
  report: [markdown, html, csv, json, latex]
  export: [wandb]
  export_config: {wandb: {project: p}}
  trajectories: {enrich: true}
max_concurrent_benchmarks: 2
"""


def test_the_whole_schema_parses():
    loaded = load(EVERYTHING, env={"KEY": "k"})
    config = loaded.config
    assert config.services["api1"].proxy.extra_headers == {"X-Team": "ours"}
    assert config.services["docker1"].gpus == list(range(8))
    assert config.benchmarks[0].shuffle_seed is None
    assert config.benchmarks[0].select.ids == ["a", "7"]
    assert config.benchmarks[0].select.where == {"subject": ["math"], "level": [1, 2]}
    assert config.benchmarks[1].dataset.path == "rows.jsonl"
    assert config.benchmarks[2].sandbox == config.sandboxes["box"]
    assert (config.cluster.mount_home, config.cluster.walltime) == (False, "1-04:00:00")
    assert config.cluster.node_pools["gpu"].gpus == 8


def test_every_key_of_the_schema_is_used_by_the_example_that_parses():
    from nel.config.schema import all_models, rows

    words = set(re.findall(r"[\w]+(?=:)", EVERYTHING))
    unused = {row.name for model in all_models() for row in rows(model)} - words
    # One contradicts skip_failed, the other is a key of the local cluster.
    assert unused == {"error_policy", "max_memory"}


NEMO = """
services:
  nemotron:
    type: api
    url: https://integrate.example.com/v1/chat/completions
    protocol: chat_completions
    model: org/nemotron-120b
    api_key: ${NVIDIA_API_KEY}
    generation:
      temperature: 0.6
      top_p: 0.95
      max_tokens: 4096
    proxy:
      extra_body: {chat_template_kwargs: {enable_thinking: true}}
      request_timeout: 300
      max_retries: 3
      max_concurrent_upstream: 16

benchmarks:
  - name: gsm8k
    max_problems: 5
    repeats: 2
    max_concurrent: 16
    skip_failed: true
    shuffle_seed: null
    solver:
      type: simple
      service: nemotron
  - name: mmlu
    max_problems: 5
    solver:
      type: simple
      service: nemotron
      system_prompt: Answer with one letter.
      generation: {temperature: 0.0}
    sandbox:
      type: none

cluster:
  type: local

output:
  dir: ./eval_results
  report: [markdown]
"""


def test_a_nemo_config_of_an_api_model_runs_unchanged():
    loaded = load(NEMO, env={"NVIDIA_API_KEY": "nvapi-0123456789abcdef"})
    plan_check(loaded)
    assert loaded.warnings == []
    gsm8k, mmlu = loaded.config.benchmarks
    assert gsm8k.errors == ("exclude", 1.0)
    assert mmlu.errors == ("exclude", 0.05)
    assert (gsm8k.shuffle_seed, mmlu.shuffle_seed, mmlu.timeout) == (None, 42, 1800)
    service = loaded.config.services["nemotron"]
    assert merge_generation(service.generation, mmlu.solver.generation) == {
        "temperature": 0.0,
        "top_p": 0.95,
        "max_tokens": 4096,
    }


def test_the_solver_overrides_the_service_key_by_key():
    service = Generation(temperature=0.5, top_p=0.9, stop="x")
    assert merge_generation(service, Generation(temperature=1)) == {"temperature": 1, "top_p": 0.9, "stop": ["x"]}
    assert merge_generation(service, None) == {"temperature": 0.5, "top_p": 0.9, "stop": ["x"]}


def test_the_client_knows_every_generation_parameter_by_the_same_name():
    from nel.inference.protocols import GENERATION

    assert set(Generation.model_fields) - {"n"} <= GENERATION


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("https://h/v1/chat/completions", "chat_completions"),
        ("https://h/v1/completions/", "completions"),
        ("https://h/v1/responses?version=1", "responses"),
        ("https://h/other", "chat_completions"),
    ],
)
def test_the_protocol_is_what_the_url_ends_in(url, protocol):
    assert load(minimal(**{"https://host/v1/chat/completions": url})).config.services["m"].protocol == protocol


def test_limits_and_mapped_keys_have_one_effective_value():
    text = minimal("    fewshot: 3\n    params: {a: 1}\n", **{"model: tiny": "max_concurrent: 100"})
    config = load(text).config
    assert config.services["m"].concurrency == 64
    assert config.benchmarks[0].parameters == {"a": 1, "num_fewshot": 3}
    assert load(MINIMAL).config.services["m"].concurrency == 64


@pytest.mark.parametrize(
    ("output", "directory", "stamped"),
    [
        ("{}", "./eval_results", True),
        ("{dir: here}", "here", False),
        ("{dir: here, timestamped: true}", "here", True),
        ("{timestamped: false}", "./eval_results", False),
    ],
)
def test_a_time_stamp_is_added_only_where_no_directory_is_named(output, directory, stamped):
    config = load(minimal(f"output: {output}\n")).config
    assert (config.output.directory, config.output.adds_timestamp) == (directory, stamped)
