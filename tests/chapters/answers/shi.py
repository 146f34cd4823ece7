"""Wrong answers to the exercises of chapter 7."""

from math import comb

import numpy as np


def moments(k, P, law=None):
    """E[yφ], E[y] and E[φ] under a law of the count; fair bits unless given."""
    c = np.arange(k + 1)
    law = np.array([comb(k, j) for j in range(k + 1)]) / 2**k if law is None else law
    y = np.array([1.0 if j in P else -1.0 for j in range(k + 1)])
    return law @ (y * c) / k, law @ y, law @ c / k


def right(k, P):
    joint, balance, presence = moments(k, P)
    return joint - balance * presence


def uniform(k, P):
    joint, balance, presence = moments(k, P, np.full(k + 1, 1 / (k + 1)))
    return joint - balance * presence


def normalised(factor, power):
    def answer(k, P):
        share = (1 + moments(k, P)[1]) / 2
        return factor * right(k, P) / (share * (1 - share)) ** power

    return answer


def over(counts):
    """The sum over some of the counts."""

    def answer(k, P):
        return sum(comb(k, c) * (1 if c in P else -1) * (c / k - 0.5) for c in counts(k)) / 2**k

    return answer


def fails_at_one(k, P):
    return right(k, P) if k > 1 else 0.0


def guarded(k, P):
    return right(k, P) if 0 < len(P) < k + 1 else 1.0


def parity_by_hand(k, P):
    return 0.5**k if set(range(1, k + 1, 2)) == P else right(k, P)


def scores(X, y, M):
    return (y - y.mean()) @ X @ M


def top(k, values):
    return np.argsort(-values)[:k]


def first_found(X, y, M, k):
    return np.full(k, top(1, abs(scores(X, y, M)))[0])


def components(X, y, M, k):
    """The largest entries of the leading principal component: no labels."""
    phi = X @ M
    return top(k, abs(np.linalg.svd(phi - phi.mean(axis=0), full_matrices=False)[2][0]))


def mask(X, y, M, k):
    values = abs(scores(X, y, M))
    return values >= np.sort(values)[-k]


WRONG = {
    "gamma": [
        (uniform, "equally likely. How many"),
        (lambda k, P: k * right(k, P), "with the count"),
        (lambda k, P: -right(k, P), "sign is wrong"),
        (lambda k, P: abs(right(k, P)), "γ has a sign"),
        (lambda k, P: right(k, P) / 2, "labels are 0 and 1"),
        (lambda k, P: 2 * right(k, P), "patterns are −1"),
        (lambda k, P: moments(k, P)[0], "E[y]E[φ] is missing"),
        (lambda k, P: moments(k, P)[1], "knows nothing"),
        (normalised(1, 0.5), "correlation coefficient"),
        (normalised(1 / 4, 1), "two classes equally likely"),
        (normalised(1 / 2, 1), "difference between the two classes"),
        (over(range), "count k is left out"),
        (over(lambda k: range(1, k + 1)), "count 0 is left out"),
        (lambda k, P: sum(comb(k, c) * c / k for c in P) / 2**k, "counts in P only"),
        (lambda k, P: max(right(k, P), 0), "may be negative"),
        (fails_at_one, "k = 1"),
        (guarded, "never changes"),
        (parity_by_hand, "parity"),
        (lambda k, P: [right(k, P)], "a single number"),
    ],
    "relevant": [
        (lambda X, y, M, k: top(k, scores(X, y, M)), "its sign"),
        (lambda X, y, M, k: top(k, -abs(scores(X, y, M))), "other way"),
        (lambda X, y, M, k: top(k, abs(y @ X @ M)), "frequent patterns won"),
        (lambda X, y, M, k: top(k, (X @ M).mean(axis=0)), "most frequent patterns"),
        (lambda X, y, M, k: top(k, (X @ M).var(axis=0)), "vary most"),
        (components, "come together"),
        (lambda X, y, M, k: top(k, abs((y - y.mean()) @ X)), "coordinates of x"),
        (lambda X, y, M, k: 1 + top(k, abs(scores(X, y, M))), "start at 0"),
        (lambda X, y, M, k: M[:, top(k, abs(scores(X, y, M)))], "columns of M"),
        (lambda X, y, M, k: np.sort(abs(scores(X, y, M)))[-k:], "integers"),
        (lambda X, y, M, k: abs(scores(X, y, M)), "number for each pattern"),
        (lambda X, y, M, k: top(k + 1, abs(scores(X, y, M))), "Return k indices"),
        (first_found, "must be different"),
        (mask, "at which it is true"),
        (lambda X, y, M, k: 1 * mask(X, y, M, k), "at which it is one"),
        (lambda X, y, M, k: M.shape[1] + np.arange(k), "outside"),
        (lambda X, y, M, k: np.arange(k), "not the relevant patterns"),
    ],
}
