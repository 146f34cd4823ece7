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
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import validate

REACH, PER_PANEL = 16, 20


def polynomials(z: Any, degree: int) -> Tensor:
    r"""$h_0(z), \dots, h_K(z)$ for $K$ = `degree`, shape (K + 1, \*z.shape).

    By the recurrence $\sqrt{k+1}\,h_{k+1}(z) = z\,h_k(z) - \sqrt k\,h_{k-1}(z)$.
    """
    z, degree = validate.as_tensor(z, "z"), validate.integer(degree, "degree", at_least=0)
    h = [torch.ones_like(z), z]
    for k in range(1, degree):
        h.append((z * h[k] - math.sqrt(k) * h[k - 1]) / math.sqrt(k + 1))
    return torch.stack(h[: degree + 1])


@cache
@torch.inference_mode(False)
def rule() -> tuple[Tensor, Tensor]:
    r"""Nodes and weights with $\mathbb{E}[g(z)] \approx \sum_i w_i\,g(z_i)$ for $z \sim N(0, 1)$,
    in float64.

    Gauss–Legendre with 20 nodes on each unit interval of $[-16, 16]$, times the density. Exact to
    rounding for $g$ that are smooth on the scale of $1/20$, also with a kink at zero or at another
    whole number, where panels meet; there the rule of Gauss and Hermite fails.
    """
    x, w = np.polynomial.legendre.leggauss(PER_PANEL)
    z = (np.arange(-REACH, REACH)[:, None] + (x + 1) / 2).ravel()
    weights = np.tile(w, 2 * REACH) * np.exp(-z * z / 2)
    return torch.as_tensor(z), torch.as_tensor(weights / weights.sum())


def grid(r: int, degree: int) -> tuple[Tensor, Tensor]:
    r"""Nodes (N, r) and weights (N,) with $\mathbb{E}[g(z)] = \sum_iw_i\,g(z_i)$ for $z \sim N(0,
    I_r)$, by the rule of Gauss and Hermite.

    Exact for polynomials of this degree in each of the r coordinates. For functions with a kink
    take `rule`.
    """
    r, degree = validate.integer(r, "r", at_least=0), validate.integer(degree, "degree", at_least=0)
    point, weight = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
    nodes = np.array(list(product(point, repeat=r))).reshape(len(point) ** r, r)
    weights = np.array(
        [math.prod(ws) for ws in product(weight / weight.sum(), repeat=r)], dtype=float
    )
    return torch.as_tensor(nodes), torch.as_tensor(weights)


@cache
@torch.inference_mode(False)
def _weighted(degree: int) -> tuple[Tensor, Tensor]:
    z, weights = rule()
    return z, weights * polynomials(z, degree)


def coefficients(function: Callable[[Tensor], Tensor], degree: int, q: Any = 1.0) -> Tensor:
    r"""$a_k(q) = \mathbb{E}[\varphi(\sqrt q\,z)\,h_k(z)]$ for $k = 0, \dots$, `degree`, shape
    (degree + 1, \*q.shape).

    In float64 and differentiable in $q > 0$. `function` is $\varphi$, acting on a tensor entry by
    entry.
    """
    q, degree = (
        validate.as_tensor(q, "q").to(torch.float64),
        validate.integer(degree, "degree", at_least=0),
    )
    z, weighted = (part.to(q.device) for part in _weighted(degree))
    return torch.einsum("...i,ki->k...", function(q.sqrt()[..., None] * z), weighted)


def features(X: Any, degree: int) -> Tensor:
    r"""$\prod_ih_{k_i}(x_i)$ for all $k$ with $\sum_ik_i$ = `degree`, shape (...,
    $\binom{d+\text{degree}-1}{\text{degree}}$), for X of shape (..., d).

    For $x \sim N(0, I)$ they are orthonormal, and features of different degrees are orthogonal.
    """
    X, degree = validate.as_tensor(X, "X"), validate.integer(degree, "degree", at_least=0)
    if X.ndim == 0:
        raise ValueError("X must have at least one axis, got a number")
    h = polynomials(X, degree)
    columns = []
    for chosen in combinations_with_replacement(range(X.shape[-1]), degree):
        column = torch.ones_like(X[..., 0])
        for i in set(chosen):
            column = column * h[chosen.count(i)][..., i]
        columns.append(column)
    return torch.stack(columns, dim=-1)
