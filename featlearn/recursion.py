r"""The kernels of infinitely wide networks, layer by layer: the NNGP $\Sigma^L$ and the tangent
kernel $\Theta^L$.

$\Sigma^1 = \Theta^1 = \frac{\sigma_w^2}d\langle x, x'\rangle + \sigma_b^2$, and over a Gaussian
pair $(z, z')$ of covariance $\Sigma^{l-1}$

$\Sigma^l = \sigma_w^2\,\mathbb{E}[\varphi(z)\varphi(z')] + \sigma_b^2, \qquad \Theta^l =
\Theta^{l-1}\,\sigma_w^2\,\mathbb{E}[\varphi'(z)\varphi'(z')] + \Sigma^l.$

There are three ways to these matrices. They agree to rounding, except for pairs of inputs at an
angle $\gamma$ close to 0, where all but the last one carry an error of about $\varepsilon/\gamma$,
$\varepsilon$ the rounding of the dtype.

* *As the formulas stand*, on whole matrices: where a derivative may be taken, in the points or in
  $\sigma_w$ and $\sigma_b$, and inside transforms of `torch.func`.
* *On tiles* that fit a cache, in place for ReLU and erf: nothing of size $n\times m$ exists but
  the result.
* *By the angle*: without biases a ReLU kernel is $\|x\|\,\|x'\|$ times a function of the angle
  between $x$ and $x'$, and for inputs of one length every kernel is a function of it. A polynomial
  takes its place, whose cost does not grow with the depth, up to about 20 layers, where its degree
  becomes too large.

On a GPU the first way never waits for the device. The other two must look at values, and wait: once
for each tile whether it holds pairs at a small angle, which need formulas of their own, and once
for all whether the inputs have one length. A series looks at the variances of each layer to know
its length. Whether the kernel overflows is asked on a CPU only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.polynomial import chebyshev
from scipy import special
from torch import Tensor

from featlearn import validate
from featlearn.activations import NAMED, Activation
from featlearn.kernels import differentiated

TILE = {"cpu": 512, "cuda": 4096}
CLOSE = {torch.float32: 1e-3, torch.float64: 1e-6}
NODES, MAX_DEGREE = 64, 48
SIGMA, THETA = "sigma", "theta"
RELU, ERF = NAMED["relu"], NAMED["erf"]


@dataclass(frozen=True)
class Recursion:
    r"""$L$ layers with activation $\varphi$ and scales $\sigma_w, \sigma_b$.

    The callers check them.
    """

    depth: int
    activation: Activation
    sigma_w: float | Tensor
    sigma_b: float | Tensor

    def layer(self, expectation: Tensor) -> Tensor:
        r"""$\sigma_w^2\,\mathbb{E} + \sigma_b^2$."""
        return self.sigma_w**2 * expectation + self.sigma_b**2

    def variances(self, X: Tensor) -> list[Tensor]:
        r"""$\Sigma^1(x, x), \dots, \Sigma^L(x, x)$ for each row of X, each of shape (n,)."""
        q = [self.layer(X.square().mean(dim=1))]
        for _ in range(self.depth - 1):
            q.append(self.layer(self.activation._dual(q[-1], q[-1], q[-1])))
        return q

    def diagonal(self, q: list[Tensor], wanted: Sequence[str]) -> dict[str, Tensor]:
        r"""$\Sigma^L(x, x)$ and, if wanted, $\Theta^L(x, x)$ from the variances of all layers."""
        if THETA not in wanted:
            return {SIGMA: q[-1]}
        theta = q[0]
        for before, after in pairwise(q):
            slope = self.activation._derivative_dual(before, before, before)
            theta = theta * self.sigma_w**2 * slope + after
        return {SIGMA: q[-1], THETA: theta}

    def formulas(
        self, q_x: list[Tensor], q_xy: Tensor, q_y: list[Tensor], wanted: Sequence[str]
    ) -> dict[str, Tensor]:
        r"""$\Sigma^L$ and, if wanted, $\Theta^L$ from $\Sigma^1$, shape (n, m), and the variances
        of all layers.
        """
        theta = q_xy
        for v_x, v_y in zip(q_x[:-1], q_y[:-1], strict=True):
            if THETA in wanted:
                theta = (
                    theta
                    * self.sigma_w**2
                    * self.activation._derivative_dual(v_x[:, None], q_xy, v_y)
                )
            q_xy = self.layer(self.activation._dual(v_x[:, None], q_xy, v_y))
            theta = theta + q_xy
        return {SIGMA: q_xy, THETA: theta} if THETA in wanted else {SIGMA: q_xy}


def kernels(
    rule: Recursion, X: Tensor, Y: Tensor, same: bool, wanted: Sequence[str]
) -> list[Tensor]:
    """The (n, m) matrices named in `wanted`, `SIGMA` and `THETA`.

    Exactly symmetric for one set of points.
    """
    if differentiated(X, Y, rule.sigma_w, rule.sigma_b):
        return _whole(rule, X, Y, same, wanted)
    with torch.no_grad():
        plain = replace(rule, sigma_w=float(rule.sigma_w), sigma_b=float(rule.sigma_b))
        return _tiled(plain, X, Y, same, wanted)


def _no_overflow(*variances: list[Tensor]) -> None:
    """Raise if a variance is infinite, where it can be looked at without waiting."""
    for q in variances:
        looked_at = q[-1].device.type == "cpu" and not validate.is_transformed(q[-1])
        if looked_at and not validate.is_finite(torch.stack(q)):
            raise ValueError(
                f"X, Y, sigma_w and sigma_b must be smaller: the kernel overflows {q[-1].dtype}"
            )


def _whole(
    rule: Recursion, X: Tensor, Y: Tensor, same: bool, wanted: Sequence[str]
) -> list[Tensor]:
    q_x = rule.variances(X)
    q_y = q_x if same else rule.variances(Y)
    _no_overflow(q_x, q_y)
    found = rule.formulas(q_x, rule.layer(X @ Y.T / X.shape[1]), q_y, wanted)
    if not same:
        return [found[name] for name in wanted]
    exact = rule.diagonal(q_x, wanted)
    return [
        torch.diagonal_scatter((found[name] + found[name].T) / 2, exact[name]) for name in wanted
    ]


def _tiled(
    rule: Recursion, X: Tensor, Y: Tensor, same: bool, wanted: Sequence[str]
) -> list[Tensor]:
    """Tile by tile into the results.

    For one set of points the lower triangle, which is then copied.
    """
    q_x = rule.variances(X)
    q_y = q_x if same else rule.variances(Y)
    _no_overflow(q_x, q_y)
    tile = _tile_function(rule, X, Y, q_x, q_y, wanted)
    side = TILE["cpu" if X.device.type == "cpu" else "cuda"]
    results = [X.new_empty(len(X), len(Y)) for _ in wanted]
    for rows in _slices(len(X), side):
        for columns in _slices(rows.stop if same else len(Y), side):
            for result, value in zip(results, tile(rows, columns), strict=True):
                if same and rows == columns:
                    value = value.tril() + value.tril(-1).T
                result[rows, columns] = value
                if same and rows != columns:
                    result[columns, rows] = value.T
    if same:
        exact = rule.diagonal(q_x, wanted)
        for result, name in zip(results, wanted, strict=True):
            result.diagonal().copy_(exact[name])
    return results


def _slices(length: int, side: int) -> Iterator[slice]:
    return (slice(start, min(start + side, length)) for start in range(0, length, side))


def _tile_function(
    rule: Recursion,
    X: Tensor,
    Y: Tensor,
    q_x: list[Tensor],
    q_y: list[Tensor],
    wanted: Sequence[str],
) -> Callable[[slice, slice], list[Tensor]]:
    """The function that computes the tile of some rows and columns.

    By the angle where that applies.
    """
    unit_x, unit_y = _units(rule, X, q_x[0]), _units(rule, Y, q_y[0])
    curves = _curves_for(rule, q_x[0], q_y[0], wanted)
    r_x, r_y = q_x[0].sqrt()[:, None], q_y[0].sqrt()

    def tile(rows: slice, columns: slice) -> list[Tensor]:
        cos = (unit_x[rows] @ unit_y[columns].T).clamp_(-1, 1)
        v_x, v_y = [q[rows] for q in q_x], [q[columns] for q in q_y]
        if curves is None and rule.activation not in (RELU, ERF):
            found = rule.formulas(v_x, cos.mul_(r_x[rows]).mul_(r_y[columns]), v_y, wanted)
            return [found[name] for name in wanted]
        close, angle = _close_pairs(cos, unit_x[rows], unit_y[columns])
        if curves is not None:
            z = cos.asin_().mul_(2 / math.pi)
            z[close] = 1 - 2 / math.pi * angle
            return [_horner(c, z).mul_(r_x[rows]).mul_(r_y[columns]) for c in curves]
        if rule.activation == RELU:
            cos[close] = angle.cos()
            equal = cos == 1
            is_needed = cos.device.type != "cpu" or equal.any()
            found = _relu(rule, v_x, cos, v_y, equal if is_needed else None)
        else:
            sin2 = 1 - cos.square()
            sin2[close] = angle.sin().square()
            found = _erf(rule, v_x, cos, sin2, v_y)
        return [found[name] for name in wanted]

    return tile


def by_angle(
    rule: Recursion, X: Tensor, Y: Tensor, wanted: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor] | None:
    r"""What makes the kernel a function of the angle: unit vectors $u_i$ and $w_j$, lengths $p_i$
    and $q_j$, and the coefficients of a polynomial $P$ with $k(x_i, y_j) = p_iP(z_{ij})q_j$,
    $z_{ij} = \frac2\pi\arcsin\langle u_i, w_j\rangle$.

    None where lengths matter otherwise. Not differentiable.
    """
    rule = replace(rule, sigma_w=float(rule.sigma_w), sigma_b=float(rule.sigma_b))
    sides = [(Z, rule.layer(Z.square().mean(dim=1))) for Z in ((X,) if Y is X else (X, Y))]
    curves = _curves_for(rule, sides[0][1], sides[-1][1], [wanted])
    if curves is None:
        return None
    (u, p), (w, q) = [(_units(rule, Z, q), q.sqrt()) for Z, q in (sides[0], sides[-1])]
    return u, w, p, q, curves[0]


def _units(rule: Recursion, X: Tensor, q: Tensor) -> Tensor:
    r"""Unit vectors with $\Sigma^1(x, x') = \sqrt{\Sigma^1(x, x)\,\Sigma^1(x', x')}\,\langle u,
    u'\rangle$: along $(\sigma_w x/\sqrt d,\ \sigma_b)$.
    """
    u = X * (rule.sigma_w / math.sqrt(X.shape[1]))
    if rule.sigma_b > 0:
        u = torch.cat([u, torch.full_like(q[:, None], float(rule.sigma_b))], dim=1)
    return u / _lengths(q)[:, None]


def _lengths(q: Tensor) -> Tensor:
    r"""$\sqrt q$, and 1 where it is zero."""
    return torch.where(q > 0, q, 1.0).sqrt()


def _close_pairs(cos: Tensor, u: Tensor, v: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
    r"""Where $|\cos\gamma|$ is near 1, and $\gamma$ there.

    $2\operatorname{atan2}(\|u - v\|, \|u + v\|)$, which loses no digits (Kahan).
    """
    low, high = torch.aminmax(cos)
    limit = 1 - CLOSE[cos.dtype]
    if max(-low, high) <= limit:
        none = torch.empty(0, dtype=torch.long, device=cos.device)
        return (none, none), cos.new_empty(0)
    i, j = (cos.abs() > limit).nonzero(as_tuple=True)
    norm = torch.linalg.vector_norm
    angle = [
        2 * torch.atan2(norm(u[a] - v[b], dim=1), norm(u[a] + v[b], dim=1))
        for a, b in zip(i.split(TILE["cpu"] ** 2 // 4), j.split(TILE["cpu"] ** 2 // 4), strict=True)
    ]
    return (i, j), torch.cat(angle)


def _relu(
    rule: Recursion, q_x: list[Tensor], rho: Tensor, q_y: list[Tensor], equal: Tensor | None
) -> dict[str, Tensor]:
    r"""In place: $\rho \leftarrow a\,\kappa_1(\rho)\,a' + b\,b'$ and $\tau \leftarrow
    a\,\tau\kappa_0(\rho)\,a' + \rho$, where $\Sigma = r\rho r'$ and $\Theta = r\tau r'$.

    Here $r^2 = \Sigma^l(x, x)$, $a = \frac{\sigma_w}{\sqrt2}r^l/r^{l+1}$, $b = \sigma_b/r^{l+1}$,
    $\kappa_0 = 1 - \gamma/\pi$ and $\kappa_1 = \frac1\pi\sin\gamma + \kappa_0\cos\gamma$ with
    $\gamma = \arccos\rho$.
    """
    one = rho.new_ones(())
    tau, kappa, sin = rho.clone(), torch.empty_like(rho), torch.empty_like(rho)
    for layer in range(rule.depth - 1):
        torch.asin(rho, out=kappa).mul_(1 / math.pi).add_(0.5)
        torch.addcmul(one, rho, rho, value=-1, out=sin).sqrt_()
        rho.mul_(kappa).add_(sin, alpha=1 / math.pi)
        tau.mul_(kappa)
        after_x, after_y = _lengths(q_x[layer + 1])[:, None], _lengths(q_y[layer + 1])
        a_x = rule.sigma_w / math.sqrt(2) * q_x[layer].sqrt()[:, None] / after_x
        a_y = rule.sigma_w / math.sqrt(2) * q_y[layer].sqrt() / after_y
        rho.mul_(a_x).mul_(a_y).addcmul_(rule.sigma_b / after_x, rule.sigma_b / after_y).clamp_(
            -1, 1
        )
        if equal is not None:
            rho.masked_fill_(equal, 1.0)
        tau.mul_(a_x).mul_(a_y).add_(rho)
    r_x, r_y = q_x[-1].sqrt()[:, None], q_y[-1].sqrt()
    return {SIGMA: rho.mul_(r_x).mul_(r_y), THETA: tau.mul_(r_x).mul_(r_y)}


def _erf(
    rule: Recursion, q_x: list[Tensor], cos: Tensor, sin2: Tensor, q_y: list[Tensor]
) -> dict[str, Tensor]:
    r"""In place, with $D = 1 + 2q_x + 2q_y + 4(q_xq_y - q_{xy}^2)$: $\frac2\pi\arctan(2q_{xy}/\sqrt
    D)$ and $\frac4\pi/\sqrt D$.

    In the first layer, where variances may be large, $q_xq_y - q_{xy}^2$ comes from $\sin^2\gamma$.
    Above it they are at most $\sigma_w^2 + \sigma_b^2$, and the arctangent is an arcsine of $s =
    2q_{xy}/\sqrt{uv}$, with $u = 1 + 2q_x$, $v = 1 + 2q_y$ and $D = uv(1 - s^2)$.
    """
    one, scale = cos.new_ones(()), rule.sigma_w**2
    theta = q_xy = cos.mul_(q_x[0].sqrt()[:, None]).mul_(q_y[0].sqrt())
    for layer, (v_x, v_y) in enumerate(zip(q_x[:-1], q_y[:-1], strict=True)):
        u, v = (1 + 2 * v_x).rsqrt()[:, None], (1 + 2 * v_y).rsqrt()
        if layer == 0:
            D = sin2.mul_(4 * v_x[:, None]).mul_(v_y).add_(1 + 2 * v_x[:, None]).add_(2 * v_y)
            theta, q_xy = q_xy.clone(), torch.atan2(2 * q_xy, D.sqrt())
            theta.mul_(D.rsqrt_()).mul_(4 / math.pi * scale)
            sin = D
        else:
            torch.mul(q_xy, 2 * u, out=sin).mul_(v).clamp_(-1, 1)
            torch.asin(sin, out=q_xy)
            torch.addcmul(one, sin, sin, value=-1, out=sin).clamp_min_(u.min() * v.min()).rsqrt_()
            theta.mul_(sin).mul_(4 / math.pi * scale * u).mul_(v)
        q_xy.mul_(2 / math.pi * scale).add_(rule.sigma_b**2)
        theta.add_(q_xy)
    return {SIGMA: q_xy, THETA: theta}


def _curves_for(
    rule: Recursion, q_x: Tensor, q_y: Tensor, wanted: Sequence[str]
) -> list[Tensor] | None:
    """The curves of the angle that give the wanted kernels, or None where lengths matter too."""
    q = 1.0
    if rule.activation != RELU or rule.sigma_b > 0:
        low, high = min(q_x.min(), q_y.min()).item(), max(q_x.max(), q_y.max()).item()
        if high - low > 8 * torch.finfo(q_x.dtype).eps * high or high == 0:
            return None
        q = (low + high) / 2
    curves = [_curve(rule, q, name, q_x.dtype) for name in wanted]
    return None if any(c is None for c in curves) else [torch.as_tensor(c).to(q_x) for c in curves]


def _curve(rule: Recursion, q: float, name: str, dtype: torch.dtype) -> np.ndarray | None:
    r"""The kernel over $q$ as a polynomial in $z = 1 - 2\gamma/\pi$, for inputs with $\Sigma^1(x,
    x) = q$; None if it is too rough.

    Chebyshev interpolation, cut where the rest is below the precision asked for, then written in
    powers.
    """

    def kernel(z: np.ndarray) -> np.ndarray:
        if rule.activation == RELU:
            return _relu_curve(rule, q, math.pi / 2 * (1 - z))[name] / q
        variance = [torch.tensor([q], dtype=torch.float64)]
        for _ in range(rule.depth - 1):
            last = variance[-1]
            variance.append(rule.layer(rule.activation._dual(last, last, last)))
        q_xy = q * torch.as_tensor(np.sin(math.pi / 2 * z))[None]
        return (rule.formulas(variance, q_xy, variance, [name])[name][0] / q).numpy()

    c: np.ndarray = chebyshev.chebinterpolate(kernel, NODES)
    rest = np.abs(c[::-1]).cumsum()[::-1]
    precision = 5e-14 if dtype == torch.float64 else 3e-8
    small = np.flatnonzero(rest <= precision * np.abs(c).sum())
    if len(small) == 0 or small[0] > MAX_DEGREE:
        return None
    powers = chebyshev.cheb2poly(c[: max(small[0], 2)])
    powers = np.append(powers, np.zeros(max(2 - len(powers), 0)))  # a kernel that underflows is 0
    return powers if np.abs(powers).sum() <= 100 * np.abs(c).sum() else None


def _relu_curve(rule: Recursion, q: float, gamma: np.ndarray) -> dict[str, np.ndarray]:
    r"""ReLU's $\Sigma^L$ and $\Theta^L$ at the angles $\gamma$, carried by $1 - \cos\gamma$, which
    keeps the digits of small angles.

    With $\kappa_1$ as in `_relu`, $1 - \kappa_1 = 2\sin^2\frac\gamma2 - \frac1\pi(\sin\gamma -
    \gamma\cos\gamma)$, and $\sin\gamma - \gamma\cos\gamma = \gamma^2j_1(\gamma)$, a spherical
    Bessel function.
    """
    sigma_w, sigma_b = float(rule.sigma_w), float(rule.sigma_b)
    theta = sigma = q * np.cos(gamma)
    for _ in range(rule.depth - 1):
        half, after = sigma_w**2 * q / 2, sigma_w**2 * q / 2 + sigma_b**2
        if after == 0:  # below the smallest number
            return {SIGMA: 0 * gamma, THETA: 0 * gamma}
        fall = half * (
            2 * np.sin(gamma / 2) ** 2 - gamma**2 * special.spherical_jn(1, gamma) / math.pi
        )
        sigma = after - fall
        theta = theta * sigma_w**2 / 2 * (1 - gamma / math.pi) + sigma
        gamma, q = 2 * np.arcsin(np.sqrt(fall / (2 * after))), after
    return {SIGMA: sigma, THETA: theta}


def _horner(coefficients: Tensor, z: Tensor) -> Tensor:
    r"""$\sum_kc_kz^k$, one fused operation for each degree."""
    value = (z * coefficients[-1]).add_(coefficients[-2])
    for c in coefficients[:-2].flip(0):
        torch.addcmul(c, value, z, out=value)
    return value
