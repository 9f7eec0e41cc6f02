"""From a judge's reply to its verdict, or to the reason why it cannot be read. Nothing is guessed.

A verdict stands in the last JSON object that has the key of the scale, else in the reply's last line, where that is
nothing but a verdict (`Score: 4`, `**Verdict: correct**`, `[[B]]`). A number or a label anywhere else is none. A
verdict that is off the scale makes the reply unreadable: an earlier one does not take its place.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from nel.scoring.judging.scale import Scale

VERSION = "1"
"""Raised when some reply may be read differently than before."""

LONGEST = 100_000
"""Characters of a reply that is read; a verdict in a longer one is no verdict."""
_WORK = 2_000_000
"""Characters that may be looked at in broken JSON."""


class Reading(msgspec.Struct, frozen=True):
    """A verdict as the judge gave it: a number of the scale, and the label that stood for it."""

    score: float
    label: str | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """Why a reply holds no verdict."""

    reason: str


def read_verdict(reply: str, scale: Scale, *, whole: bool = False) -> Reading | Unreadable:
    """The verdict of a reply; `whole` says that it must be one JSON object, as structured output promises.

    Total: any text gives a verdict on the scale or a reason, in bounded time.
    """
    if not reply.strip():
        return Unreadable("the reply is empty")
    if len(reply) > LONGEST:
        return Unreadable(f"the reply has more than {LONGEST} characters")
    found = _whole_object(reply) if whole else _last_object(reply, scale.key)
    if whole and not isinstance(found, _Object):
        return found if isinstance(found, Unreadable) else Unreadable("the reply is no JSON object")
    if isinstance(found, Unreadable):
        return found
    line = _final_line(reply, scale)
    if found is None:
        return line or Unreadable(f"no JSON object with {scale.key!r}, and the last line is no verdict")
    if scale.key not in found.value:
        return Unreadable(f"the JSON object has no {scale.key!r}")
    verdict = _of_value(found.value[scale.key], scale)
    if line is not None and not whole and found.end < len(reply.rstrip()) and line != verdict:
        return Unreadable("the JSON object and the last line say different things")
    return verdict


class _Object(msgspec.Struct):
    value: dict[str, Any]
    end: int


class _AmbiguousError(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _AmbiguousError
    return value


def _constant(_name: str) -> Any:
    raise _AmbiguousError


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _whole_object(reply: str) -> _Object | Unreadable:
    try:
        value = _decoder.decode(reply.strip())
    except (ValueError, RecursionError):
        return Unreadable("the reply is no single JSON object")
    return _Object(value, len(reply)) if isinstance(value, dict) else Unreadable("the reply is no JSON object")


def _last_object(reply: str, key: str) -> _Object | Unreadable | None:
    """The last outermost JSON object with `key`; one whose keys are not unique is no verdict."""
    found: _Object | Unreadable | None = None
    work = 0
    at = reply.find("{")
    while at >= 0:
        try:
            value, end = _decoder.raw_decode(reply, at)
            if isinstance(value, dict) and key in value:
                found = _Object(value, end)
        except json.JSONDecodeError as error:
            work += error.pos - at + error.pos // 50  # the error counts the lines before it
            end = at + 1
        except _AmbiguousError:
            found, end = Unreadable("a JSON object has a key twice, or a number that is none"), at + 1
            work += len(reply) // 8
        except (ValueError, RecursionError):  # a number of thousands of digits, or nesting without end
            end = at + 1
            work += len(reply) // 8
        if work > _WORK:
            return Unreadable("too much broken JSON")
        at = reply.find("{", end)
    return found


_NUMBER = r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?"
_NUMBER_ALONE = re.compile(_NUMBER)
_NAMED = re.compile(
    r"(?:(?:the|my|final|overall|total)[ ]){0,3}"
    r"(?:score|rating|grade|mark|verdict|judge?ment|label|winner|classification|decision)"
    r"[ ]?[:=][ ]?(?P<said>.{1,200})",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\[\[(?P<said>[^\[\]]{1,200})\]\]")
_OF_BEST = re.compile(rf"(?P<score>{_NUMBER})(?:[ ]?(?:/|out of)[ ]?(?P<best>{_NUMBER}))?", re.IGNORECASE)


def _final_line(reply: str, scale: Scale) -> Reading | Unreadable | None:
    """The verdict that the last line is; None where it is something else."""
    line = reply.rstrip().rpartition("\n")[2]
    if len(line) > 300:
        return None
    plain = " ".join(line.replace("*", "").replace("`", "").split()).lstrip("#>- ").rstrip(". ")
    match = _NAMED.fullmatch(plain) or _BRACKETED.fullmatch(plain)
    if match is None:
        return None
    said = match["said"].strip().rstrip(".")
    inner = _BRACKETED.fullmatch(said)
    said = (inner["said"] if inner else said).strip().strip("\"'")
    if scale.labels is not None:
        return _of_value(said, scale)
    number = _OF_BEST.fullmatch(said)
    if number is None:
        return Unreadable(f"{said[:80]!r} is no score")
    if number["best"] is not None and float(number["best"]) != scale.high:
        return Unreadable(f"{said[:80]!r} is on another scale than {scale.low:g} to {scale.high:g}")
    return _of_value(number["score"], scale)


def _of_value(value: Any, scale: Scale) -> Reading | Unreadable:
    if scale.labels is not None:
        label = scale.label(value) if isinstance(value, str) else None
        if label is None:
            return Unreadable(f"{str(value)[:80]!r} is none of {', '.join(scale.labels)}")
        return Reading(scale.labels[label], label)
    if isinstance(value, str) and _NUMBER_ALONE.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Unreadable(f"{str(value)[:80]!r} is no number")
    if not scale.low <= value <= scale.high:
        return Unreadable(f"{str(value)[:80]} lies outside {scale.low:g} to {scale.high:g}")
    return Reading(float(value))
