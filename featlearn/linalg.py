r"""Solving $(K + \lambda I)\,\alpha = y$: directly, along a whole path at once, and by iteration.

$K$ is symmetric and positive semi-definite, and may be singular. The iterative solvers see $K$ only
through products with vectors, so they work when $K$ is too large to store.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from featlearn import validate
from featlearn.validate import Array

MatVec = Callable[[Tensor], Tensor]
Callback = Callable[[Tensor], "bool | None"]


def _system(K: Array, y: Array) -> tuple[Tensor, Tensor]:
    K, y = validate.as_tensor(K, "K", 2, like=(y,)), validate.as_tensor(y, "y", (1, 2))
    validate.square(K, "K")
    validate.same_length(K, "K", y, "y")
    return K, y.to(K)


def matrix_sqrt(M: Array) -> Tensor:
    r"""$M^{1/2}$ of a symmetric matrix without negative eigenvalues, up to rounding.

    Examples
    --------
    >>> matrix_sqrt([[4.0, 0.0], [0.0, 9.0]])
    tensor([[2., 0.],
            [0., 3.]], dtype=torch.float64)
    """
    M = validate.as_tensor(M, "M", 2)
    validate.square(M, "M")
    s, V = torch.linalg.eigh(M)
    if s[0] < -math.sqrt(torch.finfo(M.dtype).eps) * s.abs().max():
        raise ValueError(f"M must have no negative eigenvalue, got {s[0].item():g}")
    return (V * s.clamp_min(0).sqrt()) @ V.T


def cholesky_solve(K: Array, y: Array, ridge: float = 0.0) -> Tensor:
    r"""$\alpha = (K + \lambda I)^{-1} y$ by one Cholesky factorisation, $n^3/3$ operations; y is
    (n,) or (n, k).

    Raises `ValueError` when the factorisation meets a pivot that is zero to working precision.
    Builds of OpenBLAS for some ARM processors crash at sizes of about 20,000: take an iterative
    solver there.
    """
    K, y = _system(K, y)
    ridge = validate.real(ridge, "ridge", at_least=0)
    shifted = K.clone()
    shifted.diagonal().add_(ridge)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    smallest = factor.diagonal().min() ** 2
    if failed or smallest <= len(K) * torch.finfo(K.dtype).eps * shifted.diagonal().max():
        raise ValueError(
            f"K + ridge * I is singular to working precision (ridge={ridge:g}): "
            "use a larger ridge, or SpectralPath, which needs no inverse"
        )
    alpha = torch.cholesky_solve(y[:, None] if y.ndim == 1 else y, factor)
    return alpha[:, 0] if y.ndim == 1 else alpha


class SpectralPath:
    r"""One eigendecomposition $K = U \operatorname{diag}(s) U^\top$, then every ridge and every
    time.

    Each method returns the coefficients $\alpha = U \,\psi(s)\, U^\top y$ of the predictor
    $f(x) = K_x \alpha$ for its own filter $\psi$. Eigenvalues below `rank_tolerance` times the
    largest count as zero; no filter divides by them, so $K$ may be singular.

    Parameters
    ----------
    K
        (n, n) symmetric positive semi-definite.
    y
        (n,) labels, or (n, k) of k outputs; then a method takes one ridge or one time.
    rank_tolerance
        Relative size under which an eigenvalue is zero; $n \cdot \mathrm{eps}$ by default.
    """

    def __init__(self, K: Array, y: Array, rank_tolerance: float | None = None) -> None:
        K, y = _system(K, y)
        if rank_tolerance is None:
            rank_tolerance = len(K) * torch.finfo(K.dtype).eps
        rank_tolerance = validate.real(rank_tolerance, "rank_tolerance", at_least=0)
        s, self.eigenvectors = torch.linalg.eigh(K)
        if s[0] < -math.sqrt(torch.finfo(K.dtype).eps) * s.abs().max():
            raise ValueError(
                f"K must be positive semi-definite, got the eigenvalue {s[0].item():g}"
            )
        self.eigenvalues = torch.where(s > rank_tolerance * s[-1], s, torch.zeros_like(s))
        self.coefficients = self.eigenvectors.T @ y

    @property
    def rank(self) -> int:
        """Number of non-zero eigenvalues."""
        return int((self.eigenvalues > 0).sum())

    def _apply(self, psi: Tensor) -> Tensor:
        r"""$U \psi U^\top y$; `psi` has shape (n,) or (n, k) for k filters at once."""
        if psi.ndim == 2 and self.coefficients.ndim == 2:
            raise ValueError("y must be one output where several ridges or times are asked for")
        c = self.coefficients
        weights = (
            psi * c if psi.ndim == c.ndim else psi.reshape(len(psi), -1) * c.reshape(len(c), -1)
        )
        return self.eigenvectors @ weights

    def _grid(self, values: Array, name: str) -> Tensor:
        """`values` (a number or k numbers) shaped to broadcast against the n eigenvalues."""
        grid = validate.as_tensor(values, name, (0, 1)).to(self.eigenvalues)
        if (grid < 0).any():
            raise ValueError(f"{name} must be at least 0, got {grid.min().item():g}")
        return grid

    def _column(self, grid: Tensor) -> Tensor:
        return self.eigenvalues if grid.ndim == 0 else self.eigenvalues[:, None]

    def minimum_norm(self) -> Tensor:
        r"""$\alpha = K^+ y$: the least-squares solution of least norm."""
        s = self.eigenvalues
        return self._apply(
            torch.where(s > 0, 1 / s.clamp_min(torch.finfo(s.dtype).tiny), torch.zeros_like(s))
        )

    def ridge(self, ridge: Array) -> Tensor:
        r"""$\alpha_\lambda = (K + \lambda I)^{-1} y$ for one $\lambda > 0$, or (n, k) for k of
        them.
        """
        grid = self._grid(ridge, "ridge")
        if (grid == 0).any():
            raise ValueError("ridge must be positive here; minimum_norm() is its limit at 0")
        return self._apply(1 / (self._column(grid) + grid))

    def flow(self, t: Array) -> Tensor:
        r"""$\alpha_t = \varphi_t(K)\, y$ with $\varphi_t(s) = (1 - e^{-st})/s$ and $\varphi_t(0) =
        t$.

        Gradient flow on $\tfrac12\|\phi\theta - y\|^2$ from $\theta_0 = 0$ at time $t$, or (n, k)
        at k times. Written with `expm1`, so small $st$ lose no digits.
        """
        grid = self._grid(t, "t")
        s = self._column(grid)
        safe = torch.where(s > 0, s, torch.ones_like(s))
        return self._apply(
            torch.where(s > 0, -torch.expm1(-s * grid) / safe, grid + torch.zeros_like(s))
        )

    def descent(self, learning_rate: float, steps: Array) -> Tensor:
        r"""$\alpha_k = \frac{1 - (1 - \eta s)^k}{s}(K)\, y$: $k$ steps of gradient descent with
        learning rate $\eta$.

        The same iterates as Richardson's. `steps` is k or several of them, whole numbers.
        """
        eta = validate.real(learning_rate, "learning_rate", above=0)
        grid = self._grid(steps, "steps")
        if (grid != grid.round()).any():
            raise ValueError(f"steps must be whole numbers, got {steps!r}")
        s = self._column(grid)
        safe = torch.where(s > 0, s, torch.ones_like(s))
        small = eta * s < 0.5
        left = torch.where(small, eta * s, torch.zeros_like(s))
        learned = torch.where(
            small, -torch.expm1(grid * torch.log1p(-left)), 1 - (1 - eta * s) ** grid
        )
        psi = torch.where(s > 0, learned / safe, eta * grid + torch.zeros_like(s))
        if not validate.is_finite(psi):
            raise ValueError(
                "learning_rate must be below 2 / lambda_max: "
                f"gradient descent diverges with learning_rate={eta:g}"
            )
        return self._apply(psi)


def feature_ridge(Phi: Array, y: Array, ridges: Array) -> Tensor:
    r"""$a_\lambda = (\frac1n\Phi^\top\Phi+\lambda I)^{-1}\frac1n\Phi^\top y$ for k values $\lambda
    > 0$.

    The minimiser of $\frac1n\|\Phi a-y\|^2+\lambda\|a\|^2$, shape (m, k), from one
    eigendecomposition of $\Phi^\top\Phi$ or $\Phi\Phi^\top$, whichever is smaller, in float64
    whatever the input: small $\lambda$ are lost in float32.

    Parameters
    ----------
    Phi
        (n, m) features.
    y
        (n,) labels.
    ridges
        (k,) values of $\lambda$.
    """
    Phi, y = validate.as_tensor(Phi, "Phi", 2, like=(y,)), validate.as_tensor(y, "y", 1)
    validate.same_length(Phi, "Phi", y, "y")
    dtype, Phi = Phi.dtype, Phi.to(torch.float64)
    grid, y = validate.as_tensor(ridges, "ridges", 1).to(Phi), y.to(Phi)
    if (grid <= 0).any():
        raise ValueError(f"ridges must be positive, got {grid.min().item():g}")
    n, m = Phi.shape
    gram = (Phi.T @ Phi if m <= n else Phi @ Phi.T) / n
    if not torch.isfinite(gram.diagonal().sum()):
        raise ValueError("Phi must have smaller entries: their squares overflow")
    s, V = torch.linalg.eigh(gram)
    filtered = (V.T @ (Phi.T @ y if m <= n else y))[:, None] / (
        n * (s.clamp_min(0)[:, None] + grid)
    )
    return (V @ filtered if m <= n else Phi.T @ (V @ filtered)).to(dtype)


@dataclass
class Solution:
    r"""What an iterative solver returns.

    `alpha` (n,), the relative residuals $\|y - A\alpha\|/\|y\|$ it saw after each iteration (the
    first is 1, before any; 0 where y is zero), and whether the last one reached the tolerance or
    the callback asked to stop.
    """

    alpha: Tensor
    residuals: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def iterations(self) -> int:
        """Number of iterations, one product with A each."""
        return len(self.residuals) - 1


def _start(
    A: MatVec, y: Array, tolerance: float, max_iterations: int, callback: Callback | None
) -> tuple[Tensor, float]:
    """y and its norm, after all arguments were checked, A by its shape at zero."""
    y = validate.as_tensor(y, "y", 1)
    validate.function(A, "A")
    validate.real(tolerance, "tolerance", above=0)
    validate.integer(max_iterations, "max_iterations")
    if callback is not None:
        validate.function(callback, "callback")
    return y, torch.linalg.vector_norm(y).item()


def _product(A: MatVec, v: Tensor, name: str = "A") -> Tensor:
    """A v, which must have the shape of v."""
    return validate.returned(A(v), name, tuple(v.shape))


def _asked(callback: Callback | None, alpha: Tensor) -> bool:
    return callback is not None and callback(alpha) is True


def richardson(
    A: MatVec,
    y: Array,
    learning_rate: float,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    r"""$\alpha^{(t)} = \alpha^{(t-1)} - \eta\,(A\alpha^{(t-1)} - y)$ from $\alpha^{(0)} = 0$.

    Also called Landweber iteration; it is gradient descent on the feature weights. Converges for $0
    < \eta < 2/\lambda_{\max}(A)$, each eigen-direction like $(1 - \eta\lambda_i)^t$. `callback`
    sees $\alpha^{(t)}$ after each iteration; the iteration stops when it returns True.
    """
    y, size = _start(A, y, tolerance, max_iterations, callback)
    eta = validate.real(learning_rate, "learning_rate", above=0)
    alpha, residual = torch.zeros_like(y), y
    if size == 0:
        return Solution(alpha, [0.0], True)
    solution = Solution(alpha, [1.0])
    for _ in range(max_iterations):
        alpha = alpha + eta * residual
        residual = y - _product(A, alpha)
        solution.residuals.append(torch.linalg.vector_norm(residual).item() / size)
        if not math.isfinite(solution.residuals[-1]) or solution.residuals[-1] > 1e8:
            raise ValueError(
                "learning_rate must be below 2 / lambda_max(A): "
                f"Richardson diverges with learning_rate={eta:g}"
            )
        solution.converged = solution.residuals[-1] <= tolerance or _asked(callback, alpha)
        if solution.converged:
            break
    solution.alpha = alpha
    return solution


def conjugate_gradients(
    A: MatVec,
    y: Array,
    *,
    preconditioner: MatVec | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    r"""Conjugate gradients for $A\alpha = y$ with $A$ symmetric positive definite.

    Without a preconditioner the error in the $A$-norm after $k$ iterations is at most
    $2\bigl(\tfrac{\sqrt\kappa - 1}{\sqrt\kappa + 1}\bigr)^k$ times the first; a preconditioner $v
    \mapsto P^{-1} v$ puts the condition number of $P^{-1/2} A P^{-1/2}$ in the place of $\kappa$.
    `callback` as in `richardson`.
    """
    y, size = _start(A, y, tolerance, max_iterations, callback)
    if preconditioner is not None:
        validate.function(preconditioner, "preconditioner")

    def precondition(v: Tensor) -> Tensor:
        return v if preconditioner is None else _product(preconditioner, v, "preconditioner")

    alpha, residual = torch.zeros_like(y), y.clone()
    if size == 0:
        return Solution(alpha, [0.0], True)
    z = precondition(residual)
    direction, rho = z.clone(), residual @ z
    solution = Solution(alpha, [1.0])
    for _ in range(max_iterations):
        image = _product(A, direction)
        curvature = direction @ image
        if torch.isnan(curvature):
            raise ValueError("A must give finite numbers, got NaN")
        if not curvature > 0:
            raise ValueError("A must be positive definite: increase the ridge or the precision")
        gamma = rho / curvature
        alpha = alpha + gamma * direction
        residual = residual - gamma * image
        solution.residuals.append(torch.linalg.vector_norm(residual).item() / size)
        solution.converged = solution.residuals[-1] <= tolerance or _asked(callback, alpha)
        if solution.converged:
            break
        z = precondition(residual)
        rho, old = residual @ z, rho
        direction = z + (rho / old) * direction
    solution.alpha = alpha
    return solution


def nystrom_preconditioner(columns: Array, pivots: Array, ridge: float) -> MatVec:
    r"""$v \mapsto P^{-1}v$ for $P = K_{nm} K_{mm}^{-1} K_{mn} + \lambda I$, with $m$ of the $n$
    columns.

    With $K_{mm} = LL^\top$ and $B = K_{nm}L^{-\top}$, $P = BB^\top + \lambda I$ and by Woodbury
    $P^{-1} v = \tfrac1\lambda\bigl(v - B(\lambda I + B^\top B)^{-1} B^\top v\bigr)$: $nm$ numbers
    of memory, $nm^2$ operations once, $2nm$ per product. Factored in float64 whatever the input.

    Parameters
    ----------
    columns
        (n, m) the columns $K_{nm}$.
    pivots
        (m,) row numbers of the m columns, so that `columns[pivots]` is $K_{mm}$.
    ridge
        $\lambda > 0$.
    """
    columns = validate.as_tensor(columns, "columns", 2)
    rows = validate.integers(pivots, "pivots", at_least=0, at_most=len(columns) - 1)
    pivots = torch.tensor(rows, device=columns.device)
    ridge = validate.real(ridge, "ridge", above=0)
    if len(rows) != columns.shape[1]:
        raise ValueError(f"pivots must name {columns.shape[1]} rows, got {len(rows)}")
    K_mm = columns[pivots].to(torch.float64)
    if not (K_mm.diagonal() > 0).all():
        raise ValueError("columns must be those of a kernel matrix with a positive diagonal")
    jitter = len(K_mm) * torch.finfo(columns.dtype).eps * K_mm.diagonal().mean()
    eye = torch.eye(len(K_mm), dtype=torch.float64, device=columns.device)
    L, failed = torch.linalg.cholesky_ex((K_mm + K_mm.T) / 2 + jitter * eye)
    if failed:
        raise ValueError("columns must be those of a positive semi-definite kernel matrix")
    B = torch.linalg.solve_triangular(L, columns.to(torch.float64).T, upper=False).T
    inner = torch.linalg.cholesky(B.T @ B + ridge * eye)
    B = B.to(columns.dtype)

    def apply(v: Tensor) -> Tensor:
        inside = (B.T @ v.to(B.dtype)).to(torch.float64)
        projected = torch.cholesky_solve(inside[:, None], inner)[:, 0]
        return (v - (B @ projected.to(B.dtype)).to(v.dtype)) / ridge

    return apply
