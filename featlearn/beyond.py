r"""Beyond the tangent: quadratic models, signs that silence the linear term, and low rank as a
prior.

`harmonic` is the target of the chapter, a pure polynomial in one direction. `SignedNetwork` is a
two-layer network near its start whose neurons move under random signs, so that it learns through
the second-order term of its Taylor series. A quadratic function of features $g$ is a symmetric
matrix, $f(x) = g(x)^\top Mg(x)$; fixed features choose the $M$ of least Frobenius norm,
`minimum_frobenius`. `whitener` prepares a layer of features for the next.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import vjp

from featlearn import activations, harmonics, validate
from featlearn.validate import Array

MOST_STEPS = 10**8


def harmonic(degree: int, X: Array) -> Tensor:
    r"""$\sqrt{N(d, p)}\,P_p(x_1/\|x\|)$ at the rows of X: degree p around the first axis, shape
    (..., n).

    It has variance 1 on the sphere; harmonics of different degrees are orthogonal.

    Parameters
    ----------
    degree
        $p$.
    X
        (..., n, d) points other than the origin.
    """
    X = validate.as_tensor(X, "X")
    if X.ndim < 2:
        raise ValueError(f"X must have shape (..., n, d), got {tuple(X.shape)}")
    d, largest = X.shape[-1], X.abs().amax(dim=-1)
    if not largest.all():
        raise ValueError("X must have no row of zeros: the origin has no direction")
    size = math.sqrt(harmonics.harmonic_dimension(d, degree))
    U = X / largest[..., None]
    cosine = (U[..., 0] / U.norm(dim=-1)).cpu().numpy()
    return torch.as_tensor(size * harmonics.gegenbauer(degree, cosine, d)).to(X)


def minimum_frobenius(G: Array, y: Array) -> Tensor:
    r"""The symmetric $M$ of least $\|M\|_F$ with $g_i^\top Mg_i = y_i$ for all i, shape (..., D,
    D).

    $M = \sum_ic_ig_ig_i^\top$ with $c = K^+y$, $K_{ij} = (g_i\cdot g_j)^2$: regression with the
    quadratic kernel. Where no $M$ interpolates, the least-squares one.

    Parameters
    ----------
    G
        (..., n, D) features; leading axes are independent problems.
    y
        (..., n) labels.
    """
    G = validate.as_tensor(G, "G", like=(y,))
    y = validate.as_tensor(y, "y").to(G)
    if G.ndim < 2 or y.shape != G.shape[:-1]:
        raise ValueError(
            f"G and y must have shapes (..., n, D) and (..., n), got {tuple(G.shape)} and "
            f"{tuple(y.shape)}"
        )
    validate.size(G.numel() // G.shape[-1] * G.shape[-2], "G")
    validate.size(G.numel() // G.shape[-2] * G.shape[-1], "G")
    K = (G @ G.mT).square()
    if not validate.is_finite(K):
        raise ValueError("G must have smaller entries: their fourth powers overflow")
    c = torch.linalg.pinv(K, hermitian=True) @ y[..., None]
    return G.mT @ (c * G)


@dataclass(frozen=True, eq=False)
class SignedNetwork:
    r"""$f_V(x) = \frac1{\sqrt m}\sum_ja_j\bigl[\sigma((w_j+z_jv_j)\cdot x)-\sigma(w_j\cdot
    x)\bigr]$ with signs $z_j = \pm1$.

    $W$ and $a$ stay at their initial values, the change $V$ is trained; a `Network` has no signs,
    which are drawn anew in each step. Source: Bai and Lee (2020); S3, signed dropout. All tensors
    may carry a first axis of B independent members.

    Parameters
    ----------
    W
        (m, d) or (B, m, d), the initial weights.
    a
        (m,) or (B, m), fixed output weights.
    activation
        $\sigma$, a name or a function of tensors.
    derivative
        $\sigma'$, a function of tensors. Without it training differentiates $\sigma$
        automatically, which takes about three times as long.
    """

    W: Tensor
    a: Tensor
    activation: str | Callable[[Tensor], Tensor] = torch.nn.functional.softplus
    derivative: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        W = validate.as_tensor(self.W, "W", (2, 3), like=(self.a,))
        a = validate.as_tensor(self.a, "a")
        if a.shape != W.shape[:-1]:
            raise ValueError(
                f"a must have shape {tuple(W.shape[:-1])} to go with W, got {tuple(a.shape)}"
            )
        object.__setattr__(self, "W", W.detach())
        object.__setattr__(self, "a", a.detach().to(W))
        object.__setattr__(self, "activation", activations.get(self.activation))
        if self.derivative is not None:
            validate.function(self.derivative, "derivative")

    @property
    def _sigma(self) -> activations.Activation:
        """The activation, with its derivative."""
        return activations.get(self.activation)

    @classmethod
    def draw(
        cls,
        width: int,
        d: int,
        rng: np.random.Generator,
        members: int | None = None,
        *,
        activation: str | Callable[[Tensor], Tensor] = torch.nn.functional.softplus,
        derivative: Callable[[Tensor], Tensor] | None = None,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> SignedNetwork:
        r"""$w_j \sim N(0, I/d)$ and random signs $a_j = \pm1$."""
        validate.generator(rng, "rng")
        validate.one_of(dtype, "dtype", validate.PRECISIONS)
        device, activation = validate.device(device), activations.get(activation)
        batch = () if members is None else (validate.integer(members, "members"),)
        shape = (*batch, validate.integer(width, "width"), validate.integer(d, "d"))
        validate.size(math.prod(shape), "width, d and members")
        W = rng.standard_normal(shape) / math.sqrt(d)
        a = rng.choice([-1.0, 1.0], shape[:-1])
        return cls(
            torch.as_tensor(W).to(device, dtype),
            torch.as_tensor(a).to(device, dtype),
            activation,
            derivative,
        )

    def _sum(self, neurons: Tensor) -> Tensor:
        r"""$\frac1{\sqrt m}\sum_ja_jh_j$ for neurons $h$ of shape (..., n, m)."""
        return (neurons @ self.a[..., None])[..., 0] / math.sqrt(self.W.shape[-2])

    def _inputs(self, X: Array) -> Tensor:
        X = validate.as_tensor(X, "X", (2, 3)).to(self.W)
        validate.columns(X, "X", self.W.shape[-1])
        if X.ndim == 3 and X.shape[:1] != self.W.shape[:-2]:
            members = "one network" if self.W.ndim == 2 else f"{len(self.W)} members"
            raise ValueError(
                f"X must have shape (n, d), or a batch for each member: got {len(X)} for {members}"
            )
        return X

    def _labels(self, y: Array, n: int) -> Tensor:
        y = validate.as_tensor(y, "y", (1, 2)).to(self.W)
        if y.shape not in ((n,), (*self.W.shape[:-2], n)):
            raise ValueError(
                f"y must have {n} labels, one for each row of X, got shape {tuple(y.shape)}"
            )
        return y

    def _movement(self, V: Array) -> Tensor:
        V = validate.as_tensor(V, "V", finite=False).to(self.W)
        if V.shape != self.W.shape:
            raise ValueError(
                f"V must have the shape of W, {tuple(self.W.shape)}, got {tuple(V.shape)}"
            )
        return V

    def __call__(self, V: Array, X: Array, signs: Array = 1.0) -> Tensor:
        """The outputs at the rows of X, shape (n,) or (B, n).

        `signs` is a number or has the shape of a.
        """
        X, V = self._inputs(X), self._movement(V)
        z = validate.as_tensor(signs, "signs").to(self.a)
        if z.shape not in ((), self.a.shape):
            raise ValueError(
                f"signs must be a number or have shape {tuple(self.a.shape)}, got {tuple(z.shape)}"
            )
        return self._output(V, X, z)

    def _output(self, V: Tensor, X: Tensor, z: Tensor | None = None) -> Tensor:
        """The outputs under the signs z, all +1 unless given."""
        moved = self.W + (V if z is None else z[..., None] * V)
        return self._sum(self._sigma(X @ moved.mT) - self._sigma(X @ self.W.mT))

    def mean(self, V: Array, X: Array) -> Tensor:
        r"""$\mathbb{E}_zf_V(x) = \frac12(f_V+f_{-V})$.

        Exact, because each neuron has a sign of its own.
        """
        X, V = self._inputs(X), self._movement(V)
        return self._mean(V, X)

    def _mean(self, V: Tensor, X: Tensor) -> Tensor:
        return (self._output(V, X) + self._output(-V, X)) / 2

    def variance(self, V: Array, X: Array) -> Tensor:
        r"""$\mathrm{Var}_zf_V(x) = \frac1m\sum_ja_j^2\,\tfrac14\bigl[\sigma((w_j+v_j)\cdot
        x)-\sigma((w_j-v_j)\cdot x)\bigr]^2$.
        """
        X, V = self._inputs(X), self._movement(V)
        return self._variance(V, X)

    def _variance(self, V: Tensor, X: Tensor) -> Tensor:
        odd = (self._sigma(X @ (self.W + V).mT) - self._sigma(X @ (self.W - V).mT)) / 2
        return (odd.square() @ self.a.square()[..., None])[..., 0] / self.W.shape[-2]

    def expected_loss(self, V: Array, X: Array, y: Array, penalty: float = 0.0) -> Tensor:
        r"""$\mathbb{E}_z\frac1{2n}\sum_i(f_{V,z}(x_i)-y_i)^2+\lambda\sum_j\|v_j\|^4$, a number or
        (B,): loss of the mean plus half the variance.
        """
        penalty = validate.real(penalty, "penalty", at_least=0)
        X, V = self._inputs(X), self._movement(V)
        y = self._labels(y, X.shape[-2])
        fit = ((self._mean(V, X) - y).square() + self._variance(V, X)).mean(dim=-1) / 2
        return fit + (penalty * V.square().sum(dim=-1).square().sum(dim=-1) if penalty else 0.0)

    def taylor(self, V: Array, X: Array) -> tuple[Tensor, Tensor]:
        r"""The first two terms of $f_V$ in V, each of the shape of the output.

        $\frac1{\sqrt m}\sum_ja_j\sigma'(w_j\cdot x)\,v_j\cdot x$ and $\frac1{2\sqrt
        m}\sum_ja_j\sigma''(w_j\cdot x)(v_j\cdot x)^2$.
        """
        X, V = self._inputs(X), self._movement(V)
        z, moved = X @ self.W.mT, X @ V.mT
        curvature = activations.get(self._sigma.derivative).derivative(z)
        linear = self._sum(self._sigma.derivative(z) * moved)
        quadratic = self._sum(curvature * moved.square()) / 2
        if validate.is_finite(V) and not validate.is_finite(quadratic):
            raise ValueError("V must be smaller: the squares of its products with X overflow")
        return linear, quadratic

    def descent(
        self,
        X: Array,
        y: Array,
        *,
        learning_rate: float | Tensor,
        steps: int,
        penalty: float = 0.0,
        rng: np.random.Generator | None = None,
    ) -> Iterator[Tensor]:
        r"""Gradient descent on $\frac1{2n}\sum_i(f_V(x_i)-y_i)^2+\lambda\sum_j\|v_j\|^4$ from $V =
        0$: yields $V_0, V_1, \dots$

        With `rng` every step draws fresh signs, which act in the forward pass and therefore also
        multiply the gradient of each neuron. Without it all signs are $+1$: plain training.

        Parameters
        ----------
        X, y
            (n, d) and (n,), or a batch for each member, (B, n, d) and (B, n).
        learning_rate, steps
            $\eta$, one number or (B,) for each member its own, and the number of steps. A member
            that diverges ends in NaN; when all have, this raises.
        penalty
            $\lambda$.
        rng
            Generator of the signs, or none.
        """
        eta = validate.as_tensor(learning_rate, "learning_rate", (0, 1)).to(self.W)
        if (eta <= 0).any() or (eta.ndim == 1 and eta.shape != self.W.shape[:-2]):
            raise ValueError(
                "learning_rate must be positive, one number or one for each member, got "
                f"{learning_rate!r}"
            )
        steps = validate.integer(steps, "steps", at_least=0, at_most=MOST_STEPS)
        penalty = validate.real(penalty, "penalty", at_least=0)
        X = self._inputs(X)
        y = self._labels(y, X.shape[-2])
        if rng is not None:
            validate.generator(rng, "rng")
        return self._descent(X, y, eta[..., None, None], steps, penalty, rng)

    def _descent(
        self,
        X: Tensor,
        y: Tensor,
        eta: Tensor,
        steps: int,
        penalty: float,
        rng: np.random.Generator | None,
    ) -> Iterator[Tensor]:
        start = self._sum(self._sigma(X @ self.W.mT))
        scale = self.a / (math.sqrt(self.W.shape[-2]) * X.shape[-2])
        V = torch.zeros_like(self.W)
        yield V
        for step in range(steps):
            z = torch.ones_like(self.a)
            if rng is not None:
                z = torch.as_tensor(rng.choice([-1.0, 1.0], tuple(self.a.shape))).to(self.a)
            pre = X @ (self.W + z[..., None] * V).mT
            value, slope = self._value_and_slope(pre)
            residual = self._sum(value) - start - y
            gradient = (z * scale)[..., None] * (slope.mT @ (residual[..., None] * X))
            V = V - eta * (gradient + 4 * penalty * V.square().sum(dim=-1, keepdim=True) * V)
            last = step == steps - 1
            if not torch.isfinite(V if last else residual).any():  # the residual is smaller
                raise ValueError(
                    "X, y or learning_rate must be smaller, got learning_rate = "
                    f"{eta.max().item():g}: training diverges"
                )
            yield V

    def _value_and_slope(self, z: Tensor) -> tuple[Tensor, Tensor]:
        if self.derivative is not None:
            return self._sigma(z), self.derivative(z)
        value, pull = vjp(self._sigma, z)[:2]
        return value, pull(torch.ones_like(z))[0]

    def train(self, X: Array, y: Array, **options: Any) -> Tensor:
        """The last movement V of `descent` with the same arguments."""
        return deque(self.descent(X, y, **options), maxlen=1).pop()


def whitener(G: Array) -> Tensor:
    r"""$\hat\Sigma^{-1/2}$ with $\hat\Sigma = \frac1n\sum_ig_ig_i^\top$, shape (..., D, D).

    Directions without data are dropped.
    """
    G = validate.as_tensor(G, "G")
    if G.ndim < 2:
        raise ValueError(f"G must have shape (..., n, D), got {tuple(G.shape)}")
    _, s, U = torch.linalg.svd(G / math.sqrt(G.shape[-2]), full_matrices=False)
    seen = s > s[..., :1] * max(G.shape[-2:]) * torch.finfo(G.dtype).eps
    return (U.mT * torch.where(seen, 1 / s, 0.0)[..., None, :]) @ U
