"""A benchmark's `requirements`: checked, never installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote

from nel.core.errors import DataError, MissingDependencyError


def check_requirements(name: str, requirements: Sequence[str] | str, base: Path | None) -> None:
    """Raises `MissingDependencyError` with the command that installs what is missing or has another version.

    `requirements` are specifiers (`"sympy>=1.12"`), or the path of a requirements file, relative to `base`.
    """
    missing = [spec for spec in _specifiers(name, requirements, base) if not _is_met(name, spec)]
    if missing:
        raise MissingDependencyError(
            f"Benchmark {name}",
            needs=", ".join(missing),
            command=f"pip install {' '.join(quote(spec) for spec in missing)}",
        )


def _specifiers(name: str, requirements: Sequence[str] | str, base: Path | None) -> list[str]:
    if not isinstance(requirements, str):
        return list(requirements)
    path = (base or Path()) / requirements
    if not path.is_file():
        raise DataError(
            f"benchmark {name}: requirements file {path}: no such file",
            hint='A list of specifiers is given as a list: requirements=["sympy>=1.12"].',
        )
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _is_met(name: str, spec: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(spec)
    except InvalidRequirement as error:
        raise DataError(f"benchmark {name}: requirement {spec!r}: {str(error).splitlines()[0]}") from None
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return False
    return requirement.specifier.contains(found, prereleases=True)
