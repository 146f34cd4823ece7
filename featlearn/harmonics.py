r"""Inputs and target functions, and what harmonic analysis says about learning them.

On the sphere a function splits into its spherical harmonics of degree $0, 1, 2, \dots$. Those of
degree $k$ form a space $H_k$ of dimension $N(d, k)$, which rotations map into itself and do not
split further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, exp, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from featlearn import validate
from featlearn.validate import Array

MOST_DEGREE, MOST_DIMENSION = 10**4, 10**9
PIECE = 2**14  # numbers that the cache holds together with those computed from them


def _dimension(d: int, at_least: int) -> int:
    return validate.integer(d, "d", at_least=at_least, at_most=MOST_DIMENSION)


def _degrees(degrees: Sequence[int]) -> list[int]:
    return validate.integers(degrees, "degrees", at_least=0, at_most=MOST_DEGREE)


def _array(values: Array, name: str, ndim: int | None = None) -> np.ndarray:
    """`values` as a float64 array."""
    return validate.as_tensor(values, name, ndim).detach().cpu().double().numpy()


def sphere(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    r"""n points uniform on the sphere of radius $\sqrt d$ in $\mathbb{R}^d$, shape (n, d)."""
    n, d = validate.integer(n, "n"), validate.integer(d, "d")
    validate.size(n * d, "n and d")
    X = validate.generator(rng, "rng").standard_normal((n, d))
    return sqrt(d) * X / np.linalg.norm(X, axis=1, keepdims=True)


def ball_volume(d: int) -> float:
    r"""$v_d = \pi^{d/2}/\Gamma(d/2 + 1)$, the volume of the unit ball."""
    d = _dimension(d, 1)
    return exp(d / 2 * log(pi) - lgamma(d / 2 + 1))


def harmonic_dimension(d: int, degree: int) -> int:
    r"""$N(d, k) = \binom{d+k-1}{k} - \binom{d+k-3}{k-2}$, the dimension of $H_k$ on the sphere in
    $\mathbb{R}^d$.
    """
    d = _dimension(d, 2)
    return _harmonic_dimension(
        d, validate.integer(degree, "degree", at_least=0, at_most=MOST_DEGREE)
    )


def _harmonic_dimension(d: int, k: int) -> int:
    return comb(d + k - 1, k) - (comb(d + k - 3, k - 2) if k >= 2 else 0)


def _dimensions(d: int, degrees: list[int]) -> list[int]:
    """N(d, k) for each degree, all within the range of floats."""
    dims = [_harmonic_dimension(d, k) for k in degrees]
    if max(dims) >= 2**1000:
        raise ValueError("d and degrees must be smaller: the dimension of H_k overflows a float")
    return dims


def gegenbauer(degree: int, t: Array, d: int) -> np.ndarray:
    r"""$P_k(t)$, the Gegenbauer polynomial of the sphere in $\mathbb{R}^d$ with $P_k(1) = 1$, $d
    \ge 3$.

    $\sum_jY_j(x)Y_j(x') = N(d, k)P_k(\cos\angle(x, x'))$ for any orthonormal basis $Y_j$ of $H_k$
    (addition theorem).
    """
    degree = validate.integer(degree, "degree", at_least=0, at_most=MOST_DEGREE)
    d = _dimension(d, 3)
    t = _array(t, "t")
    values = np.empty(t.shape)
    for start in range(0, t.size, PIECE):
        piece = slice(start, start + PIECE)
        values.reshape(-1)[piece] = _gegenbauer(degree, t.reshape(-1)[piece], d)
    if not np.isfinite(values).all():
        raise ValueError("degree, t and d must be smaller: the polynomial overflows")
    return values


def _gegenbauer(degree: int, t: Any, d: int) -> Any:
    r"""$(k+d-2)P_{k+1}(t) = (2k+d-2)\,t\,P_k(t)-kP_{k-1}(t)$, for an array or a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        before, now = 0.0 * t, 0.0 * t + 1.0
        for k in range(degree):
            before, now = now, ((2 * k + d - 2) * t * now - k * before) / (k + d - 2)
        return now


def zonal_eigenvalues(
    h: Callable[[np.ndarray], np.ndarray], d: int, degrees: Sequence[int]
) -> np.ndarray:
    r"""The eigenvalues $\lambda_k = \mathbb{E}[h(\tau)P_k(\tau)]$ of the kernel $h(\cos\angle(x,
    x'))$, x uniform on the sphere, $d \ge 3$.

    Each belongs to all $N(d, k)$ harmonics of degree $k$. By Gauss–Legendre quadrature in the
    angle, for smooth h; what is not above rounding counts as zero. h must be finite at the nodes,
    all of $[-1, 1]$ in low dimension.
    """
    d, degrees = _dimension(d, 3), _degrees(degrees)
    validate.function(h, "h")
    nodes, weights = np.polynomial.legendre.leggauss(400)
    angle = pi / 2 + min(pi / 2, 12 / sqrt(d)) * nodes  # further out the density is below exp(-72)
    weights = weights * np.sin(angle) ** (d - 2)
    tau = np.cos(angle)
    values = _values(h, tau, "h")
    terms = [weights * values * gegenbauer(k, tau, d) for k in degrees]
    sums = [term.sum() if abs(term.sum()) > 1e-14 * np.abs(term).sum() else 0.0 for term in terms]
    return np.array(sums) / weights.sum()


def _values(function: Callable[..., np.ndarray], at: np.ndarray, name: str) -> np.ndarray:
    """The values of a function at the points of an array, finite and real."""
    with np.errstate(all="ignore"):
        values = _array(function(at), f"{name}(t)")
    if values.shape not in ((), at.shape):
        raise ValueError(f"{name} must act entry by entry, got shape {values.shape} at {at.shape}")
    return np.broadcast_to(values, at.shape)


def learnability(
    eigenvalues: Array,
    multiplicities: Array,
    n: float,
    ridge: float,
) -> np.ndarray:
    r"""$c_k = \lambda_k/(\lambda_k+\kappa)$ where $\kappa > 0$ solves $\sum_kN_kc_k+\delta/\kappa =
    n$: the share of each eigenspace that kernel ridge regression learns from n samples, on average,
    for large n (Simon, Dickens, Karkada and DeWeese 2023).

    Parameters
    ----------
    eigenvalues, multiplicities
        $\lambda_k \ge 0$ and how often each occurs, $N_k$.
    n
        Number of samples; it may be fractional.
    ridge
        $\delta > 0$, what is added to the diagonal of the kernel matrix.
    """
    spectrum = _array(eigenvalues, "eigenvalues", 1)
    counts = _array(multiplicities, "multiplicities", 1)
    if spectrum.shape != counts.shape:
        raise ValueError(
            "eigenvalues and multiplicities must be vectors of one length, "
            f"got {spectrum.shape}, {counts.shape}"
        )
    if (spectrum < 0).any() or (counts <= 0).any():
        raise ValueError("eigenvalues must be at least 0 and multiplicities positive")
    n, ridge = validate.real(n, "n", above=0), validate.real(ridge, "ridge", above=0)
    with np.errstate(divide="ignore"):
        logs = np.log(spectrum)

    def excess(log_kappa: float) -> float:
        with np.errstate(over="ignore"):
            return float(counts @ expit(logs - log_kappa) + np.exp(log(ridge) - log_kappa)) - n

    low = log(ridge) - log(2) - log(n)
    total = np.logaddexp.reduce([*(logs + np.log(counts)), log(ridge)])
    log_kappa = brentq(excess, low, float(total) + log(2) - log(n), xtol=1e-14)
    return expit(logs - log_kappa)


def ridge_energies(
    g: Callable[[float], float], d: int, degrees: Sequence[int], kinks: Sequence[float] = ()
) -> np.ndarray:
    r"""The energy $A_k$ of $f(x) = g(u \cdot x)$ in each harmonic degree, x uniform on the sphere
    of radius $\sqrt d$.

    $u$ is any unit vector. With $\tau = u\cdot x/\sqrt d$, whose density is proportional to $(1 -
    \tau^2)^{(d-3)/2}$, and the Gegenbauer polynomials $P_k$ normalised to $P_k(1) = 1$, $A_k = N(d,
    k)\,\mathbb{E}[g(\sqrt d\,\tau)P_k(\tau)]^2$, because $\mathbb{E}[P_k^2] = 1/N(d, k)$.

    Parameters
    ----------
    g
        Function of one real variable.
    d
        Dimension, at least 3.
    degrees
        The degrees k to compute.
    kinks
        Points of $[-1, 1]$ in $\tau$ where g is not smooth, for the quadrature.
    """
    d, degrees = _dimension(d, 3), _degrees(degrees)
    validate.function(g, "g")
    is_smooth = isinstance(kinks, (list, tuple)) and not kinks
    breaks = [] if is_smooth else _array(kinks, "kinks", 1).tolist()
    if any(abs(kink) > 1 for kink in breaks):
        raise ValueError(f"kinks must lie between -1 and 1, got {breaks}")
    alpha = (d - 2) / 2
    normaliser = quad(lambda t: (1 - t * t) ** (alpha - 0.5), -1, 1)[0]

    def mean(k: int, dim: int) -> float:
        def integrand(t: float) -> float:
            value = validate.real(g(sqrt(d) * t), "g(x)")
            return value * _gegenbauer(k, t, d) * (1 - t * t) ** (alpha - 0.5)

        tight = 1e-9 * normaliser / sqrt(dim)
        return (
            quad(integrand, -1, 1, points=breaks or None, limit=400, epsabs=tight)[0] / normaliser
        )

    dims = _dimensions(d, degrees)
    return np.array([dim * mean(k, dim) ** 2 for k, dim in zip(degrees, dims, strict=True)])


def fixed_feature_bound(n: int, d: int, degrees: Sequence[int], energies: Sequence[float]) -> float:
    r"""Least mean squared error of any n fixed features on $g(u\cdot x)$, averaged over the
    direction $u$.

    $\min \sum_k A_k(1 - m_k/N(d, k))$ over $0 \le m_k \le N(d, k)$ with $\sum_k m_k \le n$:
    features go first where one feature buys most energy, $A_k/N(d, k)$. Degrees that are not listed
    count as learned for nothing, so the value stays a lower bound.
    """
    left, d, degrees = validate.integer(n, "n", at_least=0), _dimension(d, 2), _degrees(degrees)
    if len(set(degrees)) != len(degrees):
        raise ValueError(f"degrees must differ, got {degrees}")
    energies = [
        validate.real(energy, "energies", at_least=0)
        for energy in validate.sequence(energies, "energies")
    ]
    if len(degrees) != len(energies):
        raise ValueError(
            "degrees and energies must have the same length, "
            f"got {len(degrees)} and {len(energies)}"
        )
    dims = _dimensions(d, degrees)
    error = float(sum(energies))
    for energy, dim in sorted(
        zip(energies, dims, strict=True), key=lambda pair: -pair[0] / pair[1]
    ):
        used = min(left, dim)
        error -= energy * used / dim
        left -= used
    return max(error, 0.0)
