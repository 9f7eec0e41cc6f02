"""What a user reads of a request that failed: where, what the server said, and what to check; never a secret."""

from __future__ import annotations

from nel.core.secrets import Redactor, redact_text, strip_credentials
from nel.inference.failure import Failure, InferenceError
from nel.inference.protocols import PROTOCOLS
from nel.inference.settings import ServiceSettings

_EXCERPT = 400


def inference_error(failure: Failure, url: str, tries: int, settings: ServiceSettings) -> InferenceError:
    """The error that ends a request of `settings`' service after `tries` tries, the last of them at `url`."""
    status = f" (status {failure.status})" if failure.status is not None and failure.status >= 300 else ""
    often = f" after {tries} tries" if tries > 1 else ""
    where = f"service {settings.name}, {strip_credentials(url)}"
    return InferenceError(
        f"{where}: {failure.category}{status}{often}: {excerpt(failure.detail, settings)}",
        category=failure.category,
        permanent=failure.permanent,
        status=failure.status,
        tries=tries,
        hint=_hint(failure, settings),
    )


def excerpt(text: str, settings: ServiceSettings) -> str:
    """The start of what a server said, on one line, without the service's own key or anything that looks like one."""
    known = [value for value in (settings.api_key, *settings.headers.values()) if value]
    clean = redact_text(Redactor(known).text(text[:4096]))
    if settings.api_key and len(settings.api_key) >= 4:
        clean = clean.replace(settings.api_key, "***")
    return " ".join(clean.split())[:_EXCERPT]


def _hint(failure: Failure, settings: ServiceSettings) -> str | None:
    name = settings.name
    match failure.category:
        case "connection_error":
            return f"Is the server running? Check host and port of `url` of service {name}."
        case "auth_error" if settings.api_key:
            return f"The server refused the credentials: check `api_key` of service {name}."
        case "auth_error":
            return f"Set `api_key` of service {name}; none was sent."
        case "bad_request" if failure.status in {404, 405} or (failure.status or 0) < 400:
            path = f"the path of `url` (for {settings.protocol} it ends in {PROTOCOLS[settings.protocol].SUFFIX})"
            return f"Check {path} and the model {settings.model!r}."
        case "rate_limit":
            return f"Lower `max_concurrent` of service {name}, or set its `requests_per_minute` or `tokens_per_minute`."
        case "model_timeout":
            return f"Raise `request_timeout` of service {name} (now {settings.request_timeout:g} s)."
        case "bad_response" if failure.reply is not None and failure.reply.body[:1] == b"<":
            return f"The reply is a web page: check `url` of service {name}."
        case _:
            return None
