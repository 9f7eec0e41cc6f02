"""`TokenEstimate`: how many tokens a request will use, guessed before it is sent and learnt from what was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_CHARACTERS: Final = 4
_IMAGE: Final = 1000
_FIRST_GUESS: Final = 512
_WEIGHT: Final = 0.05


class TokenEstimate:
    """Four characters of the body a token, a thousand tokens an image, and an answer as long as answers were lately."""

    def __init__(self) -> None:
        self._answer: float | None = None

    def tokens(self, body: Mapping[str, Any], images: Sequence[str]) -> int:
        """Tokens that a request and one answer to it will use."""
        text = len(msgspec.json.encode(body)) - sum(len(image) for image in images)
        limit = body.get("max_tokens") or body.get("max_output_tokens") or _FIRST_GUESS
        answer = min(limit, _FIRST_GUESS) if self._answer is None else self._answer
        return int(text / _CHARACTERS + _IMAGE * len(images) + answer)

    def learn(self, completion_tokens: int) -> None:
        """Take note of an answer's tokens."""
        known = self._answer
        self._answer = completion_tokens if known is None else known + _WEIGHT * (completion_tokens - known)
