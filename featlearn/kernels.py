r"""Chapter 1: kernels, the product with a kernel matrix that is never stored, kernel regression.

A kernel is a plain callable: ``k(X, Y)`` is the matrix $[k(x_i, y_j)]$, ``k(X)`` is ``k(X, X)``,
and for two vectors ``k(x, y)`` is the number $k(x, y)$, which is what scikit-learn's
``KernelRidge(kernel=k)`` calls. Arrays or tensors go in, tensors come out. Every kernel is
differentiable in its points and in its parameters, given as tensors, and works under
``torch.func``.
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
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from featlearn import linalg, validate
from featlearn.estimators import TensorRegressor
from featlearn.seeding import stream
from featlearn.validate import Array

Kernel = Callable[..., Tensor]
BLOCK = {"cpu": 2048, "cuda": 16384}


def differentiated(*values: Any) -> bool:
    """Whether a derivative may be taken through one of these; then nothing is overwritten."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    asked = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return asked or validate.is_transformed(*tensors)


def no_overflow(*sizes: Tensor) -> None:
    """Raise if one of the numbers is infinite.

    Not asked on a GPU, which would have to be waited for.
    """
    for size in sizes:
        looked_at = size.device.type == "cpu" and not validate.is_transformed(size)
        if looked_at and not validate.is_finite(size):
            raise ValueError(
                "X and Y must have smaller entries, or the bandwidth be larger: "
                f"the kernel overflows {size.dtype}"
            )


def _evaluate(kernel: Kernel, X: Tensor, Y: Tensor | None = None, name: str = "kernel") -> Tensor:
    """The (n, m) matrix of any kernel callable, which may return an array, as a tensor beside X."""
    K = kernel(X) if Y is None else kernel(X, Y)
    if isinstance(K, np.ndarray) and K.dtype.kind == "f":
        K = torch.as_tensor(K).to(X)
    return validate.returned(K, name, (len(X), len(X if Y is None else Y)))


class KernelFunction(ABC):
    """Shapes and checks that all kernels share; subclasses give the matrix for two matrices."""

    @abstractmethod
    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix; `same` says that X and Y are the same points."""

    def __call__(self, X: Array, Y: Array | None = None) -> Tensor:
        same = Y is None or Y is X
        if Y is None or same:
            X = Y = validate.as_tensor(X, "X", (1, 2))
        else:
            X, Y = validate.pair(X, Y, (1, 2))
        if X.ndim == 1:
            return self.matrix(X[None], Y[None], same)[0, 0]
        with validate.pairs(X, Y):
            return self.matrix(X, Y, same)


@dataclass(frozen=True)
class Polynomial(KernelFunction):
    r"""$k(x, y) = (\langle x, y\rangle + c)^p$ with degree $p$ and constant $c \ge 0$.

    Examples
    --------
    >>> Polynomial(degree=2, constant=1.0)([1.0, 2.0], [3.0, 4.0])
    tensor(144., dtype=torch.float64)
    """

    degree: int = 2
    constant: float | Tensor = 0.0

    def __post_init__(self) -> None:
        validate.integer(self.degree, "degree", at_most=10**4)
        validate.parameter(self.constant, "constant", at_least=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        no_overflow((X.norm(dim=1).max() * Y.norm(dim=1).max() + self.constant) ** self.degree)
        return (X @ Y.T + self.constant) ** self.degree


def squared_distances(X: Array, Y: Array | None = None) -> Tensor:
    r"""$\|x_i - y_j\|^2 = \|x_i\|^2 + \|y_j\|^2 - 2\langle x_i, y_j\rangle$ as an (n, m) matrix.

    All three terms come out of one matrix product. Both sets are first centred at the mean of X,
    which loses fewest digits to cancellation; for one set of points the diagonal is exactly zero.
    """
    same = Y is None or Y is X
    if Y is None or same:
        X = Y = validate.as_tensor(X, "X", 2)
    else:
        X, Y = validate.pair(X, Y, 2)
    with validate.pairs(X, Y):
        return _squared_distances(X, Y, same)


def _squared_distances(X: Tensor, Y: Tensor, same: bool) -> Tensor:
    left, right = _factors(X, Y)
    D2 = left @ right.T
    if differentiated(D2):
        D2 = D2.clamp_min(0)
        return torch.diagonal_scatter(D2, torch.zeros_like(D2.diagonal())) if same else D2
    D2.clamp_min_(0)
    if same:
        D2.diagonal().zero_()
    return D2


def _factors(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    r"""Two matrices with $d + 2$ columns; the products of their rows are $\|x_i - y_j\|^2$."""
    centre = X.mean(dim=0)
    X, Y = X - centre, Y - centre
    x2, y2 = (X * X).sum(dim=1, keepdim=True), (Y * Y).sum(dim=1, keepdim=True)
    no_overflow(x2, y2)
    left = torch.cat([X, x2, torch.ones_like(x2)], dim=1)
    return left, torch.cat([-2 * Y, torch.ones_like(y2), y2], dim=1)


@dataclass(frozen=True)
class Gaussian(KernelFunction):
    r"""$k(x, y) = \exp\bigl(-\|x - y\|^2 / (2\sigma^2)\bigr)$ with bandwidth $\sigma$.

    Examples
    --------
    >>> Gaussian(bandwidth=2.0)([[0.0], [2.0]]).round(decimals=4)
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]], dtype=torch.float64)
    """

    bandwidth: float | Tensor = 1.0

    def __post_init__(self) -> None:
        validate.parameter(self.bandwidth, "bandwidth", above=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        scale = math.sqrt(2) * self.bandwidth
        left, right = _factors(X / scale, Y / scale)
        K = left @ right.neg().T
        if differentiated(K):
            K = K.clamp_max(0).exp()
            return torch.diagonal_scatter(K, torch.ones_like(K.diagonal())) if same else K
        K.clamp_max_(0).exp_()
        if same:
            K.diagonal().fill_(1)
        return K


@dataclass(frozen=True)
class Matern(KernelFunction):
    r"""Matérn kernel of smoothness $\nu \in \{1/2, 3/2, 5/2\}$ in $r = \|x - y\|/\sigma$.

    $e^{-r}$; $(1 + \sqrt3 r)e^{-\sqrt3 r}$; $(1 + \sqrt5 r + 5r^2/3)e^{-\sqrt5 r}$. In one
    dimension its Fourier transform decays like $|\omega|^{-2\nu - 1}$. Differentiable once; at $x =
    y$, where $e^{-r}$ has a kink, the derivative is zero, the mean of those from both sides.
    """

    nu: float = 1.5
    bandwidth: float | Tensor = 1.0

    def __post_init__(self) -> None:
        validate.one_of(self.nu, "nu", (0.5, 1.5, 2.5))
        validate.parameter(self.bandwidth, "bandwidth", above=0)

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        scale = self.bandwidth / math.sqrt(2 * self.nu)
        X, Y = X / scale, Y / scale
        D2 = _squared_distances(X, Y, same)
        x2, y2 = ((Z - X.mean(dim=0)).square().sum(dim=1).detach() for Z in (X, Y))
        eps = 4 * torch.finfo(D2.dtype).eps  # distances below eps (x2 + y2) are rounding
        if differentiated(D2):
            apart = eps * (x2[:, None] + y2) < D2
            r = torch.where(apart, torch.where(apart, D2, 1).sqrt(), 0)
            decay = torch.exp(-r)
            return decay if self.nu == 0.5 else decay * self._factor(r)
        if not same and D2.numel() > 0 and D2.device.type == "cpu":
            # Only rows that hold a rounded zero: to look at each entry takes as long as the kernel.
            rows = torch.nonzero(D2.amin(dim=1) <= eps * (x2 + y2.max()))[:, 0]
            D2[rows] *= eps * (x2[rows, None] + y2) < D2[rows]
        r = D2.sqrt_()
        if self.nu == 0.5:
            return r.neg_().exp_()
        factor = self._factor(r)
        return r.neg_().exp_().mul_(factor)

    def _factor(self, r: Tensor) -> Tensor:
        return 1 + r if self.nu == 1.5 else 1 + r + r * r / 3


def Laplace(bandwidth: float | Tensor = 1.0) -> Matern:
    r"""$k(x, y) = \exp(-\|x - y\|/\sigma)$, the Matérn kernel of smoothness $1/2$."""
    return Matern(0.5, bandwidth)


def _on_chip(kernel: Kernel, X: Tensor, Y: Tensor) -> Callable[[Tensor], Tensor] | None:
    """The product with k(X, Y) that writes no entry, where `featlearn.fused` has it: on a GPU, with
    Triton, in float32.
    """
    if X.device.type != "cuda" or X.dtype != torch.float32:
        return None
    try:
        from featlearn import fused
    except ImportError:  # without Triton
        return None
    return fused.product(kernel, X, Y)


class KernelOperator:
    r"""$v \mapsto (K + \lambda I)\,v$ for $K = k(X, X)$, block by block: K is never stored.

    A block of `block` × `block` entries is computed, used for its own product and, by symmetry, for
    that of its mirror image, and dropped. One product costs about $n^2/2$ kernel evaluations. Where
    memory allows, `cache` keeps the first blocks between products. On a GPU, in float32, the
    kernels that `featlearn.fused` knows leave no entry behind; then `block` and `cache` are not
    used.

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
        self, kernel: Kernel, X: Array, ridge: float = 0.0, block: int | None = None, cache: int = 0
    ) -> None:
        self.kernel = validate.function(kernel, "kernel")
        self.X = validate.as_tensor(X, "X", 2)
        self.ridge = validate.real(ridge, "ridge", at_least=0)
        self.block = _block(block, self.X)
        self._room = validate.integer(cache, "cache", at_least=0)
        self._kept: dict[tuple[int, int], Tensor] = {}
        self.evaluations = 0
        self.peak_entries = 0
        self._fused = _on_chip(kernel, self.X, self.X)

    def __len__(self) -> int:
        return len(self.X)

    def _entries(self, rows: slice, columns: slice) -> Tensor:
        key = (rows.start, columns.start)
        if key in self._kept:
            return self._kept[key]
        Y = None if rows == columns else self.X[columns]
        K = _evaluate(self.kernel, self.X[rows], Y)
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
        if self._fused is not None and not differentiated(v):
            self.evaluations += len(self) ** 2
            return self.ridge * v + self._fused(low).to(v.dtype)
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
        iterations, size = validate.integer(iterations, "iterations", at_most=10**6), 0.0
        v = torch.as_tensor(stream("kernels/power").standard_normal(len(self))).to(self.X.device)
        for _ in range(iterations):
            image = self(v)
            size = torch.linalg.vector_norm(image).item()
            if size == 0:
                return 0.0
            v = image / size
        return size


def _block(block: int | None, X: Tensor) -> int:
    """The rows of a block of K: as given, or as suits the device of X."""
    return (
        BLOCK["cpu" if X.device.type == "cpu" else "cuda"]
        if block is None
        else validate.integer(block, "block", at_most=2**40)
    )


def _advice(X: Tensor, block: int) -> str:
    """What to do where memory ran out."""
    side = min(block, len(X))
    return (
        f"out of memory on {X.device} with block={block}: "
        f"a block of K takes {side**2 * X.element_size() / 1e9:.3g} GB, "
        "and a kernel needs a few more of its size; lower block (and cache, if blocks are kept)"
    )


def nystrom_preconditioner(
    kernel: Kernel,
    X: Array,
    ridge: float,
    rank: int,
    rng: np.random.Generator,
    block: int | None = None,
) -> linalg.MatVec:
    r"""`linalg.nystrom_preconditioner` from `rank` columns of $k(X, X)$ drawn by `rng`, computed
    `block` rows at a time.
    """
    X, rng = validate.as_tensor(X, "X", 2), validate.generator(rng, "rng")
    validate.function(kernel, "kernel")
    rank, block = min(validate.integer(rank, "rank"), len(X)), _block(block, X)
    pivots = torch.as_tensor(rng.choice(len(X), rank, replace=False), device=X.device)
    advice = (
        f"out of memory on {X.device}: the preconditioner keeps {len(X)} × {rank} numbers "
        f"several times, in float64; "
        f"lower rank={rank}, or lower block={block}"
    )
    with validate.memory(advice):
        columns = torch.cat([_evaluate(kernel, rows, X[pivots]) for rows in X.split(block)])
        return linalg.nystrom_preconditioner(columns, pivots, ridge)


SOLVERS = ("cholesky", "spectral", "richardson", "cg", "nystrom")


class KernelRegression(TensorRegressor):
    r"""Kernel ridge regression $f(x) = K_x\alpha$ with $(K + \lambda I)\,\alpha = y$.

    A scikit-learn estimator, for one output or several.

    Parameters
    ----------
    kernel
        A kernel callable; `Gaussian` of bandwidth $\sqrt d$ unless given.
    ridge
        $\lambda \ge 0$; 0 asks for the interpolant of least norm.
    solver : {"cholesky", "spectral", "richardson", "cg", "nystrom"}
        The first two store K. The others never do: Richardson's iteration, conjugate gradients, and
        conjugate gradients with a Nyström preconditioner of rank `rank`. Where $K + \lambda I$ is
        singular, "spectral" gives the least-squares solution of least norm; the others find it too
        or raise.
    tolerance, max_iterations
        When the iterative solvers stop.
    rank
        Columns of the preconditioner.
    block
        Rows of a block of K in products and predictions; 2048 on a CPU and 16384 on a GPU unless
        given.
    cache
        Bytes of blocks that an iterative solver may keep between products; none by default.
    dtype, device
        Precision (float32 or float64) and place of the kernel's entries; those of X
        unless given. Iterates are always float64, and the preconditioner is factored in float64.
    random_state
        Integer or numpy generator that draws the preconditioner's columns.

    Attributes
    ----------
    alpha_
        (n,) coefficients, or (n, k) for k outputs.
    residual_
        $\|y - (K + \lambda I)\alpha\|/\|y\|$, recomputed in float64 after an iterative run.
    solutions_
        The `featlearn.linalg.Solution` of an iterative run, one for each output.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]
    >>> model = KernelRegression(Gaussian(0.5), ridge=1e-3).fit(X, y)
    >>> model.predict([[1.0]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
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
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.solver = solver
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.rank = rank
        self.block = block
        self.cache = cache
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    def _check(self) -> None:
        """Raise where a parameter is not what it must be."""
        if self.kernel is not None:
            validate.function(self.kernel, "kernel")
        validate.real(self.ridge, "ridge", at_least=0)
        validate.one_of(self.solver, "solver", SOLVERS)
        validate.real(self.tolerance, "tolerance", above=0)
        validate.integer(self.max_iterations, "max_iterations")
        validate.integer(self.rank, "rank")
        if self.block is not None:
            validate.integer(self.block, "block", at_most=2**40)
        validate.integer(self.cache, "cache", at_least=0)
        validate.one_of(self.dtype, "dtype", (None, *validate.PRECISIONS))
        if self.device is not None:
            validate.device(self.device)
        if self.random_state is not None:
            validate.random_state(self.random_state)

    def fit(self, X: Array, y: Array) -> KernelRegression:
        """Solve for the coefficients of the (n, d) points X and their labels y, (n,) or (n, k)."""
        self._check()
        X, y = self._fit_data(X, y)
        X = X.to(
            device=X.device if self.device is None else self.device, dtype=self.dtype or X.dtype
        )
        y = y.to(X.device)
        kernel = Gaussian(math.sqrt(X.shape[1])) if self.kernel is None else self.kernel
        if self.solver in ("cholesky", "spectral"):
            self.alpha_ = self._direct(kernel, X, y.to(X.dtype))
        else:
            solved = self._iterate(kernel, X, y.to(torch.float64))
            self.alpha_, self.solutions_, self.residual_ = solved
        self.kernel_, self.X_fit_ = kernel, X
        return self

    def _direct(self, kernel: Kernel, X: Tensor, y: Tensor) -> Tensor:
        advice = (
            f"out of memory on {X.device}: solver={self.solver!r} stores K, "
            f"{len(X) ** 2 * X.element_size() / 1e9:.3g} GB, several times; "
            'take solver="nystrom" or "cg", which hold one block of it at a time, '
            f"and lower block={_block(self.block, X)} if that is too large"
        )
        with validate.memory(advice):
            K = _evaluate(kernel, X)
            if self.solver == "cholesky":
                return linalg.cholesky_solve(K, y, self.ridge)
            path = linalg.SpectralPath(K, y)
            return path.ridge(self.ridge) if self.ridge else path.minimum_norm()

    def _iterate(
        self, kernel: Kernel, X: Tensor, y: Tensor
    ) -> tuple[Tensor, list[linalg.Solution], float]:
        """The coefficients, a solution for each output, and the relative residual in float64."""
        A = KernelOperator(kernel, X, self.ridge, self.block, self.cache)
        labels = y[:, None] if y.ndim == 1 else y
        solve = self._solver(A, labels)
        solutions = [solve(column) for column in labels.T]
        for solution in solutions:
            self._judge(solution)
        alpha = torch.stack([solution.alpha for solution in solutions], dim=1)
        block, size = _block(self.block, X), torch.linalg.vector_norm(labels).item()
        del A, solve
        with validate.memory(_advice(X, block)):
            side = max(1, block // 2) if X.dtype == torch.float32 else block
            exact = KernelOperator(kernel, X.to(torch.float64), self.ridge, side)
            error = labels - torch.stack([exact(column) for column in alpha.T], dim=1)
        residual = torch.linalg.vector_norm(error).item() / size if size else 0.0
        return alpha[:, 0] if y.ndim == 1 else alpha, solutions, residual

    def _solver(self, A: KernelOperator, labels: Tensor) -> Callable[[Tensor], linalg.Solution]:
        """The iterative solver as a function of one column of labels."""
        stop: dict[str, Any] = {
            "tolerance": self.tolerance,
            "max_iterations": self.max_iterations,
        }
        if self.solver == "richardson":
            largest = A.largest_eigenvalue()
            if largest == 0 and labels.any():
                raise ValueError("kernel must not be zero at all points where there is no ridge")
            eta = 1 / (1.05 * largest) if largest else 1.0
            return lambda column: linalg.richardson(A, column, eta, **stop)
        P = None
        if self.solver == "nystrom":
            seed = self.random_state
            rng = stream("kernels/nystrom") if seed is None else validate.random_state(seed)
            P = nystrom_preconditioner(A.kernel, A.X, self.ridge, self.rank, rng, self.block)
        return lambda column: linalg.conjugate_gradients(A, column, preconditioner=P, **stop)

    def _judge(self, solution: linalg.Solution) -> None:
        """Raise where there may be no solution, warn where it was not reached."""
        if solution.converged:
            return
        reached = (
            f"{self.solver} stopped at residual {solution.residuals[-1]:.1e} after "
            f"{solution.iterations} iterations, tolerance {self.tolerance:g}"
        )
        if self.ridge == 0:
            raise ValueError(
                f"{reached}: without a ridge K may be singular; give a ridge, "
                'allow more iterations, or take solver="spectral"'
            )
        warnings.warn(reached, ConvergenceWarning, stacklevel=4)

    def predict(self, X: Array) -> Tensor | np.ndarray:
        r"""$f(x) = K_x\alpha$ for the (m, d) points X, (m,) or (m, k), computed in blocks of K."""
        points = self._new_data(X).to(self.X_fit_)
        alpha, block = self.alpha_.to(points.dtype), _block(self.block, points)
        if (fused := _on_chip(self.kernel_, points, self.X_fit_)) is not None:
            return self._returned(fused(alpha), X)
        parts = list(zip(self.X_fit_.split(block), alpha.split(block), strict=True))

        def values(rows: Tensor) -> Tensor:
            products = (_evaluate(self.kernel_, rows, Z) @ weights for Z, weights in parts)
            total = next(products)
            for part in products:
                total = total + part
            return total

        with validate.memory(_advice(self.X_fit_, block)):
            found = torch.cat([values(rows) for rows in points.split(block)])
        return self._returned(found, X)
