"""featlearn.notation against gradient descent, linear algebra, automatic differentiation and numpy,
each done by hand.
"""

import math
from itertools import product

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite as physicists
from numpy.polynomial import hermite_e as probabilists

from featlearn import hermite, networks, notation, stream
from featlearn.notation import HERMITE, LOSSES
from featlearn.shi import Patterns


def draw(*shape, name="notation"):
    return torch.as_tensor(stream(f"tests/{name}").standard_normal(shape))


def loss_value(residual, loss):
    """The four losses, written out."""
    n = len(residual)
    return {
        "half-sum": residual.square().sum() / 2,
        "sum": residual.square().sum(),
        "mean": residual.square().mean(),
        "half-mean": residual.square().sum() / (2 * n),
    }[loss]


def descend(F, y, loss, step, ridge, steps=7):
    """a ← a − η(∇L + λa) by automatic differentiation."""
    a = torch.full((F.shape[1],), 0.3, dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        gradient = torch.autograd.grad(loss_value(F @ a - y, loss), a)[0]
        a = (a - step * (gradient + ridge * a)).detach().requires_grad_()
    return a.detach()


VALUE = {
    "h": lambda z, c: c @ hermite.polynomials(z, len(c) - 1).numpy(),
    "He": lambda z, c: probabilists.hermeval(z, c),
    "H": lambda z, c: physicists.hermval(z / math.sqrt(2), c),
}


@pytest.mark.parametrize(("source", "target"), list(product(VALUE, VALUE)))
def test_hermite_coefficients_describe_one_function(source, target):
    z, c = np.linspace(-3, 3, 25), draw(9).numpy()
    converted = notation.hermite_coefficients(c, source, target).numpy()
    np.testing.assert_allclose(
        VALUE[target](z, converted), VALUE[source](z, c), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("source", HERMITE)
def test_hermite_means_are_means_of_derivatives(source):
    powers = [1.0, -2.0, 0.5, 3.0, -1.0]
    moments = [1, 0, 1, 0, 3]
    derivatives = [np.polynomial.polynomial.polyder(powers, k) for k in range(5)]
    means = [float(np.dot(q, moments[: len(q)])) for q in derivatives]
    there = notation.hermite_coefficients(means, "mean", source)
    np.testing.assert_allclose(
        notation.hermite_coefficients(there, source, "mean"), means, rtol=1e-12
    )
    he = notation.hermite_coefficients(means, "mean", "He").numpy()
    np.testing.assert_allclose(probabilists.herme2poly(he), powers, rtol=1e-12)


def test_hermite_coefficients_keep_other_axes_dtype_and_high_degrees():
    c = draw(6, 2, 3)
    columns = notation.hermite_coefficients(c, "h", "mean")
    one = notation.hermite_coefficients(c[:, 1, 2], "h", "mean")
    torch.testing.assert_close(columns[:, 1, 2], one)
    assert notation.hermite_coefficients(c.float(), "h", "He").dtype == torch.float32
    top = notation.hermite_coefficients(torch.ones(121, dtype=torch.float64), "h", "H")[120].item()
    assert top == pytest.approx(1 / math.sqrt(2**120 * math.factorial(120)), rel=1e-11)


@pytest.mark.parametrize(("source", "target"), list(product(LOSSES, LOSSES)))
def test_steps_and_ridges_keep_every_iterate(source, target):
    F, y, n = draw(12, 4), draw(12, name="y"), 12
    path = descend(F, y, source, 0.01, 0.4)
    step = notation.convert_learning_rate(0.01, n, source, target)
    ridge = notation.convert_ridge(0.4, n, source, target)
    torch.testing.assert_close(descend(F, y, target, step, ridge), path, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("loss", "half"), list(product(LOSSES, (True, False))))
def test_kernel_ridge_finds_the_minimiser(loss, half):
    F, y, ridge = draw(10, 3), draw(10, name="y"), 0.7
    mu = notation.kernel_ridge(ridge, 10, loss, half=half)
    a = (F.T @ torch.linalg.solve(F @ F.T + mu * torch.eye(10), y)).requires_grad_()
    penalised = loss_value(F @ a - y, loss) + ridge / (2 if half else 1) * a.square().sum()
    torch.testing.assert_close(
        torch.autograd.grad(penalised, a)[0], torch.zeros(3, dtype=torch.float64)
    )


def test_algorithm_1_has_half_of_n_lambda():
    assert notation.kernel_ridge(0.5, 40) == 10.0
    assert notation.kernel_ridge(0.5, 40, "sum", half=False) == 0.5  # S0's ‖Xw − y‖² + λ‖w‖²


def test_unscaled_features_follow_the_same_path():
    Phi, y, theta, eta = draw(5, 8), draw(5, name="y"), draw(8, name="theta"), 0.05
    other, step = notation.unscaled_features(theta, eta)
    for _ in range(20):
        theta = theta - eta * Phi.T / 8**0.5 @ (Phi @ theta / 8**0.5 - y)
        other = other - step * Phi.T @ (Phi @ other - y)
    torch.testing.assert_close(Phi @ other, Phi @ theta / 8**0.5, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma_b", [0.0, 0.3])
def test_both_parametrisations_take_the_same_steps(sigma_b):
    ntk = networks.Network((3, 6, 5, 1), "tanh", sigma_w=1.4, sigma_b=sigma_b)
    theta = ntk.initialise(stream("tests/theta"))
    standard, other = notation.to_standard(ntk, theta)
    X, y, rates = draw(7, 3), draw(7, name="y"), notation.standard_learning_rates(ntk, 0.1)
    torch.testing.assert_close(standard(other, X), ntk(theta, X))
    for _ in range(5):
        theta = list(networks.descent(ntk, theta, X, y, learning_rate=0.1, steps=1))[1]
        leaves = {name: value.requires_grad_() for name, value in other.items()}
        loss = (standard(leaves, X) - y).square().sum() / 2
        slopes = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        other = {name: (leaves[name] - rates[name] * slopes[name]).detach() for name in leaves}
    torch.testing.assert_close(standard(other, X), ntk(theta, X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(("outer", "inner"), [(1.0, 1.0), (0.5, 1.0), (0.3, 0.7)])
def test_two_layer_kernels_are_products_of_gradients(activation, outer, inner):
    a, W, X = draw(6), draw(6, 3, name="W"), draw(4, 3, name="X")
    sigma = {"relu": torch.relu, "tanh": torch.tanh}[activation]
    rows = [[], []]
    for x in X:
        leaves = [W.clone().requires_grad_(), a.clone().requires_grad_()]
        output = outer * leaves[1] @ sigma(inner * leaves[0] @ x)
        for row, gradient in zip(rows, torch.autograd.grad(output, leaves), strict=True):
            row.append(gradient.flatten())
    expected = [torch.stack(row) @ torch.stack(row).T for row in rows]
    found = notation.two_layer_kernels(a, W, X, outer=outer, inner=inner, activation=activation)
    torch.testing.assert_close(list(found), expected)


def test_the_sphere_and_its_bandwidth():
    X, d, sigma = draw(6, 5), 5, 1.7
    S = notation.to_sphere(X)
    torch.testing.assert_close(S.norm(dim=1), torch.full((6,), 5**0.5, dtype=torch.float64))
    torch.testing.assert_close(torch.nn.functional.cosine_similarity(S, X), torch.ones(6).double())
    distances, unit = torch.cdist(S, S), torch.cdist(S / d**0.5, S / d**0.5)
    K = torch.exp(-(distances**2) / (2 * sigma**2))
    torch.testing.assert_close(
        torch.exp(-(unit**2) / (2 * notation.unit_bandwidth(sigma, d) ** 2)), K
    )
    torch.testing.assert_close(torch.exp((S @ S.T / d - 1) * d / sigma**2), K)


def test_signs_counts_and_labels():
    phi = torch.tensor(list(product((0.0, 1.0), repeat=4)))
    signs = notation.to_signs(phi)
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    torch.testing.assert_close((4 + signs.sum(dim=1)) / 2, phi.sum(dim=1))
    for P in ({0}, {0, 2}, {1, 3}, {4}):
        y = Patterns(A=range(4), P=P, D=4).labels
        flipped = Patterns(A=range(4), P=notation.flip_labels(P, 4), D=4).labels
        assert torch.equal(flipped, -y)
    assert notation.flip_labels({0, 2}, 4) <= set(range(1, 5))


NETWORK = networks.Network((2, 3, 1))
THETA = NETWORK.initialise(stream("tests/small"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: notation.hermite_coefficients(1.0, "h", "He"),
            ValueError,
            "values must have an axis",
        ),
        (
            lambda: notation.hermite_coefficients([1.0], "g", "He"),
            ValueError,
            "source must be one of",
        ),
        (
            lambda: notation.hermite_coefficients([1.0], "h", "he"),
            ValueError,
            "target must be one of",
        ),
        (
            lambda: notation.hermite_coefficients([np.nan], "h", "He"),
            ValueError,
            "values must be finite",
        ),
        (
            lambda: notation.convert_learning_rate(0.0, 3, "sum", "mean"),
            ValueError,
            "learning_rate must be greater than 0",
        ),
        (
            lambda: notation.convert_learning_rate(1.0, 0, "sum", "mean"),
            ValueError,
            "n must be at least 1",
        ),
        (
            lambda: notation.convert_learning_rate(1.0, 3, "l2", "mean"),
            ValueError,
            "source must be one of",
        ),
        (
            lambda: notation.convert_learning_rate(1.0, 3, "sum", "l2"),
            ValueError,
            "target must be one of",
        ),
        (
            lambda: notation.convert_ridge(-1.0, 3, "sum", "mean"),
            ValueError,
            "ridge must be at least 0",
        ),
        (
            lambda: notation.convert_ridge(1.0, 2.5, "sum", "mean"),
            TypeError,
            "n must be an integer",
        ),
        (lambda: notation.kernel_ridge(-1.0, 3), ValueError, "ridge must be at least 0"),
        (lambda: notation.kernel_ridge(1.0, 3, "l2"), ValueError, "loss must be one of"),
        (lambda: notation.kernel_ridge(1.0, 3, half=1), TypeError, "half must be True or False"),
        (lambda: notation.unscaled_features(1.0, 0.1), ValueError, "theta must have an axis"),
        (
            lambda: notation.unscaled_features([1.0], -0.1),
            ValueError,
            "learning_rate must be greater than 0",
        ),
        (lambda: notation.to_standard(None, {}), ValueError, "network must be a Network in NTK"),
        (
            lambda: notation.to_standard(networks.Network((2, 1), parametrisation="standard"), {}),
            ValueError,
            "network must be a Network in NTK",
        ),
        (
            lambda: notation.to_standard(NETWORK, {"W1": THETA["W1"]}),
            ValueError,
            "theta must have the",
        ),
        (
            lambda: notation.standard_learning_rates(NETWORK, 0.0),
            ValueError,
            "learning_rate must be greater than 0",
        ),
        (
            lambda: notation.two_layer_kernels([1.0], np.ones((2, 3)), np.ones((4, 3))),
            ValueError,
            "a and W must have the same number of rows",
        ),
        (
            lambda: notation.two_layer_kernels([1.0, 2.0], np.ones((2, 3)), np.ones((4, 2))),
            ValueError,
            "W must have 2 columns",
        ),
        (
            lambda: notation.two_layer_kernels([1.0], np.ones((1, 2)), np.ones((4, 2)), outer=0),
            ValueError,
            "outer must be greater than 0",
        ),
        (
            lambda: notation.two_layer_kernels([1.0], np.ones((1, 2)), np.ones((4, 2)), inner=-1),
            ValueError,
            "inner must be greater than 0",
        ),
        (lambda: notation.to_sphere([[0.0, 0.0]]), ValueError, "X must not have a row of zeros"),
        (lambda: notation.to_sphere([1.0, 2.0]), ValueError, "X must be 2-dimensional"),
        (lambda: notation.unit_bandwidth(0.0, 3), ValueError, "bandwidth must be greater than 0"),
        (lambda: notation.unit_bandwidth(1.0, 0), ValueError, "d must be at least 1"),
        (lambda: notation.to_signs([0, 1, 2]), ValueError, "phi must consist of zeros and ones"),
        (lambda: notation.flip_labels({5}, 4), ValueError, "P must be a subset of 0 to 4"),
        (lambda: notation.flip_labels({-1}, 4), ValueError, "P must be at least 0"),
        (lambda: notation.flip_labels({1}, 0), ValueError, "k must be at least 1"),
    ],
)
def test_wrong_inputs_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: notation.hermite_coefficients(np.ones(400), "h", "mean"),
            "values must have fewer",
        ),
        (lambda: notation.hermite_coefficients(torch.ones(9).half(), "h", "He"), "values must be"),
        (lambda: notation.hermite_coefficients(None, "h", "He"), "values must be an array"),
        (lambda: notation.to_standard(NETWORK, None), "theta must be a Mapping"),
        (lambda: notation.to_standard(NETWORK, {**THETA, "W1": None}), r"theta\['W1'\] must be an"),
        (
            lambda: notation.to_standard(NETWORK, {**THETA, "W2": np.ones((1, 2))}),
            "must end in shape",
        ),
        (
            lambda: notation.to_standard(NETWORK, {**THETA, "W2": torch.ones(1, 3)}),
            "must have the dt",
        ),
        (
            lambda: notation.two_layer_kernels([1.0], [[1.0]], [[1.0]], outer=1e300),
            "outer and inner must be smaller",
        ),
        (lambda: notation.to_sphere(np.full((2, 3), 1e200)), "X must not have a row of zeros, nor"),
        (lambda: notation.two_layer_kernels([1.0], [[1.0]], [[1.0]], activation=3), "activation"),
        (lambda: notation.flip_labels({1}, 10**12), "k must be at most"),
        (lambda: notation.flip_labels(None, 4), "P must be a sequence"),
        (lambda: notation.to_signs(np.ma.masked_equal([0, 1], 1)), "phi must not be a masked"),
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_zeros_stay_zero_at_high_degree_in_float32():
    values = torch.zeros(70)
    values[0] = 1.0
    found = notation.hermite_coefficients(values, "He", "mean")
    assert found.dtype == torch.float32 and not found.isnan().any() and not found[1:].any()


def test_zeros_stay_zero_where_the_factor_overflows():
    values = torch.zeros(400, dtype=torch.float64)
    values[3] = 1.0
    found = notation.hermite_coefficients(values, "h", "mean")
    assert found[3].item() == pytest.approx(6**0.5)
    assert found.count_nonzero() == 1
