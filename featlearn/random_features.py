r"""Chapter 2: random features $\varphi(w_i\cdot x + b_i)$ and the model $f(x, \theta) = \theta^\top\phi(x)/\sqrt p$."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import activations, kernels, validate


@dataclass(frozen=True)
class RandomFeatures:
    r"""$\phi(x) = \bigl(\varphi(w_i\cdot x + b_i)\bigr)_{i=1}^p$ with weights `W` (p, d), phases `b` (p,) and `activation` $\varphi$."""

    W: Tensor
    b: Tensor
    activation: Callable[[Tensor], Tensor]

    def _features(self, X: Any, name: str) -> Tensor:
        X = validate.as_tensor(X, name, 2, beside=(self.W,))
        if X.shape[1] != self.W.shape[1]:
            raise ValueError(f"{name} must have {self.W.shape[1]} columns, got {X.shape[1]}")
        return self.activation(X @ self.W.T.to(X) + self.b.to(X))

    def __call__(self, X: Any) -> Tensor:
        """The (n, p) features of X, whose shape is (n, d)."""
        return self._features(X, "X")

    def kernel(self, X: Any, Y: Any = None) -> Tensor:
        r"""$\hat K_p(x, x') = \frac1p\phi(x)^\top\phi(x')$ as an (n, m) matrix: a kernel callable."""
        Phi = self(X)
        return Phi @ (Phi if Y is None else self._features(Y, "Y").to(Phi)).T / len(self.W)


def _normal(p: int, d: int, rng: np.random.Generator, device: str | torch.device) -> Tensor:
    shape = (validate.integer(p, "p"), validate.integer(d, "d"))
    return torch.as_tensor(validate.generator(rng, "rng").standard_normal(shape), device=device)


def fourier_features(
    p: int,
    d: int,
    rng: np.random.Generator,
    bandwidth: float = 1.0,
    *,
    device: str | torch.device = "cpu",
) -> RandomFeatures:
    r"""p features $\sqrt2\cos(w\cdot x + b)$, $w \sim N(0, I/\sigma^2)$, $b$ uniform on $[0, 2\pi]$ (Rahimi and Recht 2007).

    Their kernel converges to $\exp(-\|x - x'\|^2/(2\sigma^2))$, which is `kernels.Gaussian(bandwidth)`.
    """
    bandwidth = validate.real(bandwidth, "bandwidth", above=0)
    W = _normal(p, d, rng, device) / bandwidth
    b = torch.as_tensor(rng.uniform(0, 2 * math.pi, p), device=device)
    return RandomFeatures(W, b, lambda z: math.sqrt(2) * torch.cos(z))


def relu_features(
    p: int, d: int, rng: np.random.Generator, *, device: str | torch.device = "cpu"
) -> RandomFeatures:
    r"""p features $\sqrt2\max(w\cdot x, 0)$, $w \sim N(0, I)$. Their kernel converges to that of `ArcCosine`."""
    W = _normal(p, d, rng, device)
    return RandomFeatures(W, torch.zeros_like(W[:, 0]), lambda z: math.sqrt(2) * torch.relu(z))


@dataclass(frozen=True)
class ArcCosine(kernels.KernelFunction):
    r"""$k(x, x') = \frac1\pi\|x\|\|x'\|\,\bigl(\sin\gamma + (\pi - \gamma)\cos\gamma\bigr)$, $\gamma$ the angle between $x$ and $x'$.

    The limit of ReLU features (Cho and Saul 2009); $k(x, x) = \|x\|^2$.
    """

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        x2, y2 = X.square().sum(dim=1), Y.square().sum(dim=1)
        return 2 * activations.get("relu").dual(x2[:, None], X @ Y.T, y2)


def train(Phi: Any, y: Any, theta: Any, *, step: float, steps: int) -> Tensor:
    r"""Gradient descent on $\frac12\|\Phi\theta/\sqrt p - y\|^2$ from each row of `theta`: (B, p) in, (B, p) out.

    All B members of the ensemble take each step together.
    """
    Phi, y = validate.as_tensor(Phi, "Phi", 2, beside=(y, theta)), validate.as_tensor(y, "y", 1)
    theta = validate.as_tensor(theta, "theta", 2)
    validate.same_length(Phi, "Phi", y, "y")
    if theta.shape[1] != Phi.shape[1]:
        raise ValueError(f"theta must have {Phi.shape[1]} columns, one a feature, got {theta.shape[1]}")
    step, steps = validate.real(step, "step", above=0), validate.integer(steps, "steps", at_least=0)
    features, y, theta = Phi / math.sqrt(Phi.shape[1]), y.to(Phi), theta.to(Phi, copy=True)
    for _ in range(steps):
        theta = torch.addmm(theta, theta @ features.T - y, features, alpha=-step)
    if not torch.isfinite(theta).all():
        raise ValueError(f"training diverges with step={step:g}: it must be below 2 / lambda_max")
    return theta
