r"""The target $f^*(x) = g(U^\top x)$.

A polynomial of r coordinates of a Gaussian input, and its samples.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from numbers import Integral

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from featlearn import hermite, validate
from featlearn.validate import Array

SPREAD = 1.6
HIGHEST_DEGREE, LARGEST_DIMENSION = 1000, 10**8
LARGEST_NOISE = 1e100  # whose fourth power is still a number


def _orthonormal(U: Array, name: str = "U") -> Tensor:
    """U (d, r) as a tensor, if its columns are orthonormal up to rounding."""
    U = validate.as_tensor(U, name, 2)
    tolerance = max(1e-6, 100 * torch.finfo(U.dtype).eps)
    if U.shape[0] < U.shape[1] or (U.T @ U - torch.eye(U.shape[1]).to(U)).abs().max() > tolerance:
        raise ValueError(
            f"{name} must have orthonormal columns, got a matrix of shape {tuple(U.shape)} without"
        )
    return U


def _coefficients(
    terms: Mapping[tuple[int, ...], float], r: int | None = None
) -> dict[tuple[int, ...], float]:
    """`terms` with plain keys and values, if each key holds r degrees."""
    if not validate.instance(terms, "terms", Mapping):
        raise ValueError("terms must not be empty")
    found = {}
    for alpha, c in terms.items():
        r = len(alpha) if r is None and isinstance(alpha, tuple) else r
        known = isinstance(alpha, tuple) and len(alpha) == r
        if not known or any(not isinstance(k, Integral) or k < 0 for k in alpha):
            raise ValueError(f"terms must be indexed by {r} degrees each, got {alpha!r}")
        if max(alpha) > HIGHEST_DEGREE:
            raise ValueError(f"terms must have degrees up to {HIGHEST_DEGREE}, got {alpha!r}")
        found[tuple(map(int, alpha))] = validate.real(c, "terms")
    return found


@dataclass(frozen=True, eq=False)
class Sample:
    r"""Inputs X (n, d), labels y (n,) and weights (n,) that sum to one."""

    X: Tensor
    y: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        X, y = (
            validate.as_tensor(self.X, "X", 2, like=(self.y, self.weights)),
            validate.as_tensor(self.y, "y", 1),
        )
        weights = validate.as_tensor(self.weights, "weights", 1)
        validate.same_length(X, "X", y, "y")
        validate.same_length(y, "y", weights, "weights")
        if (weights < 0).any() or abs(weights.sum().item() - 1) > 1e-5:
            raise ValueError("weights must not be negative and must sum to one")
        for name, value in (("X", X), ("y", y.to(X)), ("weights", weights.to(X))):
            object.__setattr__(self, name, value)

    def risk(self, predictions: Array) -> Tensor:
        r"""$\sum_i\omega_i(\hat y_i-y_i)^2$ for predictions of shape (n,), a number, or (n, k),
        then one for each column.
        """
        predictions = validate.as_tensor(predictions, "predictions", (1, 2)).to(self.y)
        validate.same_length(predictions, "predictions", self.y, "y")
        y = self.y if predictions.ndim == 1 else self.y[:, None]
        return self.weights @ (predictions - y).square()

    def mean(self, values: Array) -> Tensor:
        r"""$\sum_i\omega_iv_i$ for values of shape (n,) or (n, k)."""
        values = validate.as_tensor(values, "values", (1, 2)).to(self.y)
        validate.same_length(values, "values", self.y, "y")
        return self.weights @ values

    def split(self, first: int) -> tuple[Sample, Sample]:
        """The first rows and the others, the weights of each scaled to sum to one."""
        if not 0 < validate.integer(first, "first") < len(self.y):
            raise ValueError(f"first must lie between 1 and {len(self.y) - 1}, got {first}")
        weights = self.weights[:first], self.weights[first:]
        halves = (self.X[:first], self.y[:first]), (self.X[first:], self.y[first:])
        head, tail = (Sample(X, y, w / w.sum()) for (X, y), w in zip(halves, weights, strict=True))
        return head, tail


def _equal(X: Tensor, y: Tensor) -> Sample:
    return Sample(X, y, torch.full_like(y, 1 / len(y)))


@dataclass(frozen=True, eq=False)
class LatentPolynomial:
    r"""$f^*(x) = \sum_{\mathbf k}g_{\mathbf k}h_{\mathbf k}(U^\top x)$ with $h_{\mathbf k}(z) =
    \prod_ih_{k_i}(z_i)$ and $x \sim N(0, I_d)$.

    $h_k$ are the normalised Hermite polynomials of `featlearn.hermite`, so $\mathbb{E}[(f^*)^2] =
    \sum_{\mathbf k}g_{\mathbf k}^2$.

    Parameters
    ----------
    U
        (d, r) with orthonormal columns, a basis of the hidden subspace $S^*$.
    terms
        The coefficients: ``{(2, 0): 0.6, (0, 3): 0.8}`` is $0.6\,h_2(z_1)+0.8\,h_3(z_2)$.
    """

    U: Tensor
    terms: Mapping[tuple[int, ...], float]

    def __post_init__(self) -> None:
        U = _orthonormal(self.U)
        object.__setattr__(self, "U", U)
        object.__setattr__(self, "terms", _coefficients(self.terms, U.shape[1]))

    @classmethod
    def draw(
        cls,
        d: int,
        terms: Mapping[tuple[int, ...], float],
        rng: np.random.Generator,
        device: str | torch.device = "cpu",
    ) -> LatentPolynomial:
        r"""The polynomial with these terms in a random subspace of $\mathbb{R}^d$."""
        device, r = validate.device(device), len(next(iter(_coefficients(terms))))
        if validate.integer(d, "d", at_most=LARGEST_DIMENSION) < r:
            raise ValueError(f"d must be at least {r}, the number of hidden coordinates, got {d}")
        U = np.linalg.qr(validate.generator(rng, "rng").standard_normal((d, r)))[0]
        return cls(torch.as_tensor(U, device=device), terms)

    @property
    def d(self) -> int:
        """The number of inputs."""
        return self.U.shape[0]

    @property
    def r(self) -> int:
        r"""The dimension of $S^*$."""
        return self.U.shape[1]

    @property
    def degree(self) -> int:
        """The degree p."""
        return max(map(sum, self.terms))

    def part(self, degrees: Collection[int]) -> LatentPolynomial:
        """The terms of these degrees."""
        wanted = set(validate.integers(degrees, "degrees", at_least=0))
        terms = {alpha: c for alpha, c in self.terms.items() if sum(alpha) in wanted}
        if not terms:
            raise ValueError(f"degrees must name degrees of some terms, got {sorted(wanted)}")
        return LatentPolynomial(self.U, terms)

    def latent(self, Z: Array) -> Tensor:
        r"""$g(z) = \sum_{\mathbf k}g_{\mathbf k}h_{\mathbf k}(z)$ for Z of shape (..., r)."""
        Z = validate.as_tensor(Z, "Z", like=(self.U,))
        if Z.ndim == 0 or Z.shape[-1] != self.r:
            raise ValueError(f"Z must have {self.r} columns, got shape {tuple(Z.shape)}")
        return self._latent(Z, "Z")

    def _latent(self, Z: Tensor, name: str) -> Tensor:
        try:
            h = hermite.polynomials(Z, self.degree)
        except ValueError as error:
            raise ValueError(f"{name} must be smaller: {error}") from error
        return reduce(
            torch.add,
            (
                c * reduce(torch.mul, (h[k][..., i] for i, k in enumerate(alpha)))
                for alpha, c in self.terms.items()
            ),
        )

    def __call__(self, X: Array) -> Tensor:
        r"""$f^*(x)$ for X of shape (..., d)."""
        X = validate.as_tensor(X, "X", like=(self.U,))
        if X.ndim == 0 or X.shape[-1] != self.d:
            raise ValueError(f"X must have {self.d} columns, got shape {tuple(X.shape)}")
        return self._latent(X @ self.U.to(X), "X")

    def smoothed(self, S: Array) -> tuple[Tensor, Tensor]:
        r"""$G_k$ and $\nabla G_k$ at the points $s$ of S (..., r), for $k = 0, \dots, p$: shapes (p
        + 1, ...) and (p + 1, ..., r).

        $G(s) = \mathbb{E}_z[g(z+s)]$ is $g$ with each $\mathrm{He}_k$ replaced by the power $s^k$,
        and $G_k$ is its part of degree k. It holds all mean derivatives:
        $\mathbb{E}[\nabla^kg](s^{\otimes k}) = k!\,G_k(s)$ and $\mathbb{E}[\nabla^kg](s^{\otimes
        k-1}) = (k-1)!\,\nabla G_k(s)$.
        """
        S = validate.as_tensor(S, "S", like=(self.U,))
        if S.ndim == 0 or S.shape[-1] != self.r:
            raise ValueError(f"S must have {self.r} columns, got shape {tuple(S.shape)}")
        G = torch.zeros(self.degree + 1, *S.shape[:-1], dtype=S.dtype, device=S.device)
        slope = torch.zeros(self.degree + 1, *S.shape, dtype=S.dtype, device=S.device)
        for alpha, c in self.terms.items():
            c = c * math.exp(-sum(math.lgamma(power + 1) for power in alpha) / 2)
            k, powers = sum(alpha), [S[..., i] ** alpha[i] for i in range(self.r)]
            G[k] += c * math.prod(powers)
            for i in range(self.r):
                if alpha[i]:
                    rest = math.prod(powers[:i] + powers[i + 1 :])
                    slope[k, ..., i] += c * alpha[i] * S[..., i] ** (alpha[i] - 1) * rest
        return G, slope

    @property
    def latent_hessian(self) -> Tensor:
        r"""$\mathbb{E}[\nabla^2g]$, (r, r), with $\sqrt2\,g_{2e_i}$ on the diagonal and
        $g_{e_i+e_j}$ beside it.
        """
        M = torch.zeros(self.r, self.r).to(self.U)
        for alpha, c in self.terms.items():
            if sum(alpha) == 2:
                i, j = (k for k, power in enumerate(alpha) for _ in range(power))
                M[i, j] = M[j, i] = c * math.sqrt(2) if i == j else c
        return M

    @property
    def hessian(self) -> Tensor:
        r"""$H = \mathbb{E}[\nabla^2f^*] = U\,\mathbb{E}[\nabla^2g]\,U^\top$, (d, d)."""
        return self.U @ self.latent_hessian @ self.U.T

    @property
    def kappa(self) -> float:
        r"""$\kappa = \|H^\dagger\|/\sqrt r$, infinite where H has rank below r and Assumption 2
        fails.
        """
        sizes = torch.linalg.eigvalsh(self.latent_hessian).abs()
        if sizes.min() <= 1e-9 * sizes.max():
            return math.inf
        return 1 / (sizes.min().item() * math.sqrt(self.r))

    def sample(self, n: int, rng: np.random.Generator, noise_std: float = 0.0) -> Sample:
        r"""n points $x_i \sim N(0, I_d)$ with $y_i = f^*(x_i)+\epsilon_i$, $\epsilon_i =
        \pm\varsigma$ with equal probability.
        """
        noise_std = validate.real(noise_std, "noise_std", at_least=0)
        n, rng = self._count(n), validate.generator(rng, "rng")
        X = torch.as_tensor(rng.standard_normal((n, self.d))).to(self.U)
        y = self(X)
        if noise_std:
            y = y + torch.as_tensor(rng.choice([-noise_std, noise_std], n)).to(y)
        return _equal(X, y)

    def _count(self, n: int) -> int:
        """n, if so many points fit into memory."""
        validate.size(validate.integer(n, "n") * self.d, "n")
        return int(n)

    def stratified(self, n: int, rng: np.random.Generator) -> Sample:
        r"""n points to test on, without noise: hidden coordinates spread evenly over a wider
        Gaussian, weighted back to $N(0, I_r)$.

        A high power of a Gaussian has its mean square in its tails. Plain points see them rarely,
        and the mean of $(f^*)^2$ over 2000 of them is off by tens of per cent; here it is off by
        less than one.
        """
        n, rng = self._count(n), validate.generator(rng, "rng")
        ranks = np.tile(np.arange(n)[:, None], (1, self.r))
        cube = (rng.permuted(ranks, axis=0) + rng.random((n, self.r))) / n
        Z = torch.as_tensor(SPREAD * ndtri(np.clip(cube, 1e-12, 1 - 1e-12))).to(self.U)
        weights = torch.exp(-Z.square().sum(dim=1) * (1 - SPREAD**-2) / 2)
        X = torch.as_tensor(rng.standard_normal((n, self.d))).to(self.U)
        X = X + (Z - X @ self.U) @ self.U.T
        return Sample(X, self.latent(Z), weights / weights.sum())


def mixture(p: int) -> dict[tuple[int, ...], float]:
    r"""The terms of $\frac12\mathrm{He}_2(z)+\mathrm{He}_p(z)/\sqrt{2\,p!}$, the target of the
    paper's experiments; p is at least 3.
    """
    p = validate.integer(p, "p", at_least=3, at_most=HIGHEST_DEGREE)
    return {(2,): math.sqrt(0.5), (p,): math.sqrt(0.5)}


EXAMPLES = {
    1: mixture(4),
    2: {(1, 1): math.sqrt(1 / 2), (3, 0): math.sqrt(1 / 2)},
    3: {
        (2, 0, 0): 1 / 6**0.5,
        (0, 2, 0): 1 / 6**0.5,
        (0, 0, 2): -1 / 6**0.5,
        (1, 1, 1): math.sqrt(1 / 2),
    },
}
