r"""Gaussian processes: prior, posterior, samples, and the law of a model in training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate

Kernel = Callable[..., Tensor]


def root(K: Any, scale: float | None = None) -> Tensor:
    r"""A matrix $R$ with $RR^\top = K$, so that $Rz \sim N(0, K)$ for $z \sim N(0, I)$.

    The Cholesky factor; where $K$ is singular to rounding, $U\operatorname{diag}(\sqrt{s_+})$ from
    $K = U\operatorname{diag}(s)U^\top$. Nothing is added to the diagonal.

    Parameters
    ----------
    K
        (n, n) symmetric positive semi-definite, up to rounding.
    scale
        Size of the numbers that K was computed from, which sets what rounding is; its largest eigenvalue
        if not given.
    """
    K = validate.as_tensor(K, "K", 2)
    validate.square(K, "K")
    factor, failed = torch.linalg.cholesky_ex(K)
    if not failed:
        return factor
    s, U = torch.linalg.eigh(K)
    scale = s.abs().max().item() if scale is None else validate.real(scale, "scale", at_least=0)
    if s[0] < -math.sqrt(torch.finfo(K.dtype).eps) * scale:
        raise ValueError(f"K must be positive semi-definite, got the eigenvalue {s[0].item():g}")
    return U * s.clamp_min(0).sqrt()


class GaussianProcess:
    r"""$f \sim \mathrm{GP}(0, k)$, seen through $y_i = f(x_i) + \varepsilon_i$ with $\varepsilon_i \sim N(0, \sigma^2)$.

    Before `fit` the methods describe the prior. After it, with $A = k(X, X) + \sigma^2 I = LL^\top$, they describe the
    posterior: mean $k(x, X)A^{-1}y$ and covariance $k(x, x') - k(x, X)A^{-1}k(X, x')$ of the function $f$, without noise.

    Parameters
    ----------
    kernel
        A kernel callable.
    noise
        The variance $\sigma^2 \ge 0$ of the noise.
    """

    def __init__(self, kernel: Kernel, noise: float = 0.0) -> None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {type(kernel).__name__}")
        self.kernel, self.noise = kernel, validate.real(noise, "noise", at_least=0)
        self.X: Tensor | None = None

    def fit(self, X: Any, y: Any) -> GaussianProcess:
        """Condition on labels y of shape (n,) at points X of shape (n, d): one Cholesky factorisation."""
        X, y = validate.as_tensor(X, "X", 2, beside=(y,)), validate.as_tensor(y, "y", 1)
        validate.same_length(X, "X", y, "y")
        A = self.kernel(X).clone()
        A.diagonal().add_(self.noise)
        L, failed = torch.linalg.cholesky_ex(A)
        lost = L.diagonal() ** 2 <= len(A) * torch.finfo(A.dtype).eps * A.diagonal()
        if failed or lost.any():
            raise ValueError(
                f"kernel(X) + noise * I is singular to working precision (noise={self.noise:g}): "
                "use a larger noise, or after_training, which needs no inverse"
            )
        self.X, self.L = X, L
        self.alpha = torch.cholesky_solve(y.to(A)[:, None], L)[:, 0]
        return self

    def _points(self, X: Any, name: str = "X") -> Tensor:
        X = validate.as_tensor(X, name, 2)
        return X if self.X is None else X.to(self.X)

    def _prior_variance(self, X: Tensor) -> Tensor:
        return torch.cat([self.kernel(block).diagonal() for block in X.split(256)])

    def mean(self, X: Any) -> Tensor:
        """The mean at X, shape (m,)."""
        X = self._points(X)
        return X.new_zeros(len(X)) if self.X is None else self.kernel(X, self.X) @ self.alpha

    def _explained(self, X: Tensor) -> Tensor:
        r"""$L^{-1}k(X_{\text{train}}, X)$, whose Gram matrix is the covariance that the data take away."""
        return torch.linalg.solve_triangular(self.L, self.kernel(self.X, X), upper=False)

    def covariance(self, X: Any, Y: Any = None) -> Tensor:
        """The covariance between f at X and f at Y (at X if not given), shape (m, m')."""
        X, Y = self._points(X), None if Y is None else self._points(Y, "Y")
        prior = self.kernel(X) if Y is None else self.kernel(X, Y)
        if self.X is None:
            return prior
        V = self._explained(X)
        if Y is not None:
            return prior - V.T @ self._explained(Y)
        posterior = prior - V.T @ V
        return (posterior + posterior.T) / 2

    def variance(self, X: Any) -> Tensor:
        """The variance at X, shape (m,), never negative; no (m, m) matrix is stored."""
        X = self._points(X)
        prior = self._prior_variance(X)
        return prior if self.X is None else (prior - self._explained(X).square().sum(dim=0)).clamp_min(0)

    def sample(self, X: Any, size: int, rng: np.random.Generator) -> Tensor:
        """`size` functions at the points X, shape (size, m)."""
        size, rng = validate.integer(size, "size"), validate.generator(rng, "rng")
        X = self._points(X)
        R = root(self.covariance(X), scale=self._prior_variance(X).max())
        z = torch.as_tensor(rng.standard_normal((size, R.shape[1]))).to(R)
        return self.mean(X) + z @ R.T


def after_training(
    kernel: Kernel, X: Any, y: Any, X_new: Any, t: float = math.inf, *, initial: Kernel | None = None
) -> tuple[Tensor, Tensor]:
    r"""Mean (m,) and covariance (m, m) at `X_new` of a model that trained for a time $t$ by gradient flow.

    The model starts as $f_0 \sim \mathrm{GP}(0, \Sigma)$ and follows $\dot f_t(x) = K(x, X)(y - f_t(X))$ with a fixed kernel
    $K$. So $f_t(x) = f_0(x) + A_t(x)\,(y - f_0(X))$ with $A_t(x) = K(x, X)\,\frac{1 - e^{-st}}{s}(K)$, and

    $\mathbb{E}f_t(x) = A_t(x)y$, $\operatorname{Cov} = \Sigma_{xx'} - A_t(x)\Sigma_{Xx'} - \Sigma_{xX}A_t(x')^\top + A_t(x)\Sigma_{XX}A_t(x')^\top$.

    $K(X, X)$ may be singular: at $t = \infty$ the pseudo-inverse takes the place of the inverse.

    Parameters
    ----------
    kernel
        $K$, the kernel that governs training.
    X, y
        (n, d) training points and their (n,) labels.
    X_new
        (m, d) points to predict at.
    t
        Time, from 0 to infinity.
    initial
        $\Sigma$, the covariance at initialisation; $K$ itself if not given, as for random features.
    """
    X, y = validate.as_tensor(X, "X", 2, beside=(y, X_new)), validate.as_tensor(y, "y", 1)
    validate.same_length(X, "X", y, "y")
    X_new = validate.as_tensor(X_new, "X_new", 2).to(X)
    t = t if isinstance(t, float) and t == math.inf else validate.real(t, "t", at_least=0)
    if X_new.shape[1] != X.shape[1]:
        raise ValueError(f"X_new must have {X.shape[1]} columns, as X has, got {X_new.shape[1]}")
    initial = kernel if initial is None else initial
    path = linalg.SpectralPath(kernel(X), y)
    s, U = path.eigenvalues, path.eigenvectors
    safe = torch.where(s > 0, s, 1.0)
    psi = torch.where(s > 0, -torch.expm1(-safe * t) / safe, 0.0)
    A = (kernel(X_new, X) @ U * psi) @ U.T
    crossed = A @ initial(X, X_new)
    return A @ y.to(A), initial(X_new) - crossed - crossed.T + A @ initial(X) @ A.T
