r"""Chapter 1: kernels, the product with a kernel matrix that is never stored, kernel regression.

A kernel is a plain callable: ``k(X, Y)`` is the matrix $[k(x_i, y_j)]$, ``k(X)`` is ``k(X, X)``, and
for two vectors ``k(x, y)`` is the number $k(x, y)$, which is what scikit-learn's
``KernelRidge(kernel=k)`` calls. Arrays of numpy or torch go in, tensors come out.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate
from featlearn.notebook import progress
from featlearn.seeding import stream

Kernel = Callable[..., Tensor]
BLOCK = {"cpu": 2048, "cuda": 16384}


class KernelFunction(ABC):
    """Shapes and checks that all kernels share; subclasses give the matrix for two matrices."""

    @abstractmethod
    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix; `same` says that X and Y are the same points."""

    def __call__(self, X: Any, Y: Any = None) -> Tensor:
        same = Y is None or Y is X
        X = validate.as_tensor(X, "X", (1, 2), beside=(Y,))
        Y = X if same else validate.as_tensor(Y, "Y", (1, 2)).to(X)
        if X.ndim != Y.ndim:
            raise ValueError(f"X and Y must both be vectors or both matrices, got {X.ndim} and {Y.ndim} axes")
        if X.shape[-1] != Y.shape[-1]:
            raise ValueError(f"X and Y must have the same dimension, got {X.shape[-1]} and {Y.shape[-1]}")
        if X.ndim == 1:
            return self.matrix(X[None], Y[None], same)[0, 0]
        return self.matrix(X, Y, same)


@dataclass(frozen=True)
class Polynomial(KernelFunction):
    r"""$k(x, y) = (\langle x, y\rangle + c)^p$ with degree $p$ and constant $c \ge 0$."""

    degree: int = 2
    constant: float = 0.0

    def __post_init__(self) -> None:
        validate.integer(self.degree, "degree")
        validate.real(self.constant, "constant", at_least=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        return (X @ Y.T + self.constant) ** self.degree


def squared_distances(X: Any, Y: Any = None) -> Tensor:
    r"""$\|x_i - y_j\|^2 = \|x_i\|^2 + \|y_j\|^2 - 2\langle x_i, y_j\rangle$ as an (n, m) matrix.

    All three terms come out of one matrix product. Both sets are first centred at the mean of X, which
    loses fewest digits to cancellation; for one set of points the diagonal is exactly zero.
    """
    same = Y is None or Y is X
    X = validate.as_tensor(X, "X", 2, beside=(Y,))
    Y = X if same else validate.as_tensor(Y, "Y", 2).to(X)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y must have the same dimension, got {X.shape[1]} and {Y.shape[1]}")
    left, right = _factors(X, Y)
    D2 = (left @ right.T).clamp_min_(0)
    if same:
        D2.diagonal().zero_()
    return D2


def _factors(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    r"""Two matrices with $d + 2$ columns; the products of their rows are $\|x_i - y_j\|^2$."""
    centre = X.mean(dim=0)
    X, Y = X - centre, Y - centre
    x2, y2 = (X * X).sum(dim=1, keepdim=True), (Y * Y).sum(dim=1, keepdim=True)
    left = torch.cat([X, x2, torch.ones_like(x2)], dim=1)
    return left, torch.cat([-2 * Y, torch.ones_like(y2), y2], dim=1)


@dataclass(frozen=True)
class Gaussian(KernelFunction):
    r"""$k(x, y) = \exp\bigl(-\|x - y\|^2 / (2\sigma^2)\bigr)$ with bandwidth $\sigma$."""

    bandwidth: float = 1.0

    def __post_init__(self) -> None:
        validate.real(self.bandwidth, "bandwidth", above=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        scale = math.sqrt(2) * self.bandwidth
        left, right = _factors(X / scale, Y / scale)
        K = (left @ right.neg().T).clamp_max_(0).exp_()
        if same:
            K.diagonal().fill_(1)
        return K


@dataclass(frozen=True)
class Matern(KernelFunction):
    r"""Matérn kernel of smoothness $\nu \in \{1/2, 3/2, 5/2\}$ in $r = \|x - y\|/\sigma$.

    $e^{-r}$; $(1 + \sqrt3 r)e^{-\sqrt3 r}$; $(1 + \sqrt5 r + 5r^2/3)e^{-\sqrt5 r}$. In one dimension
    its Fourier transform decays like $|\omega|^{-2\nu - 1}$. Differentiable in X and Y, once, in reverse mode; at $x = y$, where
    $e^{-r}$ has a kink, the derivative is zero, the mean of those from both sides.
    """

    nu: float = 1.5
    bandwidth: float = 1.0

    def __post_init__(self) -> None:
        validate.one_of(self.nu, "nu", (0.5, 1.5, 2.5))
        validate.real(self.bandwidth, "bandwidth", above=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        scale = self.bandwidth / math.sqrt(2 * self.nu)
        X, Y = X / scale, Y / scale
        D2 = squared_distances(X, None if same else Y)
        if D2.requires_grad:
            x2, y2 = ((Z - X.mean(dim=0)).square().sum(dim=1).detach() for Z in (X, Y))
            rounding = 4 * torch.finfo(D2.dtype).eps * (x2[:, None] + y2)
            apart = rounding < D2
            r = torch.where(apart, torch.where(apart, D2, 1).sqrt(), 0)
            decay = torch.exp(-r)
            return decay if self.nu == 0.5 else decay * self._factor(r)
        r = D2.sqrt_()
        if self.nu == 0.5:
            return r.neg_().exp_()
        factor = self._factor(r)
        return r.neg_().exp_().mul_(factor)

    def _factor(self, r: Tensor) -> Tensor:
        return 1 + r if self.nu == 1.5 else 1 + r + r * r / 3


def Laplace(bandwidth: float = 1.0) -> Matern:
    r"""$k(x, y) = \exp(-\|x - y\|/\sigma)$, the Matérn kernel of smoothness $1/2$."""
    return Matern(0.5, bandwidth)


class KernelOperator:
    r"""$v \mapsto (K + \lambda I)\,v$ for $K = k(X, X)$, block by block: K is never stored.

    A block of `block` × `block` entries is computed, used for its own product and, by symmetry, for
    that of its mirror image, and dropped. One product costs about $n^2/2$ kernel evaluations. Where
    memory allows, `cache` keeps the first blocks between products.

    Parameters
    ----------
    kernel
        A kernel callable.
    X
        (n, d) points; dtype and device decide in what precision and where blocks are computed.
    ridge
        $\lambda \ge 0$.
    block
        Rows of a block; 2048 on a CPU and 16384 on a GPU unless given.
    cache
        How many bytes of blocks may be kept between products; none by default.

    Attributes
    ----------
    evaluations
        Kernel evaluations so far.
    peak_entries
        Most entries of K ever held at once, kept blocks included.
    """

    def __init__(
        self, kernel: Kernel, X: Any, ridge: float = 0.0, block: int | None = None, cache: int = 0
    ) -> None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {type(kernel).__name__}")
        self.kernel = kernel
        self.X = validate.as_tensor(X, "X", 2)
        self.ridge = validate.real(ridge, "ridge", at_least=0)
        self.block = _block(block, self.X)
        self._room = validate.integer(cache, "cache", at_least=0)
        self._kept: dict[tuple[int, int], Tensor] = {}
        self.evaluations = 0
        self.peak_entries = 0

    def __len__(self) -> int:
        return len(self.X)

    def _entries(self, rows: slice, columns: slice) -> Tensor:
        key = (rows.start, columns.start)
        if key in self._kept:
            return self._kept[key]
        K = self.kernel(self.X[rows]) if rows == columns else self.kernel(self.X[rows], self.X[columns])
        self.evaluations += K.numel()
        held = sum(block.numel() for block in self._kept.values()) + K.numel()
        self.peak_entries = max(self.peak_entries, held)
        size = K.numel() * K.element_size()
        if size <= self._room:
            self._kept[key] = K
            self._room -= size
        return K

    def __call__(self, v: Tensor) -> Tensor:
        """The product, in the precision of `v`."""
        v = validate.as_tensor(v, "v", 1).to(self.X.device)
        if v.shape != (len(self),):
            raise ValueError(f"v must have shape ({len(self)},), got {tuple(v.shape)}")
        blocks = [slice(i, min(i + self.block, len(self))) for i in range(0, len(self), self.block)]
        low = v.to(self.X.dtype)
        out = self.ridge * v
        with validate.memory(_advice(self.X, self.block)):
            for i, rows in enumerate(blocks):
                for columns in blocks[i:]:
                    K = self._entries(rows, columns)
                    out[rows] += (K @ low[columns]).to(v.dtype)
                    if rows != columns:
                        out[columns] += (low[rows] @ K).to(v.dtype)
                    del K
        return out

    def largest_eigenvalue(self, iterations: int = 10) -> float:
        r"""$\lambda_{\max}(K + \lambda I)$ from below, by the power method from a random vector."""
        validate.integer(iterations, "iterations")
        v = torch.as_tensor(stream("kernels/power").standard_normal(len(self))).to(self.X.device)
        for _ in range(iterations):
            image = self(v)
            size = torch.linalg.vector_norm(image)
            v = image / size
        return size.item()


def _block(block: int | None, X: Tensor) -> int:
    """The rows of a block of K: as given, or as suits the device of X."""
    return (
        BLOCK["cpu" if X.device.type == "cpu" else "cuda"]
        if block is None
        else validate.integer(block, "block")
    )


def _advice(X: Tensor, block: int) -> str:
    """What to do where memory ran out."""
    side = min(block, len(X))
    return (
        f"out of memory on {X.device} with block={block}: a block of K takes {side**2 * X.element_size() / 1e9:.3g} GB, "
        "and a kernel needs a few more of its size; lower block (and cache, if blocks are kept)"
    )


def nystrom_preconditioner(
    kernel: Kernel, X: Any, ridge: float, rank: int, rng: np.random.Generator, block: int | None = None
) -> linalg.MatVec:
    r"""`linalg.nystrom_preconditioner` from `rank` columns of $k(X, X)$ drawn by `rng`, computed `block` rows at a time."""
    X, rng = validate.as_tensor(X, "X", 2), validate.generator(rng, "rng")
    rank, block = min(validate.integer(rank, "rank"), len(X)), _block(block, X)
    pivots = torch.as_tensor(rng.choice(len(X), rank, replace=False), device=X.device)
    advice = (
        f"out of memory on {X.device}: the preconditioner keeps {len(X)} × {rank} numbers several times, in float64; "
        f"lower rank={rank}, or lower block={block}"
    )
    with validate.memory(advice):
        columns = torch.cat([kernel(rows, X[pivots]) for rows in X.split(block)])
        return linalg.nystrom_preconditioner(columns, pivots, ridge)


SOLVERS = ("cholesky", "spectral", "richardson", "cg", "nystrom")


class KernelRegression:
    r"""Kernel ridge regression $f(x) = K_x\alpha$ with $(K + \lambda I)\,\alpha = y$.

    Parameters
    ----------
    kernel
        A kernel callable.
    ridge
        $\lambda \ge 0$; 0 asks for the interpolant of least norm.
    solver : {"cholesky", "spectral", "richardson", "cg", "nystrom"}
        The first two store K. The others never do: Richardson's iteration, conjugate gradients, and
        conjugate gradients with a Nyström preconditioner of rank `rank`.
    tolerance, max_iterations
        When the iterative solvers stop.
    rank
        Columns of the preconditioner.
    block
        Rows of a block of K in products and predictions; 2048 on a CPU and 16384 on a GPU unless given.
    cache
        Bytes of blocks that an iterative solver may keep between products; none by default.
    dtype, device
        Precision (float32 or float64) and place of the kernel's entries; those of X
        unless given. Iterates are always float64, and the preconditioner is factored in float64.
    random_state
        Numpy generator that draws the preconditioner's columns.
    show_progress
        Show a bar while an iterative solver runs.

    Attributes
    ----------
    alpha_
        (n,) coefficients.
    residual_
        $\|y - (K + \lambda I)\alpha\|/\|y\|$, recomputed in float64 after an iterative run.
    solution_
        The `featlearn.linalg.Solution` of an iterative run.
    """

    def __init__(
        self,
        kernel: Kernel,
        ridge: float = 0.0,
        solver: str = "cholesky",
        *,
        tolerance: float = 1e-6,
        max_iterations: int = 1000,
        rank: int = 500,
        block: int | None = None,
        cache: int = 0,
        dtype: torch.dtype | None = None,
        device: str | torch.device | None = None,
        random_state: Any = None,
        show_progress: bool = False,
    ) -> None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {type(kernel).__name__}")
        self.kernel = kernel
        self.ridge = validate.real(ridge, "ridge", at_least=0)
        self.solver = validate.one_of(solver, "solver", SOLVERS)
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.rank = validate.integer(rank, "rank")
        self.block = None if block is None else validate.integer(block, "block")
        self.cache = validate.integer(cache, "cache", at_least=0)
        self.dtype = validate.one_of(dtype, "dtype", (None, torch.float32, torch.float64))
        self.device = device
        self.random_state = None if random_state is None else validate.generator(random_state, "random_state")
        self.show_progress = show_progress

    def fit(self, X: Any, y: Any) -> KernelRegression:
        """Solve for the coefficients of the (n, d) points X and their (n,) labels y."""
        X = validate.as_tensor(X, "X", 2, beside=(y,))
        X = X.to(device=X.device if self.device is None else self.device, dtype=self.dtype or X.dtype)
        y = validate.as_tensor(y, "y", 1).to(X.device)
        validate.same_length(X, "X", y, "y")
        if self.solver in ("cholesky", "spectral"):
            self.alpha_ = self._direct(X, y.to(X.dtype))
        else:
            solution, residual = self._iterate(X, y.to(torch.float64))
            self.solution_, self.residual_, self.alpha_ = solution, residual, solution.alpha
        self.X_ = X
        return self

    def _direct(self, X: Tensor, y: Tensor) -> Tensor:
        advice = (
            f"out of memory on {X.device}: solver={self.solver!r} stores K, {len(X) ** 2 * X.element_size() / 1e9:.3g} GB, "
            f'several times; take solver="nystrom" or "cg", which hold one block of it at a time, and lower block={_block(self.block, X)} if that is too large'
        )
        with validate.memory(advice):
            K = self.kernel(X)
            if self.solver == "cholesky":
                return linalg.cholesky_solve(K, y, self.ridge)
            path = linalg.SpectralPath(K, y)
            return path.ridge(self.ridge) if self.ridge else path.minimum_norm()

    def _iterate(self, X: Tensor, y: Tensor) -> tuple[linalg.Solution, float]:
        A = KernelOperator(self.kernel, X, self.ridge, self.block, self.cache)
        options = {
            "tolerance": self.tolerance,
            "max_iterations": self.max_iterations,
            "show_progress": self.show_progress,
        }
        if self.solver == "richardson":
            solution = linalg.richardson(A, y, 1 / (1.05 * A.largest_eigenvalue()), **options)
        else:
            P = self._preconditioner(X) if self.solver == "nystrom" else None
            solution = linalg.conjugate_gradients(A, y, preconditioner=P, **options)
        if not solution.converged:
            warnings.warn(
                f"{self.solver} stopped at residual {solution.residuals[-1]:.1e} after "
                f"{solution.iterations} iterations, tolerance {self.tolerance:g}",
                stacklevel=3,
            )
        block = _block(self.block, X)
        del A
        with validate.memory(_advice(X, block)):
            side = max(1, block // 2) if X.dtype == torch.float32 else block
            error = y - KernelOperator(self.kernel, X.to(torch.float64), self.ridge, side)(solution.alpha)
        return solution, (torch.linalg.vector_norm(error) / torch.linalg.vector_norm(y)).item()

    def _preconditioner(self, X: Tensor) -> linalg.MatVec:
        rng = stream("kernels/nystrom") if self.random_state is None else self.random_state
        return nystrom_preconditioner(self.kernel, X, self.ridge, self.rank, rng, self.block)

    def predict(self, X: Any) -> Tensor:
        r"""$f(x) = K_x\alpha$ for the (m, d) points X: n kernel evaluations each, block by block."""
        if not hasattr(self, "alpha_"):
            raise ValueError("call fit before predict")
        X = validate.as_tensor(X, "X", 2).to(self.X_)
        alpha = self.alpha_.to(self.X_.dtype)
        block = _block(self.block, self.X_)
        parts = list(zip(self.X_.split(block), alpha.split(block), strict=True))

        def values(rows: Tensor) -> Tensor:
            return sum(self.kernel(rows, columns) @ weights for columns, weights in parts)

        blocks = progress(X.split(block), "predicting", show=self.show_progress)
        with validate.memory(_advice(self.X_, block)):
            return torch.cat([values(rows) for rows in blocks])
