"""`ModelRequest`: what one attempt asks of a model, whatever the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One request for `n` answers; `messages` or `prompt` must be given."""

    messages: Sequence[Mapping[str, Any]] | None = None
    """A conversation in the shape of the chat protocol; the only form that images, tools and roles have."""
    prompt: str | None = None
    """Plain text; for a chat service it is one user message."""
    images: Sequence[str] | None = None
    """File paths, URLs or data URIs, put before the text of the last user message."""
    image_detail: str | None = None
    """`auto`, `low` or `high`, sent with each image."""
    tools: Sequence[Mapping[str, Any]] | None = None
    """Function tools in the shape of the chat protocol."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that replace the service's own; a value of None takes the service's away."""
    repeat: int = 0
    """The repeat of the first answer; a configured `seed` is sent as seed + repeat."""
    n: int = 1
    """Answers wanted, for the repeats `repeat` to `repeat + n - 1`."""
    stream: bool | None = None
    """None: as the service is configured."""
    session: str = ""
    """Correlates the requests of one attempt; interceptors see it, the server does not."""
    echo: bool = False
    """Send the prompt back in front of the answer, with log-probabilities where they are asked for: text completions
    alone can."""
    keep_raw: bool = False
    """Fill `ModelResponse.raw_response`."""
