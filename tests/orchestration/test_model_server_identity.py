"""The identity of a managed service: all that can change an answer, and nothing else."""

import pytest

from nel.config.services import LlamaCppService, SglangService, VllmService
from nel.orchestration.model_server import managed_identity


def vllm(model="org/model", **keys):
    return VllmService(**{"type": "vllm", "model": str(model)} | keys)


def llama(model, **keys):
    return LlamaCppService(**{"type": "llama_cpp", "model": str(model)} | keys)


@pytest.fixture
def folder(tmp_path):
    """A model as the hub lays it out."""
    return make_folder(tmp_path / "model")


def make_folder(path):
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    (path / "tokenizer.json").write_text('{"model": "bpe"}')
    (path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    (path / "model-00001.safetensors").write_bytes(b"\0" * 64)
    (path / "README.md").write_text("about")
    (path / ".cache").mkdir()
    (path / ".cache" / "download.lock").write_text("x")
    return path


@pytest.fixture
def gguf_file(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF one")
    return path


SAME = {
    "port": {"port": 9000},
    "gpus": {"gpus": [3, 4, 5, 6], "tensor_parallel_size": 2, "pipeline_parallel_size": 2},
    "copies": {"data_parallel_size": 4},
    "name": {"served_model_name": "other"},
    "time": {"startup_timeout": 5.0, "health_path": "/ready"},
    "environment": {"extra_env": {"HF_HOME": "elsewhere"}, "setup_commands": ["true"], "pre_cmd": "true"},
    "memory": {"extra_args": ["--gpu-memory-utilization", "0.8", "--max-num-seqs=64", "--disable-log-requests"]},
    "underscores": {"extra_args": ["--gpu_memory_utilization=0.8"]},
}
OTHER = {
    "model": {"model": "org/other"},
    "quantisation": {"extra_args": ["--quantization", "fp8"]},
    "length": {"extra_args": ["--max-model-len", "4096"]},
    "revision": {"extra_args": ["--revision=v2"]},
    "template": {"extra_args": ["--chat-template", "{{ messages }}"]},
}


@pytest.mark.parametrize("keys", SAME.values(), ids=SAME)
def test_what_cannot_change_an_answer_is_no_part_of_it(keys):
    assert managed_identity(vllm(**keys)) == managed_identity(vllm())


@pytest.mark.parametrize("keys", OTHER.values(), ids=OTHER)
def test_what_can_change_an_answer_is_part_of_it(keys):
    assert managed_identity(vllm(**keys)) != managed_identity(vllm())


def test_another_kind_of_server_is_another_service():
    sglang = SglangService(type="sglang", model="org/model")
    assert managed_identity(sglang) != managed_identity(vllm())


def test_neither_the_order_of_flags_nor_their_spelling_matters():
    one = ["--quantization", "fp8", "--max_model_len=4096"]
    two = ["--max-model-len", "4096", "--quantization=fp8"]
    assert managed_identity(vllm(extra_args=one)) == managed_identity(vllm(extra_args=two))


def test_a_value_belongs_to_its_flag():
    one, two = ["--a", "1", "--b", "2"], ["--a", "2", "--b", "1"]
    assert managed_identity(vllm(extra_args=one)) != managed_identity(vllm(extra_args=two))


def test_a_template_file_counts_by_its_content(tmp_path):
    one, two = tmp_path / "one.jinja", tmp_path / "two.jinja"
    one.write_text("{{ messages }}")
    two.write_text("{{ messages }}")
    first, second = (vllm(extra_args=["--chat-template", str(path)]) for path in (one, two))
    assert managed_identity(first) == managed_identity(second)
    two.write_text("{{ messages }}!")
    assert managed_identity(first) != managed_identity(second)


def test_a_local_folder_is_known_by_its_content_wherever_it_lies(tmp_path, folder):
    copy = make_folder(tmp_path / "elsewhere" / "copy")
    (copy / "README.md").write_text("something else")
    (copy / ".cache" / "download.lock").unlink()
    assert managed_identity(vllm(copy)) == managed_identity(vllm(folder))
    assert managed_identity(vllm(folder)) != managed_identity(vllm())


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors.index.json"])
def test_a_change_of_config_tokenizer_or_index_makes_another_model(folder, name):
    before = managed_identity(vllm(folder))
    (folder / name).write_text('{"changed": true}')
    assert managed_identity(vllm(folder)) != before


def test_weights_of_another_size_make_another_model(folder):
    before = managed_identity(vllm(folder))
    (folder / "model-00001.safetensors").write_bytes(b"\0" * 65)
    assert managed_identity(vllm(folder)) != before


def test_a_gguf_file_is_known_by_its_content(tmp_path, gguf_file):
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(gguf_file.read_bytes())
    assert managed_identity(llama(copy)) == managed_identity(llama(gguf_file))
    copy.write_bytes(b"GGUF two")
    assert managed_identity(llama(copy)) != managed_identity(llama(gguf_file))


def test_of_llama_cpp_the_length_of_one_slot_counts_and_speed_does_not(gguf_file):
    identity = managed_identity(llama(gguf_file))
    assert managed_identity(llama(gguf_file, port=9000, threads=4, served_model_name="x")) == identity
    assert managed_identity(llama(gguf_file, parallel=8, context=16384)) == identity
    assert managed_identity(llama(gguf_file, context=4096)) != identity
    assert managed_identity(llama(gguf_file, extra_args=["--keep-quantised"])) != identity


def test_a_llama_cpp_template_counts_by_its_text(tmp_path, gguf_file):
    file = tmp_path / "chat.jinja"
    file.write_text("{{ messages }}")
    by_file, by_text = (llama(gguf_file, chat_template=given) for given in (str(file), "{{ messages }}"))
    assert managed_identity(by_file) == managed_identity(by_text)
    assert managed_identity(by_file) != managed_identity(llama(gguf_file))
