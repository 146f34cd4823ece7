r"""Activations and their duals.

The *dual* of $\varphi$ is the expectation $\mathbb{E}[\varphi(u)\varphi(v)]$ over a Gaussian pair
with variances $q_x, q_y$ and covariance $q_{xy}$. It is the kernel of infinitely many random
features $\varphi(w\cdot x)$ and one step of the recursion for wide networks. The *derivative dual*,
$\mathbb{E}[\varphi'(u)\varphi'(v)]$, is the factor by which the tangent kernel passes a layer. ReLU
and erf have closed forms; any other function goes through its Hermite series.

All duals are differentiable, with finite gradients also where the pair is degenerate: equal,
opposite or zero inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad

from featlearn import hermite, validate
from featlearn.validate import Array

DEGREE = 800
ROUNDING = {torch.float32: 1e-3, torch.float64: 1e-6}  # of covariances from elsewhere, relative
Function = Callable[[Tensor], Tensor]
Dual = Callable[[Tensor, Tensor, Tensor], Tensor]


def _is_batched(tensor: Tensor) -> bool:
    """Whether it is inside `torch.func.vmap`, where no value can be looked at."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def _root(q: Tensor) -> Tensor:
    r"""$\sqrt q$ with derivative 0 at 0."""
    positive = ~(q <= 0)
    return torch.where(positive, torch.where(positive, q, 1.0).sqrt(), 0.0)


def _angle(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""$\sqrt{q_xq_y}$, and $\gamma$ with $\cos\gamma = q_{xy}/\sqrt{q_xq_y}$, its cosine and its
    sine.

    The angle comes from atan2, not from arccos, and the sine has derivative 0 where it is 0.
    Automatic differentiation then gives the true derivatives of the dual at $\gamma = 0$ and $\pi$,
    where arccos has none. Where all three are equal the cosine is 1 exactly.
    """
    size = _root(q_x) * _root(q_y)
    cos = q_xy / torch.where(size == 0, 1.0, size)
    cos = torch.where((q_x == q_xy) & (q_xy == q_y) & (size > 0), 1 + (cos - cos.detach()), cos)
    sin = _root((1 - cos) * (1 + cos))
    return size, torch.atan2(sin, torch.where(size == 0, 1.0, cos)), cos, sin


def _relu_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac{\sqrt{q_xq_y}}{2\pi}\bigl(\sin\gamma + (\pi - \gamma)\cos\gamma\bigr)$ (Cho and Saul
    2009).
    """
    size, gamma, cos, sin = _angle(q_x, q_xy, q_y)
    return size / (2 * math.pi) * (sin + (math.pi - gamma) * cos)


def _relu_derivative_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac{\pi - \gamma}{2\pi}$.

    The probability that both are positive. It has a kink at $\gamma = 0$, gradient 0 there.
    """
    return (math.pi - _angle(q_x, q_xy, q_y)[1]) / (2 * math.pi)


def _erf_angle(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""$\sqrt{uv}$, $\sin = 2q_{xy}/\sqrt{uv}$ and its cosine, with $u = 1 + 2q_x$, $v = 1 + 2q_y$.

    $\cos^2 = \frac1u + \frac1v - \frac1{uv} + \frac4{uv}(\sqrt{q_xq_y} - q_{xy})(\sqrt{q_xq_y} +
    q_{xy})$. The first bracket is 0 where all three are equal; where rounding makes it negative,
    the value is mended and the derivative kept.
    """
    u, v = 1 + 2 * q_x, 1 + 2 * q_y
    size, product = u.sqrt() * v.sqrt(), _root(q_x) * _root(q_y)
    gap = (product - q_xy) / size
    gap = torch.where((gap < 0) | ((q_x == q_xy) & (q_xy == q_y)), gap - gap.detach(), gap)
    cos2 = 1 / u + 1 / v - 1 / u / v + 4 * gap * ((product + q_xy) / size)
    return size, 2 * q_xy / size, cos2.sqrt()


def _erf_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac2\pi\arcsin\frac{2q_{xy}}{\sqrt{(1 + 2q_x)(1 + 2q_y)}}$ (Williams 1997), by atan2 as
    above.
    """
    _, sin, cos = _erf_angle(q_x, q_xy, q_y)
    return 2 / math.pi * torch.atan2(sin, cos)


def _erf_derivative_dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
    r"""$\frac4\pi\bigl((1 + 2q_x)(1 + 2q_y) - 4q_{xy}^2\bigr)^{-1/2}$."""
    size, _, cos = _erf_angle(q_x, q_xy, q_y)
    return 4 / math.pi / (size * cos)


def _step(z: Tensor) -> Tensor:
    return (z > 0).to(z)


def _series_dual(
    name: str, function: Function, degree: int, jump: float, sharp: Function, closed: Dual
) -> Dual:
    r"""$\sum_ka_k(q_x)\,a_k(q_y)\,\rho^k$ with $\rho = q_{xy}/\sqrt{q_xq_y}$ (Mehler), summed by
    Horner's rule.

    A kink of $\varphi$ or a step of $\varphi'$ at zero makes the series slow. It is $c$ = `jump`
    times ReLU's, or the step's, $\sigma$ = `sharp`, whose dual is known. So $c^2$ times the series
    of $\sigma$ is taken out, term by term, and $c^2$ times the closed form put in. The sum ends
    where the rest is below rounding. A variance of zero becomes $10^{-20}$, so that $\rho$ exists;
    without a kink $a_0$ is $\varphi(0)$ there, exactly, since the next layer would divide what
    rounding leaves by itself. Raises where the coefficients miss more than 1 % of the second moment
    of $\varphi - c\sigma$; under `vmap`, where nobody can look, it does not, and takes all terms.
    """

    def positive(q: Tensor) -> Tensor:
        return torch.where(q > 0, q, 1e-20)

    def expand(q: Tensor) -> tuple[Tensor, Tensor, int]:
        zero, q = ~(q > 0), positive(q)
        a = hermite._coefficients(function, degree, q)
        if not jump:
            a = torch.cat([torch.where(zero, function(torch.zeros_like(q)), a[0])[None], a[1:]])
        b = jump * hermite._coefficients(sharp, degree, q) if jump else 0 * a
        if _is_batched(q):
            return a, b, degree
        with torch.no_grad():
            moment = hermite._coefficients(lambda z: (function(z) - jump * sharp(z)) ** 2, 0, q)[0]
            energy = (a - b).square().flip(0).cumsum(dim=0).flip(0)
            rounding = 1e-16 * a.square().sum(dim=0)
            if not ((moment - energy[0]).abs() <= 0.01 * moment + 100 * rounding).all():
                raise ValueError(
                    f"activation {name!r} needs a closed form or a larger degree: at variance "
                    f"{q.max().item():.3g} the series of degree {degree} misses more than 1 % of "
                    "its second moment"
                )
            last = int((energy > rounding).reshape(degree + 1, -1).any(dim=1).sum())
        return a, b, last

    def dual(q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        dtype, same = q_xy.dtype, q_x is q_y
        q_x, q_xy, q_y = (q.double() for q in (q_x, q_xy, q_y))
        rho = q_xy / (positive(q_x).sqrt() * positive(q_y).sqrt())
        a_x, b_x, last_x = expand(q_x)
        a_y, b_y, last_y = (a_x, b_x, last_x) if same else expand(q_y)
        total = torch.zeros_like(rho)
        for k in range(min(degree, max(last_x, last_y)), -1, -1):
            term = a_x[k] * a_y[k] - b_x[k] * b_y[k] if jump else a_x[k] * a_y[k]
            total = total * rho + term
        return (total + jump**2 * closed(positive(q_x), q_xy, positive(q_y)) if jump else total).to(
            dtype
        )

    return dual


@dataclass(frozen=True)
class Activation:
    r"""A function $\varphi$ and its dual.

    Calling it applies $\varphi$ entry by entry. Without a closed form the dual is a Hermite series,
    the exact dual of $\varphi$ cut at degree `degree` or where the rest is below rounding. For tanh
    its error is below $10^{-10}$ up to variance 10 and $10^{-5}$ at variance 40. A kink at zero is
    allowed for. One elsewhere leaves $10^{-4}$ in the dual and up to 1 % in the derivative dual.
    Where the series misses more than 1 % of $\mathbb{E}[\varphi^2]$, or $\mathbb{E}[\varphi'^2]$
    for the derivative dual, it raises. With gradients it keeps a matrix for each degree.
    """

    name: str
    function: Function
    closed_form: Dual | None = None
    closed_derivative: Dual | None = None
    degree: int = DEGREE

    def __post_init__(self) -> None:
        validate.text(self.name, "name")
        _check_function(self.function)
        for name in ("closed_form", "closed_derivative"):
            if getattr(self, name) is not None:
                validate.function(getattr(self, name), name)
        validate.integer(self.degree, "degree", at_most=hermite.MOST_DEGREE)

    def __call__(self, z: Array) -> Tensor:
        r"""$\varphi(z)$."""
        return self.function(validate.as_tensor(z, "z", finite=False))

    def dual(self, q_x: Array, q_xy: Array, q_y: Array) -> Tensor:
        r"""$\mathbb{E}[\varphi(u)\varphi(v)]$ for variances `q_x`, `q_y` and covariances `q_xy`,
        entry by entry.

        The three broadcast: shapes (n, 1), (n, m) and (m,) give an (n, m) matrix.
        """
        return self._dual(*_covariances(q_x, q_xy, q_y))

    def _dual(self, q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        compute = self.closed_form or _series_dual(
            self.name, self.function, self.degree, self.kink, torch.relu, _relu_dual
        )
        return compute(q_x, q_xy, q_y)

    def derivative(self, z: Array) -> Tensor:
        r"""$\varphi'(z)$, by automatic differentiation."""
        return self._slope(validate.as_tensor(z, "z", finite=False))

    def _slope(self, z: Tensor) -> Tensor:
        return grad(lambda at: self.function(at).sum())(z)

    @property
    def kink(self) -> float:
        r"""$\varphi'(0^+) - \varphi'(0^-)$, zero for a smooth function."""
        sides = self._slope(torch.tensor([-1e-9, 1e-9], dtype=torch.float64))
        left, right = (side.item() for side in sides)
        return right - left if abs(right - left) > 1e-6 else 0.0

    def derivative_dual(self, q_x: Array, q_xy: Array, q_y: Array) -> Tensor:
        r"""$\mathbb{E}[\varphi'(u)\varphi'(v)]$, as `dual`.

        Raises for a $\varphi$ that jumps at zero: it has no derivative there.
        """
        return self._derivative_dual(*_covariances(q_x, q_xy, q_y))

    def _derivative_dual(self, q_x: Tensor, q_xy: Tensor, q_y: Tensor) -> Tensor:
        sides = self.function(torch.tensor([-1e-9, 1e-9], dtype=torch.float64))
        left, right = (side.item() for side in sides)
        if abs(right - left) > 1e-6:
            raise ValueError(
                f"activation {self.name!r} jumps at zero, so that no tangent kernel exists"
            )
        compute = self.closed_derivative or _series_dual(
            f"{self.name}'", self._slope, self.degree, self.kink, _step, _relu_derivative_dual
        )
        return compute(q_x, q_xy, q_y)

    def second_moment(self, q: Array) -> Tensor:
        r"""$\mathbb{E}[\varphi(u)^2]$ for $u \sim N(0, q)$, entry by entry.

        The dual of equal inputs.
        """
        q = _variance(q, "q")
        return self._dual(q, q, q)

    def derivative_moment(self, q: Array) -> Tensor:
        r"""$\mathbb{E}[\varphi'(u)^2]$ for $u \sim N(0, q)$, entry by entry.

        The derivative dual of equal inputs.
        """
        q = _variance(q, "q")
        return self._derivative_dual(q, q, q)


def _is_looked_at(*tensors: Tensor) -> bool:
    on_cpu = all(tensor.device.type == "cpu" for tensor in tensors)
    return on_cpu and not validate.is_transformed(*tensors)


def _variance(q: Array, name: str, like: tuple[Array, ...] = ()) -> Tensor:
    q = validate.as_tensor(q, name, like=like)
    if _is_looked_at(q) and (q < 0).any():
        raise ValueError(f"{name} must be at least 0: it is a variance, got a negative number")
    return q


def _covariances(q_x: Array, q_xy: Array, q_y: Array) -> tuple[Tensor, Tensor, Tensor]:
    r"""The three as tensors of one dtype, with $|q_{xy}| \le \sqrt{q_xq_y}$ up to rounding."""
    same, like = q_x is q_y, (q_x, q_xy, q_y)
    x, xy = _variance(q_x, "q_x", like), validate.as_tensor(q_xy, "q_xy", like=like)
    y = x if same else _variance(q_y, "q_y", like)
    try:
        torch.broadcast_shapes(x.shape, xy.shape, y.shape)
    except RuntimeError:
        shapes = ", ".join(str(tuple(q.shape)) for q in (x, xy, y))
        raise ValueError(
            f"q_x, q_xy and q_y must have shapes that go together, got {shapes}"
        ) from None
    dtype = torch.promote_types(torch.promote_types(x.dtype, xy.dtype), y.dtype)
    x, xy = x.to(dtype), xy.to(dtype)
    y = x if same else y.to(dtype)
    if _is_looked_at(x, xy, y):
        bound = (1 + ROUNDING[dtype]) * (x.sqrt() * y.sqrt())
        if (xy.abs() > bound + torch.finfo(dtype).tiny).any():
            raise ValueError("q_xy must be at most √(q_x q_y) in size, as a covariance is")
    return x, xy, y


def _check_function(function: Function) -> None:
    """Raise unless it maps a tensor to one of the same shape and dtype, entry by entry."""
    validate.function(function, "the function of an activation")
    probe = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
    before = probe.clone()
    value = function(probe)
    who = "the function of an activation must"
    if not isinstance(value, Tensor) or (value.shape, value.dtype) != (probe.shape, probe.dtype):
        raise ValueError(f"{who} map a tensor to one of the same shape and dtype, entry by entry")
    if not torch.equal(probe, before):
        raise ValueError(f"{who} not change its input in place")
    if not torch.allclose(function(probe[:1, :1]), value[:1, :1], equal_nan=True):
        raise ValueError(f"{who} act entry by entry, but its value depends on other entries")


NAMED = {
    "relu": Activation("relu", torch.relu, _relu_dual, _relu_derivative_dual),
    "erf": Activation("erf", torch.erf, _erf_dual, _erf_derivative_dual),
    "tanh": Activation("tanh", torch.tanh),
}


def get(activation: str | Function) -> Activation:
    """The activation of this name, or one made of a function from tensors to tensors of the same
    shape.
    """
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        return NAMED[validate.one_of(activation, "activation", NAMED)]
    if not callable(activation):
        raise TypeError(f"activation must be a name or a function, got {activation!r}")
    if isinstance(activation, torch.nn.ReLU) or activation in (
        torch.relu,
        torch.nn.functional.relu,
    ):
        return NAMED["relu"]
    if activation in (torch.erf, torch.special.erf):
        return NAMED["erf"]
    return Activation(getattr(activation, "__name__", type(activation).__name__), activation)
