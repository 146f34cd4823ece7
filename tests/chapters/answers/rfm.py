"""Wrong answers to the exercises of chapter 8."""

import math

import numpy as np
from numpy.polynomial import hermite, hermite_e

NODES, WEIGHTS = hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LENGTHS = np.sqrt([math.factorial(s) for s in range(11)])


def gradients(X, alpha, M, bandwidth, outer=None, power=2, two=2, sign=1):
    """The right gradients, if nothing is changed."""
    differences = X[:, None] - X
    squares = np.einsum("ijk,kl,ijl->ij", differences, M, differences)
    S = sign * np.exp(-squares / (two * bandwidth**2)) * alpha / bandwidth**power * 2 / two
    return -np.einsum("ij,ijk->ik", S, differences) @ (M if outer is None else outer)


def root(M):
    s, V = np.linalg.eigh(M)
    return (V * np.sqrt(np.maximum(s, 0))) @ V.T


def wrong_sum(X, alpha, M, bandwidth):
    differences = X[:, None] - X
    squares = np.einsum("ijk,kl,ijl->ij", differences, M, differences)
    S = np.exp(-squares / (2 * bandwidth**2)) * alpha / bandwidth**2
    return (S @ X - S.sum(axis=0)[:, None] * X) @ M


def coefficients_of_the_point(X, alpha, M, bandwidth):
    return alpha[:, None] * gradients(X, np.ones(len(X)), M, bandwidth)


def by_cholesky(X, alpha, M, bandwidth):
    R = np.linalg.cholesky(M)
    return gradients(X @ R, alpha, np.eye(len(M)), bandwidth) @ R.T


def by_plain_root(X, alpha, M, bandwidth):
    s, V = np.linalg.eigh(M - 1e-14 * np.eye(len(M)))
    with np.errstate(invalid="ignore"):
        R = (V * np.sqrt(s)) @ V.T
    return gradients(X @ R, alpha, np.eye(len(M)), bandwidth) @ R


def coefficients(g, basis=None):
    """E[g(z)h_s(z)] over the norm of g, s = 0, …, 10."""
    basis = hermite_e.hermevander(NODES, 10) / LENGTHS if basis is None else basis
    values = g(NODES)
    return (WEIGHTS * values) @ basis / np.sqrt(WEIGHTS @ values**2)


def first(c, start=1, tolerance=1e-6):
    return next((s for s in range(start, 11) if abs(c[s]) > tolerance), None)


def physicists_weight(g):
    x, weights = hermite.hermgauss(60)
    c = (weights * g(x)) @ (hermite.hermvander(x, 10) / LENGTHS / 2 ** (np.arange(11) / 2))
    return first(c / np.sqrt(weights @ g(x) ** 2))


def taylor(g):
    z = 0.5 * np.cos(np.pi * (np.arange(40) + 0.5) / 40)
    return first(np.polynomial.polynomial.polyfit(z, g(z), 14) / np.abs(g(z)).max())


def random_draws(g):
    z = np.random.default_rng(0).standard_normal(20000)
    c = g(z) @ (hermite_e.hermevander(z, 10) / LENGTHS) / len(z)
    return first(c, tolerance=0.02 * np.sqrt((g(z) ** 2).mean())) or 10


def absolute(g):
    c = coefficients(g) * np.sqrt(WEIGHTS @ g(NODES) ** 2)
    return first(c, tolerance=1e-6)


def exactly_zero(g):
    return first(coefficients(g), tolerance=0)


WRONG = {
    "gaussian_gradients": [
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, sign=-1), "uphill"),
        (
            lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, np.eye(len(M))),
            "contains M, too",
        ),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, np.eye(len(M)), bandwidth), "M = I"),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, root(M)), "Both roots"),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, M @ M, bandwidth), "metric M²"),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, root(M), bandwidth), "with M itself"),
        (
            lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, power=0),
            "bandwidth is missing",
        ),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, power=1), "wrong power"),
        (
            lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth, two=1),
            "no 2 in the denominator",
        ),
        (
            lambda X, alpha, M, bandwidth: gradients(X, alpha, np.diag(np.diag(M)), bandwidth),
            "the diagonal of M is used",
        ),
        (coefficients_of_the_point, "wrong index: each centre"),
        (wrong_sum, "runs over the wrong index"),
        (by_cholesky, "Cholesky factor"),
        (by_plain_root, "NaN where M is singular"),
        (lambda X, alpha, M, bandwidth: gradients(X, alpha, M, bandwidth).T, "exchanged"),
    ],
    "information_exponent": [
        (lambda g: first(coefficients(g), start=0), "count degree 0"),
        (lambda g: first(coefficients(g, NODES[:, None] ** np.arange(11))), "moments"),
        (lambda g: first(coefficients(g, hermite.hermvander(NODES, 10))), "for another Gaussian"),
        (physicists_weight, "z has variance 1"),
        (taylor, "derivative of g at zero"),
        (lambda g: max(s for s in range(11) if abs(coefficients(g)[s]) > 1e-6), "largest degree"),
        (lambda g: 1 + np.abs(coefficients(g)[1:]).argmax(), "largest coefficient"),
        (lambda g: first(coefficients(lambda z: g(z) ** 2)), "exponent of g²"),
        (lambda g: first(coefficients(g)) - 1, "one too small"),
        (lambda g: first(coefficients(g), tolerance=0.01), "a thousandth"),
        (random_draws, "exact to 10⁻⁶"),
        (absolute, "scale of g"),
        (lambda g: first([*coefficients(g)[:10], 0.0]), "end before degree 10"),
    ],
}
