"""Multiple choice as text: options with their letters, and the prompt around them."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

REASONED = """\
Answer this multiple-choice question. Think step by step, then end with one line of the form "Answer: X", where X is \
the letter of one option.

{question}

{lettered}"""
"""For rows with `question`, and `lettered` as `lettered` makes it."""


def lettered(options: Sequence[str]) -> str:
    """Each option on a line with its letter."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
