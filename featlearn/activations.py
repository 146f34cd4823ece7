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


def _root(q: Tensor) -> Tensor:
    r"""$\sqrt q$ with derivative 0 at 0."""
    positive = ~(q <= 0)
    return torch.where(positive, torch.where(positive, q, 1.0).sqrt(), 0.0)


def _relu_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac{\sqrt{q_xq_y}}{2\pi}\bigl(\sin\gamma + (\pi - \gamma)\cos\gamma\bigr)$ with $\cos\gamma = q_{xy}/\sqrt{q_xq_y}$.

    The angle comes from atan2, not from arccos, and the sine has derivative 0 where it is 0. Automatic
    differentiation then gives the true derivatives at $\gamma = 0$ and $\pi$, where arccos has none.
    """
    size = _root(q_x) * _root(q_y)
    cos = q_xy / torch.where(size == 0, 1.0, size)
    sin = _root((1 - cos) * (1 + cos))
    gamma = torch.atan2(sin, torch.where(size == 0, 1.0, cos))
    return size / (2 * math.pi) * (sin + (math.pi - gamma) * cos)


def _erf_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac2\pi\arcsin\frac{2q_{xy}}{\sqrt{(1 + 2q_x)(1 + 2q_y)}}$ (Williams 1997), by atan2 as above.

    With $u = 1 + 2q_x$, $v = 1 + 2q_y$ the squared cosine is at least $\frac1u + \frac1v - \frac1{uv}$, its value at equal
    inputs. Where rounding takes it below, the value is mended and the derivative kept.
    """
    u, v = 1 + 2 * q_x, 1 + 2 * q_y
    sin = 2 * q_xy / (u.sqrt() * v.sqrt())
    cos2 = (1 - sin) * (1 + sin)
    least = (1 / u + 1 / v - 1 / u / v).detach()
    cos2 = torch.where(cos2 < least, least + (cos2 - cos2.detach()), cos2)
    return 2 / math.pi * torch.atan2(sin, cos2.sqrt())


def _series_dual(name: str, function: Callable[[Tensor], Tensor], degree: int) -> Dual:
    r"""$\sum_k a_k(q_x)\,a_k(q_y)\,\rho^k$ with $\rho = q_{xy}/\sqrt{q_xq_y}$ (Mehler), summed by Horner's rule.

    Variances are raised by $10^{-20}$, so that $\rho$ exists and has a gradient at zero. Raises where the
    coefficients miss more than 1 % of $\mathbb{E}[\varphi(\sqrt q z)^2]$.
    """

    def expand(q: Tensor) -> Tensor:
        a = hermite.coefficients(function, degree, q)
        missed = 1 - a.square().sum(dim=0) / hermite.coefficients(lambda z: function(z) ** 2, 0, q)[0]
        if not (missed.abs() < 0.01).all():
            raise ValueError(
                f"activation {name!r} needs a closed form or a larger degree: at variance {q.max().item():.3g} "
                f"the series of degree {degree} misses more than 1 % of its second moment"
            )
        return a

    def dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        dtype, same = q_xy.dtype, q_x is q_y
        q_x, q_xy, q_y = q_x.double() + 1e-20, q_xy.double(), q_y.double() + 1e-20
        a_x, rho = expand(q_x), q_xy / (q_x.sqrt() * q_y.sqrt())
        a_y = a_x if same else expand(q_y)
        total = a_x[degree] * a_y[degree]
        for k in range(degree - 1, -1, -1):
            total = total * rho + a_x[k] * a_y[k]
        return total.to(dtype)

    return dual


@dataclass(frozen=True)
class Activation:
    r"""A function $\varphi$ and its dual.

    Calling it applies $\varphi$ entry by entry. Without a closed form the dual is a Hermite series, the exact
    dual of $\varphi$ cut at degree `degree`. For tanh its error is below $10^{-9}$ up to variance 4 and $10^{-4}$ at
    variance 25; a kink at zero leaves $10^{-4}$ close to $\rho = \pm1$, a kink elsewhere about as much for all $\rho$.
    Where the series misses more than 1 % of $\mathbb{E}[\varphi^2]$, it raises. With gradients it keeps `degree`
    matrices in memory.
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
        compute = self.closed_form or _series_dual(self.name, self.function, self.degree)
        return compute(q_x, q_xy, q_y)

    def second_moment(self, q: Tensor) -> Tensor:
        r"""$\mathbb{E}[\varphi(u)^2]$ for $u \sim N(0, q)$, entry by entry: the dual of equal inputs."""
        return self.dual(q, q, q)


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
    before = probe.clone()
    value = activation(probe)
    if not isinstance(value, Tensor) or (value.shape, value.dtype) != (probe.shape, probe.dtype):
        raise ValueError("activation must map a tensor to one of the same shape and dtype, entry by entry")
    if not torch.equal(probe, before):
        raise ValueError("activation must not change its input in place")
    return Activation(getattr(activation, "__name__", "function"), activation)
