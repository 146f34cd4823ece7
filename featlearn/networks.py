r"""Fully connected networks: one definition, and training of whole ensembles as one batched
computation.

The parameters are a dictionary of tensors, ``{"W1": ..., "b1": ..., "W2": ...}``, and the network
is a function of them. So `torch.func` can differentiate it, and an ensemble is nothing but tensors
with one more axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from featlearn import activations, validate
from featlearn.seeding import stream
from featlearn.validate import Array

Parameters = dict[str, Tensor]
MOST_STEPS = 10**8


def _relu(z: Tensor) -> tuple[Tensor, Tensor]:
    h = z.relu_()
    return h, h.sign()


def _erf(z: Tensor) -> tuple[Tensor, Tensor]:
    slope = z.square().neg_().exp_().mul_(2 / math.sqrt(math.pi))
    return z.erf_(), slope


def _tanh(z: Tensor) -> tuple[Tensor, Tensor]:
    h = z.tanh_()
    return h, 1 - h.square()


IN_PLACE = {
    "relu": _relu,
    "erf": _erf,
    "tanh": _tanh,
}  # φ(z), which takes the place of z, and φ′(z)


def _parameters(theta: Parameters, name: str = "theta") -> Parameters:
    """`theta`, if it is a dictionary of dense tensors, at least one."""
    if not isinstance(theta, Mapping) or not theta:
        raise ValueError(f"{name} must be a dictionary of tensors, at least one, got {theta!r:.80}")
    for key, value in theta.items():
        if not isinstance(value, Tensor):
            got = type(value).__name__
            raise TypeError(f"{name}[{key!r}] must be a tensor, got {got}")
        if value.layout != torch.strided or value.device.type == "meta":
            raise TypeError(f"{name}[{key!r}] must be a dense tensor that holds numbers")
    return theta


@dataclass(frozen=True)
class Network:
    r"""$f^l = \frac{\sigma_w}{\sqrt{n_{l-1}}}W^lh^{l-1} + \sigma_bb^l$ with $h^l = \varphi(f^l)$
    and $h^0 = x$; the output is $f^L$.

    In NTK parametrisation all entries of $W^l \in \mathbb{R}^{n_l\times n_{l-1}}$ and $b^l$ start
    as $N(0, 1)$ and the factors stand in the network. In the standard one, $f^l =
    W^l\varphi(f^{l-1}) + b^l$, the factors are in the initial entries. Both have the same law at
    initialisation; gradient descent treats them differently. The maximal update parametrisation,
    "mup" (Yang and Hu 2021), gives the hidden layers this law too, but the output is smaller by
    $1/\sqrt{n_{L-1}}$; `scales` has its factors, with which one learning rate serves all layers and
    all widths. With $\sigma_b = 0$ there are no biases.

    Parameters
    ----------
    widths
        $(d, n_1, \dots, n_L)$: the input, the hidden layers, the output.
    activation
        "relu", "erf", "tanh" or a function of tensors, $\varphi$.
    sigma_w, sigma_b
        Scales of weights and biases.
    parametrisation
        "ntk", "standard" or "mup".
    """

    widths: Sequence[int]
    activation: str | Callable[[Tensor], Tensor] = "relu"
    sigma_w: float = 1.0
    sigma_b: float = 0.0
    parametrisation: str = "ntk"

    def __post_init__(self) -> None:
        widths = tuple(validate.integers(self.widths, "widths"))
        if len(widths) < 2:
            raise ValueError(f"widths must list the input, the layers and the output, got {widths}")
        object.__setattr__(self, "widths", widths)
        object.__setattr__(self, "activation", activations.get(self.activation))
        object.__setattr__(self, "sigma_w", validate.real(self.sigma_w, "sigma_w", above=0))
        object.__setattr__(self, "sigma_b", validate.real(self.sigma_b, "sigma_b", at_least=0))
        validate.one_of(self.parametrisation, "parametrisation", ("ntk", "standard", "mup"))
        if self.parametrisation == "mup" and self.depth < 2:
            raise ValueError(f"widths must have a hidden layer for 'mup', got {self.widths}")

    @property
    def depth(self) -> int:
        """The number of layers $L$, each with its own weights."""
        return len(self.widths) - 1

    def scales(self, layer: int) -> tuple[tuple[float, float], tuple[float, float]]:
        r"""The factors of $W^l$ and $b^l$ in the network, and the standard deviations of their
        initial entries.

        For "mup" the factors of $W^l$ are $\sigma_w\sqrt{n_1/d}$ in the first layer, $\sigma_w$ in
        hidden layers, $\sigma_w/\sqrt{n_{L-1}}$ in the last, and the entries start with variance
        $1/n_1$ in the first layer and $1/n_{l-1}$ in the others. A hidden bias is an input that is
        always one: factor $\sigma_b\sqrt{n_l}$, variance $1/n_l$. The bias of the output starts at
        zero.
        """
        if not 1 <= validate.integer(layer, "layer") <= self.depth:
            raise ValueError(f"layer must lie between 1 and {self.depth}, got {layer}")
        fan_in, fan_out = self.widths[layer - 1 : layer + 1]
        weight = self.sigma_w / math.sqrt(fan_in)
        if self.parametrisation == "ntk":
            return (weight, self.sigma_b), (1.0, 1.0)
        if self.parametrisation == "standard":
            return (1.0, 1.0), (weight, self.sigma_b)
        if layer == self.depth:
            return (weight, self.sigma_b), (fan_in**-0.5, 0.0)
        start = (fan_out if layer == 1 else fan_in) ** -0.5
        return (weight / start, self.sigma_b * math.sqrt(fan_out)), (start, fan_out**-0.5)

    def initialise(
        self,
        rng: np.random.Generator,
        members: int | None = None,
        *,
        dtype: torch.dtype = torch.float64,
        device: str | torch.device = "cpu",
    ) -> Parameters:
        """Random parameters; with `members` = B each tensor has a first axis of length B, one
        network each.
        """
        validate.generator(rng, "rng")
        validate.one_of(dtype, "dtype", (torch.float32, torch.float64))
        device = validate.device(device)
        batch = () if members is None else (validate.integer(members, "members"),)
        entries = math.prod(batch) * sum(i * o + o for i, o in pairwise(self.widths))
        validate.size(entries, "widths and members")
        theta = {}
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.widths), start=1):
            start_W, start_b = self.scales(layer)[1]
            theta[f"W{layer}"] = start_W * rng.standard_normal((*batch, fan_out, fan_in))
            if self.sigma_b > 0:
                theta[f"b{layer}"] = start_b * rng.standard_normal((*batch, fan_out))
        return {name: torch.as_tensor(value).to(device, dtype) for name, value in theta.items()}

    def layers(self, theta: Parameters, X: Array) -> list[Tensor]:
        r"""The pre-activations $f^1, \dots, f^L$ at X, each of shape (n, n_l), or (B, n, n_l) for B
        members.

        X has shape (n, d), shared by all members, or (B, n, d).
        """
        return self._layers(theta, self._inputs(theta, X))

    def _layers(self, theta: Parameters, X: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        h = X
        for layer in range(1, self.depth + 1):
            found.append(self._affine(theta, layer, h))
            h = activations.get(self.activation).function(found[-1])
        return found

    def _affine(self, theta: Parameters, layer: int, h: Tensor) -> Tensor:
        """The pre-activations of a layer from what the layer below gives."""
        W, b = theta[f"W{layer}"].mT, theta.get(f"b{layer}")
        alpha, beta = self.scales(layer)[0]
        if W.ndim == 3 and h.ndim == 2:
            h = h.expand(len(W), *h.shape)
        if b is None:
            return h @ (alpha * W)
        if W.ndim == 3:
            return torch.baddbmm(b.unsqueeze(-2), h, W, alpha=alpha, beta=beta)
        return torch.addmm(b, h, W, alpha=alpha, beta=beta)

    def _gradients(
        self, theta: Parameters, X: Tensor, y: Tensor, scale: float
    ) -> tuple[Tensor, Parameters]:
        r"""$\frac12\sum_i(\alpha f(x_i) - y_i)^2$ and its gradients, by backpropagation.

        $\delta^L = \alpha(\alpha f - y)$, $\delta^{l-1} = c_l(\delta^lW^l)\varphi'(f^{l-1})$ with
        $c_l$ the factor of $W^l$. By hand, because automatic differentiation takes three to six
        times as long. For activations in `IN_PLACE`.
        """
        activate = IN_PLACE[activations.get(self.activation).name]
        inputs, slopes = [X], []
        for layer in range(1, self.depth):
            h, slope = activate(self._affine(theta, layer, inputs[-1]))
            inputs.append(h)
            slopes.append(slope)
        output = self._affine(theta, self.depth, inputs[-1])  # (..., n, n_L)
        y = y[..., None] if self.widths[-1] == 1 else y
        residual = scale * output - y
        loss, delta, gradients = residual.square().sum() / 2, scale * residual, {}
        for layer in range(self.depth, 0, -1):
            alpha, beta = self.scales(layer)[0]
            gradients[f"W{layer}"] = (delta.mT @ inputs.pop()).mul_(alpha)
            if f"b{layer}" in theta:
                gradients[f"b{layer}"] = delta.sum(dim=-2).mul_(beta)
            if layer > 1:
                delta = (delta @ theta[f"W{layer}"]).mul_(alpha).mul_(slopes.pop())
        return loss, gradients

    def __call__(self, theta: Parameters, X: Array) -> Tensor:
        r"""The output $f^L$ at X, shape (n, n_L) or (B, n, n_L), without its last axis where $n_L =
        1$.
        """
        output = self._layers(theta, self._inputs(theta, X))[-1]
        return output[..., 0] if self.widths[-1] == 1 else output

    def _inputs(self, theta: Parameters, X: Array) -> Tensor:
        """X with the dtype and on the device of theta, which must be parameters of this network.

        Values may be NaN, as in a training that diverges.
        """
        _parameters(theta)
        members = theta["W1"].shape[:-2] if "W1" in theta else ()
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.widths), start=1):
            _check(theta, f"W{layer}", (*members, fan_out, fan_in))
            if self.sigma_b > 0 or f"b{layer}" in theta:
                _check(theta, f"b{layer}", (*members, fan_out))
        X = validate.as_tensor(X, "X", (2, 3), finite=False)
        validate.columns(X, "X", self.widths[0])
        if X.ndim == 3 and members != X.shape[:1]:
            count = f"{members[0]} members" if members else "one network"
            raise ValueError(
                f"X must have shape (n, d), or one batch for each member: got {len(X)} for {count}"
            )
        return X.to(theta["W1"])


def _check(theta: Parameters, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless theta has a tensor of this name and shape, with the dtype and device of W1."""
    value = theta.get(name)
    if value is None or value.shape != shape or len(shape) > 3:
        got = "none" if value is None else tuple(value.shape)
        raise ValueError(f"theta[{name!r}] must be a tensor of shape {shape}, got {got}")
    if (value.dtype, value.device) != (theta["W1"].dtype, theta["W1"].device):
        raise ValueError(
            f"theta[{name!r}] must have the dtype and device of theta['W1'], "
            f"got {value.dtype} on {value.device}"
        )


def descent(
    network: Callable[[Parameters, Tensor], Tensor],
    theta: Parameters,
    X: Array,
    y: Array,
    *,
    learning_rate: float,
    steps: int,
    scale: float = 1.0,
) -> Iterator[Parameters]:
    r"""Gradient descent on $\frac12\sum_i(\alpha f(x_i, \theta) - y_i)^2$ with learning rate
    $\eta/\alpha^2$: yields $\theta_0, \theta_1, \dots$

    With a first axis of members in `theta` the losses are summed. No member sees another's
    gradient, so this trains all of them, in one batched computation. The learning rate is divided
    by $\alpha^2$ so that time means the same for every scale $\alpha$ of the output (Chizat,
    Oyallon and Bach 2019); $\alpha = 1$ is the plain network.

    Parameters
    ----------
    network
        Any function of parameters and inputs, such as a `Network`.
    theta
        Where to start.
    X, y
        (n, d) inputs and their labels, of the shape that the network returns or shared by all
        members.
    learning_rate, steps
        $\eta$ and the number of steps, at most $10^8$; `steps` + 1 dictionaries come out.
    scale
        $\alpha$.
    """
    validate.function(network, "network")
    eta = validate.real(learning_rate, "learning_rate", above=0)
    steps = validate.integer(steps, "steps", at_least=0, at_most=MOST_STEPS)
    scale = validate.real(scale, "scale", above=0)
    if not 1e-150 < scale < 1e150:
        raise ValueError(f"scale must lie between 1e-150 and 1e150, got {scale!r}")
    theta = {name: value.detach() for name, value in _parameters(theta).items()}
    first = next(iter(theta.values()))
    X, y = validate.as_tensor(X, "X", (2, 3)).to(first), validate.as_tensor(y, "y").to(first)
    with torch.no_grad():
        output = network(theta, X)
    if not isinstance(output, Tensor):
        raise TypeError(f"network must return a tensor, got {type(output).__name__}")
    shared = output.shape[1:] if first.ndim == 3 else output.shape
    if y.shape not in (output.shape, shared):
        raise ValueError(
            f"y must have the shape of the output, {tuple(output.shape)}, got {tuple(y.shape)}"
        )
    return _descend(network, theta, X, y, eta, steps, scale)


def _descend(
    network: Callable[[Parameters, Tensor], Tensor],
    theta: Parameters,
    X: Tensor,
    y: Tensor,
    eta: float,
    steps: int,
    scale: float,
) -> Iterator[Parameters]:
    gradients_of: Callable[..., tuple[Tensor, Parameters]] = partial(_differentiated, network)
    if isinstance(network, Network) and activations.get(network.activation).name in IN_PLACE:
        gradients_of = network._gradients  # by hand
    yield theta
    for _ in range(steps):
        loss, gradients = gradients_of(theta, X, y, scale)
        if not torch.isfinite(loss):
            raise ValueError(f"training diverges with learning_rate={eta:g}: take a smaller one")
        theta = {
            name: torch.sub(value, gradients[name], alpha=eta / scale**2)
            for name, value in theta.items()
        }
        yield theta


def _differentiated(
    network: Callable[[Parameters, Tensor], Tensor],
    theta: Parameters,
    X: Tensor,
    y: Tensor,
    scale: float,
) -> tuple[Tensor, Parameters]:
    """The loss of `descent` and its gradients, by automatic differentiation."""
    leaves = {name: value.detach().requires_grad_() for name, value in theta.items()}
    with torch.enable_grad():
        loss = (scale * network(leaves, X) - y).square().sum() / 2
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return loss.detach(), dict(zip(leaves, gradients, strict=True))


class _Adam:
    r"""Kingma and Ba's optimiser (2015) for one tensor, which its steps change in place.

    $\theta \leftarrow \theta-\eta\,\hat m/(\sqrt{\hat v}+10^{-8})$, where $\hat m$ and $\hat v$ are
    the running means of the gradients and of their squares, with weights $0.9$ and $0.999$ for the
    past, divided by the weight that $t$ steps have gathered. As `torch.optim.Adam`, which loads
    torch's compiler when it is first used and takes longer than the small steps of this book.
    """

    def __init__(self, theta: Tensor) -> None:
        self.theta, self.t = theta, 0
        self.m, self.v = torch.zeros_like(theta), torch.zeros_like(theta)

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        """Move theta along the gradient, of the same shape."""
        self.t += 1
        self.m.lerp_(gradient, 1 - 0.9)
        self.v.lerp_(gradient.square(), 1 - 0.999)
        size = (self.v / (1 - 0.999**self.t)).sqrt_().add_(1e-8)
        self.theta.addcdiv_(self.m, size, value=-learning_rate / (1 - 0.9**self.t))


@torch.no_grad()
def _train(
    theta: Parameters,
    X: Tensor,
    y: Tensor,
    steps: int,
    learning_rate: float,
    weight_decay: float,
    penalty: float,
) -> Parameters:
    """Adam on the networks of `TwoLayerEnsemble`. Gradients are by hand: steps are many and small,
    and most of the time of automatic differentiation would be its bookkeeping.
    """
    members, n, d = X.shape
    width = theta["W1"].shape[1]
    X = torch.cat([X, X.new_ones(members, n, 1)], dim=2)  # (B, n, d + 1): the bias is a weight
    XT, sizes = X.mT.contiguous(), (width * (d + 1), width, 1)
    start = [theta["W1"], theta["b1"][..., None]]
    flat = torch.cat(
        [torch.cat(start, dim=2).flatten(1), theta["W2"].flatten(1), theta["b2"]], dim=1
    )
    adam, gradient = _Adam(flat), torch.empty_like(flat)
    W, a, e = flat.split(sizes, dim=1)  # views of one tensor, which Adam moves
    dW, da, de = gradient.split(sizes, dim=1)
    h = X.new_empty(members, width, n)  # of the hidden layer: one array for all steps
    W, dW = W.view(members, width, d + 1), dW.view(members, width, d + 1)
    for step in range(steps):
        rate = learning_rate * (1 + math.cos(math.pi * step / steps)) / 2
        torch.bmm(W, XT, out=h).relu_()
        r = (torch.baddbmm(e[:, None], a[:, None], h)[:, 0] - y) * (2 / n)  # (B, n)
        da.copy_((h @ r[..., None])[..., 0])
        de.copy_(r.sum(dim=1, keepdim=True))
        torch.mul(a[..., None], h.sign_().mul_(r[:, None]) @ X, out=dW)  # sign(h) = ReLU′
        if penalty:
            dW[..., :d] += penalty * W[..., :d]
            da += penalty * a
        if weight_decay:
            W[..., :d] *= 1 - rate * weight_decay
            a *= 1 - rate * weight_decay
        adam.step(gradient, rate)
    return {"W1": W[..., :d], "b1": W[..., d], "W2": a[:, None], "b2": e}


class TwoLayerEnsemble(BaseEstimator):
    r"""B independent networks $f_b(x) = a_b^\top \mathrm{ReLU}(W_b x + c_b) + e_b$, both layers
    trained.

    A `Network` of two layers in standard parametrisation. Full-batch Adam on the mean squared
    error, with a step that falls to zero like a cosine and decay of the weights $W, a$. All B
    networks take each step together. It has scikit-learn's `get_params` and `clone`, but X has an
    axis for the networks, which other estimators do not know.

    Initialisation: $w_j \sim N(0, I/d)$, $c_j \sim N(0, 1)$, $a_j \sim N(0, 1/\text{width})$, $e =
    0$.

    Parameters
    ----------
    width
        Hidden units.
    steps
        Steps of Adam.
    learning_rate
        Its first step.
    weight_decay
        Decoupled decay of W and a.
    penalty
        $\lambda$: adds $\frac\lambda2(\|W\|_F^2 + \|a\|^2)$ to the loss of each network.
    random_state
        Integer or numpy generator of the initial weights.

    Attributes
    ----------
    network_, theta_
        The `Network` and its trained parameters, with a first axis of length B.
    """

    def __init__(
        self,
        width: int = 128,
        *,
        steps: int = 1000,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        penalty: float = 0.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.width = width
        self.steps = steps
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.penalty = penalty
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> TwoLayerEnsemble:
        """Train on X of shape (B, n, d) and y of shape (B, n); the dtype of X is the precision."""
        width = validate.integer(self.width, "width")
        steps = validate.integer(self.steps, "steps", at_most=MOST_STEPS)
        learning_rate = validate.real(self.learning_rate, "learning_rate", above=0)
        weight_decay = validate.real(self.weight_decay, "weight_decay", at_least=0)
        penalty = validate.real(self.penalty, "penalty", at_least=0)
        rng = (
            stream("networks/two-layer")
            if self.random_state is None
            else validate.random_state(self.random_state)
        )
        X, y = validate.as_tensor(X, "X", 3, like=(y,)), validate.as_tensor(y, "y", 2)
        if y.shape != X.shape[:2]:
            raise ValueError(
                f"y must have shape {tuple(X.shape[:2])} to go with X, got {tuple(y.shape)}"
            )
        X, y = X.detach(), y.detach().to(X)
        validate.size(len(X) * width * (X.shape[1] + X.shape[2]), "X and width")
        network = Network((X.shape[2], width, 1), sigma_b=1.0, parametrisation="standard")
        theta = network.initialise(rng, len(X), dtype=X.dtype, device=X.device)
        theta["b2"].zero_()
        self.network_ = network
        self.theta_ = _train(theta, X, y, steps, learning_rate, weight_decay, penalty)
        if not validate.is_finite(self.predict(X)):
            raise ValueError(
                f"training diverges with learning_rate={learning_rate:g}: take a smaller one"
            )
        return self

    @torch.no_grad()
    def predict(self, X: Array) -> Tensor:
        """The (B, m) outputs for X of shape (B, m, d), or (m, d) shared by all networks."""
        check_is_fitted(self)
        return self.network_(self.theta_, validate.as_tensor(X, "X", (2, 3)))
