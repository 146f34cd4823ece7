r"""Chapter 4: the neural tangent kernel, of infinitely wide networks and of real ones.

$\Theta(x, x') = \nabla_\theta f(x)\cdot\nabla_\theta f(x')$ governs training by gradient flow:
$\dot f_t(x) = \Theta(x, X)(y - f_t(X))$.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, vmap

from featlearn import activations, recursion, validate, wide
from featlearn.networks import Network, Parameters
from featlearn.validate import Array

MEMORY = {"cpu": 2**30, "cuda": 2**33}


class NTK(wide.WideKernel):
    r"""$\Theta^L$, the tangent kernel of an infinitely wide network of $L$ layers (S1, Theorem 5).

    $\Theta^1 = \Sigma^1$ and $\Theta^l = \Theta^{l-1}\dot\Sigma^l + \Sigma^l$ with $\dot\Sigma^l =
    \sigma_w^2\,\mathbb{E}[\varphi'(z)\varphi'(z')]$ over a Gaussian pair $(z, z')$ with covariance
    $\Sigma^{l-1}$. There is no $\sigma_b^2$ in $\dot\Sigma$. The network is in NTK parametrisation.

    A kernel callable; parameters as in `featlearn.wide.WideKernel`. float32 or float64, on the
    device of X, differentiable in X, Y, $\sigma_w$ and $\sigma_b$. See `featlearn.recursion` for
    how it is computed. ReLU kernels of up to 19 layers without biases, or for inputs of one length,
    lose no digits for pairs of inputs that point almost the same way. Elsewhere a pair at the angle
    $\gamma > 0$ carries an error of about $\varepsilon/\gamma$, where $\varepsilon$ is the
    rounding of the dtype.

    Examples
    --------
    >>> import torch
    >>> k = NTK(depth=3, activation="relu", sigma_w=2**0.5)
    >>> X = torch.eye(2, dtype=torch.float64)
    >>> k(X).shape, round((k(X)[0, 0] / k.nngp(X)[0, 0]).item(), 6)
    (torch.Size([2, 2]), 3.0)
    """

    def matrix(self, X: Tensor, Y: Tensor, same: bool) -> Tensor:
        """The (n, m) matrix of the kernel; for one set of points it is exactly symmetric."""
        return recursion.kernels(self.recursion, X, Y, same, [recursion.THETA])[0]

    @property
    def nngp(self) -> wide.NNGP:
        r"""The kernel $\Sigma^L$ of the same network at initialisation."""
        return wide.NNGP(self.depth, self.activation, self.sigma_w, self.sigma_b)

    def both(self, X: Array, Y: Array | None = None) -> tuple[Tensor, Tensor]:
        r"""$\Sigma^L$ and $\Theta^L$ between the rows of X and Y, (n, m) each, in one pass."""
        same = Y is None or Y is X
        if Y is None or same:
            X = Y = validate.as_tensor(X, "X", 2)
        else:
            X, Y = validate.pair(X, Y, 2)
        with validate.pairs(X, Y):
            nngp, ntk = recursion.kernels(
                self.recursion, X, Y, same, [recursion.SIGMA, recursion.THETA]
            )
        return nngp, ntk


def _signals(network: Network, theta: Parameters, X: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    r"""$h^0, \dots, h^{L-1}$ and $\partial f/\partial f^1, \dots, \partial f/\partial f^L$ at X:
    one pass forward, one back.

    The output of one row depends on the pre-activations of that row alone. So the gradient of the
    sum over rows holds all of theirs. Shapes (..., n, n_l).
    """
    with torch.inference_mode(False), torch.enable_grad():
        at = {
            name: value.clone() if value.is_inference() else value.detach()
            for name, value in theta.items()
        }
        X = X.clone() if X.is_inference() else X.detach()
        f = network._layers(at, X.requires_grad_())
        D = torch.autograd.grad(f[-1].sum(), f)
        phi = activations.get(network.activation).function
        return [X.detach(), *(phi(value.detach()) for value in f[:-1])], list(D)


def layer_kernels(
    network: Network, theta: Parameters, X: Array, Y: Array | None = None
) -> list[Tensor]:
    r"""$K_l(x, x') = \nabla_{W^l, b^l}f(x)\cdot\nabla_{W^l, b^l}f(x')$ for the layers $l = 1,
    \dots, L$ of a `Network` with one output.

    The gradient in $W^l$ is an outer product, $\frac{\sigma_w}{\sqrt{n_{l-1}}}\frac{\partial
    f}{\partial f^l}(h^{l-1})^\top$. The product of two of them is a product of two numbers, and no
    gradient is ever formed:

    $K_l = \Bigl(\frac{\sigma_w^2}{n_{l-1}}\langle h^{l-1}(x), h^{l-1}(x')\rangle +
    \sigma_b^2\Bigr)\Bigl\langle\frac{\partial f}{\partial f^l}(x), \frac{\partial f}{\partial
    f^l}(x')\Bigr\rangle.$

    The factors $\sigma_w/\sqrt{n_{l-1}}$ and $\sigma_b$ are those of NTK parametrisation; other
    ones have those of `Network.scales`. Their sum is the network's tangent kernel. Shapes (n, m),
    or (B, n, m) for B members. Not differentiable.
    """
    same = Y is None or Y is X
    if validate.instance(network, "network", Network).widths[-1] != 1:
        raise ValueError(f"network must have one output, got {network.widths[-1]}")
    X = network._inputs(theta, validate.as_tensor(X, "X", 2))
    Y = X if Y is None or same else validate.as_tensor(Y, "Y", 2).to(X)
    validate.columns(Y, "Y", X.shape[1])
    h_x, D_x = _signals(network, theta, X)
    h_y, D_y = (h_x, D_x) if same else _signals(network, theta, Y)
    found = []
    for below in range(network.depth):
        alpha, beta = network.scales(below + 1)[0]
        K = alpha**2 * (h_x[below] @ h_y[below].mT)
        if f"b{below + 1}" in theta:
            K = K + beta**2
        K = K * (D_x[below] @ D_y[below].mT)
        found.append((K + K.mT) / 2 if same else K)
    return found


def empirical_ntk(
    model: Network | torch.nn.Module,
    X: Array,
    Y: Array | None = None,
    *,
    theta: Parameters | None = None,
) -> Tensor:
    r"""$\nabla_\theta f(x)\cdot\nabla_\theta f(x')$ of a network as it is, trained or not, for the
    rows x of X and x' of Y.

    For a `Network` with parameters `theta` layer by layer, without gradients of the parameters
    (`layer_kernels`); B members give (B, n, m). For a `torch.nn.Module` by `torch.func`: the
    gradients of blocks of rows are formed and multiplied, over the parameters that require one. A
    module that treats rows jointly or at random (batch normalisation, dropout) must be in
    evaluation mode; in training mode this raises.

    Parameters
    ----------
    model
        A `Network`, or a module that maps a batch (n, ...) to (n,), (n, 1) or (n, C).
    X, Y
        Inputs; Y is X if not given. Vectors of inputs for a `Network`, any shape (n, ...) for a
        module.
    theta
        The parameters of a `Network`.

    Returns
    -------
    Tensor
        (n, m) for one output; (n, m, C, C) for C outputs, with entry $\nabla f_c(x)\cdot\nabla
        f_{c'}(x')$.
    """
    if isinstance(model, Network):
        if theta is None:
            raise ValueError("theta must hold the parameters of the Network")
        return torch.stack(layer_kernels(model, theta, X, Y)).sum(dim=0)
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a Network or a torch.nn.Module, got {type(model).__name__}")
    if theta is not None:
        raise ValueError("theta is for a Network; a module has its own parameters")
    return _module_ntk(model, X, Y)


def _inputs(X: Array, name: str, like: Tensor) -> Tensor:
    """Integers, such as indices of an embedding, stay what they are."""
    if isinstance(X, Tensor) and not X.is_floating_point():
        return X.to(like.device)
    return validate.as_tensor(X, name).to(like)


def _check_mode(model: torch.nn.Module) -> None:
    """Raise if a part of the module treats rows jointly or at random, as in training."""
    for part in model.modules():
        if isinstance(part, torch.nn.RReLU):
            raise ValueError("model must hold no RReLU, which torch.func cannot differentiate")
        random = (isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0) or (
            isinstance(part, torch.nn.MultiheadAttention) and part.dropout > 0
        )
        joint = isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
        if part.training and (random or joint):
            raise ValueError(
                f"model must be in evaluation mode, as {type(part).__name__} treats rows "
                f"{'at random' if random else 'jointly'} in training: call model.eval() first"
            )
        if joint and part.running_mean is None:
            raise ValueError(
                f"model must treat each row by itself, got {type(part).__name__} without running "
                "statistics"
            )


def _usable(value: Tensor) -> Tensor:
    """`value`, or a copy of what inference mode has made, for gradients outside of it."""
    return value.clone() if value.is_inference() else value


def _module_ntk(model: torch.nn.Module, X: Array, Y: Array | None) -> Tensor:
    _check_mode(model)
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError("model must have a parameter that requires a gradient")
    first = next(iter(trained.values()))
    same = Y is None or Y is X
    X = _inputs(X, "X", first)
    Y = X if Y is None or same else _inputs(Y, "Y", first)
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    with torch.no_grad():
        output = functional_call(model, {**trained, **buffers}, (X[:1],))
    if not isinstance(output, Tensor) or output.ndim not in (1, 2) or len(output) != 1:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"model must map a batch (1, ...) to (1,) or (1, C), got {got}")
    outputs = output.numel()
    size = sum(p.numel() for p in trained.values())
    memory = MEMORY["cpu" if first.device.type == "cpu" else "cuda"]
    rows = max(1, memory // (4 * size * outputs * first.element_size()))

    def value(at: Parameters, x: Tensor) -> Tensor:
        return functional_call(model, at, (x[None],)).reshape(outputs)

    def gradients(block: Tensor) -> list[Tensor]:
        with torch.inference_mode(False):  # inside it the jacrev of torch 2.2 gives zeros
            at, points = {name: _usable(p) for name, p in trained.items()}, _usable(block)
            parts = vmap(jacrev(value), in_dims=(None, 0))(at, points)
        return [part.reshape(len(block) * outputs, -1) for part in parts.values()]

    K = first.new_empty(len(X) * outputs, len(Y) * outputs)
    for i in range(0, len(X), rows):
        J = gradients(X[i : i + rows])
        a = slice(i * outputs, i * outputs + len(J[0]))
        for j in range(0, i + 1 if same else len(Y), rows):
            J_y = J if same and i == j else gradients(Y[j : j + rows])
            b = slice(j * outputs, j * outputs + len(J_y[0]))
            K[a, b] = sum(A @ B.T for A, B in zip(J, J_y, strict=True))
            if same and i != j:
                K[b, a] = K[a, b].T
            del J_y
    if same:
        K = (K + K.T) / 2
    if outputs == 1:
        return K
    return K.reshape(len(X), outputs, len(Y), outputs).transpose(1, 2)
