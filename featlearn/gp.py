r"""Gaussian processes: prior, posterior, samples, and the law of a model in training."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate
from featlearn.estimators import TensorEstimator
from featlearn.kernels import Kernel, _evaluate
from featlearn.validate import Array


def covariance_root(K: Array, scale: float | None = None) -> Tensor:
    r"""A matrix $R$ with $RR^\top = K$, so that $Rz \sim N(0, K)$ for $z \sim N(0, I)$.

    The Cholesky factor; where $K$ is singular to rounding, $U\operatorname{diag}(\sqrt{s_+})$ from
    $K = U\operatorname{diag}(s)U^\top$. Nothing is added to the diagonal.

    Parameters
    ----------
    K
        (n, n) symmetric positive semi-definite, up to rounding.
    scale
        Size of the numbers that K was computed from, which sets what rounding is; its largest
        eigenvalue if not given.
    """
    K = validate.as_tensor(K, "K", 2)
    validate.square(K, "K")
    if scale is not None:
        scale = validate.real(scale, "scale", at_least=0)
    factor, failed = torch.linalg.cholesky_ex(K)
    if not failed:
        return factor
    s, U = torch.linalg.eigh(K)
    scale = s.abs().max().item() if scale is None else scale
    if s[0] < -math.sqrt(torch.finfo(K.dtype).eps) * scale:
        raise ValueError(f"K must be positive semi-definite, got the eigenvalue {s[0].item():g}")
    return U * s.clamp_min(0).sqrt()


class GaussianProcess(TensorEstimator):
    r"""$f \sim \mathrm{GP}(0, k)$, seen through $y_i = f(x_i) + \varepsilon_i$ with $\varepsilon_i
    \sim N(0, \sigma^2)$.

    Before `fit` the methods describe the prior. After it, with $A = k(X, X) + \sigma^2 I =
    LL^\top$, they describe the posterior: mean $k(x, X)A^{-1}y$ and covariance $k(x, x') - k(x,
    X)A^{-1}k(X, x')$ of the function $f$, without noise.

    Parameters
    ----------
    kernel
        A kernel callable.
    noise_std
        The standard deviation $\sigma \ge 0$ of the noise.

    Attributes
    ----------
    alpha_
        $A^{-1}y$, shape (n,).
    """

    def __init__(self, kernel: Kernel, noise_std: float = 0.0) -> None:
        self.kernel = kernel
        self.noise_std = noise_std

    def _kernel(self, X: Tensor, Y: Tensor | None = None) -> Tensor:
        return _evaluate(validate.function(self.kernel, "kernel"), X, Y)

    def fit(self, X: Array, y: Array) -> GaussianProcess:
        """Condition on labels y of shape (n,) at points X of shape (n, d).

        One Cholesky factorisation.
        """
        noise_std = validate.real(self.noise_std, "noise_std", at_least=0, at_most=1e100)
        X, y = self._fit_data(X, y)
        if y.ndim != 1:
            raise ValueError(f"y must be 1-dimensional, got shape {tuple(y.shape)}")
        A = self._kernel(X).clone()
        A.diagonal().add_(noise_std**2)
        L, failed = torch.linalg.cholesky_ex(A)
        lost = L.diagonal() ** 2 <= len(A) * torch.finfo(A.dtype).eps * A.diagonal()
        if failed or lost.any():
            raise ValueError(
                "kernel(X) + noise_std² I is singular to working precision "
                f"(noise_std={noise_std:g}): "
                "use a larger noise_std, or after_training, which needs no inverse"
            )
        self.X_fit_, self.L_ = X, L
        self.alpha_ = torch.cholesky_solve(y.to(A)[:, None], L)[:, 0]
        return self

    @property
    def _is_prior(self) -> bool:
        return not hasattr(self, "alpha_")

    def _points(self, X: Array, name: str = "X") -> Tensor:
        X = validate.as_tensor(X, name, 2)
        if self._is_prior:
            return X
        validate.columns(X, name, self.X_fit_.shape[1])
        return X.to(self.X_fit_)

    def _prior_variance(self, X: Tensor) -> Tensor:
        return torch.cat([self._kernel(block).diagonal() for block in X.split(256)])

    def mean(self, X: Array) -> Tensor:
        """The mean at X, shape (m,)."""
        X = self._points(X)
        return X.new_zeros(len(X)) if self._is_prior else self._kernel(X, self.X_fit_) @ self.alpha_

    def _explained(self, X: Tensor) -> Tensor:
        r"""$L^{-1}k(X_{\text{train}}, X)$, whose Gram matrix is the covariance that the data take
        away.
        """
        return torch.linalg.solve_triangular(self.L_, self._kernel(self.X_fit_, X), upper=False)

    def covariance(self, X: Array, Y: Array | None = None) -> Tensor:
        """The covariance between f at X and f at Y (at X if not given), shape (m, m')."""
        if Y is not None:
            X, Y = self._points(X), self._points(Y, "Y")
            prior = self._kernel(X, Y)
            return prior if self._is_prior else prior - self._explained(X).T @ self._explained(Y)
        X = self._points(X)
        prior = self._kernel(X)
        if self._is_prior:
            return prior
        V = self._explained(X)
        posterior = prior - V.T @ V
        return (posterior + posterior.T) / 2

    def variance(self, X: Array) -> Tensor:
        """The variance at X, shape (m,), never negative; no (m, m) matrix is stored."""
        X = self._points(X)
        prior = self._prior_variance(X)
        return (
            prior
            if self._is_prior
            else (prior - self._explained(X).square().sum(dim=0)).clamp_min(0)
        )

    def sample(self, X: Array, size: int, rng: np.random.Generator) -> Tensor:
        """`size` functions at the points X, shape (size, m)."""
        size, rng = validate.integer(size, "size"), validate.generator(rng, "rng")
        X = self._points(X)
        validate.size(size * len(X), "size and X")
        R = covariance_root(self.covariance(X), scale=self._prior_variance(X).max().item())
        z = torch.as_tensor(rng.standard_normal((size, R.shape[1]))).to(R)
        return self.mean(X) + z @ R.T


def after_training(
    kernel: Kernel,
    X: Array,
    y: Array,
    X_new: Array,
    t: float = math.inf,
    *,
    initial: Kernel | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Mean (m,) and covariance (m, m) at `X_new` of a model that trained for a time $t$ by
    gradient flow.

    The model starts as $f_0 \sim \mathrm{GP}(0, \Sigma)$ and follows $\dot f_t(x) = K(x, X)(y -
    f_t(X))$ with a fixed kernel $K$. So $f_t(x) = f_0(x) + A_t(x)\,(y - f_0(X))$ with $A_t(x) =
    K(x, X)\,\frac{1 - e^{-st}}{s}(K)$, and

    $\mathbb{E}f_t(x) = A_t(x)y$, $\operatorname{Cov} = \Sigma_{xx'} - A_t(x)\Sigma_{Xx'} -
    \Sigma_{xX}A_t(x')^\top + A_t(x)\Sigma_{XX}A_t(x')^\top$.

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
    validate.function(kernel, "kernel")
    if initial is not None:
        validate.function(initial, "initial")
    X, y = validate.as_tensor(X, "X", 2, like=(y, X_new)), validate.as_tensor(y, "y", 1)
    validate.same_length(X, "X", y, "y")
    X_new = validate.as_tensor(X_new, "X_new", 2).to(X)
    t = t if isinstance(t, float) and t == math.inf else validate.real(t, "t", at_least=0)
    if X_new.shape[1] != X.shape[1]:
        raise ValueError(f"X_new must have {X.shape[1]} columns, as X has, got {X_new.shape[1]}")
    initial = kernel if initial is None else initial
    path = linalg.SpectralPath(_evaluate(kernel, X), y)
    s, U = path.eigenvalues, path.eigenvectors
    safe = torch.where(s > 0, s, 1.0)
    psi = torch.where(s > 0, -torch.expm1(-safe * t) / safe, 0.0)
    A = (_evaluate(kernel, X_new, X) @ U * psi) @ U.T
    crossed = A @ _evaluate(initial, X, X_new, "initial")
    prior, at_data = (_evaluate(initial, points, name="initial") for points in (X_new, X))
    return A @ y.to(A), prior - crossed - crossed.T + A @ at_data @ A.T
