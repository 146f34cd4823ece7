r"""Chapter 3: what a network becomes as its layers grow wide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, jvp, vmap

from featlearn import activations, kernels, validate
from featlearn.networks import Network, Parameters


@dataclass(frozen=True)
class NNGP(kernels.KernelFunction):
    r"""$\Sigma^L$, the covariance of an infinitely wide network of $L$ layers at initialisation (S1, Theorem 4).

    $\Sigma^1(x, x') = \frac{\sigma_w^2}d\langle x, x'\rangle + \sigma_b^2$ and
    $\Sigma^l(x, x') = \sigma_w^2\,\mathbb{E}[\varphi(z)\varphi(z')] + \sigma_b^2$ over a Gaussian pair $(z, z')$ with covariance $\Sigma^{l-1}$.
    A kernel callable.

    Parameters
    ----------
    depth
        The number of layers $L \ge 1$; a network with $L - 1$ hidden layers.
    activation
        "relu", "erf", "tanh" or a function of tensors, $\varphi$.
    sigma_w, sigma_b
        Scales of weights and biases.
    """

    depth: int = 2
    activation: str | Callable[[Tensor], Tensor] = "relu"
    sigma_w: float = 1.0
    sigma_b: float = 0.0

    def __post_init__(self) -> None:
        validate.integer(self.depth, "depth")
        object.__setattr__(self, "activation", activations.get(self.activation))
        object.__setattr__(self, "sigma_w", validate.real(self.sigma_w, "sigma_w", above=0))
        object.__setattr__(self, "sigma_b", validate.real(self.sigma_b, "sigma_b", at_least=0))

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel; for one set of points it is exactly symmetric."""

        def layer(expectation: Tensor) -> Tensor:
            return self.sigma_w**2 * expectation + self.sigma_b**2

        d = X.shape[1]
        q_x, q_y = layer(X.square().sum(dim=1) / d), layer(Y.square().sum(dim=1) / d)
        q_xy = layer(X @ Y.T / d)
        for _ in range(self.depth - 1):
            q_xy = layer(self.activation.dual(q_x[:, None], q_xy, q_y))
            q_x = layer(self.activation.second_moment(q_x))
            q_y = q_x if same else layer(self.activation.second_moment(q_y))
        return (q_xy + q_xy.T) / 2 if same else q_xy


def linearise(
    network: Callable[[Parameters, Tensor], Tensor], theta0: Parameters
) -> Callable[[Parameters, Tensor], Tensor]:
    r"""$f^{\mathrm{lin}}(x, \theta) = f(x, \theta_0) + \nabla_\theta f(x, \theta_0)\cdot(\theta - \theta_0)$, a function of $(\theta, X)$ like the network.

    One forward pass with directional derivatives (`torch.func.jvp`); no gradient is ever stored.
    """

    def f_lin(theta: Parameters, X: Tensor) -> Tensor:
        shift = {name: theta[name] - theta0[name] for name in theta0}
        value, slope = jvp(lambda at: network(at, X), (theta0,), (shift,))
        return value + slope

    return f_lin


def tangent_features(network: Network, theta: Parameters, X: Any) -> Tensor:
    r"""$\phi(x) = \nabla_\theta f(x, \theta)$ for each row of X, as an (n, P) matrix, $P$ the number of parameters.

    For one network (no axis of members) with one output.
    """
    X = validate.as_tensor(X, "X", 2)
    shape = network(theta, X[:1]).shape
    if shape != (1,):
        raise ValueError(f"network must be one network with one output, but f(x) has shape {tuple(shape)}")
    gradient = vmap(grad(lambda at, x: network(at, x[None])[0]), in_dims=(None, 0))(theta, X)
    return torch.cat([part.flatten(1) for part in gradient.values()], dim=1)
