r"""Activations and their duals.

The *dual* of $\varphi$ is the expectation $\mathbb{E}[\varphi(u)\varphi(v)]$ over a Gaussian pair with variances
$q_x, q_y$ and covariance $q_{xy}$. It is the kernel of infinitely many random features $\varphi(w\cdot x)$ and
one step of the recursion for wide networks. ReLU and erf have closed forms; any other function goes
through its Hermite series.

All duals are differentiable, with finite gradients also where the pair is degenerate: equal, opposite or
zero inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from featlearn import hermite, validate

DEGREE = 200
Dual = Callable[[Tensor, Tensor, Tensor], Tensor]


def _relu_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac{1}{2\pi}\bigl(r + (\pi - \theta)\,q_{xy}\bigr)$, $r = \sqrt{q_xq_y - q_{xy}^2}$, $\theta = \operatorname{atan2}(r, q_{xy})$.

    The angle comes from atan2, not from arccos, and the root is cut where it is zero: autograd then gives
    the true derivatives at $\theta = 0$ and $\pi$, where arccos has none.
    """
    size = q_x * q_y
    r2 = size - q_xy * q_xy
    inside, present = r2 > 0, size > 0
    r = torch.where(inside, torch.where(inside, r2, 1.0).sqrt(), 0.0)
    theta = torch.atan2(r, torch.where(present, q_xy, 1.0))
    return torch.where(present, (r + (math.pi - theta) * q_xy) / (2 * math.pi), 0.0)


def _erf_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac2\pi\arcsin\frac{2q_{xy}}{\sqrt{(1 + 2q_x)(1 + 2q_y)}}$ (Williams 1997), by atan2 as above."""
    rest = 1 + 2 * q_x + 2 * q_y + 4 * (q_x * q_y - q_xy * q_xy)
    return 2 / math.pi * torch.atan2(2 * q_xy, rest.sqrt())


def _floor(largest: Tensor) -> float:
    return max(1e-14 * largest.item(), 1e-100)


def _series_dual(function: Callable[[Tensor], Tensor], degree: int) -> Dual:
    r"""$\sum_k a_k(q_x)\,a_k(q_y)\,\rho^k$ with $\rho = q_{xy}/\sqrt{q_xq_y}$ (Mehler), summed by Horner's rule.

    Variances are raised by $10^{-14}$ of the largest, so that $\rho$ exists and has a gradient at zero.
    """

    def dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        dtype = q_xy.dtype
        q_x, q_xy, q_y = (q.to(torch.float64) for q in (q_x, q_xy, q_y))
        floor = _floor(torch.maximum(q_x.max(), q_y.max()))
        q_x, q_y = q_x + floor, q_y + floor
        a_x = hermite.coefficients(function, degree, q_x)
        a_y = hermite.coefficients(function, degree, q_y)
        rho = q_xy / (q_x.sqrt() * q_y.sqrt())
        total = a_x[degree] * a_y[degree]
        for k in range(degree - 1, -1, -1):
            total = total * rho + a_x[k] * a_y[k]
        return total.to(dtype)

    return dual


@dataclass(frozen=True)
class Activation:
    r"""A function $\varphi$ and its dual.

    Calling it applies $\varphi$ entry by entry. Without a closed form the dual is a Hermite series of
    degree `degree`, exact to rounding for smooth functions of variance up to about 4. It converges like
    $\rho^k$; where $\rho$ is close to $\pm1$, a kink or a larger variance leaves an error, up to $10^{-3}$.
    """

    name: str
    function: Callable[[Tensor], Tensor]
    closed_form: Dual | None = None
    degree: int = DEGREE

    def __call__(self, z: Tensor) -> Tensor:
        r"""$\varphi(z)$."""
        return self.function(z)

    def dual(self, q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        r"""$\mathbb{E}[\varphi(u)\varphi(v)]$ for variances `q_x`, `q_y` and covariances `q_xy`, entry by entry.

        The three broadcast: shapes (n, 1), (n, m) and (m,) give an (n, m) matrix.
        """
        return (self.closed_form or _series_dual(self.function, self.degree))(q_x, q_xy, q_y)

    def second_moment(self, q: Tensor) -> Tensor:
        r"""$\mathbb{E}[\varphi(u)^2]$ for $u \sim N(0, q)$, entry by entry: the dual of equal inputs.

        Without a closed form by a rule for one variable, which is more precise than the series.
        """
        if self.closed_form is not None:
            return self.closed_form(q, q, q)
        raised = q.to(torch.float64) + _floor(q.max())
        return hermite.coefficients(lambda z: self.function(z) ** 2, 0, raised)[0].to(q.dtype)


NAMED = {
    "relu": Activation("relu", torch.relu, _relu_dual),
    "erf": Activation("erf", torch.erf, _erf_dual),
    "tanh": Activation("tanh", torch.tanh),
}


def get(activation: str | Callable[[Tensor], Tensor]) -> Activation:
    """The activation of this name, or one made of a function from tensors to tensors of the same shape."""
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        return NAMED[validate.one_of(activation, "activation", NAMED)]
    if not callable(activation):
        raise TypeError(f"activation must be a name or a function, got {activation!r}")
    probe = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
    value = activation(probe)
    if not isinstance(value, Tensor) or value.shape != probe.shape:
        raise ValueError("activation must map a tensor to a tensor of the same shape, entry by entry")
    return Activation(getattr(activation, "__name__", "function"), activation)
