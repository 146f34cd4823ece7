r"""Chapter 2: random features $\varphi(w_i\cdot x + b_i)$ and the model $f(x, \theta) =
\theta^\top\phi(x)/\sqrt p$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.base import TransformerMixin
from torch import Tensor

from featlearn import activations, kernels, validate
from featlearn.estimators import TensorEstimator
from featlearn.seeding import stream
from featlearn.validate import Array

KINDS = ("fourier", "relu")


def scaled_cosine(z: Tensor) -> Tensor:
    r"""$\sqrt2\cos z$, the activation of Fourier features."""
    return math.sqrt(2) * torch.cos(z)


def scaled_relu(z: Tensor) -> Tensor:
    r"""$\sqrt2\max(z, 0)$, the activation of ReLU features."""
    return math.sqrt(2) * torch.relu(z)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    r"""$\phi(x) = \bigl(\varphi(w_i\cdot x + b_i)\bigr)_{i=1}^p$.

    Parameters
    ----------
    W
        (p, d) weights.
    b
        (p,) phases.
    activation
        $\varphi$, a function of tensors.
    """

    W: Tensor
    b: Tensor
    activation: Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        W = validate.as_tensor(self.W, "W", 2, like=(self.b,))
        b = validate.as_tensor(self.b, "b", 1, like=(W,)).to(W)
        validate.same_length(W, "W", b, "b")
        validate.function(self.activation, "activation")
        object.__setattr__(self, "W", W)
        object.__setattr__(self, "b", b)

    def _features(self, X: Array, name: str) -> Tensor:
        X = validate.as_tensor(X, name, 2, like=(self.W,))
        validate.columns(X, name, self.W.shape[1])
        Z = X @ self.W.T.to(X) + self.b.to(X)
        return validate.returned(self.activation(Z), "activation", tuple(Z.shape))

    def __call__(self, X: Array) -> Tensor:
        """The (n, p) features of X, whose shape is (n, d)."""
        return self._features(X, "X")

    def kernel(self, X: Array, Y: Array | None = None) -> Tensor:
        r"""$\hat K_p(x, x') = \frac1p\phi(x)^\top\phi(x')$ as an (n, m) matrix, a kernel."""
        if Y is None or Y is X:
            left = right = self(X)
        else:
            X, Y = validate.pair(X, Y, 2)
            left, right = self._features(X, "X"), self._features(Y, "Y")
        with validate.pairs(left, right):
            return left @ right.T / len(self.W)


def _normal(p: int, d: int, rng: np.random.Generator, device: str | torch.device) -> Tensor:
    p, d = validate.integer(p, "n_features"), validate.integer(d, "d")
    validate.size(p * d, "n_features and d")
    return torch.as_tensor(
        validate.generator(rng, "rng").standard_normal((p, d)), device=validate.device(device)
    )


def fourier_features(
    n_features: int,
    d: int,
    rng: np.random.Generator,
    bandwidth: float = 1.0,
    *,
    device: str | torch.device = "cpu",
) -> FeatureMap:
    r"""Features $\sqrt2\cos(w\cdot x + b)$, $w \sim N(0, I/\sigma^2)$, $b$ uniform on $[0, 2\pi]$
    (Rahimi and Recht 2007).

    Their kernel converges to $\exp(-\|x - x'\|^2/(2\sigma^2))$, which is
    `kernels.Gaussian(bandwidth)`.
    """
    bandwidth = validate.real(bandwidth, "bandwidth", above=0)
    W = _normal(n_features, d, rng, device) / bandwidth
    b = torch.as_tensor(rng.uniform(0, 2 * math.pi, n_features), device=device)
    return FeatureMap(W, b, scaled_cosine)


def relu_features(
    n_features: int, d: int, rng: np.random.Generator, *, device: str | torch.device = "cpu"
) -> FeatureMap:
    r"""Features $\sqrt2\max(w\cdot x, 0)$, $w \sim N(0, I)$.

    Their kernel converges to that of `ArcCosine`.
    """
    W = _normal(n_features, d, rng, device)
    return FeatureMap(W, torch.zeros_like(W[:, 0]), scaled_relu)


class RandomFeatures(TransformerMixin, TensorEstimator):
    r"""$x \mapsto \phi(x)/\sqrt p$ with $p$ random features; a transformer for scikit-learn's
    pipelines.

    The inner products of transformed points converge to a kernel: `kernels.Gaussian` for "fourier",
    `ArcCosine` for "relu". Ridge regression on them is kernel ridge regression with the kernel of
    the features.

    Parameters
    ----------
    n_features
        $p$.
    kind : {"fourier", "relu"}
        `fourier_features` or `relu_features`.
    bandwidth
        Of Fourier features.
    random_state
        Integer or numpy generator of the weights.

    Attributes
    ----------
    map_
        The `FeatureMap` that was drawn.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(RandomFeatures(200, random_state=0), Ridge(1e-3))
    >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).predict([[1.0]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        n_features: int = 100,
        kind: str = "fourier",
        *,
        bandwidth: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_features = n_features
        self.kind = kind
        self.bandwidth = bandwidth
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> RandomFeatures:
        """Draw the weights for the (n, d) points X; y is not used."""
        validate.one_of(self.kind, "kind", KINDS)
        bandwidth = validate.real(self.bandwidth, "bandwidth", above=0)
        n_features = validate.integer(self.n_features, "n_features")
        X = self._fit_inputs(X)
        rng = (
            stream("random-features")
            if self.random_state is None
            else validate.random_state(self.random_state)
        )
        d, device = X.shape[1], X.device
        if self.kind == "fourier":
            self.map_ = fourier_features(n_features, d, rng, bandwidth, device=device)
        else:
            self.map_ = relu_features(n_features, d, rng, device=device)
        return self

    def transform(self, X: Array) -> Tensor | np.ndarray:
        r"""$\phi(x)/\sqrt p$ for the rows of X, shape (n, p), in the precision of X."""
        points = self._new_data(X).to(self.map_.W.device)
        return self._returned(self.map_(points) / math.sqrt(len(self.map_.W)), X)


@dataclass(frozen=True)
class ArcCosine(kernels.KernelFunction):
    r"""$k(x, x') = \frac1\pi\|x\|\|x'\|\,\bigl(\sin\gamma + (\pi - \gamma)\cos\gamma\bigr)$,
    $\gamma$ the angle.

    The limit of ReLU features (Cho and Saul 2009); $k(x, x) = \|x\|^2$.
    """

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel."""
        x2, y2 = X.square().sum(dim=1), Y.square().sum(dim=1)
        kernels.no_overflow(x2, y2)
        K = 2 * activations.get("relu")._dual(x2[:, None], X @ Y.T, y2)
        return torch.diagonal_scatter(K, x2) if same else K


def train(Phi: Array, y: Array, theta: Array, *, learning_rate: float, steps: int) -> Tensor:
    r"""Gradient descent on $\frac12\|\Phi\theta/\sqrt p - y\|^2$ from each row of `theta`: (B, p)
    in, (B, p) out.

    All B members of the ensemble take each step together.
    """
    Phi, y = validate.as_tensor(Phi, "Phi", 2, like=(y, theta)), validate.as_tensor(y, "y", 1)
    theta = validate.as_tensor(theta, "theta", 2)
    validate.same_length(Phi, "Phi", y, "y")
    if theta.shape[1] != Phi.shape[1]:
        raise ValueError(
            f"theta must have {Phi.shape[1]} columns, one per feature, got {theta.shape[1]}"
        )
    eta = validate.real(learning_rate, "learning_rate", above=0)
    steps = validate.integer(steps, "steps", at_least=0, at_most=10**8)
    features, y, theta = Phi / math.sqrt(Phi.shape[1]), y.to(Phi), theta.to(Phi, copy=True)
    for _ in range(steps):
        theta = torch.addmm(theta, theta @ features.T - y, features, alpha=-eta)
    if not validate.is_finite(theta):
        raise ValueError(
            f"training diverges with learning_rate={eta:g}: it must be below 2 / lambda_max"
        )
    return theta
