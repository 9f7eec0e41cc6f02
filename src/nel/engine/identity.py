"""What an attempt and a score *are*: digests of everything that produces them, and of nothing else.

    content  = what the solver reads of a problem: messages or prompt, images by content, tools, declared metadata
    attempt  = solver (with service, parameters, prompts) + content + occurrence + repeat
    score    = attempt + expected answer + scorers with their versions

The expected answer is no part of an attempt, paths, ports, times, retries and concurrency are no part of anything, and
equal problems of one plan are told apart by their occurrence number.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json
from nel.core.digest import digest_file
from nel.environments.base import SeedResult

KEY_BYTES = 16


class Identities:
    """Keys of attempts and scores for one solver and one way of scoring."""

    def __init__(
        self, solver: Mapping[str, Any], scoring: Mapping[str, Any], reads_metadata: tuple[str, ...] = ()
    ) -> None:
        self._solver = sha256(canonical_json(solver)).digest()
        self._scoring = sha256(canonical_json(scoring)).digest()
        self._reads = reads_metadata
        self._images: dict[str, str] = {}
        self.basis = sha256(self._solver + self._scoring).hexdigest()[:16]
        """What the scores of one plan share."""

    def content(self, problem: SeedResult) -> bytes:
        """16 bytes: the problem as the solver reads it."""
        read: list[Any] = [problem.system or "", problem.prompt if problem.messages is None else problem.messages]
        if problem.images or problem.tools or self._reads:
            read.append([self._image(image) for image in problem.images or ()])
            read.append(problem.tools)
            read.append({name: problem.metadata[name] for name in self._reads if name in problem.metadata})
        return sha256(canonical_json(read)).digest()[:KEY_BYTES]

    def attempt(self, content: bytes, occurrence: int, repeat: int) -> bytes:
        """16 bytes: one attempt at a problem."""
        return sha256(b"%b%b%d/%d" % (self._solver, content, occurrence, repeat)).digest()[:KEY_BYTES]

    def score(self, attempt: bytes, expected: Any) -> bytes:
        """16 bytes: one measurement of an attempt."""
        return sha256(b"%b%b%b" % (attempt, self._scoring, canonical_json(expected))).digest()[:KEY_BYTES]

    def _image(self, image: str) -> str:
        if image.startswith(("http://", "https://", "data:")):
            return image
        if image not in self._images:
            self._images[image] = digest_file(Path(image))
        return self._images[image]


class Occurrences:
    """Counts equal problems: 0 for the first, 1 for the second, ...; 12 to 24 bytes for each of `problems`."""

    def __init__(self, problems: int) -> None:
        # Open addressing at a load of at most two thirds: a set of integers would take 75 bytes each.
        size = 1 << max(4, (problems * 3 // 2).bit_length())
        self._table = array("Q", bytes(8 * size))
        self._mask = size - 1
        self._again: dict[int, int] = {}

    def number(self, content: bytes) -> int:
        """How many equal problems came before this one."""
        # Half a digest is enough: two different problems that share it would only get two numbers.
        half = int.from_bytes(content[:8], "big") or 1
        table, at = self._table, half & self._mask
        while table[at]:
            if table[at] == half:
                count = self._again.get(half, 0) + 1
                self._again[half] = count
                return count
            at = (at + 1) & self._mask
        table[at] = half
        return 0
