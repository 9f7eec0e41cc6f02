"""Calling a scorer: what it is known by, and how it is kept from stalling the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

from nel.scoring import VERSIONS
from nel.scoring.sample import ScorerInput

SLOW_SECONDS = 0.010
_CALLS_IN_THREADS = 100


class ScorerCall:
    """A scorer that can be awaited. A sync one runs in place until a call takes more than 10 ms; the next hundred calls
    run in threads, each slow one among them renewing the hundred."""

    def __init__(self, function: Callable[[ScorerInput], Any]) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(_call_of(function))
        self._in_threads = 0

    async def __call__(self, sample: ScorerInput) -> Any:
        """What the scorer returns for one answer."""
        if self._is_async:
            return await self._function(sample)
        if self._in_threads:
            self._in_threads -= 1
            result, seconds = await asyncio.to_thread(self._timed, sample)
        else:
            result, seconds = self._timed(sample)
        if seconds > SLOW_SECONDS:
            self._in_threads = _CALLS_IN_THREADS
        return await result if inspect.isawaitable(result) else result

    def _timed(self, sample: ScorerInput) -> tuple[Any, float]:
        begin = time.perf_counter()
        result = self._function(sample)
        return result, time.perf_counter() - begin


class ScorerCode:
    """What a scorer is: for NEL's own the declared versions, for a user's the content of its defining file."""

    def __init__(self, function: Callable[[ScorerInput], Any]) -> None:
        self._bound = (
            [*map(repr, function.args), repr(sorted(function.keywords.items()))]
            if isinstance(function, partial)
            else []
        )
        plain = inspect.unwrap(function.func if isinstance(function, partial) else function)
        self.name = getattr(plain, "__qualname__", type(plain).__qualname__)
        self.file: Path | None = None
        self.content = b""
        self._module = str(getattr(plain, "__module__", ""))
        self._function = plain if hasattr(plain, "__code__") else _call_of(plain)
        code = getattr(self._function, "__code__", None)
        if isinstance(code, CodeType):
            path = Path(code.co_filename)
            self.file = path.resolve() if path.is_file() else None
            self.content = self.file.read_bytes() if self.file else b"\n".join(_code_parts(code))

    def uses(self, name: str) -> bool:
        """Whether the scorer, or a function of its module that it names, names the function `name` or has that text."""
        return _uses(self._function, name, set())

    @property
    def is_own(self) -> bool:
        """Whether it is NEL's, so that its version says all."""
        return self._module.startswith("nel.")

    def identity(self) -> dict[str, Any]:
        """Name, digest of the code (unless it is NEL's own), and the versions of the built-in scorers that it names."""
        words = set(re.findall(rb"\w+", self.content))
        identity: dict[str, Any] = {
            "scorer": f"{self._module}:{self.name}" if self.is_own else self.name,
            "built_in": {name: version for name, version in VERSIONS.items() if name.encode() in words},
        }
        if self._bound:
            identity["arguments"] = self._bound
        if not self.is_own:
            identity["code"] = f"sha256:{hashlib.sha256(self.content).hexdigest()}"
        return identity


def _call_of(function: Any) -> Any:
    return getattr(type(function), "__call__", None)  # noqa: B004 - its method, not whether there is one


def _uses(function: Any, name: str, seen: set[int]) -> bool:
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or id(code) in seen:
        return False
    seen.add(id(code))
    words, texts = _words(code)
    if name in words or name in texts:
        return True
    known = getattr(function, "__globals__", {})
    for value in (known[word] for word in words if word in known):
        plain = inspect.unwrap(value) if callable(value) else value
        if getattr(plain, "__name__", None) == name:
            return True
        if getattr(plain, "__globals__", None) is known and _uses(plain, name, seen):
            return True
    return False


def _words(code: CodeType) -> tuple[set[str], set[str]]:
    """The names and the texts in a function's code, those of functions inside it included."""
    words, texts = set(code.co_names), {constant for constant in code.co_consts if isinstance(constant, str)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner_words, inner_texts = _words(constant)
            words |= inner_words
            texts |= inner_texts
        elif isinstance(constant, tuple):
            texts |= {item for item in constant if isinstance(item, str)}
    return words, texts


def _code_parts(code: CodeType) -> list[bytes]:
    """What a function without a file does, as bytes that are the same in every process of one Python version."""
    parts = [code.co_code, repr(code.co_names).encode()]
    for constant in code.co_consts:
        parts += _code_parts(constant) if isinstance(constant, CodeType) else [repr(constant).encode()]
    return parts
