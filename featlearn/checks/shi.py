"""Checks of the exercises of chapter 7."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import torch

from featlearn.checks import Answer, Wrong, agree, check


def _covariances(
    k: int, P: set[int], weight: np.ndarray | None = None
) -> tuple[float, float, float]:
    """E[yφ], E[y] and E[φ] of one pattern, by a sum over all 2^k patterns with these weights.

    Equal ones unless given.
    """
    phi = np.array(list(product((0, 1), repeat=k)))
    y = np.array([1.0 if count in P else -1.0 for count in phi.sum(axis=1)])
    law = np.full(len(y), 2.0**-k) if weight is None else weight
    one = phi[:, int(k > 1)]
    return float(law @ (y * one)), float(law @ y), float(law @ one)


@check("gamma(k, P)")
def gamma(answer: Answer, rng: np.random.Generator) -> None:
    """The covariance of one relevant pattern with the label against a sum over all patterns."""

    def truth(k: int, P: set[int]) -> float:
        joint, balance, presence = _covariances(k, P)
        return joint - balance * presence

    while True:
        k = int(rng.integers(3, 9))
        P = {c for c in range(k + 1) if rng.random() < 0.5}
        others = set(range(k + 1)) - P
        if not P or not others or truth(k, P) <= 0:
            continue
        joint, balance, presence = _covariances(k, P)
        right, share = joint - balance * presence, (1 + balance) / 2
        c = np.arange(k + 1)
        y = np.array([1.0 if count in P else -1.0 for count in c])
        mistakes = {
            "you took all counts as equally likely. How many patterns have the count c?": float(
                (y * (c / k - 0.5)).mean()
            ),
            "this is the covariance of the label with the count, that is, with all k patterns "
            "together.": k * right,
            "the sign is wrong: the label is +1 if the count is in P.": -right,
            "your labels are 0 and 1; they are −1 and +1.": right / 2,
            "your patterns are −1 and +1; they are 0 and 1.": 2 * right,
            "E[y]E[φ] is missing. The two classes need not be equally likely.": joint,
            "this is the correlation coefficient. γ is not divided by standard deviations.": right
            / sqrt(share * (1 - share)),
            "you made the two classes equally likely. Here all bits are fair, whatever that does "
            "to the classes.": right / (4 * share * (1 - share)),
            "this is the difference between the two classes. How often does each of them "
            "occur?": right / (2 * share * (1 - share)),
            "this is E[y], which knows nothing about the pattern.": balance,
            "you sum over the counts in P only. The others have the label −1.": (joint + presence)
            / 2,
            "this is how often the pattern occurs if y = +1. Compare with how often it occurs at "
            "all.": (joint + presence) / (2 * share),
            "the count k is left out: there are k + 1 counts.": right - y[k] * 2.0**-k / 2,
            "the count 0 is left out: there are k + 1 counts.": right + y[0] * 2.0**-k / 2,
        }
        values = np.array([0.0, right, *mistakes.values()])
        if np.abs(values[:, None] - values)[np.triu_indices(len(values), 1)].min() > 1e-3:
            break
    otherwise = "the value is wrong. Compare with k = 2 and P = {2}: four patterns, by hand."
    agree(answer(k, P, shape=()), right, mistakes, otherwise)
    turned = {
        "γ has a sign: if the label turns, γ turns, too.": right,
        "γ may be negative. Do not cut it off at zero.": 0.0,
    }
    agree(answer(k, others, shape=()), -right, turned, otherwise)
    edges = {
        "one pattern alone, k = 1, must work as well.": [(1, {1}), (1, {0})],
        "if P is empty or holds all counts, the label never changes: its covariance with a "
        "pattern is zero.": [
            (4, set()),
            (4, set(range(5))),
        ],
        "the parity of two or more fair bits tells nothing about a single one.": [
            (2, {1}),
            (5, {1, 3, 5}),
        ],
        "it fails at P = {0} or at P = {k}: do you leave out a count at the end?": [
            (6, {0}),
            (6, {6}),
        ],
    }
    law = np.ones(1)
    for k in (40, 80):
        law = np.ones(1)
        for _ in range(k - 1):
            law = np.convolve(law, [0.5, 0.5])  # of the count of the other patterns
        P = {c for c in range(k + 1) if rng.random() < 0.5} - {k // 2}
        y = np.array([1.0 if c in P else -1.0 for c in range(k + 1)])
        many = (
            f"it is right for a few patterns and wrong for k = {k}. Do the numbers overflow, or do "
            "you approximate?"
        )
        slow = f"it takes too long for k = {k}. There are 2^k patterns, but only k + 1 counts."
        agree(answer(k, P, shape=(), slow=slow, nan=many), law @ np.diff(y) / 4, {}, many)
    for message, cases in edges.items():
        for k, P in cases:
            value = answer(k, P, shape=(), nan=message, raised={Exception: message})
            agree(value, truth(k, P), {}, message)


@dataclass(frozen=True)
class _Inputs:
    """Inputs X = φMᵀ (n, d) and labels y (n,).

    A are the relevant patterns, `decoys` others that come together.
    """

    X: np.ndarray
    y: np.ndarray
    M: np.ndarray
    A: np.ndarray
    decoys: np.ndarray


def _lead(found: set[int], scores: np.ndarray) -> bool:
    """Whether these indices have the largest scores, up to ties.

    Means of zeros and ones are often equal.
    """
    inside = np.isin(np.arange(len(scores)), list(found))
    if inside.sum() < len(found):
        return False
    return bool(scores[inside].min() >= scores[~inside].max() - 1e-9 * np.abs(scores).max())


def _draw(rng: np.random.Generator, sign: int, n: int = 8000) -> _Inputs:
    """A model with sign · γ ≥ 0.2 in which the plain mean of yφ is largest for two frequent
    patterns of the background.

    The relevant patterns are all or none with probability `together`, else fair. Two patterns
    outside are almost always present, k come together, and the others have frequencies between 0.1
    and 0.55. Draws in which the decoys, or the patterns that vary most, have by chance the
    largest covariances of one sign are dropped.
    """
    while True:
        k, together, all_present = (
            int(rng.integers(4, 6)),
            rng.uniform(0.3, 0.5),
            rng.uniform(0.2, 0.45),
        )
        P = {k} | {c for c in range(1, k) if rng.random() < 0.5}
        law = np.full(2**k, (1 - together) * 2.0**-k)
        law[0] += together * (1 - all_present)
        law[-1] += together * all_present
        joint, balance, presence = _covariances(k, P, law)
        window = 0.64 * abs(balance) < abs(joint) < 0.82 * abs(balance)
        if joint - balance * presence >= 0.2 and presence < 0.46 and window:
            break
    D = int(rng.integers(24, 33))
    order = rng.permutation(D)
    A, decoys, frequent, rest = (
        order[:k],
        order[k : 2 * k],
        order[2 * k : 2 * k + 2],
        order[2 * k + 2 :],
    )
    probability = np.full(D, 0.5)
    probability[decoys] = 0.35
    probability[frequent] = rng.uniform(0.92, 0.96, 2)
    probability[rest] = rng.permutation(np.linspace(0.1, 0.55, len(rest)))
    phi = (rng.random((n, D)) < probability).astype(float)
    for group, share, present in ((A, together, all_present), (decoys, 0.75, 0.35)):
        same = rng.random(n) < share
        phi[np.ix_(same, group)] = (rng.random(n) < present)[same, None]
    phi[:, rest[0]] = 0.0  # a pattern that never occurs
    phi[:, rest[1]] = phi[:, rest[2]]  # two that always come together
    y = sign * np.where(np.isin(phi[:, A].sum(axis=1), list(P)), 1.0, -1.0)
    if sign < 0:  # the samples of one class come first
        phi, y = phi[np.argsort(y, kind="stable")], np.sort(y)
    covariance = (y - y.mean()) @ phi
    varying = np.argsort(-phi.var(axis=0))[:k]
    if any(_lead(set(group), s * covariance) for group in (decoys, varying) for s in (1, -1)):
        return _draw(rng, sign, n)
    M = np.linalg.qr(rng.normal(size=(D + int(rng.integers(3, 8)), D)))[0]
    return _Inputs(phi @ M.T, y, M, A, decoys)


def _numbers(value: Any) -> np.ndarray:
    """What was returned, as an array of numbers; a set is as good as a list."""
    value = sorted(value) if isinstance(value, (set, frozenset)) else value
    entries = value if isinstance(value, (list, tuple)) else []
    truths = len(entries) > 0 and all(isinstance(entry, (bool, np.bool_)) for entry in entries)
    if truths or (
        isinstance(value, (np.ndarray, torch.Tensor)) and str(value.dtype).endswith("bool")
    ):
        raise Wrong("this is a mask. Return the k indices at which it is true.")
    return Answer.as_array(value)


def _indices(value: np.ndarray, inputs: _Inputs) -> set[int]:
    """The set of indices, if it is one."""
    k, (d, D) = len(inputs.A), inputs.M.shape
    if value.shape in ((d, k), (k, d)):
        raise Wrong("these look like columns of M. Return their indices.")
    if value.shape == (D,):
        zeros_and_ones = np.isin(value, (0, 1)).all()
        raise Wrong(
            "this is a mask. Return the k indices at which it is one."
            if zeros_and_ones
            else "it returned a number for each pattern. Return the indices of the k relevant ones."
        )
    if value.shape != (k,):
        raise Wrong(
            f"it returned an array of shape {value.shape}. Return k indices, an array of shape "
            f"({k},)."
        )
    if not (np.isfinite(value) & (value == np.round(value))).all():
        raise Wrong("indices must be integers. Are these the correlations themselves?")
    found = {int(j) for j in value}
    if len(found) < k:
        raise Wrong("the k indices must be different.")
    return found


@check("relevant(X, y, M, k)")
def relevant(answer: Answer, rng: np.random.Generator) -> None:
    """The indices of the relevant patterns against those from which the labels were made."""
    for sign in (1, -1):
        inputs = _draw(rng, sign)
        X, y, M, A = inputs.X, inputs.y, inputs.M, inputs.A
        k = len(A)
        found = _indices(answer.raw(X, y, M, k, convert=_numbers), inputs)
        if found == set(A.tolist()):
            continue

        phi = X @ M
        covariance, means = (y - y.mean()) @ phi / len(y), y @ phi / len(y)
        signed = (
            "the size of a correlation tells whether a pattern is relevant. You let its sign "
            "decide."
        )
        mean = (
            "frequent patterns won. Here neither the labels nor the inputs have mean zero, and "
            "E[yφ] is more than γ for a frequent pattern."
        )
        coordinates = (
            "these are coordinates of x. A pattern is spread over many of them: what does M say "
            "about x?"
        )
        known = [
            (signed, covariance),
            (signed, -covariance),
            (
                "these are the patterns with the smallest correlation. Sort the other way.",
                -np.abs(covariance),
            ),
            (mean, np.abs(means)),
            (
                "these are the most frequent patterns. What do they say about the label?",
                phi.mean(axis=0),
            ),
            (mean, means),
            (mean, -means),
            (
                "these are the patterns that vary most. The labels have not been used.",
                phi.var(axis=0),
            ),
            (coordinates, np.abs((y - y.mean()) @ X)),
            (coordinates, np.abs(y @ X)),
        ]
        for message, scores in known:
            if _lead(found, scores):
                raise Wrong(message)
        if found == set(inputs.decoys.tolist()):
            raise Wrong("these patterns come together, but the label does not depend on them.")
        if found == {int(j) + 1 for j in A}:
            raise Wrong("the indices start at 0, not at 1.")
        if not found <= set(range(M.shape[1])):
            raise Wrong("an index lies outside 0, …, D − 1. M has one column for each pattern.")
        raise Wrong(
            "these are not the relevant patterns. For each pattern, how does it vary together "
            "with the label?"
        )
