"""The tangent kernel against quadrature, finite differences, real networks and automatic
differentiation.
"""

import copy
import functools
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import special
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

from featlearn import gp, ntk, recursion, wide
from featlearn.networks import Network
from featlearn.ntk import NTK, empirical_ntk, layer_kernels
from featlearn.scikit import GaussianProcessKernel

FUNCTIONS = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0),
    "erf": (special.erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-z * z)),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
}


@functools.cache
def polar(gamma):
    """Nodes and weights for E[g(z1, cos γ z1 + sin γ z2)], z standard Gaussian, in polar
    coordinates.

    In the angle the rule breaks where either variable changes its sign, so that kinks at zero cost
    nothing.
    """
    x, w = special.roots_legendre(60)
    breaks = np.unique(
        np.array([-1, 1, 3, -1 + 2 * gamma / np.pi, 1 + 2 * gamma / np.pi]) * np.pi / 2
    )
    t = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(breaks)])
    t_weights = np.concatenate([(b - a) / 2 * w for a, b in pairwise(breaks)])
    edges = np.arange(0, 13.0)
    r = np.concatenate([a + (x + 1) / 2 for a in edges])
    r_weights = np.tile(w / 2, len(edges)) * r * np.exp(-r * r / 2)
    return (
        np.outer(r, np.cos(t)),
        np.outer(r, np.cos(t - gamma)),
        np.outer(r_weights, t_weights) / (2 * np.pi),
    )


def expectation(g, q_x, q_xy, q_y):
    size = np.sqrt(q_x * q_y)
    cos = np.clip(q_xy / size, -1, 1) if size > 0 else 0.0
    u, v, weights = polar(0.0 if q_x == q_xy == q_y else float(np.arccos(cos)))
    return (g(np.sqrt(q_x) * u) * g(np.sqrt(q_y) * v) * weights).sum()


def reference(x, y, depth, name, sigma_w, sigma_b):
    """Σ^l and Θ^l for l = 1, ..., depth by quadrature alone."""
    phi, derivative = FUNCTIONS[name]
    q = [sigma_w**2 * (a @ b) / len(x) + sigma_b**2 for a, b in ((x, x), (x, y), (y, y))]
    theta, found = q[1], [(q[1], q[1])]
    for _ in range(depth - 1):
        slope = sigma_w**2 * expectation(derivative, *q)
        triples = ((q[0], q[0], q[0]), q, (q[2], q[2], q[2]))
        q = [sigma_w**2 * expectation(phi, *triple) + sigma_b**2 for triple in triples]
        theta = theta * slope + q[1]
        found.append((q[1], theta))
    return found


def points():
    """A base point and points that are equal, opposite, zero, orthogonal and anyhow to it."""
    rng = np.random.default_rng(3)
    x, other = rng.standard_normal((2, 3))
    across = np.cross(x, other)
    return x, np.stack([x, -x, 0 * x, across, other])


@pytest.mark.parametrize("sigma_b", [0.0, 0.6])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_depths_up_to_ten_against_quadrature(name, sigma_b):
    """NNGP and NTK to 1e-10 against SciPy's nodes in polar coordinates.

    Tiles, angles and whole matrices.
    """
    sigma_w = 1.3
    x, Y = points()
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    unit = Y[length[:, 0] > 0] / length[length[:, 0] > 0]
    for base, others in ((x, Y), (x / np.linalg.norm(x), unit)):
        table = np.array([reference(base, y, 10, name, sigma_w, sigma_b) for y in others])
        for depth in (1, 2, 3, 4, 10):
            kernel = NTK(depth, name, sigma_w, sigma_b)
            X, Z = torch.as_tensor(base[None]), torch.as_tensor(others)
            for start in (X, X.clone().requires_grad_()):
                if start.requires_grad and depth > 3:
                    continue
                for K, wanted in zip(kernel.both(start, Z), table[:, depth - 1].T, strict=True):
                    rounding = 1e-10 if not start.requires_grad else 1e-7
                    np.testing.assert_allclose(
                        K.detach().numpy()[0], wanted, rtol=rounding, atol=rounding
                    )


@pytest.mark.parametrize("depth", [2, 5, 11])
def test_parallel_and_nearly_equal_inputs_lose_no_digits(depth):
    """Without biases Θ(x, cx') = cΘ(x, x').

    Close to equal inputs Θ falls with slope 1/π times the angle at every layer.
    """
    x = np.random.default_rng(0).standard_normal((1, 4))
    kernel = NTK(depth, "relu", 2**0.5)
    at_one = kernel(x, x).item()
    assert at_one == pytest.approx(depth * 2 * (x @ x.T).item() / 4, rel=1e-12)
    for scale in (0.3, 1e3):
        assert kernel(x, scale * x).item() == pytest.approx(scale * at_one, rel=1e-12)
    across = np.linalg.svd(x)[2][1:2] * np.linalg.norm(x)
    for angle in (1e-9, 1e-7, 1e-5):
        fall = (at_one - kernel(x, np.cos(angle) * x + np.sin(angle) * across).item()) / at_one
        assert fall == pytest.approx((depth - 1) / (2 * np.pi) * angle, rel=1e-4, abs=3e-13)


def random(n, d=5, seed=0, dtype=torch.float64):
    return torch.as_tensor(np.random.default_rng(seed).standard_normal((n, d))).to(dtype)


@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", torch.nn.functional.gelu])
def test_tiles_agree_with_whole_matrices(activation, sigma_b, monkeypatch):
    """Many small tiles, ragged at the edges, against the formulas on whole matrices.

    Exact symmetry.
    """
    monkeypatch.setitem(recursion.TILE, "cpu", 6)
    depth = 3 if activation in ("relu", "erf") else 2  # series are slow
    kernel, X, Y = NTK(depth, activation, 1.2, sigma_b), random(14), random(9, seed=1)
    X[12], Y[3] = X[2], X[5]
    for length in (None, 2.0):
        if length is not None:
            X, Y = (length * Z / Z.norm(dim=1, keepdim=True) for Z in (X, Y))
        nngp, ntk = kernel.both(X)
        for tiled, whole in zip((nngp, ntk), kernel.both(X.clone().requires_grad_()), strict=True):
            assert torch.equal(tiled, tiled.T)
            torch.testing.assert_close(tiled, whole.detach(), rtol=1e-7, atol=1e-9)
            assert torch.linalg.eigvalsh(tiled)[0] > -1e-8
        for tiled, whole in zip(
            kernel.both(X, Y), kernel.both(X.clone().requires_grad_(), Y), strict=True
        ):
            torch.testing.assert_close(tiled, whole.detach(), rtol=1e-7, atol=1e-9)
        alone = kernel(X)
        torch.testing.assert_close(kernel(X, X.clone()), alone, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(alone[2, 12], alone[2, 2], rtol=1e-12, atol=0)
        torch.testing.assert_close(ntk, alone, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(nngp, kernel.nngp(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_single_precision(activation, sigma_b):
    kernel, X = NTK(4, activation, 1.2, sigma_b), random(40)
    K = kernel(X.float())
    assert K.dtype == torch.float32
    torch.testing.assert_close(K.double(), kernel(X), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_derivative_along_a_direction(activation, sigma_b):
    kernel, X, h = NTK(3, activation, 1.2, sigma_b), random(3), 1e-6 * random(3, seed=2)
    same = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(kernel(same).sum(), same)
    assert torch.isfinite(gradient).all()
    change = (kernel(X + h).sum() - kernel(X - h).sum()) / 2
    assert change.item() == pytest.approx((gradient * h).sum().item(), rel=1e-4)


def test_transforms_of_functions():
    """torch.func sees through the kernel: forward mode and reverse mode agree."""
    kernel, x, y, step = NTK(3), random(1)[0], random(1, seed=1)[0], random(1, seed=2)[0]

    def value(at):
        return kernel.matrix(at[None], y[None], False)[0, 0]

    slope = torch.func.jvp(value, (x,), (step,))[1]
    assert slope.item() == pytest.approx((torch.func.grad(value)(x) @ step).item(), rel=1e-10)


@pytest.mark.parametrize("sigma_b", [0.0, 1.0])
def test_wide_networks_have_the_limit_kernel(sigma_b):
    """40 networks of width 1000, three layers: the mean within 4 standard errors plus 1 %."""
    net = Network((5, 1000, 1000, 1), "relu", 1.4, sigma_b)
    X, Y = random(4), random(3, seed=1)
    rng = np.random.default_rng(0)
    seen = torch.cat(
        [
            empirical_ntk(net, X, Y, theta=net.initialise(rng, 10, dtype=torch.float32)).double()
            for _ in range(4)
        ]
    )
    limit = NTK(3, "relu", 1.4, sigma_b)(X, Y)
    error = (seen.mean(dim=0) - limit).abs()
    assert (error < 4 * seen.std(dim=0) / 40**0.5 + 0.01 * limit.abs().max()).all()


@pytest.mark.parametrize("parametrisation", ["ntk", "standard"])
@pytest.mark.parametrize("sigma_b", [0.0, 0.7])
@pytest.mark.parametrize("widths", [(5, 1), (5, 7, 1), (5, 7, 6, 8, 1)])
def test_layer_by_layer_equals_the_gram_matrix_of_gradients(widths, sigma_b, parametrisation):
    net = Network(widths, "tanh", 1.3, sigma_b, parametrisation)
    theta = net.initialise(np.random.default_rng(0))
    X, Y = random(4), random(3, seed=1)
    phi_x, phi_y = (wide.tangent_features(net, theta, Z) for Z in (X, Y))
    torch.testing.assert_close(empirical_ntk(net, X, Y, theta=theta), phi_x @ phi_y.T)
    K = empirical_ntk(net, X, theta=theta)
    assert torch.equal(K, K.T)
    torch.testing.assert_close(K, phi_x @ phi_x.T)
    sizes = [theta[name].numel() for name in theta]
    parts = dict(
        zip(
            theta,
            zip(phi_x.split(sizes, dim=1), phi_y.split(sizes, dim=1), strict=True),
            strict=True,
        )
    )
    for layer, found in enumerate(layer_kernels(net, theta, X, Y), start=1):
        wanted = sum(a @ b.T for name, (a, b) in parts.items() if name[1:] == str(layer))
        torch.testing.assert_close(found, wanted)


def test_members_have_their_own_kernels():
    net = Network((5, 6, 6, 1), "relu", 1.3, 0.5)
    theta = net.initialise(np.random.default_rng(0), 3)
    X = random(4)
    together = empirical_ntk(net, X, theta=theta)
    assert together.shape == (3, 4, 4)
    for b in range(3):
        alone = empirical_ntk(net, X, theta={name: value[b] for name, value in theta.items()})
        torch.testing.assert_close(together[b], alone)


def test_modules_and_networks_agree():
    net = Network((5, 7, 6, 1), "relu", 1.3, 0.5, "standard")
    theta = net.initialise(np.random.default_rng(0))
    layers = []
    for layer in range(1, 4):
        linear = torch.nn.Linear(net.widths[layer - 1], net.widths[layer], dtype=torch.float64)
        linear.weight.data, linear.bias.data = theta[f"W{layer}"], theta[f"b{layer}"]
        layers += [linear, torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1])
    X, Y = random(4), random(3, seed=1)
    torch.testing.assert_close(empirical_ntk(module, X, Y), empirical_ntk(net, X, Y, theta=theta))
    torch.testing.assert_close(empirical_ntk(module, X.numpy()), empirical_ntk(net, X, theta=theta))


def test_modules_in_blocks_with_several_outputs_and_frozen_parameters(monkeypatch):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    ).double()
    X, Y = random(5, 16).reshape(5, 1, 4, 4), random(4, 16, seed=1).reshape(4, 1, 4, 4)

    def gradient(x, output):
        module.zero_grad()
        module(x[None])[0, output].backward()
        return torch.cat([p.grad.flatten() for p in module.parameters() if p.requires_grad])

    whole = empirical_ntk(module, X, Y)
    assert whole.shape == (5, 4, 3, 3)
    assert whole[4, 2, 1, 0].item() == pytest.approx((gradient(X[4], 1) @ gradient(Y[2], 0)).item())
    alone = empirical_ntk(module, X)
    monkeypatch.setitem(ntk.MEMORY, "cpu", 4 * 2 * 47 * 3 * 8)
    torch.testing.assert_close(empirical_ntk(module, X, Y), whole)
    torch.testing.assert_close(empirical_ntk(module, X), alone)
    module[0].weight.requires_grad_(False)
    frozen = empirical_ntk(module, X, Y)
    assert frozen[4, 2, 1, 0].item() == pytest.approx(
        (gradient(X[4], 1) @ gradient(Y[2], 0)).item()
    )
    assert not torch.allclose(frozen, whole)


def test_scikit_learn():
    """KernelRidge with the callable and with the matrix; the regressor of Gaussian processes."""
    X, X_new = random(12).numpy(), random(5, seed=1).numpy()
    y = X[:, 0] + 0.3 * random(12, 1, seed=2)[:, 0].numpy()
    kernel = NTK(3, "relu", 1.4, 0.1)
    slow = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y).predict(X_new)
    fast = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel(X), y).predict(kernel(X_new, X))
    np.testing.assert_allclose(slow, fast, rtol=1e-8)
    fixed = GaussianProcessRegressor(GaussianProcessKernel(kernel), alpha=0.1, optimizer=None).fit(
        X, y
    )
    mean, sd = fixed.predict(X_new, return_std=True)
    np.testing.assert_allclose(mean, fast, rtol=1e-8)
    ours = gp.GaussianProcess(kernel, 0.1**0.5).fit(X, y)
    np.testing.assert_allclose(sd**2, ours.variance(X_new).numpy(), rtol=1e-8)
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()
    learned = GaussianProcessRegressor(
        ConstantKernel() * GaussianProcessKernel(functools.partial(empirical_ntk, module))
        + WhiteKernel()
    ).fit(X, y)
    assert np.isfinite(learned.log_marginal_likelihood_value_)
    assert len(learned.kernel_.theta) == 2


def test_errors_name_the_argument():
    net, X = Network((5, 4, 1)), random(3)
    theta = net.initialise(np.random.default_rng(0))
    with pytest.raises(ValueError, match="depth"):
        NTK(0)
    with pytest.raises(ValueError, match="sigma_w"):
        NTK(2, "relu", 0.0)
    with pytest.raises(ValueError, match="same dimension"):
        NTK(2).both(X, random(3, 4))
    with pytest.raises(ValueError, match="theta"):
        empirical_ntk(net, X)
    with pytest.raises(TypeError, match="model"):
        empirical_ntk(np.sin, X)
    with pytest.raises(ValueError, match="theta"):
        empirical_ntk(torch.nn.Linear(5, 1), X, theta=theta)
    with pytest.raises(ValueError, match="X must have 5 columns"):
        empirical_ntk(net, random(3, 4), theta=theta)
    with pytest.raises(ValueError, match="one output"):
        layer_kernels(
            Network((5, 4, 2)), Network((5, 4, 2)).initialise(np.random.default_rng(0)), X
        )
    with pytest.raises(ValueError, match="requires a gradient"):
        empirical_ntk(torch.nn.Flatten(), X)


@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
@pytest.mark.parametrize("activation", ["relu", "erf"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_inputs_of_any_size(activation, sigma_b, dtype):
    """From 1e-10 to 1e10: one set of points and two equal ones, tiles and whole matrices agree."""
    kernel, rounding = NTK(4, activation, 1.3, sigma_b), 1e-9 if dtype == torch.float64 else 1e-4
    for size in (1e-10, 1e5, 1e10):
        X = (size * random(6)).to(dtype)
        K = kernel(X)
        for other in (kernel(X, X.clone()), kernel(X.clone().requires_grad_()).detach()):
            assert torch.isfinite(K).all()
            torch.testing.assert_close(other / K.max(), K / K.max(), rtol=0, atol=rounding)


def test_inference_mode_and_no_grad():
    net, X = Network((5, 4, 1)), random(3)
    wanted = empirical_ntk(net, X, theta=net.initialise(np.random.default_rng(0)))
    module = torch.nn.Linear(5, 1).double()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            theta = net.initialise(np.random.default_rng(0))
            torch.testing.assert_close(empirical_ntk(net, X.clone(), theta=theta), wanted)
            torch.testing.assert_close(empirical_ntk(module, X), X @ X.T + 1)


def test_incomplete_parameters_are_named():
    net, X = Network((5, 4, 1)), random(3)
    with pytest.raises(ValueError, match="W2"):
        empirical_ntk(net, X, theta={"W1": torch.zeros(4, 5, dtype=torch.float64)})
    with pytest.raises(ValueError, match="Y must have 5 columns"):
        empirical_ntk(net, X, random(2, 4), theta=net.initialise(np.random.default_rng(0)))


def test_the_gradient_in_the_second_argument():
    kernel, X, Y = NTK(3, "relu", 1.2, 0.3), random(3), random(2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda Z: kernel(X, Z), Y)


@pytest.mark.parametrize("sigma_b", [0.0, 0.3])
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_deep_kernels_in_single_precision(activation, sigma_b):
    """Where the polynomial would need too high a degree, or too large coefficients, the tiles take
    over.
    """
    X = random(12)
    X = X / X.norm(dim=1, keepdim=True)
    for depth in (8, 15, 20, 25):
        kernel = NTK(depth, activation, 1.5, sigma_b)
        K, wanted = kernel(X.float()).double(), kernel(X)
        torch.testing.assert_close(K / wanted.max(), wanted / wanted.max(), rtol=0, atol=5e-5)


def test_lengths_that_differ_a_little_are_not_equal():
    X = random(6)
    X = (
        X
        / X.norm(dim=1, keepdim=True)
        * torch.linspace(1, 1 + 1e-7, 6, dtype=torch.float64)[:, None]
    )
    kernel = NTK(3, "erf", 1.5, 0.3)
    torch.testing.assert_close(
        kernel(X), kernel(X.clone().requires_grad_()).detach(), rtol=1e-12, atol=0
    )


def test_deep_networks_with_a_zero_input():
    X = random(3)
    X[1] = 0
    K = NTK(21, "relu", 2**0.5)(X)
    assert torch.isfinite(K).all()
    assert (K[1] == 0).all()


def test_an_activation_with_state_is_evaluated_anew():
    slope = torch.nn.PReLU(init=0.1).double()
    X = random(4)
    X = X / X.norm(dim=1, keepdim=True)
    kernel = NTK(3, slope)
    kernel(X, X.clone())
    slope.weight.data.fill_(0.7)
    fresh = NTK(3, lambda z: torch.relu(z) - 0.7 * torch.relu(-z))
    torch.testing.assert_close(kernel(X, X.clone()), fresh(X, X.clone()))


def test_a_copy_is_as_fast_as_the_original():
    kernel = copy.deepcopy(NTK(3))
    assert kernel.activation == recursion.RELU


def test_inputs_that_overflow_are_refused():
    with pytest.raises(ValueError, match="X, Y, sigma_w and sigma_b must be smaller"):
        NTK(3)(1e20 * random(3, dtype=torch.float32))


def test_parameters_of_another_network_are_refused():
    theta = Network((5, 9, 9, 1)).initialise(np.random.default_rng(0))
    with pytest.raises(ValueError, match="W1"):
        empirical_ntk(Network((5, 7, 6, 1)), random(3), theta=theta)


def test_modules_on_indices_and_with_buffers():
    torch.manual_seed(0)
    words = torch.nn.Sequential(
        torch.nn.Embedding(7, 3), torch.nn.Flatten(), torch.nn.Linear(6, 1)
    ).double()
    X = torch.tensor([[0, 1], [1, 2], [6, 0]])
    K = empirical_ntk(words, X)
    seen = words[0](X).flatten(1).detach()
    blocks = words[2].weight.detach().reshape(2, 3)
    for a in range(3):
        for b in range(3):
            pairs = [(i, j) for i in range(2) for j in range(2) if X[a, i] == X[b, j]]
            inner = sum((blocks[i] @ blocks[j] for i, j in pairs), torch.zeros(()))
            assert K[a, b].item() == pytest.approx((seen[a] @ seen[b] + 1 + inner).item())
    norm = torch.nn.Sequential(torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 1)).double().eval()
    before = {name: b.clone() for name, b in norm.named_buffers()}
    empirical_ntk(norm, random(3))
    assert all(torch.equal(b, before[name]) for name, b in norm.named_buffers())
    with pytest.raises(ValueError, match="model must map"):
        empirical_ntk(torch.nn.LSTM(5, 1).double(), random(3))


@pytest.mark.parametrize(
    "part",
    [
        torch.nn.BatchNorm1d(5),
        torch.nn.Dropout(0.5),
        torch.nn.Dropout2d(0.1),
        torch.nn.MultiheadAttention(5, 1, dropout=0.5),
    ],
)
def test_modules_that_mix_rows_or_draw_must_be_in_evaluation_mode(part):
    model = torch.nn.Sequential(part, torch.nn.Linear(5, 1)).double()
    with pytest.raises(ValueError, match=r"model must be in evaluation mode.*call model\.eval\(\)"):
        empirical_ntk(model.train(), random(3))
    if not isinstance(part, (torch.nn.Dropout2d, torch.nn.MultiheadAttention)):
        assert torch.isfinite(empirical_ntk(model.eval(), random(3))).all()
    fleeting = torch.nn.BatchNorm1d(5, track_running_stats=False).double()
    with pytest.raises(ValueError, match="model must treat each row by itself, got BatchNorm1d"):
        empirical_ntk(
            torch.nn.Sequential(fleeting, torch.nn.Linear(5, 1).double()).eval(), random(3)
        )
    with pytest.raises(ValueError, match="model must hold no RReLU"):
        empirical_ntk(
            torch.nn.Sequential(torch.nn.RReLU(), torch.nn.Linear(5, 1)), random(3).float()
        )
    quiet = torch.nn.Sequential(torch.nn.Dropout(0.0), torch.nn.Linear(5, 1)).double().train()
    torch.testing.assert_close(empirical_ntk(quiet, random(3)), random(3) @ random(3).T + 1)


def test_scikit_learn_refuses_kernels_that_are_no_matrix():
    X = np.ones((3, 2))
    for value in (torch.ones(3), torch.ones(2, 2), None, 0.5, torch.full((3, 3), torch.nan)):
        with pytest.raises((ValueError, TypeError), match="kernel"):
            GaussianProcessKernel(lambda *points, value=value: value)(X)
    with pytest.raises(TypeError, match="X must be an array of numbers"):
        GaussianProcessKernel(NTK(2)).diag("abc")


def test_scikit_learn_refuses_what_it_should():
    with pytest.raises(TypeError, match="kernel"):
        GaussianProcessKernel(3)
    with pytest.raises(ValueError, match="eval_gradient"):
        GaussianProcessKernel(NTK(2))(np.ones((2, 2)), np.ones((2, 2)), eval_gradient=True)


@pytest.mark.parametrize("length", [1e-4, 1.0, 1e4])
def test_points_of_one_length_have_a_kernel_of_the_angle(length):
    X = random(20, 5)
    X = length * X / X.norm(dim=1, keepdim=True)
    kernel = NTK(2, "relu", 1.0, 0.5)
    assert recursion.by_angle(kernel.recursion, X, X, recursion.THETA) is not None
    X[0] *= 1.001
    assert recursion.by_angle(kernel.recursion, X, X, recursion.THETA) is None
