"""Every key of a managed service reaches its server, or is refused by name; nothing is dropped."""

import sys
from itertools import pairwise

import pytest
from standin_server import install, read_record

from nel.config.services import LlamaCppService, NimService, SglangService, TrtLlmService, VllmService
from nel.core.errors import MissingDependencyError, UsageError
from nel.orchestration.model_server import model_server, served_name
from nel.orchestration.server_commands import deploy_config

SIZES = {"tensor_parallel_size": 2, "pipeline_parallel_size": 3, "data_parallel_size": 1}
PARALLEL = {
    VllmService: "--tensor-parallel-size 2 --pipeline-parallel-size 3 --data-parallel-size 1",
    SglangService: "--tp-size 2 --pp-size 3 --dp-size 1",
    TrtLlmService: "--tp_size 2 --pp_size 3",
}
TYPES = {VllmService: "vllm", SglangService: "sglang", TrtLlmService: "trt_llm"}
MODEL = {
    VllmService: "--model org/model --served-model-name short",
    SglangService: "--model-path org/model --served-model-name short",
    TrtLlmService: "org/model --served_model_name short",
}


def service(kind, folder, **keys):
    env = install(folder) | keys.pop("extra_env", {})
    return kind(**{"type": TYPES[kind], "model": "org/model", "port": 0, "extra_env": env} | keys)


@pytest.mark.parametrize("kind", TYPES)
async def test_a_server_sees_every_key_of_its_service(tmp_path, kind):
    given = service(
        kind,
        tmp_path,
        served_model_name="short",
        gpus=[1, 2, 3, 4, 5, 6],
        extra_args=["--seed", "1", "--note=two words"],
        extra_env={"OWN": "yes"},
        **SIZES,
    )
    server = model_server("m", given, tmp_path / "logs")
    url = await server.start()
    await server.health_wait()
    await server.stop()
    record = read_record(tmp_path)
    port = url.rpartition(":")[2]
    line = f"{MODEL[kind]} --host 127.0.0.1 --port {port} {PARALLEL[kind]} --seed 1"
    assert record["argv"][1:] == [*line.split(), "--note=two words"]
    assert record["env"]["CUDA_VISIBLE_DEVICES"] == "1,2,3,4,5,6"
    assert record["env"]["OWN"] == "yes"


@pytest.mark.parametrize("kind", TYPES)
def test_a_server_is_told_the_name_that_requests_will_use(tmp_path, kind):
    given = service(kind, tmp_path)
    command = deploy_config("m", given, tmp_path).command
    assert served_name(given) == "org/model"
    assert any(
        [flag.replace("_", "-"), value] == ["--served-model-name", "org/model"] for flag, value in pairwise(command)
    )


def test_an_unset_size_and_unset_gpus_are_left_to_the_server(tmp_path):
    config = deploy_config("m", service(VllmService, tmp_path), tmp_path)
    assert not any("parallel" in argument for argument in config.command)
    assert "CUDA_VISIBLE_DEVICES" not in config.env


def test_a_given_port_is_kept_and_zero_becomes_a_free_one(tmp_path):
    assert deploy_config("m", service(VllmService, tmp_path, port=8123), tmp_path).port == 8123
    assert deploy_config("m", service(VllmService, tmp_path), tmp_path).port > 0


def test_the_remaining_keys_arrive_too(tmp_path):
    given = service(VllmService, tmp_path, health_path="/ready", startup_timeout=7.0, setup_commands=["a"], pre_cmd="b")
    config = deploy_config("m", given, tmp_path / "logs")
    assert (config.health_path, config.startup_timeout, config.setup_commands, config.pre_cmd) == (
        ("/ready", 7.0, ["a"], "b")
    )
    assert config.log_path == tmp_path / "logs" / "server-m.log"
    assert deploy_config("org/m 1", given, tmp_path).log_path == tmp_path / "server-org-m-1.log"


REFUSED = [
    ("trt_llm", {"data_parallel_size": 2}, "service m: data_parallel_size: trtllm-serve"),
    ("vllm", {"gpus": [0], "extra_env": {"CUDA_VISIBLE_DEVICES": "1"}}, "service m: gpus and extra_env.CUDA"),
    ("vllm", {"extra_args": ["--port", "1"]}, "service m: extra_args: NEL sets --port itself\nSet the key `port`"),
    ("vllm", {"extra_args": ["--served_model_name=x"]}, "extra_args: NEL sets --served-model-name itself"),
    ("vllm", {"extra_args": ["--host", "::"]}, "extra_args: NEL sets --host itself"),
    ("sglang", {"extra_args": ["--tp-size=2"]}, "Set the key `tensor_parallel_size`"),
    ("vllm", {"model": "./no/such/model"}, "service m: model: there is no ./no/such/model"),
]


@pytest.mark.parametrize(("kind", "keys", "message"), REFUSED, ids=[" ".join(keys) for _, keys, _ in REFUSED])
def test_what_a_server_cannot_take_is_refused_by_service_and_key(tmp_path, kind, keys, message):
    given = service({name: kind for kind, name in TYPES.items()}[kind], tmp_path, **keys)
    with pytest.raises(UsageError) as caught:
        deploy_config("m", given, tmp_path)
    assert message in str(caught.value)


def test_a_container_service_is_no_process(tmp_path):
    with pytest.raises(UsageError, match="service m: NimService cannot run as a local process"):
        deploy_config("m", NimService(type="nim", model="org/model"), tmp_path)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (VllmService, "pip install vllm"),
        (SglangService, r"pip install 'sglang\[all\]'"),
        (TrtLlmService, "pip install tensorrt_llm"),
    ],
)
def test_a_missing_program_is_named_with_the_command_that_installs_it(tmp_path, kind, command):
    with pytest.raises(MissingDependencyError, match=f"service m needs .*\nInstall it with: {command}"):
        deploy_config("m", kind(type=TYPES[kind], model="org/model"), tmp_path)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("keys", [{"setup_commands": ["pip install it"]}, {"pre_cmd": "source venv/bin/activate"}])
def test_a_program_may_be_brought_by_the_services_own_commands(tmp_path, kind, keys):
    config = deploy_config("m", kind(type=TYPES[kind], model="org/model", **keys), tmp_path)
    if kind is not TrtLlmService:
        assert config.command[0] == ("python" if "pre_cmd" in keys else sys.executable)


@pytest.fixture
def gguf_file(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    return path


def llama(path, **keys):
    return LlamaCppService(**{"type": "llama_cpp", "model": str(path)} | keys)


def test_every_key_of_llama_cpp_reaches_its_launcher(tmp_path, gguf_file):
    pytest.importorskip("xllamacpp", reason="needs the extra `local`")
    keys = {"threads": 2, "context": 4096, "parallel": 3, "chat_template": "-{{ messages }}", "port": 8123}
    given = llama(gguf_file, served_model_name="short", extra_args=["--keep-quantised"], **keys)
    command = deploy_config("m", given, tmp_path).command
    line = "--alias short --host 127.0.0.1 --port 8123 --threads 2 --parallel 3 --context 4096"
    assert command[command.index("--model") :] == [
        *("--model", str(gguf_file), *line.split()),
        "--chat-template=-{{ messages }}",
        "--keep-quantised",
    ]


def test_llama_cpp_serves_a_file_under_its_stem(gguf_file):
    assert served_name(llama(gguf_file)) == "tiny"
    assert served_name(llama("package://weights/inner/Small.Q4_1.gguf")) == "Small.Q4_1"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"extra_args": ["--flash-attn"]}, "service m: extra_args: the llama_cpp server has no '--flash-attn'"),
        ({"extra_args": ["--threads", "2"]}, "service m: extra_args: NEL sets --threads itself\nSet the key `threads`"),
        ({"model": "/no/tiny.gguf"}, "service m: there is no file /no/tiny.gguf"),
    ],
)
def test_llama_cpp_refuses_what_it_cannot_take(tmp_path, gguf_file, keys, message):
    pytest.importorskip("xllamacpp", reason="needs the extra `local`")
    with pytest.raises(UsageError) as caught:
        deploy_config("m", llama(gguf_file, **keys), tmp_path)
    assert message in str(caught.value)


def test_llama_cpp_without_its_extra_says_how_to_get_it(tmp_path, gguf_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'nel\[local\]'"):
        deploy_config("m", llama(gguf_file), tmp_path)
