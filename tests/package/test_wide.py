"""The NNGP recursion against actual networks, and linearisation against finite differences."""

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

from featlearn import hermite, wide
from featlearn.gp import GaussianProcess
from featlearn.networks import Network, descent
from featlearn.ntk import NTK
from featlearn.random_features import ArcCosine


def wave(z):
    return z + torch.sin(z)


ACTIVATIONS = ["relu", "erf", "tanh", wave]


def inputs(seed=0):
    """Five points, among them an equal pair, an opposite one and zero."""
    X = np.random.default_rng(seed).standard_normal((5, 3))
    X[1], X[2], X[3] = X[0], -X[0], 0
    return torch.as_tensor(X)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
def test_monte_carlo_over_wide_networks(activation, sigma_b):
    """Covariance of the outputs of 400 networks with 60 outputs each; width 300, three layers.

    The outputs of one network are independent given its hidden layers, so they all count. What is
    left is the error of a mean over 400 networks whose covariances fluctuate by about 3/√300.
    """
    X = inputs()
    net = Network((3, 300, 300, 60), activation, 1.3, sigma_b)
    rng, total = np.random.default_rng(1), 0
    for _ in range(16):
        f = net(net.initialise(rng, 25, dtype=torch.float32), X).double()
        total = total + torch.einsum("bik,bjk->ij", f, f)
    K = wide.NNGP(3, activation, 1.3, sigma_b)(X)
    scale = K.diagonal().max()
    torch.testing.assert_close(total / (16 * 25 * 60) / scale, K / scale, atol=0.04, rtol=0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_degenerate_inputs_give_finite_values_and_gradients(activation, sigma_b, dtype):
    X = inputs().to(dtype).requires_grad_()
    K = wide.NNGP(4, activation, 1.3, sigma_b)(X)
    (gradient,) = torch.autograd.grad(K.sum(), X)
    assert K.dtype == dtype
    assert torch.isfinite(K).all()
    assert torch.isfinite(gradient).all()
    assert torch.equal(K, K.T)
    assert torch.linalg.eigvalsh(K.detach())[0] > -1e-5 * K.max()


def test_rounding_of_any_processor_leaves_the_zero_input_at_zero(monkeypatch):
    exact = hermite._coefficients
    noise = np.random.default_rng(3)

    def rounded(function, degree, q):
        found = exact(function, degree, q)
        ulp = 2e-16 * torch.as_tensor(noise.standard_normal(found.shape)) * q.sqrt()
        return found + ulp if degree else found

    monkeypatch.setattr(hermite, "_coefficients", rounded)
    X = inputs().requires_grad_()
    K = wide.NNGP(7, "tanh", 1.3, 0.0)(X)
    (gradient,) = torch.autograd.grad(K.sum(), X)
    assert torch.isfinite(gradient).all()
    assert not K[3].any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sigma_b", [0.0, 0.5])
def test_gradients_are_right_at_equal_and_opposite_inputs(activation, sigma_b):
    kernel = wide.NNGP(3, activation, 1.3, sigma_b)
    x = inputs()[0]
    for y in (x, -x, 2 * x, 0 * x):
        at = x.clone().requires_grad_()
        (got,) = torch.autograd.grad(kernel(at, y), at)
        h = 1e-5 * torch.eye(3, dtype=torch.float64)
        wanted = torch.stack([(kernel(x + e, y) - kernel(x - e, y)) / 2e-5 for e in h])
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-6)


def test_first_layers_by_hand():
    X, Y = inputs(), inputs(1)
    torch.testing.assert_close(wide.NNGP(1, "relu", 1.5, 0.5)(X, Y), 2.25 * X @ Y.T / 3 + 0.25)
    torch.testing.assert_close(wide.NNGP(2, "relu", np.sqrt(2))(X, Y), 2 / 3 * ArcCosine()(X, Y))
    linear = wide.NNGP(3, lambda z: z, 1.5, 0.5)(X, Y)
    torch.testing.assert_close(linear, 2.25 * (2.25 * (2.25 * X @ Y.T / 3 + 0.25) + 0.25) + 0.25)


def leaky(z):
    return torch.where(z > 0, z, 0.1 * z)


@pytest.mark.parametrize("activation", [*ACTIVATIONS, leaky])
def test_a_process_without_noise_meets_its_data(activation):
    """One set and two sets of points give the same kernel, also where the series has an error."""
    X = np.random.default_rng(5).uniform(-4, 4, (9, 3))
    y = np.random.default_rng(6).standard_normal(9)
    process = GaussianProcess(wide.NNGP(3, activation, 1.5, 0.1)).fit(X, y)
    np.testing.assert_allclose(process.mean(X), y, atol=1e-7)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_large_and_small_inputs(activation):
    """float32 at both ends of its range: finite values and gradients, and the values of float64."""
    x = np.random.default_rng(7).standard_normal((20, 3))
    for size in (1e-12, 3e3, 1e12):
        X = torch.as_tensor(size * x, dtype=torch.float32).requires_grad_()
        kernel = wide.NNGP(3, activation)
        K = kernel(X, X.clone())
        assert torch.isfinite(torch.autograd.grad(K.sum(), X)[0]).all()
        torch.testing.assert_close(
            K.double(), kernel(X.detach().double(), X.detach().double()), rtol=1e-3, atol=0
        )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_forward_mode_at_equal_and_zero_inputs(activation):
    X = inputs()
    _, slope = torch.func.jvp(
        lambda at: wide.NNGP(2, activation, 1.2).matrix(at, X, False), (X,), (torch.ones_like(X),)
    )
    assert torch.isfinite(slope).all()


def test_series_says_when_it_is_not_enough():
    with pytest.raises(
        ValueError, match="activation 'tanh' needs a closed form or a larger degree"
    ):
        wide.NNGP(2, "tanh")(np.full((1, 2), 1e3))


def test_depth_75_in_single_precision():
    X = np.random.default_rng(8).standard_normal((3, 4))
    deep = wide.NNGP(75, "relu")
    torch.testing.assert_close(deep(X.astype(np.float32)).double(), deep(X), rtol=1e-3, atol=0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_one_set_and_two_sets_agree(activation):
    kernel, X = (
        wide.NNGP(3, activation, 1.2, 0.3),
        torch.as_tensor(0.5 * np.random.default_rng(3).standard_normal((6, 2))),
    )
    torch.testing.assert_close(kernel(X), kernel(X, X.clone()), rtol=1e-9, atol=1e-10)
    assert kernel(X[0], X[1]).item() == pytest.approx(kernel(X)[0, 1].item(), rel=1e-9)


def test_plugs_into_scikit_learn():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((12, 3)), rng.standard_normal(12)
    model = KernelRidge(alpha=0.1, kernel=wide.NNGP(3)).fit(X, y)
    K = wide.NNGP(3)(X).numpy()
    np.testing.assert_allclose(
        model.predict(X), K @ np.linalg.solve(K + 0.1 * np.eye(12), y), atol=1e-8
    )


@pytest.mark.parametrize("members", [None, 3])
@pytest.mark.parametrize("widths", [(3, 1), (3, 1, 1), (3, 8, 5, 1)])
def test_linearisation_is_the_first_order_part(members, widths):
    """Also at width 1: value and directional derivative against central differences."""
    net = Network(widths, "erf", 1.2, 0.4)
    theta0, shift = (net.initialise(np.random.default_rng(s), members) for s in (0, 1))
    X, h = inputs(), 1e-5
    at = lambda e: {name: theta0[name] + e * shift[name] for name in theta0}  # noqa: E731
    slope = (net(at(h), X) - net(at(-h), X)) / (2 * h)
    f_lin = wide.linearise(net, theta0)
    assert torch.equal(f_lin(theta0, X), net(theta0, X))
    torch.testing.assert_close(f_lin(at(1.0), X), net(theta0, X) + slope, atol=1e-8, rtol=0)


def test_tangent_features_are_the_gradients():
    net = Network((3, 6, 4, 1), "tanh", 1.2, 0.4)
    theta, X = net.initialise(np.random.default_rng(0)), inputs()
    features = wide.tangent_features(net, theta, X)
    leaves = {name: value.clone().requires_grad_() for name, value in theta.items()}
    for row, x in zip(features, X, strict=True):
        gradients = torch.autograd.grad(net(leaves, x[None])[0], list(leaves.values()))
        torch.testing.assert_close(row, torch.cat([g.flatten() for g in gradients]))
    many = net.initialise(np.random.default_rng(0), 2)
    batched = torch.func.vmap(lambda at: wide.tangent_features(net, at, X))(many)
    assert batched.shape == (2, *features.shape)


def test_linearised_training_is_the_tangent_kernel():
    net, X = Network((3, 20, 1), "relu", 1.4), inputs()
    y = torch.as_tensor(np.random.default_rng(2).standard_normal(5))
    theta0 = net.initialise(np.random.default_rng(3))
    f_lin = wide.linearise(net, theta0)
    *_, end = descent(f_lin, theta0, X, y, learning_rate=0.05, steps=20)
    features = wide.tangent_features(net, theta0, X)
    f = net(theta0, X)
    for _ in range(20):
        f = f - 0.05 * features @ features.T @ (f - y)
    torch.testing.assert_close(f_lin(end, X), f, atol=1e-10, rtol=0)


def points(n=4, d=3, seed=11):
    return torch.as_tensor(np.random.default_rng(seed).standard_normal((n, d)))


@pytest.mark.parametrize("sigma_b", [0.0, 0.4])
@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("kernel", [wide.NNGP, NTK])
def test_gradcheck_in_every_form_of_call(kernel, activation, sigma_b):
    """For the slow series of tanh along random directions, in two layers."""
    depth = 2 if activation == "tanh" else 3
    k, X, Y = kernel(depth, activation, 1.3, sigma_b), points(3, 2), points(2, 2, seed=12)
    X, Y = (Z.requires_grad_() for Z in (X, Y))
    quick = {"fast_mode": activation == "tanh"}
    assert torch.autograd.gradcheck(k, (X,), **quick)
    assert torch.autograd.gradcheck(lambda Z: k(Z, Z), (X,), **quick)
    assert torch.autograd.gradcheck(k, (X, Y), **quick)
    x, y = (Z[0].detach().requires_grad_() for Z in (X, Y))
    assert torch.autograd.gradcheck(k, (x, y), **quick)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("kernel", [wide.NNGP, NTK])
def test_gradcheck_in_the_scales(kernel, activation):
    X, Y, depth = points(3, 2), points(2, 2, seed=12), 2 if activation == "tanh" else 3
    scales = [torch.tensor(s, dtype=torch.float64, requires_grad=True) for s in (1.3, 0.4)]
    for form in ((X,), (X, X), (X, Y)):
        assert torch.autograd.gradcheck(
            lambda w, b, form=form: kernel(depth, activation, w, b)(*form),
            scales,
            fast_mode=activation == "tanh",
        )
    plain = kernel(depth, activation, 1.3, 0.4)(X, Y)
    torch.testing.assert_close(kernel(depth, activation, *scales)(X, Y).detach(), plain)
    with torch.no_grad():
        torch.testing.assert_close(kernel(depth, activation, *scales)(X, Y), plain)


def test_both_is_differentiable():
    X, Y = points(3).requires_grad_(), points(2, seed=12)
    for form in (lambda Z: NTK(3).both(Z), lambda Z: NTK(3).both(Z, Y)):
        assert torch.autograd.gradcheck(form, (X,))


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("kernel", [wide.NNGP, NTK])
def test_transforms_of_functions(kernel, activation):
    depth = 2 if activation == "tanh" else 3  # its series is slow
    k, X, Y = kernel(depth, activation, 1.3, 0.2), points(5), points(5, seed=12)
    K = k(X, Y)
    close = {"rtol": 1e-9, "atol": 1e-10}
    torch.testing.assert_close(torch.func.vmap(k)(X, Y), K.diagonal(), **close)
    sets = torch.stack([X, Y])
    torch.testing.assert_close(torch.func.vmap(k)(sets), torch.stack([k(X), k(Y)]), **close)
    at = X.clone().requires_grad_()
    wanted = torch.autograd.grad(k(at, Y).sum(), at)[0]
    torch.testing.assert_close(torch.func.grad(lambda Z: k(Z, Y).sum())(X), wanted)
    torch.testing.assert_close(torch.func.jacrev(lambda Z: k(Z, Y).sum())(X), wanted)
    by_rows = torch.func.vmap(torch.func.grad(k), in_dims=(0, 0))(X, Y)
    for row, x, y in zip(by_rows, X, Y, strict=True):
        x = x.clone().requires_grad_()
        torch.testing.assert_close(row, torch.autograd.grad(k(x, y), x)[0])
    by_scale = torch.func.grad(lambda s: kernel(depth, activation, s, 0.2)(X, Y).sum())
    scale = torch.tensor(1.3, dtype=torch.float64)
    up, down = (kernel(depth, activation, 1.3 + h, 0.2)(X, Y).sum() for h in (1e-6, -1e-6))
    assert by_scale(scale).item() == pytest.approx((up - down).item() / 2e-6, rel=1e-6)


def test_dtypes_promote_in_either_order():
    X, Y = points().float(), points(2, seed=12)
    for k in (wide.NNGP(3), NTK(3, "tanh", 1.2, 0.1)):
        assert k(X, Y).dtype == k(Y, X).dtype == torch.float64
        assert k(X).dtype == k(X, Y.float()).dtype == torch.float32
        torch.testing.assert_close(k(X, Y), k(Y, X).T)
    assert {K.dtype for K in NTK(3).both(X, Y)} == {torch.float64}
    scale = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    assert wide.NNGP(3, "relu", scale)(X).dtype == torch.float32


def test_overflow_is_refused_on_every_route():
    X = 1e200 * points()
    for at in (X, X.clone().requires_grad_()):
        with pytest.raises(ValueError, match="X, Y, sigma_w and sigma_b must be smaller"):
            wide.NNGP(3)(at)
    with pytest.raises(ValueError, match="sigma_w and sigma_b must be smaller"):
        wide.NNGP(3, sigma_w=1e150)(points())
    with pytest.raises(ValueError, match="sigma_b must be at most 1e\\+150"):
        wide.NNGP(3, sigma_b=1e200)


def test_a_kernel_that_underflows_is_zero():
    for k in (wide.NNGP(3, sigma_w=1e-300), NTK(3, sigma_w=1e-300)):
        assert not k(points()).any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wide.NNGP(0), ValueError, "depth must be at least 1"),
        (lambda: wide.NNGP(2, "swish"), ValueError, "activation must be one of"),
        (lambda: wide.NNGP(10**9), ValueError, "depth must be at most 10000"),
        (
            lambda: wide.NNGP(2, sigma_w=torch.tensor(-1.0)),
            ValueError,
            "sigma_w must be greater than 0",
        ),
        (lambda: wide.NNGP(2, sigma_w=torch.ones(2)), ValueError, "sigma_w must be 0-dimensional"),
        (lambda: wide.NNGP(2)(torch.ones(2, 3).half()), TypeError, "X must be float32 or float64"),
        (lambda: wide.linearise(Network((2, 1)), {}), ValueError, "theta0 must be a dictionary"),
        (lambda: wide.linearise(3, {}), TypeError, "network must be callable"),
        (lambda: wide.NNGP(2, sigma_w=0), ValueError, "sigma_w must be greater than 0"),
        (lambda: wide.NNGP(2, sigma_b=-1), ValueError, "sigma_b must be at least 0"),
        (
            lambda: wide.NNGP(2)(np.zeros((2, 3)), np.zeros((2, 4))),
            ValueError,
            "X and Y must have the same dimension",
        ),
        (
            lambda: wide.tangent_features(Network((2, 1)), {}, np.zeros(2)),
            ValueError,
            "X must be 2-dimensional",
        ),
        (
            lambda: wide.tangent_features(
                Network((2, 3)),
                Network((2, 3)).initialise(np.random.default_rng()),
                np.zeros((4, 2)),
            ),
            ValueError,
            "one network with one output",
        ),
        (
            lambda: wide.tangent_features(
                Network((2, 1)),
                Network((2, 1)).initialise(np.random.default_rng(), 3),
                np.zeros((4, 2)),
            ),
            ValueError,
            "one network with one output",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
