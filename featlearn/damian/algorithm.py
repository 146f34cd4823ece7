r"""Algorithm 1 of Damian, Lee and Soltanolkotabi (2022).

Preprocess, one large step on the first layer, new biases, ridge regression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate
from featlearn.damian.target import Sample, _orthonormal
from featlearn.validate import Array

RIDGES = tuple(10.0 ** np.arange(-7, 4.1, 0.5))
BLOCK = 2**16


def initialise(
    width: int, d: int, rng: np.random.Generator, device: str | torch.device = "cpu"
) -> tuple[Tensor, Tensor]:
    r"""$a$ (m,) and $W$ (m, d).

    Signs $a_j = \pm1$, $w_j \sim N(0, I/d)$, and $a_{j+m/2} = -a_j$, $w_{j+m/2} = w_j$, so that
    $f_{\theta_0} = 0$.
    """
    half, d = _even(width) // 2, validate.integer(d, "d")
    validate.size(width * d, "width and d")
    validate.generator(rng, "rng")
    device = validate.device(device)
    a = torch.as_tensor(rng.choice([-1.0, 1.0], half), device=device)
    W = torch.as_tensor(rng.standard_normal((half, d)) / math.sqrt(d), device=device)
    return torch.cat([a, -a]), torch.cat([W, W])


def _even(width: int) -> int:
    """`width`, if it is a positive even number."""
    if validate.integer(width, "width") % 2:
        raise ValueError(f"width must be even, got {width}")
    return int(width)


def _data(X: Array, y: Array, *others: Array) -> tuple[Tensor, Tensor]:
    """X (n, d) and y (n,) as tensors of one type, on the device of the first tensor among all."""
    X = validate.as_tensor(X, "X", 2, like=(y, *others))
    y = validate.as_tensor(y, "y", 1).to(X)
    validate.same_length(X, "X", y, "y")
    return X, y


def preprocess(X: Array, y: Array) -> tuple[Tensor, Tensor, Tensor]:
    r"""$\alpha = \frac1n\sum_iy_i$, $\beta = \frac1n\sum_iy_ix_i$ and the labels
    $y_i-\alpha-\beta\cdot x_i$.
    """
    return _preprocess(*_data(X, y))


def _preprocess(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    alpha, beta = y.mean(), X.T @ y / len(y)
    return alpha, beta, y - alpha - X @ beta


def first_step(
    a: Array,
    W: Array,
    X: Array,
    y: Array,
    learning_rate: float,
    weight_decay: float | None = None,
    b: Array = 0.0,
) -> Tensor:
    r"""$W^{(1)} = W-\eta_1[\nabla_W\mathcal L+\lambda_1W]$ at a network whose output is zero, shape
    (m, d).

    $\mathcal L = \frac1n\sum_i(f(x_i)-y_i)^2$ and $f = 0$, so $\nabla_{w_j}\mathcal L =
    -\frac{2a_j}n\sum_iy_i\,x_i\,\mathbf 1\{w_j\cdot x_i+b_j \ge 0\}$.

    Parameters
    ----------
    a, W
        (m,) and (m, d), the initial weights.
    X, y
        (n, d) and (n,), inputs and preprocessed labels.
    learning_rate
        $\eta_1$.
    weight_decay
        $\lambda_1$. By default $1/\eta_1$: the initial weights are forgotten and $W^{(1)} =
        -\eta_1\nabla_W\mathcal L$.
    b
        Biases, a number or (m,). Algorithm 1 has none here.
    """
    X, y = _data(X, y, a, W)
    a, W = validate.as_tensor(a, "a", 1).to(X), validate.as_tensor(W, "W", 2).to(X)
    b = validate.as_tensor(b, "b", (0, 1)).to(X)
    validate.same_length(a, "a", W, "W")
    validate.columns(W, "W", X.shape[1])
    if b.shape not in ((), a.shape):
        raise ValueError(f"b must be a number or have shape {tuple(a.shape)}, got {tuple(b.shape)}")
    eta = validate.real(learning_rate, "learning_rate", above=0)
    decay = (
        1 / eta if weight_decay is None else validate.real(weight_decay, "weight_decay", at_least=0)
    )
    return _first_step(a, W, X, y, eta, decay, b)


def _first_step(
    a: Tensor, W: Tensor, X: Tensor, y: Tensor, eta: float, decay: float, b: Tensor | float = 0.0
) -> Tensor:
    gradient, z = torch.zeros_like(W), X.new_empty(min(len(y), BLOCK), len(W))
    for rows in range(0, len(y), BLOCK):
        X_rows, y_rows = X[rows : rows + BLOCK], y[rows : rows + BLOCK]
        active = torch.mm(X_rows, W.T, out=z[: len(y_rows)]).add_(b).ge_(0)  # (rows, m)
        gradient += active.T @ (y_rows[:, None] * X_rows)
    return (1 - eta * decay) * W + eta * (2 / len(y)) * a[:, None] * gradient


@dataclass(frozen=True, eq=False)
class TwoLayer:
    r"""$x \mapsto \alpha+\beta\cdot x+a^\top\mathrm{ReLU}(Wx+b)$, and the $\lambda$ its head was
    fitted with, 0 for a head that was not. (A `Network` has no linear part.)
    """

    W: Tensor
    b: Tensor
    a: Tensor
    alpha: Tensor
    beta: Tensor
    ridge: float

    def __post_init__(self) -> None:
        W = validate.as_tensor(self.W, "W", 2, like=(self.b, self.a))
        parts = {"W": W}
        for name, ndim in (("b", 1), ("a", 1), ("alpha", 0), ("beta", 1)):
            parts[name] = validate.as_tensor(getattr(self, name), name, ndim).to(W)
        for name in ("b", "a"):
            validate.same_length(W, "W", parts[name], name)
        if len(parts["beta"]) != W.shape[1]:
            raise ValueError(f"beta must have {W.shape[1]} entries, got {len(parts['beta'])}")
        for name, part in parts.items():
            object.__setattr__(self, name, part)
        object.__setattr__(self, "ridge", validate.real(self.ridge, "ridge", at_least=0))

    def _inputs(self, X: Array, name: str = "X") -> Tensor:
        X = validate.as_tensor(X, name, 2).to(self.W)
        validate.columns(X, name, self.W.shape[1])
        return X

    def _features(self, X: Tensor) -> Tensor:
        return torch.relu(X @ self.W.T + self.b)

    def features(self, X: Array) -> Tensor:
        r"""$\mathrm{ReLU}(Wx+b)$, shape (n, m)."""
        return self._features(self._inputs(X))

    def __call__(self, X: Array) -> Tensor:
        """The outputs at the rows of X, shape (n,)."""
        X = self._inputs(X)
        return self.alpha + X @ self.beta + self._features(X) @ self.a


def fit_head(
    network: TwoLayer, X: Array, y: Array, validation: Sample, ridges: Sequence[float] = RIDGES
) -> TwoLayer:
    r"""The same first layer with a new head: ridge regression of y on the features, and $\alpha,
    \beta$ as they are.

    $a$ is the limit of $a \leftarrow a-\eta[\nabla_a\mathcal L+\lambda a]$. One eigendecomposition
    gives it for all `ridges` $\lambda$; the one with the least risk on `validation` stays.
    """
    X, y = _data(X, y)
    validate.instance(network, "network", TwoLayer)
    return _fit_head(network, network._inputs(X), y, validation, ridges, "X and network")


def _fit_head(
    network: TwoLayer,
    X: Tensor,
    y: Tensor,
    validation: Sample,
    ridges: Sequence[float],
    names: str,
) -> TwoLayer:
    """`fit_head` for X and y that were checked; `names` are to blame for features that overflow."""
    validate.instance(validation, "validation", Sample)
    held_out = network._inputs(validation.X, "validation.X")
    validate.size((len(X) + len(held_out)) * len(network.b), "X and width")
    grid = validate.as_tensor(ridges, "ridges", 1)
    features = network._features(X)
    if not torch.isfinite(features.square().sum()):
        raise ValueError(f"{names} must be smaller: the squares of the features overflow")
    heads = linalg.feature_ridge(features, y, grid / 2)
    linear = network.alpha + held_out @ network.beta
    best = int(validation.risk(linear[:, None] + network._features(held_out) @ heads).argmin())
    return replace(network, a=heads[:, best], ridge=grid[best].item())


def fixed_features(
    X: Array,
    y: Array,
    validation: Sample,
    rng: np.random.Generator,
    *,
    width: int = 1000,
    ridges: Sequence[float] = RIDGES,
) -> TwoLayer:
    r"""Random features: $w_j \sim N(0, I/d)$ and $b_j \sim N(0, 1)$ stay as drawn, only the head is
    fitted. Arguments as in `algorithm1`.
    """
    X, y = _data(X, y)
    d, width = X.shape[1], validate.integer(width, "width")
    validate.size(width * d, "width")
    rng = validate.generator(rng, "rng")
    W = torch.as_tensor(rng.standard_normal((width, d)) / math.sqrt(d)).to(X)
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    zero = torch.zeros_like(X[0])
    network = TwoLayer(W, b, torch.zeros_like(b), zero[0], zero, 0.0)
    return _fit_head(network, X, y, validation, ridges, "X")


def algorithm1(
    X: Array,
    y: Array,
    validation: Sample,
    rng: np.random.Generator,
    *,
    width: int = 500,
    learning_rate: float | None = None,
    ridges: Sequence[float] = RIDGES,
) -> TwoLayer:
    r"""Algorithm 1 of Damian, Lee and Soltanolkotabi (2022), line by line.

    Parameters
    ----------
    X, y
        (n, d) inputs and (n,) labels.
    validation
        What chooses $\lambda$.
    rng
        Generator of the first weights and of the biases.
    width
        m, even.
    learning_rate
        $\eta_1$; $\sqrt d/2$ unless given.
    ridges
        The $\lambda$ to choose from.
    """
    X, y = _data(X, y)
    d = X.shape[1]
    eta = (
        math.sqrt(d) / 2
        if learning_rate is None
        else validate.real(learning_rate, "learning_rate", above=0)
    )
    a, W = (part.to(X) for part in initialise(width, d, rng))
    alpha, beta, residual = _preprocess(X, y)
    W = _first_step(a, W, X, residual, eta, 1 / eta)
    names = "X, y and learning_rate"
    if not all(map(validate.is_finite, (alpha, beta, residual, W))):
        raise ValueError(f"{names} must be smaller: the first step overflows")
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    network = TwoLayer(W, b, a, alpha, beta, 0.0)
    return _fit_head(network, X, residual, validation, ridges, names)


def alignment(W: Array, U: Array) -> float:
    r"""$\|WU\|_F^2/\|W\|_F^2$, the fraction of the squared weights that lies in the span of the
    orthonormal columns of U.
    """
    W = validate.as_tensor(W, "W", 2)
    U = _orthonormal(U).to(W)
    if W.shape[1] != len(U):
        raise ValueError(f"W must have as many columns as U has rows, {len(U)}, got {W.shape[1]}")
    share = ((W @ U).square().sum() / W.square().sum()).item()
    if not math.isfinite(share):
        raise ValueError("W must not be zero, nor so large that its square overflows")
    return share


def fraction_learned(predictions: Array, test: Sample, component: Array) -> float:
    r"""The fraction of a component that the predictions contain, $\mathbb{E}[\hat
    ff_k]/\mathbb{E}[f_k^2]$: 1 if it is learned, 0 if it is missing.
    """
    validate.instance(test, "test", Sample)
    component = validate.as_tensor(component, "component", 1).to(test.y)
    predictions = validate.as_tensor(predictions, "predictions", 1).to(component)
    validate.same_length(component, "component", test.y, "test.y")
    validate.same_length(predictions, "predictions", test.y, "test.y")
    size = test.weights @ component.square()
    if not (size > 0 and torch.isfinite(size)):
        raise ValueError("component must not be zero at all points of test, nor overflow squared")
    return (test.mean(predictions * component) / size).item()
