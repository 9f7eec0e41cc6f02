"""`${VAR}`, `${VAR:-default}` and the literal `$${VAR}` in the texts of a config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HINT = "Write $${ for a literal ${."


class ExpansionError(ValueError):
    """A text whose variables cannot be put in; `hint` says what to do."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


def expand(text: str, env: Mapping[str, str], used: dict[str, str] | None = None) -> str:
    """The text with its variables put in.

    `${VAR:-default}` takes the default where VAR is unset or empty; a default may hold variables itself. `used` is
    given each variable that was read, with its value (a default that was taken, under an empty name). ExpansionError
    where a variable is not set or `${` begins something else.
    """
    if "${" not in text:
        return text
    pieces: list[str] = []
    end = 0
    while (start := text.find("${", end)) >= 0:
        if text[start - 1 : start] == "$" and start > end:
            pieces += (text[end : start - 1], "${")
            end = start + 2
            continue
        pieces.append(text[end:start])
        value, end = _variable(text, start, env, used if used is not None else {})
        pieces.append(value)
    return "".join((*pieces, text[end:]))


def escape(text: str) -> str:
    """The text that `expand` turns into this one."""
    return text.replace("${", "$${")


def _variable(text: str, start: int, env: Mapping[str, str], used: dict[str, str]) -> tuple[str, int]:
    close = _closing_brace(text, start + 2)
    inner = text[start + 2 : close]
    match = _NAME.match(inner)
    name = match[0] if match else ""
    rest = inner[len(name) :]
    if not name or (rest and not rest.startswith(":-")):
        raise ExpansionError(f"${{{inner}}} is neither ${{NAME}} nor ${{NAME:-default}}")
    value = env.get(name)
    if rest and not value:
        default = expand(rest[2:], env, used)
        used[""] = default
        return default, close + 1
    if value is None:
        near = get_close_matches(name, env, n=1, cutoff=0.8)
        hint = f"Did you mean {near[0]}? " if near else f"Set it, or give a default: ${{{name}:-...}}. "
        raise ExpansionError(f"environment variable {name} is not set", hint + _HINT)
    used[name] = value
    return value, close + 1


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for index in range(start, len(text)):
        if text[index] == "}":
            depth -= 1
            if depth == 0:
                return index
        elif text.startswith("${", index):
            depth += 1
    raise ExpansionError(f"{text[start - 2 :][:40]!r} has no closing brace")
