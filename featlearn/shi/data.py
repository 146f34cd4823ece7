r"""The data model: hidden pattern indicators $\tilde\phi\in\{0,1\}^D$, a dictionary M, a label that
depends on how many of the k relevant patterns are present.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from featlearn import validate
from featlearn.validate import Array

MOST_RELEVANT, MOST_PATTERNS = 10**6, 10**8


def _label_set(k: int, P: Collection[int]) -> frozenset[int]:
    """P as a set of counts in {0, …, k}, neither empty nor everything."""
    counts = frozenset(validate.integers(P, "P", at_least=0))
    if max(counts) > k or len(counts) == k + 1:
        raise ValueError(
            f"P must hold some but not all of the counts 0 to {k}, got {sorted(counts)}"
        )
    return counts


def odd(k: int) -> frozenset[int]:
    r"""The label set of the parity: all odd counts up to k."""
    return frozenset(range(1, validate.integer(k, "k", at_most=MOST_RELEVANT) + 1, 2))


def uniform_counts(k: int) -> Tensor:
    """(k+1,) probabilities of each count when the k bits are independent and fair."""
    k = validate.integer(k, "k", at_most=MOST_RELEVANT)
    return torch.as_tensor(binom.pmf(np.arange(k + 1), k, 0.5))


def structured_counts(k: int, P: Collection[int], weight: float = 0.5) -> Tensor:
    r"""A law of the count with equal class probabilities, shape (k+1,).

    With probability 1 - weight the bits are fair, with the two classes made equally likely; with
    probability `weight` the count is max P for the class +1 and the smallest count outside P for
    the class -1, or min P and the largest count outside P if those are further apart.
    """
    fair = uniform_counts(k)
    P, weight = _label_set(k, P), validate.real(weight, "weight", at_least=0)
    if weight > 1:
        raise ValueError(f"weight must be at most 1, got {weight!r}")
    inside = torch.tensor([c in P for c in range(k + 1)])
    counts = torch.where(inside, fair, 0.0)
    others = fair - counts
    if weight < 1 and not (counts.sum() > 0 and others.sum() > 0):
        raise ValueError("P must have, and leave out, a count that k fair bits may have in float64")
    law = (1 - weight) / 2 * (counts / counts.sum() + others / others.sum())
    rest = set(range(k + 1)) - P
    upwards = max(P) - min(rest) >= max(rest) - min(P)
    for count in (max(P), min(rest)) if upwards else (min(P), max(rest)):
        law[count] += weight / 2
    return law


@dataclass(frozen=True, eq=False)
class Sample:
    r"""Inputs X (n, d), labels y (n,) in {-1, +1} and, where they are known, hidden patterns
    $\tilde\phi$ (n, D).
    """

    X: Tensor
    y: Tensor
    phi: Tensor | None = None

    def __post_init__(self) -> None:
        X, y = validate.as_tensor(self.X, "X", 2, like=(self.y,)), _labels(self.y)
        validate.same_length(X, "X", y, "y")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y.to(X))


def _labels(y: Array) -> Tensor:
    """y (n,) as a tensor, if it holds nothing but -1 and +1."""
    y = validate.as_tensor(y, "y", 1)
    if not (y.abs() == 1).all():
        raise ValueError("y must hold labels -1 and +1 only")
    return y


@dataclass(frozen=True, eq=False)
class Patterns:
    r"""$\tilde x = M\tilde\phi$, $x = (\tilde x-\mathbb{E}\tilde x)/\tilde\sigma$, $y = +1$ if
    $\sum_{j\in A}\tilde\phi_j\in P$ and -1 otherwise.

    The number of relevant patterns has the law `counts`; given the number, all choices are equally
    likely. The other D - k patterns are present independently with probability $p_0$.
    $\tilde\sigma^2 = \sum_j\mathrm{Var}\,\tilde\phi_j$, so $\mathbb{E}\|x\|^2 = 1$. Section 3 of
    the paper.

    Parameters
    ----------
    A
        The k relevant patterns, indices below D.
    P
        The counts with label +1, a subset of {0, …, k}.
    D
        The number of patterns.
    counts
        (k+1,) probabilities of each count; `uniform_counts` unless given, the family without
        structure.
    p0
        Probability of every other pattern.
    M
        (d, D) dictionary with orthonormal columns; the identity unless given.
    """

    A: Sequence[int]
    P: Collection[int]
    D: int
    counts: Tensor = None  # type: ignore[assignment]  # a tensor once it is made
    p0: float = 0.5
    M: Tensor | None = None

    def __post_init__(self) -> None:
        D, p0 = validate.integer(self.D, "D", at_most=MOST_PATTERNS), validate.real(self.p0, "p0")
        A = tuple(validate.integers(self.A, "A", at_least=0))
        if len(set(A)) < len(A) or max(A) >= D:
            raise ValueError(f"A must hold different indices below D = {D}, got {A}")
        k = len(A)
        counts = uniform_counts(k) if self.counts is None else self.counts
        counts = validate.as_tensor(counts, "counts", 1).to("cpu", torch.float64)
        if len(counts) != k + 1 or (counts < 0).any() or abs(counts.sum() - 1) > 1e-6:
            raise ValueError(
                f"counts must be {k + 1} probabilities that sum to one, got {counts.tolist()}"
            )
        if not 0 < p0 < 1:
            raise ValueError(f"p0 must lie between 0 and 1, got {self.p0!r}")
        if self.M is not None:
            M = validate.as_tensor(self.M, "M", 2)
            tolerance = 100 * torch.finfo(M.dtype).eps
            if (
                M.shape[1] != D
                or M.shape[0] < D
                or (M.T @ M - torch.eye(D).to(M)).abs().max() > tolerance
            ):
                raise ValueError(f"M must have {D} orthonormal columns, got shape {tuple(M.shape)}")
            object.__setattr__(self, "M", M)
        settled = {
            "A": A,
            "P": _label_set(k, self.P),
            "D": D,
            "counts": counts / counts.sum(),
            "p0": p0,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def k(self) -> int:
        """The number of relevant patterns."""
        return len(self.A)

    @property
    def d(self) -> int:
        """The dimension of the input."""
        return self.D if self.M is None else self.M.shape[0]

    @property
    def outside(self) -> list[int]:
        """The indices of the patterns that do not matter, in order."""
        relevant = set(self.A)
        return [j for j in range(self.D) if j not in relevant]

    @property
    def labels(self) -> Tensor:
        """(k+1,) the label of each count."""
        return torch.tensor(
            [1.0 if c in self.P else -1.0 for c in range(self.k + 1)], dtype=torch.float64
        )

    @property
    def balance(self) -> float:
        r"""$\mathbb{E}y$, zero under (A0)."""
        return (self.counts @ self.labels).item()

    @property
    def presence(self) -> float:
        r"""$\mathbb{E}\tilde\phi_j$ for the relevant patterns."""
        return (self.counts @ torch.arange(self.k + 1, dtype=torch.float64)).item() / self.k

    @property
    def gamma(self) -> float:
        r"""$\gamma = \mathbb{E}[y\tilde\phi_j]-\mathbb{E}[y]\mathbb{E}[\tilde\phi_j]$ for the
        relevant patterns, (A1).
        """
        joint = (self.counts * self.labels) @ torch.arange(self.k + 1, dtype=torch.float64) / self.k
        return joint.item() - self.balance * self.presence

    @property
    def sigma(self) -> float:
        r"""$\tilde\sigma$."""
        mu = self.presence
        return math.sqrt(self.k * mu * (1 - mu) + (self.D - self.k) * self.p0 * (1 - self.p0))

    @property
    def effective(self) -> Tensor:
        r"""(d,) the effective feature $\sum_{j\in A}M_j$, scaled to length one."""
        indicator = torch.zeros(
            self.D, dtype=torch.float64, device=None if self.M is None else self.M.device
        )
        indicator[list(self.A)] = self.k**-0.5
        return indicator if self.M is None else self.M.to(indicator) @ indicator

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        counts: Array | None = None,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> Sample:
        r"""n independent draws. With another law `counts` the inputs are still normalised by this
        model's mean and $\tilde\sigma$.
        """
        n, rng = validate.integer(n, "n"), validate.generator(rng, "rng")
        validate.size(n * (self.D + self.d), "n and D")
        validate.one_of(dtype, "dtype", validate.PRECISIONS)
        device = validate.device(device)
        law = self
        if counts is not None:
            law = replace(self, counts=validate.as_tensor(counts, "counts", 1))
        bits = (rng.random((n, self.D), dtype=np.float32) < self.p0).astype(np.float32)
        count = rng.choice(self.k + 1, size=n, p=law.counts.numpy())
        rank = rng.random((n, self.k), dtype=np.float32).argsort(axis=1)
        bits[:, list(self.A)] = rank < count[:, None]
        phi = torch.as_tensor(bits, device=device).to(dtype)
        return Sample(
            self.inputs(phi), self.labels.to(phi)[torch.as_tensor(count, device=device)], phi
        )

    def inputs(self, phi: Array) -> Tensor:
        r"""$x = M(\tilde\phi-\mathbb{E}\tilde\phi)/\tilde\sigma$ for indicators of shape (n, D)."""
        phi = validate.as_tensor(phi, "phi", 2, like=(self.M,))
        validate.columns(phi, "phi", self.D)
        if self.sigma == 0:
            raise ValueError("counts must vary: the patterns never do, and σ̃ is zero")
        mean = torch.full((self.D,), self.p0, dtype=phi.dtype, device=phi.device)
        mean[list(self.A)] = self.presence
        centred = (phi - mean) / self.sigma
        return centred if self.M is None else centred @ self.M.T.to(phi)
