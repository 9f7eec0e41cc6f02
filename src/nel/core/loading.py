"""Loading by name: `module:attr`, `file.py:name`, plug-ins, lazy public names, and packages that may be missing."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from nel.core.errors import LoadError, MissingDependencyError, NelError

_files: dict[tuple[Path, str], ModuleType] = {}
_siblings: dict[str, Path] = {}
"""Modules that a user's file brought in from its own folder, and that folder."""
_lock = threading.RLock()


def load_object(spec: str, *, what: str) -> Any:
    """What `module:attr.sub` or `path/file.py:name` names.

    `LoadError` opens with `what` ("solver", "scorer") and says which part of `spec` is wrong, why, and which names
    come near.
    """
    source, colon, name = spec.rpartition(":")
    if not colon or not source or not name:
        package, dot, last = spec.rpartition(".")
        example = f"{package}:{last}" if dot and last != "py" else f"{spec or 'package.module'}:name"
        raise LoadError(f"{what} {spec!r} names no object.", hint=f"Write module:name or file.py:name, e.g. {example}")
    try:
        module = load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    except LoadError as error:
        raise LoadError(f"{what} {spec!r}: {error.message}", hint=error.hint) from error
    value: Any = module
    at = source
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LoadError(f"{what} {spec!r}: {at} has no {part!r}.", hint=_near(part, dir(value))) from None
        except ImportError as error:
            raise LoadError(f"{what} {spec!r}: {at} cannot give {part!r}: {error}") from error
        at = f"{at}.{part}"
    return value


def load_file(path: Path) -> ModuleType:
    """The module that a user's Python file is, executed once per path and content; `LoadError` names the failing line.

    While it loads, it may import what lies in its own folder.
    """
    import hashlib

    file = path.expanduser().resolve()
    try:
        source = file.read_bytes()
    except OSError as error:
        names = [entry.name for entry in file.parent.glob("*.py")] if file.parent.is_dir() else []
        raise LoadError(f"{path}: {error.strerror or error}", hint=_near(file.name, names)) from error
    key = (file, hashlib.sha256(source).hexdigest())
    with _lock:
        if key not in _files:
            _files[key] = _execute(file, source, f"nel_file_{file.stem}_{key[1][:12]}")
        return _files[key]


def entry_points(group: str) -> dict[str, str]:
    """The installed plug-ins of `group`: name to `module:attr`, none of them imported.

    `LoadError` where two distributions declare different objects under one name.
    """
    from importlib.metadata import entry_points as installed

    found: dict[str, str] = {}
    for point in installed(group=group):
        if found.setdefault(point.name, point.value) != point.value:
            raise LoadError(
                f"plug-in {point.name!r} of {group} is declared twice: {found[point.name]} and {point.value}",
                hint="Uninstall one of the packages that declare it.",
            )
    return found


def lazy_export(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `package`, which import a name's module (`names`: name to module) on first use.

    __getattr__, __dir__ = lazy_export(__name__, {"run_evaluation": "nel.engine.loop"})
    """

    def get(name: str) -> Any:
        module = names.get(name)
        if module is None:
            near = _near(name, names)
            message = f"module {package!r} has no attribute {name!r}" + (f". {near}" if near else "")
            raise AttributeError(message, name=name, obj=sys.modules[package])
        value = getattr(importlib.import_module(module), name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    def names_and_globals() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, names_and_globals


def require(module: str, *, what: str, extra: str) -> ModuleType:
    """The optional `module`, or `MissingDependencyError` with the command that installs `extra`; `what` needs it.

    `LoadError` if it is installed but cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not _is_prefix(error.name, module):
            raise LoadError(f"{what} needs {module}, which lacks {error.name!r}.") from error
        command = f"pip install 'nel[{extra}]'"
        raise MissingDependencyError(what, needs=module, command=command) from None
    except ImportError as error:
        raise LoadError(f"{what} needs {module}, which is installed but cannot be imported: {error}") from error


def _load_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise LoadError(f"{name!r} is neither a module nor a .py file.")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not _is_prefix(error.name, name):
            raise LoadError(f"{name} needs {error.name!r}, which is not installed.") from error
        raise LoadError(f"there is no module {error.name!r}.", hint=_module_hint(name, error.name or name)) from None
    except NelError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(f"{name} cannot be imported: {_reason(error)}") from error


def _execute(file: Path, source: bytes, name: str) -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # every .py path has one
    module = importlib.util.module_from_spec(spec)
    folder = file.parent
    _forget_namesakes(folder)
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        # The bytes that were hashed are the ones that run; a cached .pyc might be older.
        exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except NelError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise LoadError(f"{file} cannot be loaded: {_reason(error, str(file))}") from error
    finally:
        sys.path.remove(str(folder))
        for new in set(sys.modules) - before - {name}:
            origin = getattr(sys.modules[new], "__file__", None)
            if origin and Path(origin).is_relative_to(folder):
                _siblings[new] = folder
    return module


def _forget_namesakes(folder: Path) -> None:
    """A `helpers.py` of another user's folder must not stand in for the one in `folder`."""
    for name, origin in list(_siblings.items()):
        top = folder / name.partition(".")[0]
        if origin != folder and (top.with_suffix(".py").exists() or top.is_dir()):
            sys.modules.pop(name, None)
            del _siblings[name]


def _reason(error: BaseException, file: str | None = None) -> str:
    """Type, message and place of an error: in `file` where it passed through it."""
    import traceback

    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    return f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {error}"


def _is_prefix(missing: str | None, module: str) -> bool:
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def _module_hint(name: str, missing: str) -> str | None:
    import pkgutil

    file = Path(*name.split(".")).with_suffix(".py")
    if file.exists():
        return f"For the file in this folder write ./{file}:name"
    parent, _, last = missing.rpartition(".")
    places = list(getattr(importlib.import_module(parent), "__path__", ())) if parent else None
    return _near(last, (module.name for module in pkgutil.iter_modules(places)), prefix=f"{parent}." if parent else "")


def _near(name: str, names: Iterable[str], *, prefix: str = "") -> str | None:
    import difflib

    matches = difflib.get_close_matches(name, list(names))
    return f"Did you mean {' or '.join(prefix + match for match in matches)}?" if matches else None
