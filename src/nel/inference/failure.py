"""How a request fails: `Failure` inside the client, `InferenceError` out of it, and the rules from one to the other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nel.core.errors import AttemptError
from nel.inference.transport import Reply

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON that a server sent may raise."""

RETRIED_STATUSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that may get better by themselves."""

_OVERLOAD: Final = frozenset({429, 503, 529})
_AUTH: Final = frozenset({401, 402, 403})
_FILTER_CODES: Final = frozenset(
    {"content_filter", "content_filter_error", "content_policy_violation", "responsibleaipolicyviolation"}
)
_CONTEXT_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_CONTEXT_TEXT: Final = re.compile(
    r"context (?:length|window|size)|maximum (?:model|sequence|input) length|max_model_len|max_seq_len"
    r"|prompt is too long|input is too long|prompt.{0,40}longer than the maximum"
    r"|input token count.{0,40}exceeds|inputs?` tokens \+ `max_new_tokens`|reduce the length of the (?:messages|prompt)"
    r"|exceeds? max_num_tokens|too many (?:input )?tokens",
    re.IGNORECASE,
)
_STATUS_OF_NAME: Final = (
    (("rate_limit", "ratelimit", "too_many_requests", "quota"), 429),
    (("overloaded", "unavailable"), 503),
    (("timeout",), 504),
    (("authentication", "permission", "invalid_api_key", "unauthorized", "forbidden"), 401),
    (("not_found", "notfound"), 404),
    (("invalid_request", "badrequest", "bad_request", "validation", "unprocessable"), 400),
)


@dataclass(slots=True, kw_only=True)
class Failure:
    """One try that gave no answer."""

    category: str
    detail: str
    """What the server or the transport said: not redacted, not cut."""
    status: int | None = None
    retry: bool = True
    """Asking again soon may help."""
    permanent: bool = False
    """Asking again cannot help, not even in a later run."""
    overload: bool = False
    """The service asks for less load."""
    unreachable: bool = False
    """The connection failed: another replica may do better."""
    retry_after: str | None = None
    """The header of that name."""
    reply: Reply | None = None
    """What the server sent, where it sent a whole reply."""


class InferenceError(AttemptError):
    """A request that gave no answer, after all its tries.

    `category` is one of `nel.observability.failures.CATEGORIES`; the message names the service, the URL without
    credentials and what the server said, redacted; `hint` says what to check.
    """

    def __init__(
        self,
        message: str,
        *,
        category: str,
        permanent: bool = False,
        status: int | None = None,
        tries: int = 1,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, category=category, permanent=permanent, status=status, tries=tries)
        self.hint = hint


def bad_response(detail: str, *, retry: bool = True) -> Failure:
    """A reply that breaks its protocol."""
    return Failure(category="bad_response", detail=detail, retry=retry)


def content_filtered(detail: str, *, permanent: bool = True) -> Failure:
    """An answer that the service withheld."""
    return Failure(category="content_filter", detail=detail, retry=False, permanent=permanent)


def stream_ended_early() -> Failure:
    """An event stream that broke off."""
    return Failure(category="connection_error", detail="the stream ended before the answer did", unreachable=True)


def of_status(reply: Reply, retried: frozenset[int]) -> Failure:
    """The failure that a reply with a status other than 2xx is; `retried` are the statuses that are asked again."""
    try:
        value = msgspec.json.decode(reply.body)
    except UNREADABLE:
        value = reply.body[:4096].decode("utf-8", "replace")
    failure = _classify(reply.status, value, retried)
    failure.status = reply.status
    failure.retry_after = reply.headers.get("Retry-After")
    failure.reply = reply
    if 300 <= reply.status < 400:
        failure.detail = f"a redirect to {reply.headers.get('Location', 'nowhere')}"
    return failure


def of_error_body(value: Any, retried: frozenset[int]) -> Failure:
    """The failure that an error inside a 200 reply is, told by its code and type."""
    message, names, status = _read_error(value)
    if not status:
        status = next((code for words, code in _STATUS_OF_NAME if any(word in names for word in words)), 500)
    failure = _classify(status, value, retried)
    failure.status = 200
    failure.detail = f"an error inside a 200 reply: {message}"
    return failure


def _classify(status: int, value: Any, retried: frozenset[int]) -> Failure:
    message, names, _ = _read_error(value)
    if any(code in names for code in _FILTER_CODES):
        return content_filtered(message)
    if status not in _OVERLOAD and (
        any(code in names for code in _CONTEXT_CODES) or (status < 600 and _CONTEXT_TEXT.search(message[:4096]))
    ):
        return Failure(category="context_window_exceeded", detail=message, retry=False, permanent=True)
    if status in _AUTH:
        # Not permanent: a resume with the right key should ask again.
        return Failure(category="auth_error", detail=message, retry=status in retried)
    if status == 429:
        spent = "insufficient_quota" in names
        return Failure(category="rate_limit", detail=message, retry=status in retried and not spent, overload=not spent)
    if status == 408:
        return Failure(category="model_timeout", detail=message, retry=status in retried)
    if status >= 500 or status in {409, 425}:
        return Failure(category="server_error", detail=message, retry=status in retried, overload=status in _OVERLOAD)
    retry = status in retried
    return Failure(category="bad_request", detail=message, retry=retry, permanent=not retry)


def _read_error(value: Any) -> tuple[str, str, int]:
    """Message, lower-case names (type, code) in one text, and a status code where one stands in the body."""
    if isinstance(value, str):
        return value, "", 0
    if not isinstance(value, dict):
        return "" if value is None else str(value)[:4096], "", 0
    error = value.get("error")
    if isinstance(error, str):
        return error, str(value.get("code") or value.get("type") or "").lower(), 0
    source = error if isinstance(error, dict) else value
    message = source.get("message") or source.get("detail") or source.get("msg") or ""
    text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
    code = source.get("code")
    status = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 0
    inner = source.get("innererror")
    names = (source.get("type"), code, inner.get("code") if isinstance(inner, dict) else None)
    return (
        text or msgspec.json.encode(value)[:4096].decode("utf-8", "replace"),
        " ".join(map(str, names)).lower(),
        status,
    )
