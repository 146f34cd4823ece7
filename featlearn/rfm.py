r"""Chapter 8: kernels that learn their metric. Source: Radhakrishnan, Beaglehole, Pandit and Belkin
(2024).

A recursive feature machine fits a kernel predictor $f$, computes its average gradient outer product
$M = \frac1n\sum_i\nabla f(x_i)\nabla f(x_i)^\top$, and fits again with the kernel $k(M^{1/2}x,
M^{1/2}x')$. `empirical_hessian` and `expected_square` describe what one round finds.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from featlearn import hermite, linalg, validate
from featlearn.damian import LatentPolynomial
from featlearn.estimators import TensorRegressor
from featlearn.kernels import Gaussian, Kernel, Laplace, _evaluate
from featlearn.validate import Array


def gradients(kernel: Kernel, X: Array, centres: Array, coefficients: Array) -> Tensor:
    r"""$\nabla f(x)$ at the rows of X for $f = \sum_i\alpha_ik(\cdot, z_i)$, shape (n, d).

    By automatic differentiation; for the Gaussian kernel by its formula
    $\frac1{\sigma^2}\sum_i\alpha_ik(x, z_i)(z_i-x)$, several times faster.

    Parameters
    ----------
    kernel
        $k$, differentiable in its first argument, such as those of `featlearn.kernels` and
        `featlearn.ntk`.
    X
        (n, d) points.
    centres, coefficients
        $z_i$, shape (N, d), and $\alpha_i$, shape (N,).
    """
    X, Z = (
        validate.as_tensor(X, "X", 2, like=(centres, coefficients)),
        validate.as_tensor(centres, "centres", 2),
    )
    alpha = validate.as_tensor(coefficients, "coefficients", 1).to(X)
    validate.same_length(Z, "centres", alpha, "coefficients")
    validate.function(kernel, "kernel")
    if isinstance(kernel, Gaussian) and not isinstance(kernel.bandwidth, Tensor):
        X, Z = X.detach(), Z.to(X).detach()
        weighted = kernel(X, Z) * alpha.detach()
        return (weighted @ Z - weighted.sum(dim=1)[:, None] * X) / kernel.bandwidth**2
    with torch.inference_mode(False), torch.enable_grad():
        X, Z, alpha = (
            X.detach().clone().requires_grad_(),
            Z.to(X).detach().clone(),
            alpha.detach().clone(),
        )
        return torch.autograd.grad((_evaluate(kernel, X, Z) @ alpha).sum(), X)[0]


def agop(G: Array) -> Tensor:
    r"""$\frac1n\sum_ig_ig_i^\top$ for the gradients $g_i$ in the rows of G, shape (d, d).

    The average gradient outer product.
    """
    G = validate.as_tensor(G, "G", 2)
    return G.T @ G / len(G)


def trace_fraction(M: Array, U: Array) -> float:
    r"""$\operatorname{tr}(U^\top MU)/\operatorname{tr}M$.

    How much of the metric M lies in the span of the orthonormal columns of U.
    """
    M, U = _matrices(M, U)
    return (torch.einsum("ir,ij,jr->", U, M, U) / M.trace()).item()


def subspace_alignment(M: Array, U: Array) -> float:
    r"""$\|V^\top U\|_F^2/r$ with the r leading eigenvectors V of M.

    1 if they span the same subspace as the r columns of U.
    """
    M, U = _matrices(M, U)
    V = torch.linalg.eigh(M)[1][:, -U.shape[1] :]
    return ((V.T @ U).square().sum() / U.shape[1]).item()


def _matrices(M: Array, U: Array) -> tuple[Tensor, Tensor]:
    M = validate.as_tensor(M, "M", 2)
    validate.square(M, "M")
    U = validate.as_tensor(U, "U", 2).to(M)
    if len(M) != len(U):
        raise ValueError(f"M must have shape {(len(U), len(U))} to go with U, got {tuple(M.shape)}")
    if (U.T @ U - torch.eye(U.shape[1]).to(U)).abs().max() > 1e-5:
        raise ValueError("U must have orthonormal columns")
    if not M.trace() > 0:
        raise ValueError("M must have a positive trace")
    return M, U


class RecursiveFeatureMachine(TensorRegressor):
    r"""Kernel ridge regression, a new metric from the gradients of the fit, and again.

    Round t fits $f_t = \sum_i\alpha_ik(M_t^{1/2}\cdot, M_t^{1/2}x_i)$ with $\alpha = (K+\lambda
    I)^{-1}y$, starting from $M_0 = I$, and sets $M_{t+1} \propto \frac1n\sum_i\nabla f_t(x_i)\nabla
    f_t(x_i)^\top$ with trace d, summed over the outputs. Where the fit is constant, so that there
    is no gradient, the metric stays. A scikit-learn estimator.

    Parameters
    ----------
    kernel
        $k$, a differentiable kernel callable; the Laplace kernel of bandwidth $\sqrt d$ unless
        given.
    rounds
        How often the metric is renewed; 0 is the plain kernel.
    ridge
        $\lambda$, divided by n and by the mean of $k(x, x)$ in the metric of the round. float32
        needs a larger one than the default.

    Attributes
    ----------
    metrics_
        $M_0, \dots, M_{\text{rounds}}$.
    alphas_
        $\alpha$ of each round.
    next_metric_
        $M_{\text{rounds}+1}$, which the last fit would give.
    """

    def __init__(
        self, kernel: Kernel | None = None, *, rounds: int = 5, ridge: float = 1e-8
    ) -> None:
        self.kernel = kernel
        self.rounds = rounds
        self.ridge = ridge

    def fit(self, X: Array, y: Array) -> RecursiveFeatureMachine:
        """Train on X of shape (n, d) and y of shape (n,) or (n, k)."""
        if self.kernel is not None:
            validate.function(self.kernel, "kernel")
        rounds = validate.integer(self.rounds, "rounds", at_least=0, at_most=10**4)
        ridge = validate.real(self.ridge, "ridge", at_least=0)
        X, y = self._fit_data(X, y)
        y, d = y.to(X), X.shape[1]
        self.kernel_ = Laplace(math.sqrt(d)) if self.kernel is None else self.kernel
        self.X_fit_ = X
        self.metrics_, self.alphas_ = [torch.eye(d).to(X)], []
        for _ in range(rounds + 1):
            R = linalg.matrix_sqrt(self.metrics_[-1])
            Z = X @ R
            K = _evaluate(self.kernel_, Z).detach()
            try:
                alpha = linalg.cholesky_solve(K, y, ridge * len(y) * K.diagonal().mean().item())
            except ValueError as error:
                raise ValueError(
                    f"ridge must be larger for this kernel in {K.dtype}, got {self.ridge:g}"
                ) from error
            self.alphas_.append(alpha)
            G = [
                gradients(self.kernel_, Z, Z, column) @ R for column in alpha.reshape(len(y), -1).T
            ]
            M = torch.stack([agop(part) for part in G]).sum(dim=0)
            if not torch.isfinite(M.trace()):
                raise ValueError("y must have smaller entries: the gradients' squares overflow")
            self.metrics_.append(M * (d / M.trace()) if M.trace() > 0 else self.metrics_[-1])
        self.next_metric_ = self.metrics_.pop()
        return self

    def predict(self, X: Array, rounds: int | None = None) -> Tensor | np.ndarray:
        """The fit after this many rounds, after all of them by default, at the rows of X, (m,) or
        (m, k).
        """
        points = self._new_data(X).to(self.X_fit_)
        most = len(self.metrics_) - 1
        chosen = (
            most if rounds is None else validate.integer(rounds, "rounds", at_least=0, at_most=most)
        )
        R = linalg.matrix_sqrt(self.metrics_[chosen])
        return self._returned(
            _evaluate(self.kernel_, points @ R, self.X_fit_ @ R) @ self.alphas_[chosen], X
        )


def empirical_hessian(X: Array, y: Array) -> Tensor:
    r"""$\hat H = \frac1n\sum_iy_i(x_ix_i^\top-I)$, shape (d, d). Its mean is
    $\mathbb{E}[\nabla^2f^*]$ (Stein).

    One gradient step from zero with the kernel $\frac12[(x\cdot z)^2-\|x\|^2-\|z\|^2+d]$ gives $f$
    with $\nabla f(x) = \hat Hx$.
    """
    X = validate.as_tensor(X, "X", 2, like=(y,))
    y = validate.as_tensor(y, "y", 1).to(X)
    validate.same_length(X, "X", y, "y")
    with validate.pairs(X.T, X.T, "the columns of X"):
        return (X.T * y) @ X / len(y) - y.mean() * torch.eye(X.shape[1]).to(X)


def expected_square(
    target: LatentPolynomial, n: int, noise_std: float = 0.0
) -> tuple[Tensor, float]:
    r"""A (r, r) and c with $\mathbb{E}[\hat H^2] = UAU^\top+c\,(I-UU^\top)$ for n samples of the
    target.

    $A = H_r^2+\frac1n\bigl(\mathbb{E}[y^2(\|z\|^2+d-r-2)zz^\top]+\mathbb{E}[y^2]I-H_r^2\bigr)$ and
    $c = \frac1n\bigl(\mathbb{E}[y^2\|z\|^2]+(d-r+1)\,\mathbb{E}[y^2]\bigr)$, where $z = U^\top x$
    and $H_r = \mathbb{E}[\nabla^2g]$.
    """
    validate.instance(target, "target", LatentPolynomial)
    n = validate.integer(n, "n", at_most=10**18)
    noise_std = validate.real(noise_std, "noise_std", at_least=0, at_most=1e100)
    d, r, H = target.d, target.r, target.latent_hessian
    Z, omega = (part.to(target.U) for part in hermite.grid(r, 2 * target.degree + 4))
    y2, z2 = omega * (target.latent(Z).square() + noise_std**2), Z.square().sum(dim=1)
    inside = torch.einsum("n,ni,nj->ij", y2 * (z2 + d - r - 2), Z, Z) + y2.sum() * torch.eye(r).to(
        Z
    )
    outside = y2 @ z2 + (d - r + 1) * y2.sum()
    return H @ H + (inside - H @ H) / n, (outside / n).item()
