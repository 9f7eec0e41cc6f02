"""Secrets: which names and texts are credentials, and how they are kept out of what is written.

Two kinds of protection. *Shapes* (`redact_text`, `redact_value`) serve config, headers, errors and command lines. A
`Redactor` replaces only the run's own secret values, so prompts and answers that merely talk about keys stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec

REDACTED = "[redacted]"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = {
    "apikey", "authorization", "cookie", "cookies", "credential", "credentials", "jwt", "passphrase", "passwd",
    "password", "passwords", "pwd", "secret", "secrets",
}  # fmt: skip
_SECRET_PAIRS = {
    ("access", "key"), ("access", "tokens"), ("account", "key"), ("api", "key"), ("api", "keys"), ("api", "tokens"),
    ("auth", "key"), ("auth", "tokens"), ("encryption", "key"), ("master", "key"), ("private", "key"),
    ("shared", "key"), ("signing", "key"), ("ssh", "key"), ("subscription", "key"),
}  # fmt: skip
_SECRET_LAST = {"auth", "bearer", "token"}
_TEXT_TOKEN = {
    "begin", "bos", "cls", "cost", "end", "eos", "first", "image", "last", "mask", "max", "min", "new", "next",
    "output", "pad", "per", "price", "prompt", "sep", "special", "start", "stop", "think", "thinking", "to", "unk",
}  # fmt: skip
"""Words that make a `token` a piece of text (`eos_token`, `time_per_output_token`)."""
_REFERENCE = {"arn", "count", "env", "file", "length", "limit", "name", "path", "type", "url"}
"""Last words of names that say where a secret is, or how long, but not what it is (`api_key_env`)."""
_QUERY_NAMES = {"code", "key", "sig", "signature", "x-amz-credential", "x-amz-signature", "x-goog-signature"}
"""Query parameters that are secret in a URL though such a name is harmless elsewhere."""

_TEMPLATE = re.compile(r"\$\{\w+\}")
_HARMLESS = {"", "none", "null", "true", "false", REDACTED}

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL
)
_USERINFO = re.compile(r"(?<=://)[^\s/?#\"'<>@\[\]][^\s/?#\"'<>]{0,511}@")
_QUERY = re.compile(rf"(?i)(?<=[?&])({'|'.join(sorted(_QUERY_NAMES))})=[^&#\s\"'\[]+")
_FLAG = re.compile(r"(?<!\S)(--[\w-]{2,80})(\s+)(?!-)[^\s\[]\S*")
_ASSIGNMENT = re.compile(
    r"""
    (?<![\w.-])
    (?P<name>(?=[\w.-]{0,80}(?i:key|token|pass|pwd|secret|credential|auth|cookie|jwt|bearer))[\w.-]{2,120})
    (?P<sign>\\?["']?\s{0,3}[:=]\s{0,3})
    (?P<value>
        "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? | \\"[^"\\\n]*
      | (?:(?i:bearer|basic|digest|token)\s{1,3})?(?!\$\{)[^\s"',;&<>{}\[\]()\\]+
    )
    """,
    re.VERBOSE,
)
_SHAPES = re.compile(
    r"""
    (?i:\bbearer)\s+(?=\S{0,200}\d|\S{16})[\w.~+/=-]{8,}
  | \b[Bb]asic\s+(?=\S{0,200}[\d=])[A-Za-z0-9+/]{8,}={0,2}
  | \b(?:sk|rk|pk)-(?=[\w-]{0,200}\d)[\w-]{16,}
  | \bnvapi-[\w-]{16,}
  | \b(?:hf|gsk|r8|fw|lsv2|gh[opsur])_\w{16,}
  | \bgithub_pat_\w{20,}
  | \bglpat-[\w-]{16,}
  | \b(?:xai|pplx|tvly)-[\w-]{16,}
  | \bxox[abeoprs]-[\w-]{10,}
  | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
  | \bAIza[\w-]{35}
  | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    """,
    re.VERBOSE,
)


def is_secret_name(name: str) -> bool:
    """Whether a key, header, flag or variable of this name holds a credential.

    Names are read word by word (`api_key`, `X-Api-Key`, `apiKey`): `max_tokens`, `tokenizer` and `author` hold none.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _REFERENCE:
        return False
    if not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words)):
        return True
    return words[-1] in _SECRET_LAST and _TEXT_TOKEN.isdisjoint(words)


def redact_text(text: str) -> str:
    """`text` with everything that looks like a credential replaced by `[redacted]`; doing it twice changes nothing.

    Known: tokens by their prefix, JSON web tokens, `Bearer` and `Basic`, private keys, `user:password@` and secret
    parameters of URLs, and values assigned to secret names (`api_key=...`, `"password": "..."`, `--token ...`).
    """
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _USERINFO.sub(f"{REDACTED}@", text)
    text = _ASSIGNMENT.sub(_redact_assignment, text)
    text = _QUERY.sub(rf"\1={REDACTED}", text)
    text = _FLAG.sub(lambda flag: f"{flag[1]}{flag[2]}{REDACTED}" if is_secret_name(flag[1]) else flag[0], text)
    return _SHAPES.sub(REDACTED, text)


def redact_value(value: Any) -> Any:
    """A copy of plain data with the values of secret-named keys replaced, and credential shapes in its strings.

    References like `${NAME}`, empty strings, booleans and null stay.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {key: _mask(item) if _names_secret(key) else redact_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(redact_value, value))
    return value


def redact_command(arguments: Sequence[str]) -> list[str]:
    """A command line as it may be recorded: `--api-key KEY`, `--api-key=KEY` and `-O x.api_key=KEY` lose the key."""
    flags = ("", *arguments)
    return [
        REDACTED if flag.startswith("-") and "=" not in flag and is_secret_name(flag) else redact_text(argument)
        for flag, argument in zip(flags, arguments, strict=False)
    ]


def strip_credentials(url: str) -> str:
    """`url` without user, password and secret query or fragment parameters; what is left is untouched."""
    head, hash_mark, fragment = url.partition("#")
    head, question_mark, query = head.partition("?")
    scheme, separator, rest = head.rpartition("://")
    authority, slash, path = rest.partition("/")
    query, fragment = _strip_parameters(query), _strip_parameters(fragment)
    return (
        f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"
        f"{question_mark if query else ''}{query}{hash_mark if fragment else ''}{fragment}"
    )


class Redactor:
    """Replaces a run's own secret values, wherever they stand, by `[redacted]`.

    Values shorter than 12 characters are ignored: they could be words. Longer values go first, so that one which
    contains another is replaced whole. The JSON-escaped and percent-encoded forms of a value count as the value.
    """

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if len(value.strip()) >= 12 for form in _forms(value.strip())}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def text(self, text: str) -> str:
        """`text` without the values; the same object where there is none."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def value(self, value: Any) -> Any:
        """Plain data or a struct without the values, keys included; the same object where there is none."""
        if isinstance(value, str):
            return self.text(value)
        if not self._forms:
            return value
        if isinstance(value, dict):
            pairs = [(self.value(key), self.value(item)) for key, item in value.items()]
            changed = any(a is not c or b is not d for (a, b), (c, d) in zip(pairs, value.items(), strict=True))
            return dict(pairs) if changed else value
        if isinstance(value, list | tuple):
            items = [self.value(item) for item in value]
            return type(value)(items) if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            cleaned = self.value(fields)
            return value if cleaned is fields else msgspec.structs.replace(value, **cleaned)
        return value


def _names_secret(key: Any) -> bool:
    return isinstance(key, str) and is_secret_name(key)


def _mask(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _mask(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_mask, value))
    if value is None or isinstance(value, bool) or (isinstance(value, str) and _is_harmless(value)):
        return value
    return REDACTED


def _is_harmless(value: str) -> bool:
    return value.lower() in _HARMLESS or _TEMPLATE.fullmatch(value) is not None


def _redact_assignment(match: re.Match[str]) -> str:
    sign, value = match["sign"], match["value"]
    quote_mark = re.match(r"\\?[\"']?", value)
    assert quote_mark is not None  # it may be empty
    opening = quote_mark[0]
    closing = opening if opening and value.endswith(opening) and len(value) > len(opening) else ""
    content = value[len(opening) : len(value) - len(closing)]
    # "token: expected a string" is prose; a header, a quoted value, and one that ends its line are not.
    bare = not opening and sign.startswith(":") and sign.endswith(" ") and "-" not in match["name"]
    prose = bare and content.isalpha() and re.match(r" +[A-Za-z]", match.string[match.end() : match.end() + 20])
    if prose or _is_harmless(content) or not is_secret_name(match["name"].rpartition(".")[2]):
        return match[0]
    return f"{match['name']}{sign}{opening}{REDACTED}{closing}"


def _strip_parameters(query: str) -> str:
    def is_secret(pair: str) -> bool:
        name = unquote_plus(pair.partition("=")[0])
        return name.lower() in _QUERY_NAMES or is_secret_name(name)

    return "&".join(pair for pair in query.split("&") if not is_secret(pair))


def _forms(value: str) -> set[str]:
    encoded = {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in encoded}
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]} | encoded | lower
