"""Checks of the exercises of chapter 2."""

from __future__ import annotations

import numpy as np

from featlearn.checks import Answer, Wrong, agree, check, close

NOISE = (
    0.032  # seven standard deviations of an entry of a kernel matrix from 50 000 features, at least
)


@check("fourier_pairs(X, W)")
def fourier_pairs(answer: Answer, rng: np.random.Generator) -> None:
    """Inner products of the features against the mean of cos(w·(x − x′)), pair by pair."""
    n, m, d, q = int(rng.integers(4, 7)), 3, int(rng.integers(2, 4)), int(rng.choice([7, 9, 11]))
    X, Y, W = (
        rng.normal(size=(n, d)) + 1,
        rng.normal(size=(m, d)) + 1,
        rng.normal(size=(q, d)) + 0.5,
    )

    def truth(X: np.ndarray, Y: np.ndarray, W: np.ndarray) -> np.ndarray:
        return np.array([[np.mean([np.cos(w @ (x - y)) for w in W]) for y in Y] for x in X])

    value = answer(X, W)
    if value.shape == (n, q):
        raise Wrong("it returned one feature for each frequency. A pair makes two, 2q in all.")
    if not np.array_equal(value, answer(X, W, shape=(n, 2 * q))):
        raise Wrong(
            "two calls with the same inputs give different features. Nothing random is needed."
        )
    K, angle = truth(X, X, W), X @ W.T
    cosines, sines = np.cos(angle) @ np.cos(angle).T / q, np.sin(angle) @ np.sin(angle).T / q
    mistakes = {
        "the inner products are half as large as they should be: the mean has q terms, not 2q.": K
        / 2,
        "the inner products are twice as large as they should be. Is √2 still needed?": 2 * K,
        "the inner products are sums over the frequencies. The exercise asks for the mean.": q * K,
        "the factor 1/√p, with p = 2q features, is missing: here it belongs to the features.": 2
        * q
        * K,
        "you divide each feature by q. An inner product holds the factor twice.": K / q,
        "you divide by the number of points. Divide by something that W knows.": K * q / n,
        "you divide by the dimension. The mean is over frequencies.": K * q / d,
        "both halves are cosines: cos(w·x) cos(w·x′) alone does not depend on x − x′ only.": 2
        * cosines,
        "both halves are sines: sin(w·x) sin(w·x′) alone does not depend on x − x′ only.": 2
        * sines,
        "the frequencies are 2π times too large.": truth(X, X, 2 * np.pi * W),
    }
    otherwise = "the inner products are not the mean of cos(w·(x − x′)). Try one frequency by hand."
    agree(value @ value.T, K, mistakes, otherwise)
    if not close(value @ answer(Y, W, shape=(m, 2 * q)).T, truth(X, Y, W)):
        raise Wrong("the features of a point depend on the other rows of X.")
    whole = np.array([[1, 0, 2], [0, 1, 1], [3, 1, 0]])
    square = rng.normal(size=(3, 3))
    for points, frequencies in (
        (whole, square),
        (whole, np.array([[1, 2, 0]])),
        (rng.normal(size=(40, 3)), np.vstack([square, square[:2], np.zeros((1, 3))])),
    ):
        features = answer(points, frequencies, shape=(len(points), 2 * len(frequencies)))
        agree(
            features @ features.T,
            truth(points, points, frequencies),
            {},
            "it is wrong for integers, for as many frequencies as dimensions, for a single "
            "frequency, or if a frequency is zero or appears twice.",
        )
    x, y, w = X[:1, :1], Y[:2, :1], W[:1, :1]
    agree(
        answer(x, w, shape=(1, 2)) @ answer(y, w, shape=(2, 2)).T,
        truth(x, y, w),
        {},
        "it is wrong for a single point and a single frequency in one dimension.",
    )


@check("laplace_features(X, p, rng)")
def laplace_features(answer: Answer, rng: np.random.Generator) -> None:
    """Inner products of many features against exp(−|x − x′|), up to the noise of their number."""
    X = np.array([[-1.0], [-0.4], [-0.2], [0.9]]) + rng.uniform(-0.05, 0.05, (4, 1))
    X = rng.uniform(0.8, 1.2) * rng.permutation(X)
    Y = np.append(X[:1], rng.uniform(-1, 1, (1, 1)), axis=0)
    p = 10_000 * int(rng.integers(5, 8))
    one, other = rng.spawn(2)
    value = answer(X, p, one, shape=(4, p))
    difference, total = np.abs(X - X.T), np.abs(X + X.T)
    K, size = np.exp(-difference), np.exp(-np.abs(X))
    gram = value @ value.T
    mistakes = {
        "the inner products are half as large as they should be. What is the mean square of a "
        "cosine?": K / 2,
        "the inner products are twice as large as they should be.": 2 * K,
        "the factor 1/√p is missing: the inner products grow with the number of features.": p * K,
        "the factors 1/√p and √2 are both missing.": p * K / 2,
        "you divide each feature by p. An inner product holds the factor twice.": K / p,
        "this is the Gaussian kernel: its weights are Gaussian. Which law has e^(−|t|) for "
        "characteristic function?": (np.exp(-(difference**2) / 2)),
        "the weights have the law that looks like the kernel; they need the one whose Fourier "
        "transform it is.": (1 / (1 + difference**2)),
        "this is e^(−|x − x′|/2): the weights are half as large as they should be.": np.sqrt(K),
        "this is e^(−2|x − x′|): the weights are twice as large as they should be.": K**2,
        "this is e^(−2π|x − x′|): characteristic functions know no 2π.": K ** (2 * np.pi),
        "different points have nothing in common. All points share the same phases.": np.eye(4),
        "every point has weights of its own. Draw p weights, once for all points.": (
            np.where(np.eye(4) > 0, 1, size * size.T)
        ),
    }
    if not close(gram, K, NOISE):
        _depends_on_the_sum(gram, K, np.exp(-total))
    otherwise = (
        "the inner products do not estimate e^(−|x − x′|). With so many features it is not bad "
        "luck."
    )
    agree(gram, K, mistakes, otherwise, NOISE)
    if not close(value @ answer(Y, p, one, shape=(2, p)).T, np.exp(-np.abs(X - Y.T)), NOISE):
        raise Wrong(
            "two calls with rng in the same state give different features. Take all random "
            "numbers from rng, and as many for two points as for four."
        )
    for odd in (1, 7):
        if not answer(X, odd, other, shape=(4, odd)).any(axis=0).all():
            raise Wrong(
                "for an odd p a feature is zero at all points. Make p features of one kind."
            )
    many = answer(np.tile(X, (20, 1)), 50, other, shape=(80, 50))
    if not close(many[:4], many[-4:]):
        raise Wrong("two equal points of a long list have different features.")
    if np.array_equal(value[:1], answer(X[:1], p, other, shape=(1, p))):
        raise Wrong("another rng gives the same features. Draw from the rng that is handed over.")


def _depends_on_the_sum(gram: np.ndarray, K: np.ndarray, echo: np.ndarray) -> None:
    """Raise `Wrong` if the matrix is a mixture of e^(−|x − x′|) and e^(−|x + x′|), as with wrong
    phases.
    """
    parts = np.stack([K.ravel(), echo.ravel()], axis=1)
    (share, wrong), *_ = np.linalg.lstsq(parts, gram.ravel(), rcond=None)
    mixture = share * K + wrong * echo
    if abs(wrong) > 2 * NOISE * abs(share) and close(gram, mixture, NOISE):
        raise Wrong(
            "the kernel depends on x + x′, too. Every feature needs a phase of its own, uniform "
            "on a whole turn."
        )
