r"""Conversions between the scalings of the five documents and of the book.

The same statement looks different under another loss, another parametrisation or another set of
polynomials. Each function here carries one quantity from one convention to another, so that both
sides describe the same function, the same trajectory or the same minimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

from featlearn import activations, networks, validate
from featlearn.validate import Array

LOSSES = ("half-sum", "sum", "mean", "half-mean")
HERMITE = ("h", "He", "H", "mean")


def hermite_coefficients(values: Array, source: str, target: str) -> Tensor:
    r"""The coefficients of one function in another convention; degree $k = 0, 1, \dots$ runs along
    the first axis.

    With $a_k = \mathbb{E}[f(z)h_k(z)]$, $z \sim N(0, 1)$, the kinds are

    - "h": $a_k$, of $f = \sum_ka_kh_k(z)$, the normalised polynomials;
    - "He": $a_k/\sqrt{k!}$, of $f = \sum_k\alpha_k\mathrm{He}_k(z)$, the probabilists'
      polynomials;
    - "H": $a_k/\sqrt{2^kk!}$, of $f = \sum_k\beta_kH_k(z/\sqrt2)$, the physicists' polynomials;
    - "mean": $\sqrt{k!}\,a_k = \mathbb{E}[f(z)\mathrm{He}_k(z)]$, which is
      $\mathbb{E}[f^{(k)}(z)]$ for smooth $f$.
    """
    values = validate.as_tensor(values, "values")
    if values.ndim == 0:
        raise ValueError("values must have an axis for the degree, got a number")
    validate.one_of(source, "source", HERMITE)
    validate.one_of(target, "target", HERMITE)
    k = torch.arange(len(values), dtype=torch.float64, device=values.device)
    log = {
        "h": torch.zeros_like(k),
        "He": -torch.lgamma(k + 1) / 2,
        "H": -(torch.lgamma(k + 1) + k * math.log(2)) / 2,
        "mean": torch.lgamma(k + 1) / 2,
    }
    factor = torch.exp(log[target] - log[source]).reshape(-1, *[1] * (values.ndim - 1))
    converted = torch.where(values == 0, 0.0, values.double() * factor).to(values)
    if not validate.is_finite(converted):
        raise ValueError(
            f"values must have fewer degrees, got {len(values)}: {target!r} leaves {values.dtype}"
        )
    return converted


def _factor(loss: str, n: int, name: str) -> float:
    r"""The $s$ in loss $= s\cdot\frac12\sum_i(f(x_i)-y_i)^2$."""
    validate.one_of(loss, name, LOSSES)
    return {"half-sum": 1.0, "sum": 2.0, "mean": 2 / n, "half-mean": 1 / n}[loss]


def convert_learning_rate(learning_rate: float, n: int, source: str, target: str) -> float:
    r"""The learning rate $\eta' = \eta s/s'$ with which gradient descent on another loss takes the
    same path. Times of gradient flow convert alike.

    The losses are $s\cdot\frac12\sum_{i\le n}(f(x_i)-y_i)^2$ with $s = 1$ ("half-sum"), $2$
    ("sum"), $2/n$ ("mean") and $1/n$ ("half-mean").
    """
    eta, n = validate.real(learning_rate, "learning_rate", above=0), validate.integer(n, "n")
    return eta * _factor(source, n, "source") / _factor(target, n, "target")


def convert_ridge(ridge: float, n: int, source: str, target: str) -> float:
    r"""The $\lambda' = \lambda s'/s$ with which another loss plus $\frac{\lambda'}2\|a\|^2$ has the
    same minimiser; losses as in `convert_learning_rate`.

    Learning rates and penalties convert together: $\eta\lambda$ stays what it is, and so does every
    iterate of $a \leftarrow a-\eta(\nabla L+\lambda a)$.
    """
    ridge, n = validate.real(ridge, "ridge", at_least=0), validate.integer(n, "n")
    return ridge * _factor(target, n, "target") / _factor(source, n, "source")


def kernel_ridge(ridge: float, n: int, loss: str = "mean", *, half: bool = True) -> float:
    r"""The $\mu$ for which $F^\top(FF^\top+\mu I)^{-1}y$ minimises loss $+\frac\lambda2\|a\|^2$,
    with features F (n, m); losses as in `convert_learning_rate`.

    $\mu = \lambda/s$; without `half` the penalty is $\lambda\|a\|^2$ and $\mu = 2\lambda/s$.
    Algorithm 1 has the loss "mean" and the half, so $\mu = n\lambda/2$.
    """
    ridge, n = validate.real(ridge, "ridge", at_least=0), validate.integer(n, "n")
    return (1 if validate.flag(half, "half") else 2) * ridge / _factor(loss, n, "loss")


def unscaled_features(theta: Array, learning_rate: float) -> tuple[Tensor, float]:
    r"""$\theta/\sqrt p$ and $\eta/p$: the model $\theta^\top\phi(x)$, $K = \phi\phi^\top$, that
    follows $\theta^\top\phi(x)/\sqrt p$, $K = \phi\phi^\top/p$.

    p is the length of the last axis of `theta`.
    """
    theta = validate.as_tensor(theta, "theta")
    eta = validate.real(learning_rate, "learning_rate", above=0)
    if theta.ndim == 0:
        raise ValueError("theta must have an axis of features, got a number")
    p = theta.shape[-1]
    return theta / math.sqrt(p), eta / p


def _ntk_network(network: networks.Network) -> networks.Network:
    if not isinstance(network, networks.Network) or network.parametrisation != "ntk":
        raise ValueError(f"network must be a Network in NTK parametrisation, got {network!r}")
    return network


def to_standard(
    network: networks.Network, theta: networks.Parameters
) -> tuple[networks.Network, networks.Parameters]:
    r"""The same function in standard parametrisation: $W^l \to \frac{\sigma_w}{\sqrt{n_{l-1}}}W^l$
    and $b^l \to \sigma_bb^l$.

    Entries $N(0, 1)$ become $N(0, \sigma_w^2/n_{l-1})$. With two layers and $\sigma_w = 1$ the
    first has $w_j \sim N(0, I/d)$, as in S0 and S2.
    """
    network = _ntk_network(network)
    factors = {
        name: math.sqrt(rate) for name, rate in standard_learning_rates(network, 1.0).items()
    }
    if set(validate.instance(theta, "theta", Mapping)) != set(factors):
        raise ValueError(
            f"theta must have the entries {sorted(factors)}, got {sorted(map(str, theta))}"
        )
    for layer in range(1, network.depth + 1):
        rows, columns = network.widths[layer], network.widths[layer - 1]
        for name, shape in ((f"W{layer}", (rows, columns)), (f"b{layer}", (rows,))):
            if name in theta:
                value = validate.as_tensor(theta[name], f"theta[{name!r}]")
                if value.dtype != theta["W1"].dtype or value.device != theta["W1"].device:
                    raise ValueError(
                        f"theta[{name!r}] must have the dtype and device of theta['W1'], got "
                        f"{value.dtype} on {value.device}"
                    )
                if value.shape[-len(shape) :] != shape:
                    raise ValueError(
                        f"theta[{name!r}] must end in shape {shape}, got {tuple(value.shape)}"
                    )
    standard = networks.Network(
        network.widths, network.activation, network.sigma_w, network.sigma_b, "standard"
    )
    return standard, {name: factors[name] * value for name, value in theta.items()}


def standard_learning_rates(network: networks.Network, learning_rate: float) -> dict[str, float]:
    r"""The learning rate of each parameter in standard parametrisation that makes gradient descent
    equal to one step $\eta$ in NTK parametrisation.

    $\eta\,\sigma_w^2/n_{l-1}$ for $W^l$ and $\eta\,\sigma_b^2$ for $b^l$.
    """
    network, eta = _ntk_network(network), validate.real(learning_rate, "learning_rate", above=0)
    rates = {}
    for layer in range(1, network.depth + 1):
        weight, bias = network.scales(layer)[0]
        rates[f"W{layer}"] = eta * weight**2
        if network.sigma_b > 0:
            rates[f"b{layer}"] = eta * bias**2
    return rates


def two_layer_kernels(
    a: Array,
    W: Array,
    X: Array,
    *,
    outer: float = 1.0,
    inner: float = 1.0,
    activation: str | Callable[[Tensor], Tensor] = "relu",
) -> tuple[Tensor, Tensor]:
    r"""$K_1$ and $K_2$, (n, n), of $f(x) = c\sum_ja_j\,\sigma(s\,w_j\cdot x)$: the kernels of the
    gradients in W and in a.

    $K_1 = c^2s^2\sum_ja_j^2\sigma'(s\,w_j\cdot x)\sigma'(s\,w_j\cdot x')\,x\cdot x'$ and $K_2 =
    c^2\sum_j\sigma(s\,w_j\cdot x)\sigma(s\,w_j\cdot x')$. The sums of S3 have $c = s = 1$; its NTK
    parametrisation has $c = 1/\sqrt m$, and then both carry $1/m$.

    Parameters
    ----------
    a, W
        (m,) and (m, d).
    X
        (n, d).
    outer, inner
        $c$ and $s$.
    activation
        $\sigma$.
    """
    X = validate.as_tensor(X, "X", 2)
    a, W = validate.as_tensor(a, "a", 1).to(X), validate.as_tensor(W, "W", 2).to(X)
    validate.same_length(a, "a", W, "W")
    validate.columns(W, "W", X.shape[1])
    validate.size(len(X) * (len(X) + len(W)), "X and W")
    c, s = validate.real(outer, "outer", above=0), validate.real(inner, "inner", above=0)
    if not math.isfinite(c * c * s * s):
        raise ValueError(f"outer and inner must be smaller, got {c:g} and {s:g}: squares overflow")
    sigma, preactivation = activations.get(activation), s * X @ W.T
    feature, slope = sigma(preactivation), a * sigma.derivative(preactivation)
    return (c * s) ** 2 * (slope @ slope.T) * (X @ X.T), c**2 * feature @ feature.T


def to_sphere(X: Array) -> Tensor:
    r"""$\sqrt d\,x/\|x\|$ for each row.

    Gaussian points, moved to the sphere of radius $\sqrt d$ that they are near.
    """
    X = validate.as_tensor(X, "X", 2)
    length = X.norm(dim=1, keepdim=True)
    if not (length.isfinite() & (length > 0)).all():
        raise ValueError("X must not have a row of zeros, nor one whose length overflows")
    return math.sqrt(X.shape[1]) * X / length


def unit_bandwidth(bandwidth: float, d: int) -> float:
    r"""$\sigma/\sqrt d$: the bandwidth on the unit sphere of the kernel that has $\sigma$ on the
    sphere of radius $\sqrt d$.

    With $t = \langle x, x'\rangle/d$ the Gaussian kernel is $e^{-(1-t)d/\sigma^2}$, a function of t
    that does not depend on d if $\sigma$ grows like $\sqrt d$.
    """
    return validate.real(bandwidth, "bandwidth", above=0) / math.sqrt(validate.integer(d, "d"))


def to_signs(phi: Array) -> Tensor:
    r"""$2\tilde\phi-1$: indicators in {0, 1} as signs.

    A count of ones among k of them is $c = \frac12(k+\sum_js_j)$.
    """
    phi = validate.as_tensor(phi, "phi")
    if not ((phi == 0) | (phi == 1)).all():
        raise ValueError("phi must consist of zeros and ones")
    return 2 * phi - 1


def flip_labels(P: Collection[int], k: int) -> frozenset[int]:
    r"""The counts with label $+1$ after $y \to -y$: the complement of P in $\{0, \dots, k\}$.

    A P that contains 0 is not a subset of $[k] = \{1, \dots, k\}$, its complement is: S4's $P
    \subseteq [k]$ has every label function up to its sign.
    """
    k = validate.integer(k, "k", at_most=10**6)
    counts = set(validate.integers(P, "P", at_least=0))
    if max(counts) > k:
        raise ValueError(f"P must be a subset of 0 to {k}, got {sorted(counts)}")
    return frozenset(range(k + 1)) - counts
