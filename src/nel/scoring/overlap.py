"""Text measured by overlap: token F1, DROP's aligned spans, aliases, BLEU, chrF, ROUGE."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from nel.core.loading import require
from nel.scoring.extract import extract_line, find_answer, first_line
from nel.scoring.numbers import parse_number
from nel.scoring.sample import ScorerInput
from nel.scoring.text import comparable, is_empty, is_negated, token_starts, tokens, undecorate, unify
from nel.scoring.verdicts import Verdict, targets, verdict_on

Span = tuple[str, ...]
"""The normalised tokens of an answer, in order."""

_MAX_SPANS = 200  # of one reply that are aligned; all of them count in the mean
_MAX_COMPARED = 50_000  # characters of a reply that BLEU, chrF and ROUGE see; their cost grows faster than its length


def token_f1(sample: ScorerInput) -> Verdict:
    """The harmonic mean of precision and recall of the answer's tokens, 0 to 1, against the nearest expected answer.

    The answer is what the reply states (`extract_line`); tokens are those of `nel.scoring.text`, without articles, and
    count as often as they occur. `exact` says whether the two token lists are equal.
    """
    found = find_answer(sample, extract_line)
    said = comparable(found.text) if found else []
    golds = [comparable(gold) for gold in targets(sample.target)]
    score = max(_f1(Counter(said), Counter(gold)) for gold in golds)
    return verdict_on("token_f1", sample, score, found=found, exact=bool(said) and said in golds)


def _f1(said: Counter[str], gold: Counter[str]) -> float:
    common = (said & gold).total()
    return 2 * common / (said.total() + gold.total()) if common else 0.0


def alias_match(sample: ScorerInput) -> Verdict:
    """Whether the answer is, or names as whole words, one of the expected answer's aliases.

    Aliases are the target (or its members) and the row's `aliases`. Of a reply without an explicit answer the first
    line that is not blank counts, as short answers are asked for; a mention after a negation is none.
    """
    aliases = [*targets(sample.target), *map(str, sample.metadata.get("aliases") or [])]
    found = find_answer(sample, extract_line)
    if found is not None and found.rule == "last line":
        found = first_line(sample.response)
    if found is None:
        return verdict_on("alias_match", sample, False)
    unified = unify(found.text)
    spoken = tokens(unified)
    named = next((alias for alias in aliases if _names(unified, spoken, comparable(undecorate(alias)))), None)
    more = {} if named is None else {"alias": named}
    return verdict_on("alias_match", sample, named is not None, found=found, **more)


def _names(unified: str, spoken: list[str], alias: list[str]) -> bool:
    size = len(alias)
    if not size or alias[0] not in spoken:
        return False
    starts = token_starts(unified)
    places = (index for index, token in enumerate(spoken) if token == alias[0])
    return any(spoken[index : index + size] == alias and not is_negated(unified, starts[index]) for index in places)


def drop_match(sample: ScorerInput, *, official: bool = False) -> Verdict:
    """DROP's F1, 0 to 1, with `exact`; spans are aligned one to one and an unequal number never matches.

    The target is an answer, or a list of acceptable answers, each a text or a list of spans. Where an answer has
    several spans, the reply's answer is split at commas, semicolons, line ends and "and".

    Args:
        sample: the reply and its target.
        official: tokens, numbers and rounding exactly as the published script has them, the answer as one span: a
            hyphen separates (`-5` is 5), punctuation vanishes (`1,5` is 15), values are rounded to 0.01.
    """
    method = "drop_match, official" if official else "drop_match"
    found = find_answer(sample, extract_line)
    answers = [gold for gold in _span_lists(sample.target) if any(map(str.strip, gold))]
    if found is None:
        return verdict_on(method, sample, 0.0, exact=False)
    normal = _official_span if official else _span
    scores = []
    for gold in answers:
        readings = [[found.text]] if official or len(gold) == 1 else _splits(found.text)
        wanted = [normal(span) for span in gold]
        scores += [_drop_score([normal(span) for span in spans], wanted, official=official) for spans in readings]
    exact, score = max(scores, key=lambda pair: pair[::-1], default=(False, 0.0))
    return verdict_on(method, sample, score, found=found, exact=exact)


def _span_lists(target: Any) -> list[list[str]]:
    if not isinstance(target, list | tuple):
        return [targets(target)]
    if not target:
        raise ValueError("the expected answer is an empty list")
    return [targets(answer) for answer in target]


_EDGES = string.whitespace + "-•*"


def _splits(text: str) -> list[list[str]]:
    """The ways to read a text as several spans; a comma inside a number separates nothing."""
    readings = [re.split(r",(?!\d)|,\s|;|\n", text), re.split(r",(?!\d)|,\s|;|\n|\band\b", text)]
    return [[undecorate(bare) for span in spans if (bare := span.strip(_EDGES))] for spans in readings]


def _span(text: str) -> Span:
    return tuple(comparable(text))


_WORD_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _official_span(text: str) -> Span:
    """The published normalisation: split at spaces and hyphens; numbers as floats; punctuation and articles dropped."""
    found: list[str] = []
    for part in re.split(r"[ -]", text):
        token = part.lower()
        if _as_float(token) is None:
            token = token.translate(_PUNCTUATION)
        value = _as_float(token)
        token = str(value) if value is not None else token
        found.extend(_WORD_ARTICLE.sub(" ", token).split())
    return tuple(found)


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _drop_score(said: Sequence[Span], gold: Sequence[Span], *, official: bool) -> tuple[bool, float]:
    """Whether the spans are the same, and the mean F1 of the best one-to-one alignment over the longer list."""
    is_number = _is_official_number if official else _is_number
    exact = bool(said) and any(said) and len(said) == len(gold) and set(said) == set(gold)
    bags = [frozenset(span) for span in said[:_MAX_SPANS]]
    rows = [[_bag_f1(frozenset(one), other, is_number) for other in bags] for one in gold]
    score = _best_sum(rows) / max(len(said), len(gold), 1)
    return exact, round(score, 2) if official else score


def _is_official_number(token: str) -> bool:
    return _as_float(token) is not None


def _is_number(token: str) -> bool:
    return any(map(str.isdigit, token)) and parse_number(token) is not None


def _bag_f1(gold: frozenset[str], said: frozenset[str], is_number: Callable[[str], bool]) -> float:
    """F1 of two sets; 0 where the expected one holds numbers and none of them was said."""
    common = len(gold & said)
    if not common:
        return 0.0
    numbers = {token for token in gold if is_number(token)}
    if numbers and not numbers & said:
        return 0.0
    return 2 * common / (len(gold) + len(said))


def _best_sum(rows: list[list[float]]) -> float:
    if not rows or not rows[0]:
        return 0.0
    if len(rows) == 1 or len(rows[0]) == 1:
        return max(value for row in rows for value in row)
    from scipy.optimize import linear_sum_assignment

    chosen = zip(*linear_sum_assignment(rows, maximize=True), strict=True)
    return sum(rows[int(row)][int(column)] for row, column in chosen)


def bleu(sample: ScorerInput) -> Verdict:
    """Sentence BLEU against the expected texts, 0 to 1: sacrebleu's, with its effective order and smoothing."""
    library = require("sacrebleu", what="the scorer bleu", extra="text")
    return _measured("bleu", sample, lambda said, golds: library.sentence_bleu(said, golds).score / 100)


def chrf(sample: ScorerInput, *, word_order: int = 0) -> Verdict:
    """Sentence chrF against the expected texts, 0 to 1: sacrebleu's; with `word_order=2` it is chrF++."""
    library = require("sacrebleu", what="the scorer chrf", extra="text")
    return _measured(
        "chrf", sample, lambda said, golds: library.sentence_chrf(said, golds, word_order=word_order).score / 100
    )


def rouge(sample: ScorerInput, *, variant: str = "rougeL", stem: bool = True) -> Verdict:
    """ROUGE F1 against the nearest expected text, 0 to 1: rouge_score's `rouge1` to `rouge9`, `rougeL`, `rougeLsum`."""
    if not re.fullmatch(r"rouge(?:[1-9]|L|Lsum)", variant):
        raise ValueError(f"variant={variant!r}: rouge1 to rouge9, rougeL or rougeLsum is expected")
    measure = _rouge(variant, stem)
    return _measured("rouge", sample, lambda said, golds: max(measure(gold, said) for gold in golds))


@cache
def _rouge(variant: str, stem: bool) -> Callable[[str, str], float]:
    library = require("rouge_score.rouge_scorer", what="the scorer rouge", extra="text")
    scorer = library.RougeScorer([variant], use_stemmer=stem)

    def measure(gold: str, said: str) -> float:
        return float(scorer.score(gold, said)[variant].fmeasure)

    return measure


def _measured(method: str, sample: ScorerInput, measure: Callable[[str, list[str]], float]) -> Verdict:
    golds = targets(sample.target)
    if is_empty(sample.response):
        return verdict_on(method, sample, 0.0)
    said = sample.response[:_MAX_COMPARED].encode("utf-8", "replace").decode()  # a lone surrogate breaks the libraries
    value = min(1.0, max(0.0, measure(said, golds)))
    more: dict[str, Any] = (
        {"compared": f"the first {_MAX_COMPARED} characters"} if len(sample.response) > _MAX_COMPARED else {}
    )
    return verdict_on(method, sample, value, extracted=sample.response, **more)
