r"""Chapter 3: what a network becomes as its layers grow wide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, jvp, vmap

from featlearn import activations, kernels, recursion, validate
from featlearn.networks import Network, Parameters, _parameters
from featlearn.validate import Array

MOST_LAYERS, LARGEST_SCALE = 10**4, 1e150


@dataclass(frozen=True)
class WideKernel(kernels.KernelFunction):
    r"""The network whose kernel at infinite width is meant; `NNGP` and `featlearn.ntk.NTK` are its
    kernels.

    Parameters
    ----------
    depth
        The number of layers $L$, from 1 to $10^4$; a network with $L - 1$ hidden layers.
    activation
        "relu", "erf", "tanh" or a function of tensors, $\varphi$.
    sigma_w, sigma_b
        Scales of weights and biases; tensors without axes, to differentiate the kernel in them.
    """

    depth: int = 2
    activation: str | Callable[[Tensor], Tensor] = "relu"
    sigma_w: float | Tensor = 1.0
    sigma_b: float | Tensor = 0.0

    def __post_init__(self) -> None:
        validate.integer(self.depth, "depth", at_most=MOST_LAYERS)
        object.__setattr__(self, "activation", activations.get(self.activation))
        sigma_w = validate.parameter(self.sigma_w, "sigma_w", above=0)
        sigma_b = validate.parameter(self.sigma_b, "sigma_b", at_least=0)
        for name, value in (("sigma_w", sigma_w), ("sigma_b", sigma_b)):
            if isinstance(value, float) and value > LARGEST_SCALE:
                raise ValueError(f"{name} must be at most {LARGEST_SCALE:g}, got {value!r}")
            object.__setattr__(self, name, value)

    @property
    def recursion(self) -> recursion.Recursion:
        """The recursion with these parameters."""
        phi = activations.get(self.activation)
        return recursion.Recursion(self.depth, phi, self.sigma_w, self.sigma_b)


class NNGP(WideKernel):
    r"""$\Sigma^L$, the covariance of an infinitely wide network of $L$ layers at initialisation
    (S1, Theorem 4).

    $\Sigma^1(x, x') = \frac{\sigma_w^2}d\langle x, x'\rangle + \sigma_b^2$ and $\Sigma^l(x, x') =
    \sigma_w^2\,\mathbb{E}[\varphi(z)\varphi(z')] + \sigma_b^2$ over a Gaussian pair $(z, z')$ with
    covariance $\Sigma^{l-1}$. A kernel callable; parameters as in `WideKernel`. See
    `featlearn.recursion` for how it is computed.
    """

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel; for one set of points it is exactly symmetric."""
        return recursion.kernels(self.recursion, X, Y, same, [recursion.SIGMA])[0]


def linearise(
    network: Callable[[Parameters, Tensor], Tensor], theta0: Parameters
) -> Callable[[Parameters, Tensor], Tensor]:
    r"""$f^{\mathrm{lin}}(x, \theta) = f(x, \theta_0) + \nabla_\theta f(x, \theta_0)\cdot(\theta -
    \theta_0)$, a function of $(\theta, X)$ like the network.

    One forward pass with directional derivatives (`torch.func.jvp`); no gradient is ever stored.
    """
    validate.function(network, "network")
    theta0 = _parameters(theta0, "theta0")

    def f_lin(theta: Parameters, X: Tensor) -> Tensor:
        shapes = [{name: value.shape for name, value in at.items()} for at in (theta, theta0)]
        if shapes[0] != shapes[1]:
            raise ValueError("theta and theta0 must hold tensors of the same names and shapes")
        shift = {name: theta[name] - theta0[name] for name in theta0}
        value, slope = jvp(lambda at: network(at, X), (theta0,), (shift,))[:2]
        return value + slope

    return f_lin


def tangent_features(network: Network, theta: Parameters, X: Array) -> Tensor:
    r"""$\phi(x) = \nabla_\theta f(x, \theta)$ for each row of X, as an (n, P) matrix, $P$ the
    number of parameters.

    For one network (no axis of members) with one output.
    """
    X = validate.as_tensor(X, "X", 2)
    shape = validate.function(network, "network")(_parameters(theta), X[:1]).shape
    if shape != (1,):
        raise ValueError(
            f"network must be one network with one output, but f(x) has shape {tuple(shape)}"
        )
    gradient = vmap(grad(lambda at, x: network(at, x[None])[0]), in_dims=(None, 0))(theta, X)
    return torch.cat([part.flatten(1) for part in gradient.values()], dim=1)
