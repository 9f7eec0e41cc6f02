"""maj@k: what the most frequent of k answers is worth."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nel.core.contract import canonical_json
from nel.metrics.estimate import Estimate
from nel.metrics.grouping import Bounds, Clusters, Floats, finite, within
from nel.metrics.passk import at_least

SAMPLED_SUBSETS = 10_000
EXACT_LIMIT = 5_000
"""Steps of the exact vote, about 2 microseconds each, above which subsets are sampled instead."""

Candidates = tuple[tuple[int, float], ...]
"""For each distinct answer how many attempts gave it and its mean reward, sorted."""


def maj_at_k(answers: Sequence[Any], rewards: Sequence[float], k: int) -> float:
    """The expected reward of the most frequent answer among k attempts, drawn from the given ones without replacement.

    Equal answers vote together and are worth their mean reward; answers that tie share the draw equally. An attempt
    without an answer (None) casts no vote, and k attempts without any vote are worth 0. Exact where that is cheap,
    else the mean over 10,000 subsets drawn with a fixed seed. `ValueError` unless 1 <= k <= len(answers).
    """
    data = finite(rewards)
    if len(answers) != data.size:
        raise ValueError(f"{len(answers)} answers but {data.size} rewards: there must be one reward per answer")
    if not 1 <= k <= data.size:
        raise ValueError(f"k is {k}, but a problem with {data.size} attempts answers for k from 1 to {data.size} only")
    return _vote(*_profile(answers, data.tolist()), k)[0]


def estimate_maj_at_k(
    answers: Sequence[Any],
    values: ArrayLike,
    problems: ArrayLike,
    k: int,
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    bounds: Bounds | None = None,
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The mean of `maj_at_k` over problems with at least k scored attempts; the others are counted as excluded.

    `answers` are the extracted answers of the scored attempts, one per value: texts or other JSON values, equal ones
    vote together. The method says whether any problem's vote was sampled. Parameters as in `estimate_mean`.
    """
    data = finite(values)
    if len(answers) != data.size:
        raise ValueError(f"{data.size} values but {len(answers)} answers: there must be one answer per value")
    chosen = at_least(data, problems, k, clusters)
    attempts = chosen.attempts
    votes, sampled = [], 0
    for start, count in zip(attempts.starts[chosen.enough], attempts.counts[chosen.enough], strict=True):
        members = attempts.order[start : start + count].tolist()
        vote, exact = _vote(*_profile([answers[at] for at in members], data[members].tolist()), k)
        votes.append(vote)
        sampled += not exact
    note = f"votes of {sampled} problems from {SAMPLED_SUBSETS:,} sampled subsets each" if sampled else "exact votes"
    return chosen.estimate(
        np.array(votes, dtype=np.float64),
        cluster_by,
        within(data, bounds),
        unscored=unscored,
        error=error,
        level=level,
        note=note if votes else "",
    )


def _profile(answers: Sequence[Any], rewards: Sequence[float]) -> tuple[Candidates, int]:
    """The candidates of one problem, and how many attempts cast no vote."""
    found: dict[Hashable, list[float]] = {}
    silent = 0
    for answer, reward in zip(answers, rewards, strict=True):
        if answer is None:
            silent += 1
        else:
            found.setdefault(answer if isinstance(answer, str) else canonical_json(answer), []).append(reward)
    return tuple(sorted((len(group), math.fsum(group) / len(group)) for group in found.values())), silent


@lru_cache(maxsize=4096)
def _vote(candidates: Candidates, silent: int, k: int) -> tuple[float, bool]:
    """The expected reward, and whether it is exact."""
    if len(candidates) == 1 and not silent:
        return candidates[0][1], True
    n = silent + sum(count for count, _ in candidates)
    most = min(k, max((count for count, _ in candidates), default=0))
    steps = sum(2 * (min(count, votes) + 1) for votes in range(1, most + 1) for count, _ in candidates)
    if n <= 1000 and steps <= EXACT_LIMIT:
        return sum(_won_with(candidates, silent, k, votes) for votes in range(1, most + 1)) / math.comb(n, k), True
    return _sampled(candidates, silent, k), False


def _won_with(candidates: Candidates, silent: int, k: int, votes: int) -> float:
    """Summed over all k-subsets whose winners have `votes` votes: the mean reward of those winners.

    A subset is a monomial of degree k in the product over candidates of (fewer than `votes` votes) + t (`votes` votes).
    The share 1 / w of each of w winners is the integral of t^(w - 1) over [0, 1], which a Gauss-Legendre rule gives
    exactly; carrying the rewards along as a derivative counts each winner once.
    """
    ties = min(k // votes, sum(count >= votes for count, _ in candidates))
    points, weights = _gauss_legendre((ties + 1) // 2)
    ways = np.zeros((k + 1, points.size))
    for absent in range(min(silent, k) + 1):
        ways[absent] = math.comb(silent, absent)
    worth = np.zeros_like(ways)
    for count, reward in candidates:
        next_ways, next_worth = np.zeros_like(ways), np.zeros_like(ways)
        for given in range(min(count, votes - 1) + 1):
            factor = float(math.comb(count, given))
            next_ways[given:] += factor * ways[: k + 1 - given]
            next_worth[given:] += factor * worth[: k + 1 - given]
        if count >= votes:
            factor = float(math.comb(count, votes))
            next_ways[votes:] += factor * points * ways[: k + 1 - votes]
            next_worth[votes:] += factor * (points * worth[: k + 1 - votes] + reward * ways[: k + 1 - votes])
        ways, worth = next_ways, next_worth
    return math.fsum((weights * worth[k]).tolist())


@lru_cache(maxsize=512)
def _gauss_legendre(size: int) -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(max(size, 1))
    return (points + 1) / 2, weights / 2


def _sampled(candidates: Candidates, silent: int, k: int) -> float:
    counts = np.array([count for count, _ in candidates], dtype=np.int64)
    rewards = np.array([reward for _, reward in candidates], dtype=np.float64)
    random = np.random.default_rng(42)
    drawn = random.multivariate_hypergeometric(np.append(counts, silent), k, SAMPLED_SUBSETS, method="marginals")[
        :, :-1
    ]
    most = drawn.max(axis=1, keepdims=True)
    winners = (drawn == most) & (most > 0)
    return float(((winners @ rewards) / np.maximum(winners.sum(axis=1), 1)).mean())
