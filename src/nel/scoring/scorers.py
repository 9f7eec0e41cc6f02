"""The built-in scorers: exact, fuzzy, multiple choice, answer line, number.

Each takes a `ScorerInput` and returns `{"correct", "extracted", "method"}`, with `rule` and `span` where the answer was
looked for inside the reply, and `failure_category` where none was found. Each is total: any reply gets a verdict, in
time linear in its length. A gold answer that the scorer cannot read raises `ValueError`: that is a fault of the data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from nel.scoring.choice import extract_choice
from nel.scoring.extract import extract_line, extract_number, extract_pattern, find_answer
from nel.scoring.numbers import parse_number
from nel.scoring.sample import ScorerInput
from nel.scoring.text import comparable, is_negated, token_starts, tokens, undecorate, unify
from nel.scoring.verdicts import Verdict, targets, verdict_on


def exact_match(sample: ScorerInput) -> Verdict:
    """Whether the reply is the expected answer (or one of several), compared by tokens (`nel.scoring.text`).

    Case, articles, sentence punctuation and decoration do not count; `-5` and `5`, `3.5` and `35`, `1,5` and `15`
    differ; `42.00` equals `42`.
    """
    answer = undecorate(sample.response)
    correct = any(_same_tokens(answer, undecorate(target)) for target in targets(sample.target))
    return verdict_on("exact_match", sample, correct, extracted=answer or None)


def _same_tokens(answer: str, target: str) -> bool:
    if len(answer) > 8 * len(target) + 512:  # no decoration is that long
        return False
    found = comparable(answer)
    return bool(found) and found == comparable(target)


def fuzzy_match(sample: ScorerInput) -> Verdict:
    """Whether the reply names the expected answer as whole words; any of `metadata["correct_answers"]` will do.

    A mention right after a negation ("not Paris", "unlike Paris") does not count, "Paris, not Rome" names Paris alone.
    A reply that names several candidates names each of them: ask for a short answer, or use `answer_line`.
    """
    alternatives = sample.metadata.get("correct_answers") or sample.target
    unified = unify(sample.response)
    spoken = f" {' '.join(tokens(unified))} "
    for target in targets(alternatives):
        wanted = tokens(unify(undecorate(target)))
        if len(wanted) > 1 and wanted[0] in {"a", "an", "the"}:
            wanted = wanted[1:]
        if wanted and _affirms(unified, spoken, f" {' '.join(wanted)} "):
            return verdict_on("fuzzy_match", sample, True, extracted=target)
    return verdict_on("fuzzy_match", sample, False, extracted=undecorate(sample.response) or None)


def _affirms(unified: str, spoken: str, wanted: str) -> bool:
    """Whether `wanted` stands in `spoken`, the tokens of the reply, where no negation precedes it."""
    at = spoken.find(wanted)
    starts = token_starts(unified) if at >= 0 else []
    index = scanned = 0
    for _ in range(_MAX_MENTIONS):
        if at < 0:
            return False
        index += spoken.count(" ", scanned, at)
        scanned = at
        if not is_negated(unified, starts[index]):
            return True
        at = spoken.find(wanted, at + 1)
    return False


_MAX_MENTIONS = 1000


def multichoice_regex(
    sample: ScorerInput, pattern: str | None = None, *, letters: str = "ABCD", choices: Sequence[str] | None = None
) -> Verdict:
    """Whether the reply chose the expected option.

    Args:
        sample: its target is a letter, or the option's text where `choices` are known.
        pattern: a pattern of one's own instead of the built-in rules (`nel.scoring.choice`); its last match counts, the
            first group if it has one. Case is ignored.
        letters: the options' letters, in order.
        choices: the options' texts; by default `metadata["choices"]`, where that is a list.
    """
    options = choices if choices is not None else sample.metadata.get("choices")
    texts = [str(option) for option in options] if isinstance(options, list | tuple) else None
    if pattern is None:
        found = find_answer(sample, extract_choice, letters=letters, choices=texts)
    else:
        found = find_answer(sample, extract_pattern, pattern=_compiled(pattern))
    gold = _gold_letter(sample.target, letters, texts)
    correct = found is not None and found.text.upper() == gold
    return verdict_on("multichoice_regex", sample, correct, found=found)


def _gold_letter(target: Any, letters: str, choices: Sequence[str] | None) -> str:
    gold = undecorate(str(target)).strip("().").upper()
    if len(gold) == 1 and gold in letters:
        return gold
    if choices:
        same = [
            letter
            for letter, choice in zip(letters, choices, strict=False)
            if comparable(choice) == comparable(str(target))
        ]
        if len(same) == 1:
            return same[0]
    raise ValueError(f"the expected answer {target!r} is none of the options {letters}")


def answer_line(sample: ScorerInput, pattern: str | None = None) -> Verdict:
    r"""Whether the answer that the reply states is the expected one (or one of several).

    The last explicit statement counts (`Answer: ...`, "the answer is ...", `\boxed{}`, `####`, `<answer>`), else the
    last line; a `pattern` of one's own (case is ignored) replaces these rules. A number matches by value, units aside
    (`42 apples`, `42.00`); other answers match by tokens.
    """
    golds = targets(sample.target)
    compiled = _compiled(pattern) if pattern is not None else None
    found = find_answer(sample, extract_pattern, pattern=compiled) if compiled else find_answer(sample, extract_line)
    correct = found is not None and any(_same_answer(found.text, gold) for gold in golds)
    return verdict_on("answer_line", sample, correct, found=found)


def _same_answer(answer: str, target: str) -> bool:
    bare = undecorate(target)
    if _same_tokens(answer, bare):
        return True
    gold = parse_number(bare) if _ONLY_NUMBER.fullmatch(bare) else None
    return gold is not None and parse_number(answer) == gold


_ONLY_NUMBER = re.compile(r"[^\w]*[\d.,/]+(?:[eE][-+]?\d+)?[^\w]*")


def numeric_match(sample: ScorerInput, *, decimal: str = ".", words: bool = False) -> Verdict:
    """Whether the number that the reply gives as its answer equals the expected one exactly.

    The last explicit answer counts, else the last number of the reply. Thousands separators, currency, percent signs
    and units do not count; the sign and every digit do (`1` is not `10`).

    Args:
        sample: its target is a number, or a text that holds exactly one.
        decimal: the decimal mark of replies and target; with `","` a point groups thousands (`1.234,50`).
        words: read English number words (`eighteen`) too.
    """
    gold = _gold_number(sample.target, decimal)
    found = find_answer(sample, extract_number, decimal=decimal, words=words)
    return verdict_on("numeric_match", sample, found is not None and found.value == gold, found=found)


def _gold_number(target: Any, decimal: str) -> Fraction:
    if isinstance(target, int | float) and not isinstance(target, bool):
        return Fraction(target) if isinstance(target, int) else Fraction(str(target))
    return _parsed_gold(str(target), decimal)


@lru_cache(maxsize=4096)
def _parsed_gold(target: str, decimal: str) -> Fraction:
    gold = parse_number(target, decimal=decimal)
    if gold is None:
        raise ValueError(f"the expected answer {target!r} does not hold exactly one number")
    return gold


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is no regular expression: {error}") from None
