r"""Products with a kernel matrix on a GPU, of which no entry is ever written to memory.

$(KV)_i = p_i\sum_j\varphi(s_{ij})\,q_jV_j, \qquad s_{ij} = \langle u_i, w_j\rangle - a_i - b_j.$

One kernel of Triton computes a tile of $s$ by a matrix product, applies $\varphi$ to it, multiplies
by the rows of $V$ and forgets it. The kernels of this book differ in what they put for the letters
(`Form`):

* *Gaussian*: $\varphi(s) = 2^s$, with $u$ and $w$ the points over $\sigma/\sqrt{\log_2e}$, $a$ and
  $b$ half of their squared lengths, so that $s = -\log_2(e)\,\|x - y\|^2/2\sigma^2$.
* *Matérn*: with the same $a$ and $b$, a function of $r = \sqrt{-2s}$.
* *Polynomial*: $\varphi(s) = (s + c)^p$ with $a = b = 0$.
* *Angle*: with unit vectors $u$ and $w$, a polynomial in $z = \frac2\pi\arcsin s$. This is every
  NNGP and tangent kernel of ReLU without biases, times lengths $p_i$ and $q_j$, and those of other
  activations for inputs of one length (`featlearn.recursion`).

**Precision.** Tensor cores multiply halves of numbers fastest. Each number is written as $h + l$,
two floats of 16 bits with together 24 digits, and $\langle u, w\rangle$ as $\langle(l, h, h),
(h', l', h')\rangle$: what is left out, $ll'$, is below the rounding of float32. Sums are taken in
float32, over the columns of a tile at once and over tiles with Kahan's correction. For one set of
points the diagonal has $s = 0$, or $s = 1$ for angles, exactly. A tangent kernel, which has a kink
there, carries an error of up to about $10^{-4}$ for *other* pairs at an angle below $10^{-3}$.

Needs Triton, which PyTorch brings on Linux with a GPU. In Triton's interpreter (``TRITON_INTERPRET
=1``) the same code runs on a CPU; the tests do that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from featlearn import recursion
from featlearn.kernels import Gaussian, Kernel, Matern, Polynomial, differentiated
from featlearn.ntk import NTK
from featlearn.wide import NNGP

TILE = 128  # columns of K that are computed at a time
CHUNK = 64  # columns of u and w that are multiplied at a time
SMALL = 2**28  # entries below which blocks are not tuned
BLOCKS = [(64, 4), (128, 8)]  # rows that are computed at a time, warps; the first one unless tuned


@dataclass(frozen=True)
class Form:
    r"""What a kernel puts for the letters of the formula; letters that are missing are 0, and 1 for
    $p$ and $q$.

    Parameters
    ----------
    phi : {"gaussian", "matern", "polynomial", "angle"}
        Which $\varphi$.
    u, w
        (n, d) and (m, d) vectors.
    same
        Whether rows i of u and of w are the same point.
    a, b, p, q
        (n,), (m,), (n,) and (m,) numbers.
    degree
        The polynomial's degree $p$, the angle's number of coefficients less one, or $2\nu$.
    constant
        The polynomial's $c$.
    coefficients
        Those of the angle's polynomial in $z$, from the constant on.
    """

    phi: str
    u: Tensor
    w: Tensor
    same: bool
    a: Tensor | None = None
    b: Tensor | None = None
    p: Tensor | None = None
    q: Tensor | None = None
    degree: int = 1
    constant: float = 0.0
    coefficients: Tensor | None = None


def form(kernel: Kernel, X: Tensor, Y: Tensor) -> Form | None:
    """The form of k(X, Y), None for a kernel that has none."""
    same = Y is X
    if isinstance(kernel, Polynomial):
        if kernel.degree > 16:
            return None
        constant = float(kernel.constant)
        return Form("polynomial", X, Y, same, degree=kernel.degree, constant=constant)
    if isinstance(kernel, (NNGP, NTK)):
        wanted = recursion.THETA if isinstance(kernel, NTK) else recursion.SIGMA
        angles = recursion.by_angle(kernel.recursion, X, Y, wanted)
        if angles is None:
            return None
        u, w, p, q, curve = angles
        return Form("angle", u, w, same, p=p, q=q, degree=len(curve) - 1, coefficients=curve)
    if isinstance(kernel, Gaussian):
        scale, name, degree = kernel.bandwidth / math.sqrt(math.log2(math.e)), "gaussian", 1
    elif isinstance(kernel, Matern):
        degree = round(2 * kernel.nu)
        scale, name = kernel.bandwidth / math.sqrt(degree), "matern"
    else:
        return None
    centre = X.mean(dim=0)
    u = (X - centre) / scale
    w = u if same else (Y - centre) / scale
    a, b = (z.square().sum(dim=1) / 2 for z in (u, w))
    return Form(name, u, w, same, a, b, degree=degree)


def product(kernel: Kernel, X: Tensor, Y: Tensor) -> Product | None:
    """The product with k(X, Y), or None where the formula of this module does not apply.

    It does for a kernel with a `form`, in float32, where no derivative is taken.
    """
    parameters = vars(kernel).values() if hasattr(kernel, "__dict__") else ()
    if X.dtype != torch.float32 or len(X) == 0 or differentiated(X, Y, *parameters):
        return None
    with torch.no_grad():
        found = form(kernel, X, Y)
        return None if found is None else Product(found)


class Product:
    r"""$V\mapsto KV$ for K of a `Form`.

    V is (m,) or (m, k) on the device of the points; the result is (n,) or (n, k), float32.
    """

    def __init__(self, form: Form) -> None:
        self.form, self.shape = form, (len(form.u), len(form.w))
        self._left, self._right, self._scale = _halves(form.u, form.w)
        n, m = len(self._left), len(self._right)
        zero = form.u.new_zeros(1)
        self._a = zero if form.a is None else pad(form.a, (0, n - self.shape[0]))
        self._b = zero if form.b is None else pad(form.b, (0, m - self.shape[1]))

    def __call__(self, V: Tensor) -> Tensor:
        """The product."""
        form, (n, m) = self.form, self.shape
        columns = V[:, None] if V.ndim == 1 else V
        if form.q is not None:
            columns = columns * form.q[:, None]
        outputs = columns.shape[1]
        width = 1 if outputs == 1 else max(16, triton.next_power_of_2(outputs))
        columns = pad(columns, (0, width - outputs, 0, len(self._right) - m)).contiguous()
        found = _launch(self, columns)[:n, :outputs]
        if form.p is not None:
            found = found * form.p[:, None]
        return found[:, 0] if V.ndim == 1 else found


def _halves(u: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""$(l, h, h)$ of u and $(h', l', h')$ of w in 16 bits, both times a power of two that keeps
    them in range, and one over the square of that.

    Filled up with zeros to what the tiles divide. The small products come first: tensor cores cut
    off what they add, and lose less while the sum is small.
    """
    exponent = torch.frexp(torch.maximum(u.abs().max(), w.abs().max())).exponent
    power = torch.ldexp(torch.ones_like(exponent, dtype=u.dtype), (14 - exponent).clamp(-60, 60))

    def split(z: Tensor) -> tuple[Tensor, Tensor]:
        z = z * power
        high = z.half()
        return high, (z - high.to(z)).half()

    def filled(*parts: Tensor) -> Tensor:
        rows, columns = len(parts[0]), 3 * u.shape[1]
        width = (
            max(16, triton.next_power_of_2(columns))
            if columns <= CHUNK
            else CHUNK * triton.cdiv(columns, CHUNK)
        )
        return pad(torch.cat(parts, dim=1), (0, width - columns, 0, -rows % TILE))

    (h, low), (h_w, low_w) = split(u), split(w)
    return filled(low, h, h), filled(h_w, low_w, h_w), power**-2


def _launch(product: Product, V: Tensor) -> Tensor:
    """The padded product: tiles with the diagonal of one set of points by themselves, as there s is
    known, and the others with blocks that were tuned for their kind where they are many.
    """
    form, left, right = product.form, product._left, product._right
    n, m, width = len(left), len(right), left.shape[1]
    coefficients = product._a if form.coefficients is None else form.coefficients
    fixed = {
        "PHI": form.phi,
        "DEGREE": form.degree,
        "WIDTH": width,
        "STEP": min(width, CHUNK),
        "OUTPUTS": V.shape[1],
        "COLUMNS": TILE,
    }

    def launch(tiles: str, parts: int, tuned: bool) -> Tensor:
        out = V.new_empty(parts, n, V.shape[1])
        points = (left, right, product._a, product._b, product._scale)
        arguments = (*points, coefficients, V, out, n, m, parts, form.constant)
        if tuned:
            _tuned[lambda meta: (n // meta["ROWS"], parts)](*arguments, **fixed, TILES=tiles)
        else:
            rows, warps = BLOCKS[0]
            blocks = {"TILES": tiles, "ROWS": rows, "num_warps": warps}
            _product[(n // rows, parts)](*arguments, **fixed, **blocks)
        return out.sum(dim=0) if parts > 1 else out[0]

    processors = (
        torch.cuda.get_device_properties(left.device).multi_processor_count if left.is_cuda else 1
    )
    parts = max(1, min(m // TILE, 8 * processors * TILE // n))
    found = launch("others" if form.same else "all", parts, left.is_cuda and n * m >= SMALL)
    return found + launch("diagonal", 1, False) if form.same else found


@triton.jit
def _phi(s, square, coefficients, constant, PHI: tl.constexpr, DEGREE: tl.constexpr):
    r"""$\varphi$ of a tile of $s$; `square` is $a_i + b_j$."""
    if PHI == "polynomial":
        s += constant
        k = s
        for _ in tl.static_range(DEGREE - 1):
            k *= s
    elif PHI == "angle":
        z = _two_over_pi_arcsin(s)
        k = z * tl.load(coefficients + DEGREE) + tl.load(coefficients + DEGREE - 1)
        for power in tl.static_range(2, DEGREE + 1):
            k = k * z + tl.load(coefficients + DEGREE - power)
    elif PHI == "gaussian":
        k = tl.exp2(tl.minimum(s, 0.0))
    else:
        s = tl.where(s < -4.8e-7 * square, s, 0.0)  # as `Matern`: what is smaller is rounding
        r = tl.sqrt(-2.0 * s)
        k = tl.exp2(-1.4426950408889634 * r)
        if DEGREE == 3:
            k *= 1.0 + r
        elif DEGREE == 5:
            k *= 1.0 + r + r * r / 3.0
    return k


@triton.jit
def _two_over_pi_arcsin(s):
    r"""$z = \frac2\pi\arcsin s = \pm\bigl(1 - \frac2\pi\arccos|s|\bigr)$.

    $\arccos c = \sqrt{1 - c}\,P_7(c)$ to $2\cdot10^{-8}$ (Abramowitz and Stegun 4.4.46), and 0
    where what is missing to 1 is rounding.
    """
    c = tl.abs(s)
    c = tl.where(c < 1.0 - 4.8e-7, c, 1.0)
    P = 0.0066700901 - 0.0012624911 * c
    P = P * c - 0.0170881256
    P = P * c + 0.0308918810
    P = P * c - 0.0501743046
    P = P * c + 0.0889789874
    P = P * c - 0.2145988016
    P = P * c + 1.5707963050
    z = 1.0 - 0.6366197723675814 * P * tl.sqrt(1.0 - c)
    return tl.where(s < 0, -z, z)


@triton.jit
def _product(
    left, right, a, b, scale, coefficients, V, out, n, m, parts, constant,
    PHI: tl.constexpr, DEGREE: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr,
    OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Rows `ROWS` of the product over a part of the tiles: all, that with the diagonal, or the
    others.

    A loop over tiles of `COLUMNS` columns, each in `WIDTH / STEP` steps.
    """
    STEPS: tl.constexpr = WIDTH // STEP
    row = tl.program_id(0).to(tl.int64) * ROWS
    part = tl.program_id(1)
    diagonal = row // COLUMNS
    if TILES == "diagonal":
        tile, last = diagonal, diagonal + 1
    else:
        tiles = m // COLUMNS - (1 if TILES == "others" else 0)
        tile = (tiles * part // parts).to(tl.int64)
        last = (tiles * (part + 1) // parts).to(tl.int64)
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    step, o = tl.arange(0, STEP), tl.arange(0, OUTPUTS)[None, :]
    u_at = left + row * WIDTH + r * WIDTH + step[None, :]
    w_at = right + c * WIDTH + step[:, None]
    factor = tl.load(scale)
    halves: tl.constexpr = PHI == "gaussian" or PHI == "matern"
    a_i = tl.load(a + row + r) if halves else 0.0
    u = tl.load(u_at)
    total, lost = tl.zeros((ROWS, OUTPUTS), tl.float32), tl.zeros((ROWS, OUTPUTS), tl.float32)
    s, done = tl.zeros((ROWS, COLUMNS), tl.float32), 0
    for _ in range((last - tile) * STEPS):
        column = tile * COLUMNS
        if TILES == "others":
            column = tl.where(tile < diagonal, column, column + COLUMNS)
        if STEPS > 1:
            u = tl.load(u_at + done * STEP)
        s = tl.dot(u, tl.load(w_at + column * WIDTH + done * STEP), s)
        if STEPS > 1:
            done += 1
        if STEPS == 1 or done == STEPS:
            square = a_i + tl.load(b + column + c) if halves else 0.0
            s = s * factor - square
            if TILES == "diagonal" and PHI != "polynomial":
                s = tl.where(row + r == column + c, 1.0 if PHI == "angle" else 0.0, s)
            k = _phi(s, square, coefficients, constant, PHI, DEGREE)
            if OUTPUTS == 1:
                found = tl.sum(k * tl.load(V + column + c), 1, keep_dims=True)
            else:
                v = tl.load(V + (column + tl.arange(0, COLUMNS)[:, None]) * OUTPUTS + o)
                found = tl.dot(k, v, input_precision="tf32x3")
            found -= lost  # Kahan: what the last sum lost is added with the next part
            larger = total + found
            lost = (larger - total) - found
            total = larger
            s, done = tl.zeros((ROWS, COLUMNS), tl.float32), 0
            tile += 1
    tl.store(out + (part.to(tl.int64) * n + row + r) * OUTPUTS + o, total)


_tuned = triton.autotune(
    [triton.Config({"ROWS": rows}, num_warps=warps) for rows, warps in BLOCKS],
    key=["PHI", "DEGREE", "WIDTH", "OUTPUTS"],
)(_product)
