r"""Chapter 7: features that emerge from the structure of the input. Source: Shi, Wei and Liang (2022).

`Patterns` is the data model: hidden pattern indicators $\tilde\phi\in\{0,1\}^D$, a dictionary M, a label that depends on how many of the k relevant
patterns are present. `Net` is the two-layer network, `initialise` and `step` its training with the paper's scales, `two_steps` the two steps that
forget the initial weights. `components` are the components $T_j$ of a step along every dictionary element for the *population*, without sampling
noise; `step_bounds` what Lemmas 5 and 6 say about them. `good_network` is Lemma 4. `walsh` and `krawtchouk` serve Theorem 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.stats import binom
from sklearn.manifold import smacof
from torch import Tensor

from featlearn import validate

ACTIVATIONS = ("truncated", "relu", "erf")
LOSSES = ("hinge", "logistic", "square")


def _below(k: int, P: Collection[int]) -> frozenset[int]:
    """P as a set of counts in {0, …, k}, neither empty nor everything."""
    counts = frozenset(validate.integer(p, "P", at_least=0) for p in P)
    if not counts or max(counts) > k or len(counts) == k + 1:
        raise ValueError(f"P must hold some but not all of the counts 0 to {k}, got {sorted(counts)}")
    return counts


def odd(k: int) -> frozenset[int]:
    r"""The label set of the parity: all odd counts up to k."""
    return frozenset(range(1, validate.integer(k, "k") + 1, 2))


def uniform_counts(k: int) -> Tensor:
    """(k+1,) probabilities of each count when the k bits are independent and fair."""
    return torch.as_tensor(binom.pmf(np.arange(validate.integer(k, "k") + 1), k, 0.5))


def structured_counts(k: int, P: Collection[int], weight: float = 0.5) -> Tensor:
    r"""A law of the count with equal class probabilities, shape (k+1,).

    With probability 1 - weight the bits are fair, with the two classes made equally likely; with probability `weight` the count is max P for the
    class +1 and the smallest count outside P for the class -1, or min P and the largest count outside P if those are further apart.
    """
    P, weight = _below(k, P), validate.real(weight, "weight", at_least=0)
    if weight > 1:
        raise ValueError(f"weight must be at most 1, got {weight!r}")
    inside = torch.tensor([c in P for c in range(k + 1)])
    counts = torch.where(inside, uniform_counts(k), 0.0)
    others = uniform_counts(k) - counts
    law = (1 - weight) / 2 * (counts / counts.sum() + others / others.sum())
    rest = set(range(k + 1)) - P
    upwards = max(P) - min(rest) >= max(rest) - min(P)
    for count in (max(P), min(rest)) if upwards else (min(P), max(rest)):
        law[count] += weight / 2
    return law


@dataclass(frozen=True, eq=False)
class Draw:
    r"""Inputs x (n, d), labels y (n,) in {-1, +1} and, where they are known, hidden patterns $\tilde\phi$ (n, D)."""

    x: Tensor
    y: Tensor
    phi: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Patterns:
    r"""$\tilde x = M\tilde\phi$, $x = (\tilde x-\mathbb{E}\tilde x)/\tilde\sigma$, $y = +1$ if $\sum_{j\in A}\tilde\phi_j\in P$ and -1 otherwise.

    The number of relevant patterns has the law `counts`; given the number, all choices are equally likely. The other D - k patterns are present
    independently with probability $p_0$. $\tilde\sigma^2 = \sum_j\mathrm{Var}\,\tilde\phi_j$, so $\mathbb{E}\|x\|^2 = 1$. Section 3 of the paper.

    Parameters
    ----------
    A
        The k relevant patterns, indices below D.
    P
        The counts with label +1, a subset of {0, …, k}.
    D
        The number of patterns.
    counts
        (k+1,) probabilities of each count; `uniform_counts` unless given, the family without structure.
    p0
        Probability of every other pattern.
    M
        (d, D) dictionary with orthonormal columns; the identity unless given.
    """

    A: Sequence[int]
    P: Collection[int]
    D: int
    counts: Tensor | None = None
    p0: float = 0.5
    M: Tensor | None = None

    def __post_init__(self) -> None:
        D, p0 = validate.integer(self.D, "D"), validate.real(self.p0, "p0")
        A = tuple(validate.integer(j, "A", at_least=0) for j in self.A)
        if not A or len(set(A)) < len(A) or max(A) >= D:
            raise ValueError(f"A must hold different indices below D = {D}, got {A}")
        k = len(A)
        counts = uniform_counts(k) if self.counts is None else self.counts
        counts = validate.as_tensor(counts, "counts", 1).to("cpu", torch.float64)
        if len(counts) != k + 1 or (counts < 0).any() or abs(counts.sum() - 1) > 1e-6:
            raise ValueError(f"counts must be {k + 1} probabilities that sum to one, got {counts.tolist()}")
        if not 0 < p0 < 1:
            raise ValueError(f"p0 must lie between 0 and 1, got {self.p0!r}")
        if self.M is not None:
            M = validate.as_tensor(self.M, "M", 2)
            tolerance = 100 * torch.finfo(M.dtype).eps
            if M.shape[1] != D or M.shape[0] < D or (M.T @ M - torch.eye(D).to(M)).abs().max() > tolerance:
                raise ValueError(f"M must have {D} orthonormal columns, got shape {tuple(M.shape)}")
            object.__setattr__(self, "M", M)
        settled = {"A": A, "P": _below(k, self.P), "D": D, "counts": counts / counts.sum(), "p0": p0}
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def k(self) -> int:
        """The number of relevant patterns."""
        return len(self.A)

    @property
    def d(self) -> int:
        """The dimension of the input."""
        return self.D if self.M is None else self.M.shape[0]

    @property
    def outside(self) -> list[int]:
        """The indices of the patterns that do not matter, in order."""
        relevant = set(self.A)
        return [j for j in range(self.D) if j not in relevant]

    @property
    def labels(self) -> Tensor:
        """(k+1,) the label of each count."""
        return torch.tensor([1.0 if c in self.P else -1.0 for c in range(self.k + 1)], dtype=torch.float64)

    @property
    def balance(self) -> float:
        r"""$\mathbb{E}y$, zero under (A0)."""
        return (self.counts @ self.labels).item()

    @property
    def presence(self) -> float:
        r"""$\mathbb{E}\tilde\phi_j$ for the relevant patterns."""
        return (self.counts @ torch.arange(self.k + 1, dtype=torch.float64)).item() / self.k

    @property
    def gamma(self) -> float:
        r"""$\gamma = \mathbb{E}[y\tilde\phi_j]-\mathbb{E}[y]\mathbb{E}[\tilde\phi_j]$ for the relevant patterns, (A1)."""
        joint = (self.counts * self.labels) @ torch.arange(self.k + 1, dtype=torch.float64) / self.k
        return joint.item() - self.balance * self.presence

    @property
    def sigma(self) -> float:
        r"""$\tilde\sigma$."""
        mu = self.presence
        return math.sqrt(self.k * mu * (1 - mu) + (self.D - self.k) * self.p0 * (1 - self.p0))

    @property
    def effective(self) -> Tensor:
        r"""(d,) the effective feature $\sum_{j\in A}M_j$, scaled to length one."""
        indicator = torch.zeros(self.D, dtype=torch.float64, device=None if self.M is None else self.M.device)
        indicator[list(self.A)] = self.k**-0.5
        return indicator if self.M is None else self.M.to(indicator) @ indicator

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        counts: Any = None,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> Draw:
        r"""n independent draws. With another law `counts` the inputs are still normalised by this model's mean and $\tilde\sigma$."""
        n, rng = validate.integer(n, "n"), validate.generator(rng, "rng")
        law = self if counts is None else replace(self, counts=counts)
        phi = (rng.random((n, self.D), dtype=np.float32) < self.p0).astype(np.float32)
        count = rng.choice(self.k + 1, size=n, p=law.counts.numpy())
        rank = rng.random((n, self.k), dtype=np.float32).argsort(axis=1)
        phi[:, list(self.A)] = rank < count[:, None]
        phi = torch.as_tensor(phi, device=device).to(dtype)
        return Draw(self.inputs(phi), self.labels.to(phi)[torch.as_tensor(count, device=device)], phi)

    def inputs(self, phi: Any) -> Tensor:
        r"""$x = M(\tilde\phi-\mathbb{E}\tilde\phi)/\tilde\sigma$ for indicators of shape (n, D)."""
        phi = validate.as_tensor(phi, "phi", 2, beside=(self.M,))
        if phi.shape[1] != self.D:
            raise ValueError(f"phi must have {self.D} columns, got {phi.shape[1]}")
        if self.sigma == 0:
            raise ValueError("the patterns never vary: σ̃ is zero, and the inputs cannot be normalised by it")
        mean = torch.full((self.D,), self.p0, dtype=phi.dtype, device=phi.device)
        mean[list(self.A)] = self.presence
        centred = (phi - mean) / self.sigma
        return centred if self.M is None else centred @ self.M.T.to(phi)


def _ramp(z: Tensor, noise: float) -> Tensor:
    """E max(z + ξ, 0)."""
    if noise == 0:
        return z.clamp_min(0)
    u = z / noise
    return z * torch.special.ndtr(u) + noise * torch.exp(-u.square() / 2) / math.sqrt(2 * math.pi)


def _gate(z: Tensor, noise: float) -> Tensor:
    """P(z + ξ > 0)."""
    return (z > 0).to(z) if noise == 0 else torch.special.ndtr(z / noise)


def activation(z: Any, noise: float = 0.0, kind: str = "truncated") -> Tensor:
    r"""$\mathbb{E}_\xi\sigma(z+\xi)$ with $\xi\sim N(0,\sigma_\xi^2)$, `noise` being $\sigma_\xi$.

    "truncated" is $\sigma(z) = \min(1,\max(z,0))$, the paper's; "relu" is $\max(z,0)$; "erf" is $\mathrm{erf}(z/\sqrt2)$.
    """
    z, noise = validate.as_tensor(z, "z"), validate.real(noise, "noise", at_least=0)
    validate.one_of(kind, "kind", ACTIVATIONS)
    if kind == "erf":
        return torch.erf(z / math.sqrt(2 * (1 + noise**2)))
    if kind == "relu":
        return _ramp(z, noise)
    return z.clamp(0, 1) if noise == 0 else _ramp(z, noise) - _ramp(z - 1, noise)


def slope(z: Any, noise: float = 0.0, kind: str = "truncated") -> Tensor:
    r"""The derivative of `activation` in z; for the truncated ReLU the probability that $0 < z+\xi \le 1$."""
    z, noise = validate.as_tensor(z, "z"), validate.real(noise, "noise", at_least=0)
    validate.one_of(kind, "kind", ACTIVATIONS)
    if kind == "erf":
        variance = 1 + noise**2
        return torch.exp(-z.square() / (2 * variance)) * math.sqrt(2 / (math.pi * variance))
    return _gate(z, noise) if kind == "relu" else _gate(z, noise) - _gate(z - 1, noise)


@dataclass(frozen=True, eq=False)
class Net:
    r"""$g(x) = \sum_ia_i\,\mathbb{E}_\xi\sigma(\langle w_i,x\rangle+b_i+\xi)$ with W (units, d), b (units,), a (units,)."""

    W: Tensor
    b: Tensor
    a: Tensor
    kind: str = field(default="truncated", kw_only=True)

    def __post_init__(self) -> None:
        W = validate.as_tensor(self.W, "W", 2, beside=(self.b, self.a))
        validate.one_of(self.kind, "kind", ACTIVATIONS)
        object.__setattr__(self, "W", W)
        for name in ("b", "a"):
            value = validate.as_tensor(getattr(self, name), name, 1).to(W)
            validate.same_length(W, "W", value, name)
            object.__setattr__(self, name, value)

    def preactivation(self, x: Any) -> Tensor:
        r"""$\langle w_i,x\rangle+b_i$ for inputs of shape (n, d), shape (n, units)."""
        x = validate.as_tensor(x, "x", 2).to(self.W)
        if x.shape[1] != self.W.shape[1]:
            raise ValueError(f"x must have {self.W.shape[1]} columns, got {x.shape[1]}")
        return torch.addmm(self.b, x, self.W.T)

    def features(self, x: Any, noise: float = 0.0) -> Tensor:
        r"""(n, units) the outputs of the neurons."""
        return activation(self.preactivation(x), noise, self.kind)

    def __call__(self, x: Any, noise: float = 0.0) -> Tensor:
        """(n,) the outputs of the network."""
        return self.features(x, noise) @ self.a


def random_net(
    m: int,
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
    r"""2m neurons on d inputs, Gaussian with these standard deviations, in antisymmetric pairs: $w_{m+i} = w_i$, $b_{m+i} = b_i$, $a_{m+i} = -a_i$, so $g = 0$."""
    m, d, rng = validate.integer(m, "m"), validate.integer(d, "d"), validate.generator(rng, "rng")
    W = rng.standard_normal((m, d)) * validate.real(sigma_w, "sigma_w", at_least=0)
    b = rng.standard_normal(m) * validate.real(sigma_b, "sigma_b", at_least=0)
    a = rng.standard_normal(m) * validate.real(sigma_a, "sigma_a", at_least=0)
    parts = np.concatenate([W, W]), np.concatenate([b, b]), np.concatenate([a, -a])
    return Net(*(torch.as_tensor(part, dtype=dtype, device=device) for part in parts), kind=kind)


def initialise(
    m: int,
    model: Patterns,
    rng: np.random.Generator,
    *,
    kind: str = "truncated",
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
) -> Net:
    r"""`random_net` with the paper's scales: $\sigma_w = 1/k$, $\sigma_b = 1/k^2$, $\sigma_a = \tilde\sigma^2/(k^2\lvert\gamma\rvert)$.

    Where $\gamma = 0$ (no structure) its place is taken by 1/4, that of the standard example.
    """
    k, gamma = model.k, abs(model.gamma) if abs(model.gamma) > 1e-9 else 0.25
    scales = {"sigma_w": 1 / k, "sigma_b": 1 / k**2, "sigma_a": model.sigma**2 / (gamma * k**2)}
    return random_net(m, model.d, rng, kind=kind, dtype=dtype, device=device, **scales)


def _pull(margin: Tensor, loss: str) -> Tensor:
    r"""$-\ell'$ at the margin $yg(x)$."""
    if loss == "hinge":
        return (margin < 1).to(margin)
    return torch.sigmoid(-margin) if loss == "logistic" else 1 - margin


def loss_value(margin: Any, loss: str = "hinge") -> Tensor:
    r"""The mean over the margins $yg(x)$ of $\max(1-z,0)$, of $\log(1+e^{-z})$ or of $\frac12(1-z)^2$."""
    margin = validate.as_tensor(margin, "margin")
    validate.one_of(loss, "loss", LOSSES)
    if loss == "hinge":
        return (1 - margin).clamp_min(0).mean()
    return (
        torch.nn.functional.softplus(-margin).mean()
        if loss == "logistic"
        else (1 - margin).square().mean() / 2
    )


def _data(net: Net, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x, y = validate.as_tensor(x, "x", 2).to(net.W), validate.as_tensor(y, "y", 1).to(net.W)
    validate.same_length(x, "x", y, "y")
    _signs(y)
    return x, y


def _signs(y: Tensor) -> None:
    if not (y.abs() == 1).all():
        raise ValueError("y must hold labels -1 and +1 only")


def gradient(net: Net, x: Any, y: Any, *, noise: float = 0.0, loss: str = "hinge") -> Net:
    r"""The gradient of the mean loss on a batch, arranged like the network.

    $\partial_{w_i} = -a_i\,\mathrm{mean}[\,\ell_-\,y\,x\,\sigma'(z_i)]$, $\partial_{b_i} = -a_i\,\mathrm{mean}[\,\ell_-\,y\,\sigma'(z_i)]$ and
    $\partial_{a_i} = -\mathrm{mean}[\,\ell_-\,y\,\sigma(z_i)]$ with $\ell_- = \mathbb{1}[yg(x) < 1]$ for the hinge loss.
    """
    x, y = _data(net, x, y)
    validate.one_of(loss, "loss", LOSSES)
    z = net.preactivation(x)
    features = activation(z, noise, net.kind)
    weight = y * _pull(y * (features @ net.a), loss) / len(y)
    gates = slope(z, noise, net.kind) * weight[:, None]
    return Net(-net.a[:, None] * (gates.T @ x), -net.a * gates.sum(0), -(features.T @ weight), kind=net.kind)


def step(
    net: Net,
    x: Any,
    y: Any,
    *,
    eta: float,
    lambda_w: float = 0.0,
    lambda_a: float = 0.0,
    noise: float = 0.0,
    loss: str = "hinge",
) -> Net:
    r"""$\theta-\eta\nabla_\theta\bigl(L+\lambda_a\sum_ia_i^2+\lambda_w\sum_i\|w_i\|^2\bigr)$ for W, b and a at once; $\lambda = 1/(2\eta)$ forgets the old value."""
    eta = validate.real(eta, "eta", above=0)
    decay_w = 1 - 2 * eta * validate.real(lambda_w, "lambda_w", at_least=0)
    decay_a = 1 - 2 * eta * validate.real(lambda_a, "lambda_a", at_least=0)
    g = gradient(net, x, y, noise=noise, loss=loss)
    return Net(decay_w * net.W - eta * g.W, net.b - eta * g.b, decay_a * net.a - eta * g.a, kind=net.kind)


def two_steps(
    net: Net, first: Draw, second: Draw, *, noise: float, eta: float, loss: str = "hinge"
) -> tuple[Net, Net, Net]:
    r"""The networks before, after step one and after step two, each step on a batch of its own.

    Both steps forget the old first layer, $\lambda_w = 1/(2\eta)$. The first has $\eta = 1/\|a\|^2$, so small that $g$ stays near zero. The second has
    the step `eta` and forgets the head too, which has done its work as the step size of each neuron. The biases stay: their gradient is nearly zero in
    the population under (A0), and in a sample it is noise that would shift the kinks of all neurons together.
    """
    if not net.a.any():
        raise ValueError("net must have a head that is not zero: it sets the size of each neuron's step")
    small, eta = 1 / net.a.square().sum().item(), validate.real(eta, "eta", above=0)
    one = step(net, first.x, first.y, eta=small, lambda_w=0.5 / small, noise=noise, loss=loss)
    one, decay = replace(one, b=net.b), {"lambda_w": 0.5 / eta, "lambda_a": 0.5 / eta}
    two = step(one, second.x, second.y, eta=eta, noise=noise, loss=loss, **decay)
    return net, one, replace(two, b=net.b)


def _adam(
    output: Callable[..., Tensor],
    start: Sequence[Tensor],
    y: Tensor,
    record: Collection[int],
    rate: float,
    loss: str,
    batches: Callable[[], Tensor] | None,
) -> list[list[Tensor]]:
    """Adam on the mean loss of `output(rows, *parameters)`; copies of the parameters at the recorded steps."""
    record = sorted({validate.integer(t, "record", at_least=0) for t in record})
    if not record:
        raise ValueError("record must name at least one step")
    parameters = [p.detach().clone().requires_grad_(True) for p in start]
    optimiser = torch.optim.Adam(parameters, lr=validate.real(rate, "rate", above=0))
    kept: list[list[Tensor]] = []
    for t in range(record[-1] + 1):
        if t in record:
            kept.append([p.detach().clone() for p in parameters])
        if t == record[-1]:
            break
        rows = slice(None) if batches is None else batches()
        optimiser.zero_grad()
        loss_value(y[rows] * output(rows, *parameters), loss).backward()
        optimiser.step()
    return kept


def train_head(
    net: Net, x: Any, y: Any, *, record: Collection[int], rate: float = 0.1, loss: str = "hinge"
) -> list[Net]:
    """Adam on the head alone, all data in every step; the network at each recorded step, in increasing order."""
    x, y = _data(net, x, y)
    validate.one_of(loss, "loss", LOSSES)
    features = net.features(x)
    kept = _adam(lambda rows, a: features[rows] @ a, [net.a], y, record, rate, loss, None)
    return [replace(net, a=a) for (a,) in kept]


def train_all(
    net: Net,
    x: Any,
    y: Any,
    *,
    record: Collection[int],
    rate: float,
    batch: int,
    rng: np.random.Generator,
    loss: str = "hinge",
) -> list[Net]:
    """Adam on W, b and a together, on batches drawn with replacement; the network at each recorded step, in increasing order."""
    x, y = _data(net, x, y)
    validate.one_of(loss, "loss", LOSSES)
    batch, rng = validate.integer(batch, "batch"), validate.generator(rng, "rng")

    def output(rows: Tensor, W: Tensor, b: Tensor, a: Tensor) -> Tensor:
        return activation(torch.addmm(b, x[rows], W.T), 0.0, net.kind) @ a

    def rows() -> Tensor:
        return torch.as_tensor(rng.integers(len(y), size=batch), device=x.device)

    kept = _adam(output, [net.W, net.b, net.a], y, record, rate, loss, rows)
    return [Net(*parameters, kind=net.kind) for parameters in kept]


@dataclass(frozen=True, eq=False)
class Tangent:
    r"""What a small `change` of `net` adds to its output, to first order: $\sum_i\delta a_i\sigma(z_i)+a_i\sigma'(z_i)(\langle\delta w_i,x\rangle+\delta b_i)$."""

    net: Net
    change: Net

    def __call__(self, x: Any) -> Tensor:
        """(n,) the outputs for inputs of shape (n, d)."""
        z = self.net.preactivation(x)
        moved = slope(z, 0.0, self.net.kind) * self.change.preactivation(x)
        return moved @ self.net.a + activation(z, 0.0, self.net.kind) @ self.change.a


def train_tangent(
    net: Net, x: Any, y: Any, *, record: Collection[int], rate: float, loss: str = "hinge"
) -> list[Tangent]:
    """Adam on the linearised network, all data in every step: the tangent kernel of `net`; the model at each recorded step, in increasing order."""
    x, y = _data(net, x, y)
    validate.one_of(loss, "loss", LOSSES)
    z = net.preactivation(x)
    features, gates = activation(z, 0.0, net.kind), slope(z, 0.0, net.kind) * net.a

    def output(rows: Tensor, W: Tensor, b: Tensor, a: Tensor) -> Tensor:
        return (gates[rows] * torch.addmm(b, x[rows], W.T)).sum(1) + features[rows] @ a

    start = [torch.zeros_like(p) for p in (net.W, net.b, net.a)]
    kept = _adam(output, start, y, record, rate, loss, None)
    return [Tangent(net, Net(*parameters, kind=net.kind)) for parameters in kept]


def accuracy(outputs: Any, y: Any) -> float:
    """The share of outputs with the sign of the label; an output of exactly zero counts one half."""
    outputs, y = validate.as_tensor(outputs, "outputs", 1), validate.as_tensor(y, "y", 1)
    validate.same_length(outputs, "outputs", y, "y")
    _signs(y)
    margin = outputs * y.to(outputs)
    return ((margin > 0).double() + 0.5 * (margin == 0).double()).mean().item()


def cosines(W: Any, v: Any) -> Tensor:
    """The cosines between the rows of W (units, d) and v (d,), or between all pairs of rows of W and of v (r, d)."""
    W, v = validate.as_tensor(W, "W", 2, beside=(v,)), validate.as_tensor(v, "v", (1, 2))
    v = v.to(W)
    if v.shape[-1] != W.shape[1]:
        raise ValueError(f"v must have {W.shape[1]} columns, got {v.shape[-1]}")
    lengths, length = W.norm(dim=1, keepdim=True), v.norm(dim=-1, keepdim=True)
    if not (lengths.all() and length.all()):
        raise ValueError("W and v must not hold a zero vector: it has no direction")
    return (W / lengths) @ (v / length if v.ndim == 1 else (v / length).T)


def good_network(
    model: Patterns, *, dtype: torch.dtype = torch.float64, device: str | torch.device = "cpu"
) -> Net:
    r"""Lemma 4: 3(k+1) neurons, all with $w = \tilde\sigma\sum_{j\in A}M_j/(4k)$, whose output is exactly the label of every count.

    $\langle w,x\rangle = (c-k\mu)/(4k)$ at the count c. Three neurons make a hat of width $\delta = 1/(16k)$ around each count, of height $y_c$.
    """
    k = model.k
    centres = (torch.arange(k + 1, dtype=torch.float64) - k * model.presence) / (4 * k)
    delta = 1 / (16 * k)
    b = (-centres[:, None] + delta * torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)).ravel()
    a = (model.labels[:, None] * torch.tensor([1.0, -2.0, 1.0], dtype=torch.float64) / delta).ravel()
    w = model.effective * (math.sqrt(k) * model.sigma / (4 * k))
    return Net(w.to(device, dtype).expand(len(b), -1).clone(), b, a)


@dataclass(frozen=True, eq=False)
class Components:
    r"""`along` (units, D) holds $T_j = \mathbb{E}[y\phi_j\sigma'(z_i)]$ for every dictionary element, and $\beta_i = \mathbb{E}\sigma'(z_i^{-A})$ (units,), where $z^{-A}$ leaves A out."""

    along: Tensor
    beta: Tensor


def _along(model: Patterns, W: Any) -> Tensor:
    """q = MᵀW, the components of the weights along the dictionary, (units, D) in float64."""
    W = validate.as_tensor(W, "W", 2, beside=(model.M,)).to(torch.float64)
    if W.shape[1] != model.d:
        raise ValueError(f"W must have {model.d} columns, got {W.shape[1]}")
    return W if model.M is None else W @ model.M.to(W)


def components(model: Patterns, W: Any, b: Any, noise: float) -> Components:
    r"""The components of the population step while $yg(x) < 1$ everywhere: $-\nabla_{w_i}L = a_i\sum_jT_jM_j$, equation (1) of the proof of Lemma 5.

    $\sigma'$ of the truncated ReLU with noise is the probability that $z = \langle w,x\rangle+b+\xi$ lies in (0, 1), and
    $\mathbb{E}[Y\,\mathbb{1}(0<z<1)] = \frac1\pi\int_0^\infty\mathrm{Re}\bigl[\frac{1-e^{-it}}{it}\,\mathbb{E}Ye^{itz}\bigr]dt$. The expectation on the right is a
    product over the independent patterns, times a sum over the $2^k$ relevant ones. The midpoint rule is exact to rounding: the noise cuts the integral
    off, and $z$ is bounded up to the noise, so the rule's copies of the interval (0, 1), $2\pi/h$ apart, can be placed out of its reach.

    Parameters
    ----------
    model
        The distribution.
    W, b
        (units, d) and (units,), the neurons.
    noise
        $\sigma_\xi > 0$.
    """
    noise = validate.real(noise, "noise", above=0)
    Q = _along(model, W)
    b = validate.as_tensor(b, "b", 1).to(Q)
    validate.same_length(Q, "W", b, "b")
    reach = (Q.abs().sum(1) / model.sigma + b.abs()).max().item() + 1 + 9 * noise
    h = 2 * math.pi / reach
    t = h * (torch.arange(math.ceil(9 / (noise * h)), dtype=Q.dtype, device=Q.device) + 0.5)
    size = len(t) * max(model.D, 2**model.k)
    if size > 2**26:
        raise ValueError(
            f"noise = {noise:g} and k = {model.k} ask for {len(t)} nodes and {2**model.k} relevant patterns: too many"
        )
    T, beta = torch.empty_like(Q), torch.empty_like(b)
    side = max(1, 2**21 // size)
    for rows in (slice(start, start + side) for start in range(0, len(b), side)):
        T[rows], beta[rows] = _characteristic(model, Q[rows], b[rows], noise, t, h)
    return Components(T, beta)


def _characteristic(
    model: Patterns, Q: Tensor, b: Tensor, noise: float, t: Tensor, h: float
) -> tuple[Tensor, Tensor]:
    """`components` for one block of neurons, by the midpoint rule with the nodes t, spaced by h."""
    inside, outside = list(model.A), model.outside
    phi, probability, y = _relevant_table(model, Q.device)
    wave = torch.exp(1j * (phi @ Q[:, inside].T + b)[:, :, None] * t)
    signed = (probability * y).to(wave.dtype)
    relevant = torch.einsum("pj,put->ujt", signed[:, None] * phi, wave)
    plain = torch.einsum("p,put->ut", signed, wave)
    on, off = (1 - model.p0) / model.sigma, -model.p0 / model.sigma
    up, down = (torch.exp(1j * value * Q[:, outside, None] * t) for value in (on, off))
    factor = model.p0 * up + (1 - model.p0) * down
    tilted = model.p0 * on * up + (1 - model.p0) * off * down
    ones = torch.ones_like(wave[0])[:, None]
    before = torch.cat([ones, factor.cumprod(1)], 1)
    after = torch.cat([factor.flip(1).cumprod(1).flip(1), ones], 1)
    background = before[:, -1]
    kernel = (1 - torch.exp(-1j * t)) / (1j * t) * torch.exp(-(noise * t).square() / 2) * (h / math.pi)
    T = torch.empty_like(Q)
    T[:, inside] = (relevant * (background * kernel)[:, None]).real.sum(-1)
    T[:, outside] = (before[:, :-1] * after[:, 1:] * tilted * (plain * kernel)[:, None]).real.sum(-1)
    return T, (torch.exp(1j * b[:, None] * t) * background * kernel).real.sum(-1)


def _relevant_table(model: Patterns, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """All 2^k relevant patterns: centred indicators (2^k, k), probabilities and labels (2^k,)."""
    bits = torch.tensor(list(product((0.0, 1.0), repeat=model.k)), dtype=torch.float64)
    count = bits.sum(1).long()
    size = torch.tensor([math.comb(model.k, c) for c in range(model.k + 1)], dtype=torch.float64)
    parts = (bits - model.presence) / model.sigma, (model.counts / size)[count], model.labels[count]
    return tuple(part.to(device) for part in parts)


def step_bounds(model: Patterns, W: Any, noise: float) -> tuple[Tensor, Tensor]:
    r"""The error terms of the chapter's form of Lemma 5, with $q = M^\top w$ and $\Lambda = 1/(\sqrt{2\pi}\,\sigma_\xi)$.

    For $j\in A$ (units, k): $|T_j-\beta\gamma/\tilde\sigma| \le \Lambda\,\mathbb{E}\bigl|\phi_j\sum_{l\in A}\phi_lq_l\bigr|$.
    For $j\notin A$ (units, D - k): $|T_j| \le \Lambda\,\sigma_\phi^2\,|q_j|$ with $\sigma_\phi^2 = p_0(1-p_0)/\tilde\sigma^2$, and, if the classes are
    equally likely, $|T_j| \le \Lambda_2\,\sigma_\phi^2\,|q_j|\,\mathbb{E}|\sum_{l\in A}\phi_lq_l|$ with $\Lambda_2 = 2/(\sqrt{2\pi e}\,\sigma_\xi^2)$; the
    smaller of the two.
    """
    noise, Q = validate.real(noise, "noise", above=0), _along(model, W)
    Lambda, Lambda_2 = 1 / (math.sqrt(2 * math.pi) * noise), 2 / (math.sqrt(2 * math.pi * math.e) * noise**2)
    phi, probability, _ = _relevant_table(model, Q.device)
    reach = (Q[:, list(model.A)] @ phi.T).abs()
    relevant = Lambda * reach @ (probability[:, None] * phi.abs())
    steepness = torch.full_like(Q[:, :1], Lambda)
    if abs(model.balance) < 1e-12:
        steepness = torch.minimum(steepness, Lambda_2 * (reach @ probability)[:, None])
    variance = model.p0 * (1 - model.p0) / model.sigma**2
    return relevant, steepness * variance * Q[:, model.outside].abs()


def walsh(values: Any) -> Tensor:
    r"""$\hat f(S) = \mathbb{E}[f\chi_S]$ for all $2^D$ parities $\chi_S(\phi) = \prod_{j\in S}(2\phi_j-1)$ by the fast Walsh-Hadamard transform.

    `values` (2^D, r) holds f at all points; bit j of the row number is $\phi_j$. Bit j of the result's row number says whether $j\in S$.
    """
    f = validate.as_tensor(values, "values", 2).clone()
    size = f.shape[0]
    if size & (size - 1):
        raise ValueError(f"values must have a power of two as the number of rows, got {size}")
    width = 1
    while width < size:
        pairs = f.view(size // (2 * width), 2, width, -1)
        f = torch.stack([pairs[:, 1] + pairs[:, 0], pairs[:, 1] - pairs[:, 0]], 1).reshape(size, -1) / 2
        width *= 2
    return f


def krawtchouk(D: int, k: int) -> np.ndarray:
    r"""(D+1,) the sum over all $\binom Dk$ parities of size k, at an input with w ones: $\sum_i(-1)^{k-i}\binom wi\binom{D-w}{k-i}$, exact integers."""
    D, k = validate.integer(D, "D"), validate.integer(k, "k", at_least=0)
    return np.array(
        [
            sum((-1) ** (k - i) * math.comb(w, i) * math.comb(D - w, k - i) for i in range(k + 1))
            for w in range(D + 1)
        ],
        dtype=object,
    )


def scaling(C: Any) -> Tensor:
    r"""Multidimensional scaling: points in the plane (n, 2) whose distances come close to $\sqrt{2-2C_{ij}}$, C (n, n) being cosines.

    Starts at the two leading coordinates of classical scaling and lowers the stress by scikit-learn's SMACOF; nothing random.
    The points are for a picture and on the CPU wherever C is.
    """
    C = validate.as_tensor(C, "C", 2)
    validate.square(C, "C")
    if len(C) < 2:
        raise ValueError("C must hold the cosines of at least two vectors")
    C = (C + C.T).double().cpu() / 2
    distances = (2 - 2 * C).clamp_min(0).sqrt()
    distances.fill_diagonal_(0)
    centred = C - C.mean(0) - C.mean(1, keepdim=True) + C.mean()
    values, vectors = torch.linalg.eigh(centred)
    start = vectors[:, -2:] * values[-2:].clamp_min(0).sqrt()
    points, _ = smacof(
        distances.numpy(),
        n_components=2,
        init=start.numpy(),
        n_init=1,
        max_iter=300,
        eps=1e-6,
        normalized_stress=False,
    )
    return torch.as_tensor(points)
