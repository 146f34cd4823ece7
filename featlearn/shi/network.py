r"""The two-layer network of Shi, Wei and Liang (2022), its two gradient steps and its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from featlearn import validate
from featlearn.networks import _Adam
from featlearn.shi.data import Patterns, Sample, _labels
from featlearn.validate import Array

ACTIVATIONS = ("truncated", "relu", "erf")
MOST_STEPS = 10**8


def _ramp(z: Tensor, noise_std: float) -> Tensor:
    """E max(z + ξ, 0)."""
    if noise_std == 0:
        return z.clamp_min(0)
    u = z / noise_std
    return z * torch.special.ndtr(u) + noise_std * torch.exp(-u.square() / 2) / math.sqrt(
        2 * math.pi
    )


def _gate(z: Tensor, noise_std: float) -> Tensor:
    """P(z + ξ > 0)."""
    return (z > 0).to(z) if noise_std == 0 else torch.special.ndtr(z / noise_std)


def activation(z: Array, noise_std: float = 0.0, kind: str = "truncated") -> Tensor:
    r"""$\mathbb{E}_\xi\sigma(z+\xi)$ with $\xi\sim N(0,\sigma_\xi^2)$, `noise_std` being
    $\sigma_\xi$.

    "truncated" is $\sigma(z) = \min(1,\max(z,0))$, the paper's; "relu" is $\max(z,0)$; "erf" is
    $\mathrm{erf}(z/\sqrt2)$.
    """
    z, noise_std = validate.as_tensor(z, "z"), validate.real(noise_std, "noise_std", at_least=0)
    return _activation(z, noise_std, validate.one_of(kind, "kind", ACTIVATIONS))


def _activation(z: Tensor, noise_std: float, kind: str) -> Tensor:
    if kind == "erf":
        return torch.erf(z / math.sqrt(2 * (1 + noise_std**2)))
    if kind == "relu":
        return _ramp(z, noise_std)
    return z.clamp(0, 1) if noise_std == 0 else _ramp(z, noise_std) - _ramp(z - 1, noise_std)


def slope(z: Array, noise_std: float = 0.0, kind: str = "truncated") -> Tensor:
    r"""The derivative of `activation` in z.

    For the truncated ReLU the probability that $0 < z+\xi \le 1$.
    """
    z, noise_std = validate.as_tensor(z, "z"), validate.real(noise_std, "noise_std", at_least=0)
    return _slope(z, noise_std, validate.one_of(kind, "kind", ACTIVATIONS))


def _slope(z: Tensor, noise_std: float, kind: str) -> Tensor:
    if kind == "erf":
        variance = 1 + noise_std**2
        return torch.exp(-z.square() / (2 * variance)) * math.sqrt(2 / (math.pi * variance))
    return _gate(z, noise_std) if kind == "relu" else _gate(z, noise_std) - _gate(z - 1, noise_std)


@dataclass(frozen=True, eq=False)
class Net:
    r"""$g(x) = \sum_ia_i\,\mathbb{E}_\xi\sigma(\langle w_i,x\rangle+b_i+\xi)$ with W (units, d), b
    (units,), a (units,). (A `Network` does not average over noise.)
    """

    W: Tensor
    b: Tensor
    a: Tensor
    kind: str = field(default="truncated", kw_only=True)

    def __post_init__(self) -> None:
        W = validate.as_tensor(self.W, "W", 2, like=(self.b, self.a))
        validate.one_of(self.kind, "kind", ACTIVATIONS)
        object.__setattr__(self, "W", W)
        for name in ("b", "a"):
            value = validate.as_tensor(getattr(self, name), name, 1).to(W)
            validate.same_length(W, "W", value, name)
            object.__setattr__(self, name, value)

    def preactivation(self, X: Array) -> Tensor:
        r"""$\langle w_i,x\rangle+b_i$ for inputs of shape (n, d), shape (n, units)."""
        X = validate.as_tensor(X, "X", 2).to(self.W)
        validate.columns(X, "X", self.W.shape[1])
        return torch.addmm(self.b, X, self.W.T)

    def features(self, X: Array, noise_std: float = 0.0) -> Tensor:
        r"""(n, units) the outputs of the neurons."""
        noise_std = validate.real(noise_std, "noise_std", at_least=0)
        return _activation(self.preactivation(X), noise_std, self.kind)

    def __call__(self, X: Array, noise_std: float = 0.0) -> Tensor:
        """(n,) the outputs of the network."""
        return self.features(X, noise_std) @ self.a


def random_net(
    pairs: int,
    d: int,
    rng: np.random.Generator,
    *,
    sigma_w: float,
    sigma_b: float,
    sigma_a: float,
    kind: str = "truncated",
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> Net:
    r"""2m neurons on d inputs, Gaussian with these standard deviations, in antisymmetric pairs.

    $w_{m+i} = w_i$, $b_{m+i} = b_i$, $a_{m+i} = -a_i$, so $g = 0$.
    """
    m, d = validate.integer(pairs, "pairs"), validate.integer(d, "d")
    validate.size(2 * m * d, "pairs and d")
    validate.generator(rng, "rng")
    validate.one_of(kind, "kind", ACTIVATIONS)
    validate.one_of(dtype, "dtype", validate.PRECISIONS)
    device = validate.device(device)
    W = rng.standard_normal((m, d)) * validate.real(sigma_w, "sigma_w", at_least=0)
    b = rng.standard_normal(m) * validate.real(sigma_b, "sigma_b", at_least=0)
    a = rng.standard_normal(m) * validate.real(sigma_a, "sigma_a", at_least=0)
    parts = np.concatenate([W, W]), np.concatenate([b, b]), np.concatenate([a, -a])
    return Net(*(torch.as_tensor(part, dtype=dtype, device=device) for part in parts), kind=kind)


def initialise(
    pairs: int,
    model: Patterns,
    rng: np.random.Generator,
    *,
    kind: str = "truncated",
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> Net:
    r"""`random_net` with the paper's scales: $\sigma_w = 1/k$, $\sigma_b = 1/k^2$, $\sigma_a =
    \tilde\sigma^2/(k^2\lvert\gamma\rvert)$.

    Where $\gamma = 0$ (no structure) its place is taken by 1/4, that of the standard example.
    """
    validate.instance(model, "model", Patterns)
    k, gamma = model.k, abs(model.gamma) if abs(model.gamma) > 1e-9 else 0.25
    scales = {"sigma_w": 1 / k, "sigma_b": 1 / k**2, "sigma_a": model.sigma**2 / (gamma * k**2)}
    return random_net(pairs, model.d, rng, kind=kind, dtype=dtype, device=device, **scales)


def _data(net: Net, X: Array, y: Array) -> tuple[Tensor, Tensor]:
    validate.instance(net, "net", Net)
    X, y = validate.as_tensor(X, "X", 2).to(net.W), _labels(y).to(net.W)
    validate.columns(X, "X", net.W.shape[1])
    validate.same_length(X, "X", y, "y")
    return X, y


def gradient(net: Net, X: Array, y: Array, *, noise_std: float = 0.0) -> Net:
    r"""The gradient of the mean hinge loss on a batch, arranged like the network.

    $\partial_{w_i} = -a_i\,\mathrm{mean}[\,\ell_-\,y\,x\,\sigma'(z_i)]$, $\partial_{b_i} =
    -a_i\,\mathrm{mean}[\,\ell_-\,y\,\sigma'(z_i)]$ and $\partial_{a_i} =
    -\mathrm{mean}[\,\ell_-\,y\,\sigma(z_i)]$ with $\ell_- = \mathbb{1}[yg(x) < 1]$.
    """
    X, y = _data(net, X, y)
    noise_std = validate.real(noise_std, "noise_std", at_least=0)
    return Net(*_gradient(net.W, net.b, net.a, X, y, noise_std, net.kind), kind=net.kind)


def _gradient(
    W: Tensor, b: Tensor, a: Tensor, X: Tensor, y: Tensor, noise_std: float, kind: str
) -> tuple[Tensor, Tensor, Tensor]:
    z = torch.addmm(b, X, W.T)
    features = _activation(z, noise_std, kind)
    weight = _weight(features @ a, y)
    gates = _slope(z, noise_std, kind) * weight[:, None]
    return -a[:, None] * (gates.T @ X), -a * gates.sum(0), -(features.T @ weight)


def _weight(output: Tensor, y: Tensor) -> Tensor:
    r"""$\ell_-y/n$, minus the derivative of the mean loss in the output, for each sample."""
    return y * (y * output < 1) / len(y)


def _bounded(parts: Sequence[Tensor], learning_rate: float) -> Sequence[Tensor]:
    """The parameters after a step, if they are finite."""
    if not all(map(validate.is_finite, parts)):
        raise ValueError(f"learning_rate must be smaller, got {learning_rate!r}: training diverges")
    return parts


def two_steps(
    net: Net,
    first: Sample,
    second: Sample,
    *,
    noise_std: float,
    learning_rate: float,
) -> tuple[Net, Net, Net]:
    r"""The networks before, after step one and after step two, each step on a batch of its own.

    A step replaces the weights by $-\eta\nabla_WL$: its weight decay forgets the old ones. The
    first has $\eta = 1/\|a\|^2$, so small that $g$ stays near zero, the second the learning rate
    `learning_rate`. Biases and head stay; $a_i$ gives each neuron a learning rate of its own. The
    last network has the head zero, to be trained.
    """
    validate.instance(net, "net", Net)
    validate.instance(first, "first", Sample)
    validate.instance(second, "second", Sample)
    if not net.a.any():
        raise ValueError(
            "net must have a head that is not zero: it sets the size of each neuron's step"
        )
    eta = validate.real(learning_rate, "learning_rate", above=0)
    small = 1 / net.a.square().sum()
    W = -small * gradient(net, first.X, first.y, noise_std=noise_std).W
    one = replace(net, W=_bounded([W], learning_rate)[0])
    W = -eta * gradient(one, second.X, second.y, noise_std=noise_std).W
    return net, one, replace(one, W=_bounded([W], learning_rate)[0], a=torch.zeros_like(net.a))


@torch.no_grad()
def _adam(
    gradients: Callable[..., Sequence[Tensor]],
    start: Sequence[Tensor],
    record: Collection[int],
    learning_rate: float,
) -> list[list[Tensor]]:
    """Adam from `start` with the `gradients` of the parameters.

    Copies of the parameters at the recorded steps.
    """
    record = sorted(set(validate.integers(record, "record", at_least=0, at_most=MOST_STEPS)))
    eta = validate.real(learning_rate, "learning_rate", above=0)
    if eta > torch.finfo(start[0].dtype).max / 100:
        raise ValueError(f"learning_rate must be smaller, got {eta!r}: a step would overflow")
    parameters = [p.detach().clone() for p in start]
    optimisers = [_Adam(p) for p in parameters]
    kept: list[list[Tensor]] = []
    for t in range(record[-1] + 1):
        if t in record:
            kept.append([p.clone() for p in parameters])
            _bounded(kept[-1], learning_rate)
        if t < record[-1]:
            for optimiser, change in zip(optimisers, gradients(*parameters), strict=True):
                optimiser.step(change, eta)
    return kept


def train_head(
    net: Net,
    X: Array,
    y: Array,
    *,
    record: Collection[int],
    learning_rate: float = 0.1,
) -> list[Net]:
    """Adam on the head alone, all data in every step.

    The network at each recorded step, in increasing order.
    """
    X, y = _data(net, X, y)
    features = _activation(torch.addmm(net.b, X, net.W.T), 0.0, net.kind)

    def gradients(a: Tensor) -> list[Tensor]:
        return [-(features.T @ _weight(features @ a, y))]

    return [replace(net, a=a) for (a,) in _adam(gradients, [net.a], record, learning_rate)]


def train_all(
    net: Net,
    X: Array,
    y: Array,
    *,
    record: Collection[int],
    learning_rate: float,
    batch: int,
    rng: np.random.Generator,
) -> list[Net]:
    """Adam on W, b and a together, on batches drawn with replacement.

    The network at each recorded step, in increasing order.
    """
    X, y = _data(net, X, y)
    batch, rng = validate.integer(batch, "batch"), validate.generator(rng, "rng")
    validate.size(batch * (len(net.a) + X.shape[1]), "batch")

    def gradients(W: Tensor, b: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.as_tensor(rng.integers(len(y), size=batch), device=X.device)
        return _gradient(W, b, a, X[rows], y[rows], 0.0, net.kind)

    kept = _adam(gradients, [net.W, net.b, net.a], record, learning_rate)
    return [Net(*parameters, kind=net.kind) for parameters in kept]


@dataclass(frozen=True, eq=False)
class Tangent:
    r"""What a small `change` of `net` adds to its output, to first order.

    $\sum_i\delta a_i\sigma(z_i)+a_i\sigma'(z_i)(\langle\delta w_i,x\rangle+\delta b_i)$.
    """

    net: Net
    change: Net

    def __post_init__(self) -> None:
        validate.instance(self.net, "net", Net)
        validate.instance(self.change, "change", Net)
        if self.net.W.shape != self.change.W.shape:
            shapes = f"{tuple(self.net.W.shape)} and {tuple(self.change.W.shape)}"
            raise ValueError(f"net and change must have weights of one shape, got {shapes}")

    def __call__(self, X: Array) -> Tensor:
        """(n,) the outputs for inputs of shape (n, d)."""
        z = self.net.preactivation(X)
        moved = _slope(z, 0.0, self.net.kind) * self.change.preactivation(X)
        return moved @ self.net.a + _activation(z, 0.0, self.net.kind) @ self.change.a


def train_tangent(
    net: Net,
    X: Array,
    y: Array,
    *,
    record: Collection[int],
    learning_rate: float,
) -> list[Tangent]:
    """Adam on the linearised network, all data in every step.

    The tangent kernel of `net`; the model at each recorded step, in increasing order.
    """
    X, y = _data(net, X, y)
    z = torch.addmm(net.b, X, net.W.T)
    features, gates = _activation(z, 0.0, net.kind), _slope(z, 0.0, net.kind) * net.a

    def gradients(W: Tensor, b: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = (gates * torch.addmm(b, X, W.T)).sum(1) + features @ a
        weight = _weight(output, y)
        return -(gates.T @ (weight[:, None] * X)), -(gates.T @ weight), -(features.T @ weight)

    start = [torch.zeros_like(p) for p in (net.W, net.b, net.a)]
    kept = _adam(gradients, start, record, learning_rate)
    return [Tangent(net, Net(*parameters, kind=net.kind)) for parameters in kept]


def accuracy(outputs: Array, y: Array) -> float:
    """The share of outputs with the sign of the label; an output of zero counts one half."""
    outputs, y = validate.as_tensor(outputs, "outputs", 1), _labels(y)
    validate.same_length(outputs, "outputs", y, "y")
    margin = outputs * y.to(outputs)
    return ((margin > 0).double() + 0.5 * (margin == 0).double()).mean().item()


def cosines(W: Array, v: Array) -> Tensor:
    """The cosines between the rows of W (units, d) and v (d,), or between all pairs of rows of W
    and of v (r, d).
    """
    W, v = validate.as_tensor(W, "W", 2, like=(v,)), validate.as_tensor(v, "v", (1, 2))
    v = v.to(W)
    validate.columns(v, "v", W.shape[1])
    lengths, length = W.norm(dim=1, keepdim=True), v.norm(dim=-1, keepdim=True)
    for each in (lengths, length):
        if not (each.isfinite() & (each > 0)).all():
            raise ValueError("W and v must not hold a zero vector, nor one whose length overflows")
    if v.ndim == 1:
        return (W / lengths) @ (v / length)
    with validate.pairs(W, v, "W and v"):
        return (W / lengths) @ (v / length).T
