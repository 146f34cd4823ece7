"""Checks of the exercises of chapter 1."""

from __future__ import annotations

import numpy as np

from featlearn.checks import SOLVERS, Answer, Wrong, agree, check


@check("periodic(X, Y=None)")
def periodic(answer: Answer, rng: np.random.Generator) -> None:
    """exp(−2 sin²(π(x − x′))) against the Gaussian kernel of points on a circle."""
    n, m = rng.integers(3, 9, 2)
    X, Y = rng.uniform(-9, 9, (n, 1)), rng.uniform(-9, 9, (m, 1))

    def truth(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        chords = np.exp(2j * np.pi * X) - np.exp(2j * np.pi * Y).T
        return np.exp(-(np.abs(chords) ** 2) / 2)

    difference = X - Y.T
    sine = np.sin(np.pi * difference)
    mistakes = {
        "the sine is not squared; some values exceed 1, which no kernel with K(x, x) = 1 can "
        "do.": np.exp(-2 * sine),
        "the absolute value of the sine stands where its square should.": np.exp(-2 * np.abs(sine)),
        "the factor 2 in the exponent is missing.": np.exp(-(sine**2)),
        "its period is not 1. Where is π?": np.exp(-2 * np.sin(difference) ** 2),
        "its period is ½: points half a turn apart look equal. Is it π or 2π?": np.exp(
            -2 * np.sin(2 * np.pi * difference) ** 2
        ),
        "this is a Gaussian kernel of x − x′ itself: it does not see that 0 and 1 are the same "
        "place.": np.exp(-2 * (np.pi * difference) ** 2),
    }
    agree(
        answer(X, Y, shape=(n, m)),
        truth(X, Y),
        mistakes,
        "the values are wrong. Compare one entry by hand, for two points at distance ¼.",
    )
    alone = "with one argument it must return the matrix of all pairs of rows of X, as if Y were X."
    agree(answer(X, shape=(n, n), raised={Exception: alone}), truth(X, X), {}, alone)
    whole, many = np.arange(4)[:, None], rng.uniform(-300, 300, (70, 1))
    zero = np.zeros((1, 1))
    for A, B in ((X[:1], zero), (X[:1], Y), (X, 0 * X), (whole, X), (many, Y)):
        agree(
            answer(A, B, shape=(len(A), len(B))),
            truth(A, B),
            {},
            "it is wrong for some shapes, for Y = 0, for integers or far from zero.",
        )


@check("centre(K)")
def centre(answer: Answer, rng: np.random.Generator) -> None:
    """The kernel matrix of centred features against the features, centred."""

    def draw(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
        Phi = 10 ** rng.uniform(-2, 2) * (rng.normal(size=(n, p)) + 3 * rng.normal(size=p))
        centred = Phi - Phi.mean(axis=0)
        return Phi @ Phi.T, centred @ centred.T

    n, p = rng.integers(4, 9, 2)
    K, truth = draw(n, p)
    rows, columns, mean = K.mean(axis=1, keepdims=True), K.mean(axis=0, keepdims=True), K.mean()
    lengths = np.sqrt(np.diag(truth))
    one = "your matrix is not symmetric: did you centre only one argument?"
    wrong_mean = (
        "both features lose their mean. Multiply the product of the two differences out: how many "
        "terms has it, and which signs?"
    )
    mistakes = {
        f"{one} You subtracted one row from all rows.": K - columns,
        f"{one} You subtracted one column from all columns.": K - rows,
        "numpy subtracts a vector of length n from every row, so that the columns lose their mean "
        "twice and the rows never. Give one of the two means the shape (n, 1).": K
        - 2 * columns
        + mean,
        wrong_mean: K - rows - columns,
        "the product of the means comes back with the wrong sign.": K - rows - columns - mean,
        "one number is taken from all entries. That is not the mean of a feature; the rows must "
        "sum to zero.": K - mean,
        "you also normalised the features to length 1. Centre, and no more.": truth
        / np.outer(lengths, lengths),
        "you normalised the features but did not centre them.": K
        / np.sqrt(np.outer(np.diag(K), np.diag(K))),
        "nothing has changed: this is K itself.": K,
    }
    agree(
        answer(K, shape=K.shape),
        truth,
        mistakes,
        "the rows of a centred kernel matrix sum to zero. Do yours?",
    )
    for size, rank, scale in ((n + 1, p, 1.0), (2, 3, 1.0), (90, 4, 1.0), (5, 1, 1e-12)):
        K, truth = (scale * matrix for matrix in draw(size, rank))
        wrong = f"it is right for some matrices and wrong for one of size {size}."
        agree(answer(K, shape=K.shape), truth, {}, wrong, tolerance=1e-4)
    K = np.array([[2, 1, 0], [1, 5, 3], [0, 3, 4]])
    integers = "it is wrong for a matrix of integers. Do you write fractions into an integer array?"
    agree(
        answer(K, shape=(3, 3)),
        np.array([[19, -8, -11], [-8, 10, -2], [-11, -2, 13]]) / 9,
        {},
        integers,
    )


@check("leave_one_out(K, y, ridge)")
def leave_one_out(answer: Answer, rng: np.random.Generator) -> None:
    """Leave-one-out errors from one factorisation against n separate fits."""

    def draw(n: int, p: int) -> tuple[np.ndarray, np.ndarray, float]:
        Phi = rng.normal(size=(n, p))
        return Phi @ Phi.T / n, rng.normal(size=n), float(10 ** rng.uniform(-2, 0.7))

    def left_out(K: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
        n, errors = len(y), []
        for i in range(n):
            o = np.delete(np.arange(n), i)
            fit = np.linalg.solve(K[np.ix_(o, o)] + ridge * np.eye(n - 1), y[o])
            errors.append(y[i] - K[i, o] @ fit)
        return np.array(errors)

    n = int(rng.integers(6, 11))
    K, y, ridge = draw(n, n + 3)
    inverse = np.linalg.inv(K + ridge * np.eye(n))
    truth, alpha = left_out(K, y, ridge), inverse @ y
    hat = K @ inverse
    mistakes = {
        "these are the errors of the fit to all points: none was left out.": ridge * alpha,
        "these are the coefficients of the fit. Each must still be divided by something.": alpha,
        "these are predictions. Subtract them from the labels.": y - truth,
        "the sign is wrong everywhere: label minus prediction.": -truth,
        "the ridge is missing.": left_out(K, y, 0.0),
        "the exercise asks for K + ridge · I. Did you multiply the ridge by n, or divide K "
        "by it?": left_out(K, y, n * ridge),
        "you divide by the diagonal of K + ridge · I. Do the case n = 2 by hand: by which number "
        "must one divide?": alpha / np.diag(K + ridge * np.eye(n)),
        "you divide the training errors by the diagonal of K (K + ridge · I)⁻¹, which says how "
        "much a point pulls the fit towards itself. Should a strong pull make its error larger or "
        "smaller?": (y - hat @ y) / np.diag(hat),
        "you multiply the training errors by a number below one. A point that pulls the fit "
        "towards itself looks better than it is: is the error without it larger or smaller?": (
            y - hat @ y
        )
        * (1 - np.diag(hat)),
        "you set the label to zero. The point is still there, and it is fitted with the label 0.": y
        - (hat @ y - np.diag(hat) * y),
        "the ridge is added to all entries of K. It belongs to the diagonal alone: ridge times the "
        "identity.": np.linalg.solve(K + ridge, y) / np.diag(np.linalg.inv(K + ridge)),
        "these are squares. Return the errors themselves.": truth**2,
    }
    if y.shape != (value := answer(K, y, ridge)).shape:
        raise Wrong(
            "it returned a matrix. Which entries of S say how a point acts on itself?"
            if value.shape == K.shape
            else "return one error for each point, an array like y."
            if value.ndim
            else "it returned one number. Do not average: return one error for each point."
        )
    agree(
        value,
        truth,
        mistakes,
        "leave out one point, fit the others, predict it: compare with that for n = 3.",
    )
    signs = np.where(y > 0, 1, -1)
    agree(
        answer(K, signs, ridge, shape=(n,)),
        left_out(K, signs, ridge),
        {},
        "it is wrong if the labels are integers.",
    )
    for size, rank, least in (
        (n + 1, n + 4, 0.0),
        (2, 2, 0.0),
        (60, 3, 0.0),
        (12, 5, 1e-6),
        (8, 30, 1e-4),
    ):
        K, y, ridge = draw(size, rank)
        ridge = least or ridge
        singular = "it is wrong when K is singular. With a ridge that must not matter."
        other = (
            "it is right for some matrices and wrong for others. Does the size matter, or that of "
            "the ridge?"
        )
        agree(
            answer(K, y, ridge, shape=(size,)),
            left_out(K, y, ridge),
            {},
            singular if rank < size else other,
        )
    if sum(answer.traced(*draw(60, 10))[name] for name in SOLVERS) > 30:
        raise Wrong(
            "it is right, but it solves a system for each point. One inverse is enough for all of "
            "them: compare its result with yours for n = 3, and then see the hint."
        )
