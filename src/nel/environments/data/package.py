"""`package://NAME/inner/path`: rows that ship inside an installed distribution."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from nel.core.errors import DataError, MissingDependencyError
from nel.environments.data.source import DataSource, JoinedSource


class PackageSource(JoinedSource):
    """A file or folder of a distribution, known by the distribution's version and the file's digest."""

    def __init__(self, file: DataSource, spec: str, package: Distribution) -> None:
        super().__init__([file], spec)
        self._package = package

    def identity(self) -> dict[str, Any]:
        """The file's identity with the distribution's version and licence."""
        found = super().identity() | {"revision": self._package.version}
        licence = _license(self._package)
        return found | {"license": licence} if licence else found


def find_in_package(spec: str) -> tuple[Path, Distribution]:
    """The file that a `package://` address names, and its distribution.

    `MissingDependencyError` where the distribution is not installed, `DataError` where it has no such file.
    """
    name, _, inner = spec.removeprefix("package://").partition("/")
    if not name or not inner:
        raise DataError(f"{spec}: not an address of data", hint="Write package://DISTRIBUTION/path/inside/it.jsonl")
    try:
        package = distribution(name)
    except PackageNotFoundError:
        raise MissingDependencyError(
            f"The data {spec}", needs=f"the distribution {name!r}", command=f"pip install {name}"
        ) from None
    root = Path(str(package.locate_file(""))).resolve()
    path = (root / inner).resolve()
    if not path.is_relative_to(root):
        raise DataError(f"{spec}: the path leads out of the place where {name} is installed")
    if not path.exists():
        names = [str(file) for file in package.files or []]
        near = get_close_matches(inner, names, n=3, cutoff=0.5)
        raise DataError(
            f"{spec}: {name} {package.version} has no {inner!r}",
            hint=f"Near: {', '.join(near)}" if near else "The path is relative to the folder it is installed in.",
        )
    return path, package


def _license(package: Distribution) -> str | None:
    metadata = package.metadata
    said = metadata.get("License-Expression") or metadata.get("License")
    if said and "\n" not in said and said.upper() != "UNKNOWN":
        return str(said)
    classifiers: list[str] = metadata.get_all("Classifier") or []
    return next((text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")), None)
