"""Which API key a quick run sends when none is given on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

ANY_ENDPOINT = ("NEL_API_KEY", "NEMO_API_KEY")
"""Sent to whatever URL is named."""
BY_DOMAIN = {"NVIDIA_API_KEY": "nvidia.com", "OPENAI_API_KEY": "openai.com"}
"""Sent only to the vendor's own hosts: a key must not leak to another endpoint because it happens to be set."""


def api_key_variable(url: str, env: Mapping[str, str]) -> str | None:
    """The name of the environment variable that holds the key for `url`; None when there is none."""
    host = (urlsplit(url).hostname or "").lower()
    for name in ANY_ENDPOINT:
        if env.get(name):
            return name
    for name, domain in BY_DOMAIN.items():
        if env.get(name) and (host == domain or host.endswith(f".{domain}")):
            return name
    return None
