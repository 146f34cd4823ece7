r"""Algorithm 1 of Damian, Lee and Soltanolkotabi (2022).

Preprocess, one large step on the first layer, new biases, ridge regression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate
from featlearn.damian.target import Sample

RIDGES = tuple(10.0 ** np.arange(-7, 4.1, 0.5))


BLOCK = 2**16


def initialise(
    width: int, d: int, rng: np.random.Generator, device: str | torch.device = "cpu"
) -> tuple[Tensor, Tensor]:
    r"""$a$ (m,) and $W$ (m, d).

    Signs $a_j = \pm1$, $w_j \sim N(0, I/d)$, and $a_{j+m/2} = -a_j$, $w_{j+m/2} = w_j$, so that
    $f_{\theta_0} = 0$.
    """
    if validate.integer(width, "width") % 2:
        raise ValueError(f"width must be even, got {width}")
    validate.generator(rng, "rng")
    a = torch.as_tensor(rng.choice([-1.0, 1.0], width // 2), device=device)
    W = torch.as_tensor(
        rng.standard_normal((width // 2, validate.integer(d, "d"))) / math.sqrt(d), device=device
    )
    return torch.cat([a, -a]), torch.cat([W, W])


def _data(X: Any, y: Any, *others: Any) -> tuple[Tensor, Tensor]:
    X = validate.as_tensor(X, "X", 2, like=(y, *others))
    y = validate.as_tensor(y, "y", 1).to(X)
    validate.same_length(X, "X", y, "y")
    return X, y


def preprocess(X: Any, y: Any) -> tuple[Tensor, Tensor, Tensor]:
    r"""$\alpha = \frac1n\sum_iy_i$, $\beta = \frac1n\sum_iy_ix_i$ and the labels
    $y_i-\alpha-\beta\cdot x_i$.
    """
    X, y = _data(X, y)
    alpha, beta = y.mean(), X.T @ y / len(y)
    return alpha, beta, y - alpha - X @ beta


def first_step(
    a: Any,
    W: Any,
    X: Any,
    y: Any,
    learning_rate: float,
    weight_decay: float | None = None,
    b: Any = 0.0,
) -> Tensor:
    r"""$W^{(1)} = W-\eta_1[\nabla_W\mathcal L+\lambda_1W]$ at a network whose output is zero, shape
    (m, d).

    $\mathcal L = \frac1n\sum_i(f(x_i)-y_i)^2$ and $f = 0$, so $\nabla_{w_j}\mathcal L =
    -\frac{2a_j}n\sum_iy_i\,x_i\,\mathbf 1\{w_j\cdot x_i+b_j \ge 0\}$.

    Parameters
    ----------
    a, W
        (m,) and (m, d), the start.
    X, y
        (n, d) and (n,), inputs and preprocessed labels.
    learning_rate
        $\eta_1$.
    weight_decay
        $\lambda_1$. By default $1/\eta_1$: the start is forgotten and $W^{(1)} =
        -\eta_1\nabla_W\mathcal L$.
    b
        Biases, a number or (m,). Algorithm 1 has none here.
    """
    X, y = _data(X, y, a, W)
    a, W, b = (
        validate.as_tensor(a, "a", 1).to(X),
        validate.as_tensor(W, "W", 2).to(X),
        validate.as_tensor(b, "b").to(X),
    )
    validate.same_length(a, "a", W, "W")
    if W.shape[1] != X.shape[1] or b.shape not in ((), a.shape):
        raise ValueError(
            f"W and b must go with {X.shape[1]} columns of X, got {tuple(W.shape)} and {tuple(b.shape)}"
        )
    eta = validate.real(learning_rate, "learning_rate", above=0)
    decay = (
        1 / eta if weight_decay is None else validate.real(weight_decay, "weight_decay", at_least=0)
    )
    gradient = torch.zeros_like(W)
    for rows in range(0, len(y), BLOCK):
        X_rows, y_rows = X[rows : rows + BLOCK], y[rows : rows + BLOCK]
        gradient += ((X_rows @ W.T + b >= 0) * y_rows[:, None]).T @ X_rows
    return (1 - eta * decay) * W + eta * (2 / len(y)) * a[:, None] * gradient


@dataclass(frozen=True, eq=False)
class TwoLayer:
    r"""$x \mapsto \alpha+\beta\cdot x+a^\top\mathrm{ReLU}(Wx+b)$, and the $\lambda$ its head was
    fitted with.
    """

    W: Tensor
    b: Tensor
    a: Tensor
    alpha: Tensor
    beta: Tensor
    ridge: float

    def features(self, X: Any) -> Tensor:
        r"""$\mathrm{ReLU}(Wx+b)$, shape (n, m)."""
        X = validate.as_tensor(X, "X", 2).to(self.W)
        if X.shape[1] != self.W.shape[1]:
            raise ValueError(f"X must have {self.W.shape[1]} columns, got {X.shape[1]}")
        return torch.relu(X @ self.W.T + self.b)

    def __call__(self, X: Any) -> Tensor:
        """The outputs at the rows of X, shape (n,)."""
        hidden = self.features(X)
        return self.alpha + validate.as_tensor(X, "X", 2).to(self.W) @ self.beta + hidden @ self.a


def fit_head(
    network: TwoLayer, X: Any, y: Any, validation: Sample, ridges: Sequence[float] = RIDGES
) -> TwoLayer:
    r"""The same first layer with a new head: ridge regression of y on the features, and $\alpha,
    \beta$ as they are.

    $a$ is the limit of $a \leftarrow a-\eta[\nabla_a\mathcal L+\lambda a]$. One eigendecomposition
    gives it for all `ridges` $\lambda$; the one with the least risk on `validation` stays.
    """
    X, y = _data(X, y)
    grid = validate.as_tensor(ridges, "ridges", 1)
    heads = linalg.feature_ridge(network.features(X), y, grid / 2)
    linear = network.alpha + validation.X.to(network.W) @ network.beta
    best = int(validation.risk(linear[:, None] + network.features(validation.X) @ heads).argmin())
    return replace(network, a=heads[:, best], ridge=grid[best].item())


def fixed_features(
    X: Any,
    y: Any,
    validation: Sample,
    rng: np.random.Generator,
    *,
    width: int = 1000,
    ridges: Sequence[float] = RIDGES,
) -> TwoLayer:
    r"""Random features: $w_j \sim N(0, I/d)$ and $b_j \sim N(0, 1)$ stay as drawn, only the head is
    fitted. Arguments as in `algorithm1`.
    """
    X = validate.as_tensor(X, "X", 2, like=(y,))
    d, width = X.shape[1], validate.integer(width, "width")
    W = torch.as_tensor(
        validate.generator(rng, "rng").standard_normal((width, d)) / math.sqrt(d)
    ).to(X)
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    zero = torch.zeros_like(X[0])
    return fit_head(
        TwoLayer(W, b, torch.zeros_like(b), zero[0], zero, math.nan), X, y, validation, ridges
    )


def algorithm1(
    X: Any,
    y: Any,
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
    alpha, beta, residual = preprocess(X, y)
    W = first_step(a, W, X, residual, eta)
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    return fit_head(TwoLayer(W, b, a, alpha, beta, math.nan), X, residual, validation, ridges)


def alignment(W: Any, U: Any) -> float:
    r"""$\|WU\|_F^2/\|W\|_F^2$, the fraction of the squared weights that lies in the span of the
    orthonormal columns of U.
    """
    W = validate.as_tensor(W, "W", 2)
    U = validate.as_tensor(U, "U", 2).to(W)
    if W.shape[1] != len(U):
        raise ValueError(f"W must have as many columns as U has rows, {len(U)}, got {W.shape[1]}")
    if not W.any():
        raise ValueError("W must not be zero")
    return ((W @ U).square().sum() / W.square().sum()).item()


def fraction_learned(predictions: Any, test: Sample, component: Any) -> float:
    r"""The fraction of a component that the predictions contain, $\mathbb{E}[\hat
    ff_k]/\mathbb{E}[f_k^2]$: 1 if it is learned, 0 if it is missing.
    """
    component = validate.as_tensor(component, "component", 1).to(test.y)
    return (
        test.mean(validate.as_tensor(predictions, "predictions", 1).to(component) * component)
        / test.mean(component.square())
    ).item()
