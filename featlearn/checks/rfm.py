"""Checks of the exercises of chapter 8."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.polynomial import hermite, hermite_e

from featlearn.checks import Answer, Wrong, agree, check

Function = Callable[[np.ndarray], np.ndarray]
DEGREES = np.arange(11)
NODES, WEIGHTS = hermite_e.hermegauss(100)


@check("gaussian_gradients(X, alpha, M, bandwidth)")
def gaussian_gradients(answer: Answer, rng: np.random.Generator) -> None:
    """Gradients of a Gaussian machine against complex differences of its function."""
    d = int(rng.integers(2, 5))
    n = d + int(rng.integers(1, 5))
    X, alpha, sigma = (
        rng.normal(size=(n, d)) + 1,
        rng.normal(size=n),
        round(rng.uniform(1.3, 1.9), 2),
    )
    A = rng.normal(size=(d, d))
    M = A @ A.T / d + 0.1 * np.eye(d)
    differences = X[:, None] - X
    squares = np.einsum("ijk,kl,ijl->ij", differences, M, differences)
    K = np.exp(-squares / (2 * sigma**2))

    def pulled(K: np.ndarray, metric: np.ndarray, weights: np.ndarray = alpha) -> np.ndarray:
        return -np.einsum("ij,ijk,kl->il", K * weights, differences, metric) / sigma**2

    def in_metric(metric: np.ndarray) -> np.ndarray:
        return pulled(
            np.exp(-np.einsum("ijk,kl,ijl->ij", differences, metric, differences) / (2 * sigma**2)),
            metric,
        )

    truth, s, V = _differences(X, alpha, M, sigma), *np.linalg.eigh(M)
    root = (V * np.sqrt(s)) @ V.T
    rho, S = np.sqrt(squares), K * alpha / sigma**2
    mistakes = {
        "the sign is wrong: the gradient points uphill, towards points with positive coefficient. "
        "Did you differentiate in x′?": -truth,
        "the distances are those of M, but the gradient of a distance contains M, too.": pulled(
            K, np.eye(d)
        ),
        "the metric is nowhere to be seen: these are the gradients for M = I.": in_metric(
            np.eye(d)
        ),
        "the outer factor is a root of M. Both roots act on the gradient: one from the inner "
        "derivative, one from the distance.": pulled(K, root),
        "this is the metric M²: the inputs are to be multiplied by the "
        "root of M, if at all.": in_metric(M @ M),
        "this is the metric of a root of M: the distance is (x − x′)ᵀM(x − x′), with M "
        "itself.": in_metric(root),
        "the bandwidth is missing in the inner derivative.": sigma**2 * truth,
        "the inner derivative contains the bandwidth to the wrong power: a gradient has the unit "
        "1/length.": sigma * truth,
        "the bandwidth is nowhere to be seen.": sigma**2 * pulled(np.exp(-squares / 2), M),
        "the exponent contains the bandwidth, not its square.": pulled(
            np.exp(-squares / (2 * sigma)), M
        ),
        "the exponent and its derivative contain the bandwidth, not its square.": sigma
        * pulled(np.exp(-squares / (2 * sigma)), M),
        "there is no 2 in the denominator of your exponent.": 2
        * pulled(np.exp(-squares / sigma**2), M),
        "there is no 2 in the denominator of your exponent, but the derivative is taken as "
        "if.": pulled(np.exp(-squares / sigma**2), M),
        "a factor 2 remains: ρ² brings one down, and the exponent has one in its denominator.": 2
        * truth,
        "half of it is missing: ρ² is quadratic in x and brings down a factor 2.": truth / 2,
        "only the diagonal of M is used. The metric may be turned against the axes.": in_metric(
            np.diag(np.diag(M))
        ),
        "the distances are right, but only the diagonal of M is applied to the gradient.": pulled(
            K, np.diag(np.diag(M))
        ),
        "the coefficients sit at the wrong index: each centre has its own, not each point at "
        "which you differentiate.": alpha[:, None] * pulled(K, M, np.ones(n)),
        "the coefficients are missing: these are the gradients of the sum of all kernels.": pulled(
            K, M, np.ones(n)
        ),
        "the sum that belongs to the point itself runs over the wrong index.": (
            S @ X - S.sum(axis=0)[:, None] * X
        )
        @ M,
        "one of the two parts of x − x′ is missing.": S @ X @ M,
        "one of the two parts of x − x′ is missing: the centres.": -S.sum(axis=1)[:, None] * X @ M,
        "this is the gradient of the Laplace kernel.": sigma
        * pulled(np.exp(-rho / sigma) / np.where(rho > 0, rho, np.inf), M),
        "these are gradients times coefficients. Coefficients belong to centres only.": alpha[
            :, None
        ]
        * truth,
        "you averaged over the centres. The function is a sum.": truth / n,
        "each gradient was scaled to length 1.": truth
        / np.linalg.norm(truth, axis=1, keepdims=True),
    }
    otherwise = (
        "the values are wrong. Move one point a little and compare with how the function changes."
    )
    agree(answer(X, alpha, M, sigma, shape=(n, d)), truth, mistakes, otherwise, 1e-4)
    if answer.differentiates():
        raise Wrong(
            "the values are right, but they come from automatic differentiation. The exercise asks "
            "for the formula."
        )
    _edges(answer, rng)
    other = np.eye(d) + np.ones((d, d)) / d
    whole = np.array([[1, 2], [0, -1], [3, 1], [1, 1]])
    for points, weights, metric, width, why in (
        (X, alpha, other, sigma, "for another metric on the same points"),
        (whole, np.array([1, -1, 2, 1]), np.array([[2, 1], [1, 1]]), 2, "for integers"),
        (X, alpha, 1e-10 * M, 1e-5 * sigma, "if M and the bandwidth are tiny"),
        (X + 500, alpha, M, sigma, "if the points are far from zero"),
        (
            4 * np.arange(5)[:, None] + rng.normal(size=(5, 1)),
            alpha,
            np.eye(1),
            1.0,
            "if the points are far from each other",
        ),
    ):
        weights = np.resize(weights, len(points))
        right = _differences(points, weights, metric, width)
        value = answer(points, weights, metric, width, shape=right.shape)
        agree(value, right, {}, f"it is right for some inputs, but not {why}.", 1e-4)
    many = rng.normal(size=(60, 3))
    if answer.traced(many, np.ones(60), np.eye(3), 1.0)["lines"] > 60 * 60:
        raise Wrong(
            "it is right, but it runs a loop over pairs of points. Write the sum over the centres "
            "as a product of matrices."
        )


def _edges(answer: Answer, rng: np.random.Generator) -> None:
    """Singular metrics with two equal points, fewer points than dimensions, one dimension, one
    point.
    """
    raised: dict[type[Exception], str] = {
        np.linalg.LinAlgError: "M may be singular: neither its inverse nor a Cholesky "
        "factor need exist."
    }
    nan = (
        "it returned NaN where M is singular or two points are equal. Does rounding make an "
        "eigenvalue or a squared distance negative under a root, or do you divide by a distance?"
    )
    singular = "if M is singular and two points are equal"
    for n, d, rank, where in (
        (7, 4, 2, singular),
        (9, 3, 1, singular),
        (4, 3, 0, "if M is zero"),
        (3, 5, 2, "for fewer points than dimensions"),
        (6, 1, 1, "for inputs of one dimension"),
        (1, 3, 2, "for a single point"),
    ):
        A, X, alpha = rng.normal(size=(d, rank)), rng.uniform(-1, 1, (n, d)), rng.uniform(0.5, 2, n)
        alpha *= rng.choice([-1, 1], n)
        X[-1], sigma = X[0], round(rng.uniform(1.2, 2), 2)
        M = A @ A.T * d / max(np.square(A).sum(), 1e-9)  # trace d, or zero
        value = answer(X, alpha, M, sigma, shape=(n, d), nan=nan, raised=raised)
        otherwise = f"it is right for some inputs, but not {where}."
        agree(value, _differences(X, alpha, M, sigma), {}, otherwise, 1e-4)


def _differences(X: np.ndarray, alpha: np.ndarray, M: np.ndarray, sigma: float) -> np.ndarray:
    """∂f/∂x_k = Im f(x + iεe_k)/ε for f = Σᵢ αᵢ k_M(·, xᵢ) at the rows of X, shape (n, d)."""
    moved = X[:, None] + 1e-30j * np.eye(X.shape[1])
    rest = moved[..., None, :] - X
    return (np.exp(-((rest @ M) * rest).sum(axis=-1) / (2 * sigma**2)) @ alpha).imag / 1e-30


@check("information_exponent(g)")
def information_exponent(answer: Answer, rng: np.random.Generator) -> None:
    """The information exponent against functions that are built from their Hermite coefficients."""
    cases = _functions(rng)
    found, truth = (
        np.array([_exponent(answer, g) for g, _, _ in cases]),
        np.array([s for _, s, _ in cases]),
    )
    if (found != np.rint(found)).any():
        raise Wrong("the exponent is a degree, so return an integer.")
    if (found != truth).any():
        _diagnose(found, cases)
    g, s, _ = cases[0]
    for factor in (1e-9, 1e9):
        try:
            same = answer(lambda z, factor=factor: factor * g(z), shape=()) == s
        except Wrong:
            same = False
        if not same:
            raise Wrong(
                "it depends on the scale of g. Compare each coefficient with the norm of g, not "
                "with a fixed number."
            )
    below = {
        "a coefficient below 10⁻⁶ of E[g²]^½ counts as zero, and E[g²] contains the constant.": (
            {0: 3e4, 1: 3e-3, 2: 1.0},
            2,
        ),
        "a coefficient counts as zero if E[g(z)h_s(z)], with h_s of norm 1, is below 10⁻⁶ of "
        "E[g²]^½.": ({8: 1e-7, 9: 1.0}, 9),
        "it misses a small odd part beside a large even one.": ({3: 0.02, 4: 1.0, 6: 1.0}, 3),
        "it misses a small even part beside a large odd one.": ({2: 0.02, 3: 1.0, 5: 1.0}, 2),
    }
    for message, (coefficients, s) in below.items():
        if _exponent(answer, _series(coefficients)) != s:
            raise Wrong(message)


def _diagnose(found: np.ndarray, cases: list[tuple[Function, int, int]]) -> NoReturn:
    """Raise `Wrong` with the mistake that explains all exponents, or with the first kind of
    function that is wrong.
    """
    functions, truth = [g for g, _, _ in cases], np.array([s for _, s, _ in cases])
    c = [_means(g) for g in functions]
    halved = [lambda z, g=g: g(z / math.sqrt(2)) for g in functions]
    powers, physicists = NODES[:, None] ** DEGREES, hermite.hermvander(NODES, 10)
    mistakes: dict[str, list[int] | np.ndarray] = {
        "you count degree 0. A constant says nothing about the direction; start with degree 1.": [
            _first(means, 0) for means in c
        ],
        "these are the moments E[g(z)zˢ]. Powers are not orthogonal to constants: take Hermite "
        "polynomials.": [_first(_means(g, powers)) for g in functions],
        "these are the physicists' Hermite polynomials, which are orthogonal for another "
        "Gaussian.": [_first(_means(g, physicists)) for g in functions],
        "your mean is over N(0, ½): the weight e^(−z²) belongs to the physicists' polynomials; z "
        "has variance 1.": [_first(_means(g)) for g in halved],
        "this is the first derivative of g at zero that does not vanish. Its mean over z is "
        "another thing.": [order for _, _, order in cases],
        "this is the largest degree. The least counts.": [
            DEGREES[_present(means)][-1] for means in c
        ],
        "this is the degree of the largest coefficient. The first that is not zero counts, "
        "however small.": [1 + int(np.abs(means[1:]).argmax()) for means in c],
        "this is the exponent of g². The label is not to be transformed here.": [
            _first(_means(g, squared=True)) for g in functions
        ],
        "it is one too small everywhere: at which degree does your list begin?": truth - 1,
        "it is one too large everywhere: at which degree does your list begin?": truth + 1,
    }
    for message, values in mistakes.items():
        if np.array_equal(found, values):
            raise Wrong(message)
    kinds = ["for a polynomial without a constant"] * 4 + ["for a polynomial with a constant"] * 4
    kinds += [
        "if the first coefficient is a thousandth of the others, which is small, but not zero"
    ] * 2
    kinds += ["for an exponent of 9 or 10"] * 2
    kinds += ["for a function that is not a polynomial"] * (len(cases) - len(kinds))
    first = int((found != truth).argmax())
    why = (
        "You found a coefficient where there is none: is your mean exact to 10⁻⁶ of the norm, "
        "rounding included?"
        if found[first] < truth[first]
        else "You passed over a coefficient that is there."
    )
    raise Wrong(f"the exponent is wrong {kinds[first]}. {why}")


def _functions(rng: np.random.Generator) -> list[tuple[Function, int, int]]:
    """Functions with their information exponent and the order of their first derivative at 0 that
    is not zero.
    """

    def polynomial_from(
        s: int, more: int, constant: float = 0.0, first: float = 1.0
    ) -> tuple[Function, int, int]:
        c = np.zeros(s + more + 1)
        c[s:] = rng.uniform(0.4, 1, more + 1) * rng.choice([-1, 1], more + 1)
        c[s] *= first
        c[0] = constant * abs(c[s])
        c /= np.sqrt([math.factorial(k) for k in range(len(c))])
        powers = np.abs(hermite_e.herme2poly(c)[1:])
        return _entrywise(lambda z: hermite_e.hermeval(z, c)), s, 1 + int((powers > 1e-9).argmax())

    def constant() -> float:
        return float(rng.uniform(1, 2) * rng.choice([-1, 1]))

    def hidden_from(mean: float) -> tuple[Function, int, int]:
        """A cubic g with E[g(z)p(z)] = 0 for the polynomial p = z² + const of this mean."""
        b, c = rng.uniform(0.4, 1, 2) * rng.choice([-1, 1], 2)
        return _entrywise(lambda z: b * (z * z - 1 - 2 / mean) + c * (z**3 - 3 * z)), 2, 1

    a, b = rng.uniform(0.7, 1.5), rng.uniform(0.15, 0.35)
    damped = math.exp(-a * a / 2)
    return [
        polynomial_from(int(rng.integers(2, 5)), 3),
        (_entrywise(lambda z: a * z**3), 1, 3),
        polynomial_from(int(rng.integers(5, 9)), int(rng.integers(0, 4))),
        (_entrywise(lambda z: b * (z**3 - 1.5 * z)), 1, 1),
        polynomial_from(int(rng.integers(3, 6)), 3, constant()),
        polynomial_from(int(rng.integers(6, 9)), 0, constant()),
        hidden_from(1.0),
        hidden_from(0.5),
        polynomial_from(int(rng.integers(1, 4)), 3, first=1e-3),
        polynomial_from(int(rng.integers(2, 5)), 2, first=1e-3),
        polynomial_from(9, 2),
        polynomial_from(10, 2),
        (_entrywise(lambda z: np.tanh(a * z)), 1, 1),
        (_entrywise(lambda z: np.cos(a * z)), 2, 2),
        (_entrywise(lambda z: np.sin(a * z) - a * damped * z), 3, 1),
        (_entrywise(lambda z: np.cos(a * z) + a * a * damped / 2 * z * z), 4, 2),
        (_entrywise(lambda z: (z - (1 + 2 * b) / 3 * z**3) * np.exp(-b * z * z)), 3, 1),
    ]


def _series(coefficients: dict[int, float]) -> Function:
    """The function with these coefficients of normalised Hermite polynomials."""
    c = np.zeros(max(coefficients) + 1)
    for k, value in coefficients.items():
        c[k] = value / math.sqrt(math.factorial(k))
    return _entrywise(lambda z: hermite_e.hermeval(z, c))


def _entrywise(function: Function) -> Function:
    """The function on whatever can be made an array."""
    return lambda z: function(np.asarray(z, dtype=float))


def _exponent(answer: Answer, g: Function) -> float:
    """The answer for g, with a fuller message if there is none."""
    nothing = (
        "it found no coefficient that differs from zero. Search all degrees from 1 to 10, with 10."
    )
    try:
        return float(answer(g, shape=(), raised={StopIteration: nothing, IndexError: nothing}))
    except Wrong as wrong:
        if "None" not in str(wrong):
            raise
        raise Wrong(f"{wrong} Or did the search end before degree 10?") from None


def _means(g: Function, basis: np.ndarray | None = None, squared: bool = False) -> np.ndarray:
    """E[g(z)p_k(z)] for k ≤ 10, with g, or its square, and p_k of norm 1.

    Hermite polynomials unless told otherwise.
    """
    basis = hermite_e.hermevander(NODES, 10) if basis is None else basis
    values, weights = g(NODES) ** (2 if squared else 1), WEIGHTS / WEIGHTS.sum()
    return (weights * values) @ basis / np.sqrt((weights @ values**2) * (weights @ basis**2))


def _present(means: np.ndarray) -> np.ndarray:
    return np.abs(means) > 1e-6


def _first(means: np.ndarray, start: int = 1) -> int:
    """The least degree from `start` on with a mean that is not zero."""
    return start + int(_present(means)[start:].argmax())
