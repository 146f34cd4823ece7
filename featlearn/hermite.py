r"""Hermite polynomials of a standard Gaussian variable.

$h_k = \mathrm{He}_k/\sqrt{k!}$ are the probabilists' polynomials, normalised:
$\mathbb{E}[h_j(z)h_k(z)] = \delta_{jk}$ for $z \sim N(0, 1)$. For jointly Gaussian $z, z'$ with
correlation $\rho$, $\mathbb{E}[h_j(z)h_k(z')] = \delta_{jk}\rho^k$, which turns expectations over
two variables into sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import torch
from torch import Tensor

from featlearn import validate
from featlearn.validate import Array

REACH, PER_PANEL = 16, 20
MOST_DEGREE = 10**4
MOST_NODES, MOST_GAUSS_DEGREE = 10**7, 600  # beyond 300 nodes the weights of Gauss underflow
MOST_FEATURES = 10**6


def _degree(degree: int, at_most: int = MOST_DEGREE) -> int:
    return validate.integer(degree, "degree", at_least=0, at_most=at_most)


def polynomials(z: Array, degree: int) -> Tensor:
    r"""$h_0(z), \dots, h_K(z)$ for $K$ = `degree` $\le 10^4$, shape (K + 1, \*z.shape).

    By the recurrence $\sqrt{k+1}\,h_{k+1}(z) = z\,h_k(z) - \sqrt k\,h_{k-1}(z)$.
    """
    z, degree = validate.as_tensor(z, "z"), _degree(degree)
    validate.size((degree + 1) * z.numel(), "z and degree")
    return _no_overflow(_polynomials(z, degree), "z and degree")


def _no_overflow(values: Tensor, names: str) -> Tensor:
    looked_at = values.device.type == "cpu" and not validate.is_transformed(values)
    if looked_at and not validate.is_finite(values):
        raise ValueError(f"{names} must be smaller: the polynomials overflow {values.dtype}")
    return values


def _polynomials(z: Tensor, degree: int) -> Tensor:
    h = [torch.ones_like(z), z]
    for k in range(1, degree):
        h.append((z * h[k] - math.sqrt(k) * h[k - 1]) / math.sqrt(k + 1))
    return torch.stack(h[: degree + 1])


def rule() -> tuple[Tensor, Tensor]:
    r"""Nodes and weights with $\mathbb{E}[g(z)] \approx \sum_i w_i\,g(z_i)$ for $z \sim N(0, 1)$,
    in float64.

    Gauss–Legendre with 20 nodes on each unit interval of $[-16, 16]$, times the density. Exact to
    rounding for $g$ that are smooth on the scale of $1/20$, also with a kink at zero or at another
    whole number, where panels meet; there the rule of Gauss and Hermite fails.
    """
    nodes, weights = _rule()
    return nodes.clone(), weights.clone()


@cache
@torch.inference_mode(False)
def _rule() -> tuple[Tensor, Tensor]:
    x, w = np.polynomial.legendre.leggauss(PER_PANEL)
    z = (np.arange(-REACH, REACH)[:, None] + (x + 1) / 2).ravel()
    weights = np.tile(w, 2 * REACH) * np.exp(-z * z / 2)
    return torch.as_tensor(z), torch.as_tensor(weights / weights.sum())


def grid(r: int, degree: int) -> tuple[Tensor, Tensor]:
    r"""Nodes (N, r) and weights (N,) with $\mathbb{E}[g(z)] = \sum_iw_i\,g(z_i)$ for $z \sim N(0,
    I_r)$, by the rule of Gauss and Hermite.

    Exact for polynomials of this degree, at most 600, in each of the r coordinates. For functions
    with a kink take `rule`. There are $N = (\lfloor\text{degree}/2\rfloor+1)^r \le 10^7$ nodes.
    """
    r, degree = validate.integer(r, "r", at_least=0), _degree(degree, MOST_GAUSS_DEGREE)
    count = degree // 2 + 1
    if r > 64 or count**r > MOST_NODES:
        raise ValueError(f"r and degree must be smaller: {count}^r nodes are too many for r = {r}")
    point, weight = np.polynomial.hermite_e.hermegauss(count)
    share = weight / weight.sum()
    index = np.indices((count,) * r).reshape(r, count**r)
    weights = np.ones(count**r)
    for i in index:
        weights *= share[i]
    return torch.as_tensor(point[index.T].reshape(count**r, r)), torch.as_tensor(weights)


@cache
@torch.inference_mode(False)
def _weighted(degree: int) -> tuple[Tensor, Tensor]:
    z, weights = _rule()
    return z, weights * _polynomials(z, degree)


def coefficients(function: Callable[[Tensor], Tensor], degree: int, q: Array = 1.0) -> Tensor:
    r"""$a_k(q) = \mathbb{E}[\varphi(\sqrt q\,z)\,h_k(z)]$ for $k = 0, \dots$, `degree` $\le 10^4$,
    shape (degree + 1, \*q.shape).

    In float64 and differentiable in $q > 0$. `function` is $\varphi$, acting on a tensor entry by
    entry.
    """
    q, degree = validate.as_tensor(q, "q").to(torch.float64), _degree(degree)
    validate.function(function, "function")
    looked_at = q.device.type == "cpu" and not validate.is_transformed(q)
    if looked_at and (q < 0).any():
        raise ValueError("q must be at least 0: it is a variance, got a negative number")
    validate.size(max(degree + 1, 2 * REACH * PER_PANEL) * q.numel(), "q and degree")
    probe = function(_rule()[0].to(q.device))
    if not isinstance(probe, Tensor) or probe.shape != _rule()[0].shape:
        got = tuple(probe.shape) if isinstance(probe, Tensor) else type(probe).__name__
        raise ValueError(f"function must map a tensor to one of its shape, got {got}")
    a = _coefficients(function, degree, q)
    if looked_at and not validate.is_finite(a):
        raise ValueError("function must be finite, and its moments too, got NaN or infinity")
    return a


def _coefficients(function: Callable[[Tensor], Tensor], degree: int, q: Tensor) -> Tensor:
    z, weighted = (part.to(q.device) for part in _weighted(degree))
    return torch.einsum("...i,ki->k...", function(q.sqrt()[..., None] * z), weighted)


def features(X: Array, degree: int) -> Tensor:
    r"""$\prod_ih_{k_i}(x_i)$ for all $k$ with $\sum_ik_i$ = `degree`, shape (...,
    $\binom{d+\text{degree}-1}{\text{degree}}$), for X of shape (..., d).

    For $x \sim N(0, I)$ they are orthonormal, and features of different degrees are orthogonal.
    There are at most $10^6$ of them.
    """
    X, degree = validate.as_tensor(X, "X"), _degree(degree)
    if X.ndim == 0:
        raise ValueError("X must have at least one axis, got a number")
    count = math.comb(X.shape[-1] + degree - 1, degree)
    if count > MOST_FEATURES:
        raise ValueError(f"X and degree must give at most {MOST_FEATURES} features, got more")
    validate.size(count * X[..., 0].numel(), "X and degree")
    h, columns = _polynomials(X, degree), []
    for chosen in combinations_with_replacement(range(X.shape[-1]), degree):
        column = torch.ones_like(X[..., 0])
        for i in set(chosen):
            column = column * h[chosen.count(i)][..., i]
        columns.append(column)
    return _no_overflow(torch.stack(columns, dim=-1), "X and degree")
