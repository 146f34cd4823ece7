"""Wrong answers to the exercises of chapter 2."""

import numpy as np


def pairs(X, W, factor=1.0):
    angle = X @ W.T
    return factor * np.hstack([np.cos(angle), np.sin(angle)])


def independent_phases(X, W):
    b = np.random.default_rng().uniform(0, 2 * np.pi, 2 * len(W))
    return np.cos(np.hstack([X @ W.T] * 2) + b) / np.sqrt(len(W))


def larger_for_few_points(X, W):
    return pairs(X, W, (1 if len(X) > 3 else 2) / np.sqrt(len(W)))


def waves(X, w, b, factor):
    return factor * np.cos(X * w + b)


def turn(p, rng):
    return rng.uniform(0, 2 * np.pi, p)


def unseeded(X, p, rng):
    rng = np.random.default_rng()
    return waves(X, rng.standard_cauchy(p), turn(p, rng), np.sqrt(2 / p))


def always_seed_zero(X, p, rng):
    rng = np.random.default_rng(0)
    return waves(X, rng.standard_cauchy(p), turn(p, rng), np.sqrt(2 / p))


WRONG = {
    "fourier_pairs": [
        (lambda X, W: pairs(X, W, 1 / np.sqrt(2 * len(W))), "not 2q"),
        (lambda X, W: pairs(X, W, np.sqrt(2 / len(W))), "√2 still"),
        (pairs, "sums over the frequencies"),
        (lambda X, W: pairs(X, W, np.sqrt(2)), "belongs to the features"),
        (lambda X, W: pairs(X, W, 1 / len(W)), "holds the factor twice"),
        (lambda X, W: pairs(X, W, 1 / np.sqrt(len(X))), "number of points"),
        (
            lambda X, W: np.hstack([np.cos(X @ W.T)] * 2) / np.sqrt(len(W)),
            "both halves are cosines",
        ),
        (lambda X, W: pairs(X, 2 * np.pi * W, 1 / np.sqrt(len(W))), "2π times"),
        (lambda X, W: np.sqrt(2 / len(W)) * np.cos(X @ W.T), "one feature for each frequency"),
        (lambda X, W: pairs(X, W, 1 / np.sqrt(len(W))).T, "Rows and columns are exchanged"),
        (lambda X, W: pairs(X, W**2, 1 / np.sqrt(len(W))), "by hand"),
        (independent_phases, "Nothing random"),
        (larger_for_few_points, "other rows of X"),
    ],
    "laplace_features": [
        (
            lambda X, p, rng: waves(X, rng.standard_cauchy(p), turn(p, rng), np.sqrt(1 / p)),
            "mean square",
        ),
        (
            lambda X, p, rng: waves(X, rng.standard_cauchy(p), turn(p, rng), np.sqrt(2)),
            "factor 1/√p is missing",
        ),
        (lambda X, p, rng: waves(X, rng.standard_cauchy(p), turn(p, rng), np.sqrt(2) / p), "by p"),
        (
            lambda X, p, rng: waves(X, rng.standard_normal(p), turn(p, rng), np.sqrt(2 / p)),
            "Gaussian kernel",
        ),
        (
            lambda X, p, rng: waves(X, rng.laplace(size=p), turn(p, rng), np.sqrt(2 / p)),
            "looks like the kernel",
        ),
        (lambda X, p, rng: waves(X, rng.standard_cauchy(p), 0, np.sqrt(2 / p)), "x + x′"),
        (
            lambda X, p, rng: waves(
                X, rng.standard_cauchy(p), turn((len(X), p), rng), np.sqrt(2 / p)
            ),
            "share the same",
        ),
        (
            lambda X, p, rng: waves(
                X, rng.standard_cauchy((len(X), p)), turn(p, rng), np.sqrt(2 / p)
            ),
            "weights of its own",
        ),
        (
            lambda X, p, rng: waves(X, rng.standard_cauchy(p) / 2, turn(p, rng), np.sqrt(2 / p)),
            "half as large",
        ),
        (
            lambda X, p, rng: waves(X, rng.standard_cauchy(), turn(p, rng), np.sqrt(2 / p)),
            "not bad luck",
        ),
        (unseeded, "in the same state"),
        (always_seed_zero, "another rng"),
    ],
}
