"""What chapter 3 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import erf

from featlearn import activations, hermite, networks, ntk, wide
from featlearn.networks import Network


@pytest.fixture(scope="module")
def chapter():
    return functions(
        "03_wide_networks",
        np=np,
        torch=torch,
        hermegauss=hermegauss,
        networks=networks,
        ntk=ntk,
        wide=wide,
    )


def test_forward(chapter):
    net = Network((3, 6, 4, 2), "tanh", 1.3, 0.4)
    theta = net.initialise(np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((5, 3))
    pairs = [(theta[f"W{layer}"].numpy(), theta[f"b{layer}"].numpy()) for layer in (1, 2, 3)]
    by_hand = chapter["forward"](pairs, X, np.tanh, 1.3, 0.4)
    for ours, hand in zip(net.layers(theta, torch.as_tensor(X)), by_hand, strict=True):
        np.testing.assert_allclose(ours, hand, atol=1e-12)


def test_recursion(chapter):
    X = 0.5 * np.random.default_rng(2).standard_normal((4, 3))
    K = wide.NNGP(3, "tanh", 1.2, 0.3)(X)
    for i in range(4):
        for j in range(4):
            by_hand = chapter["nngp"](X[i], X[j], 3, np.tanh, 1.2, 0.3)
            assert by_hand == pytest.approx(K[i, j].item(), abs=1e-7)


def test_quadrature_in_two_variables(chapter):
    """What the toolbox says: nine digits for erf, five for ReLU, twelve by the series."""
    q = torch.tensor([1.5, 1.2, 2.0], dtype=torch.float64)
    kinds = {"erf": erf, "relu": lambda z: np.maximum(z, 0)}
    exact = {name: activations.get(name).dual(*q).item() for name in kinds}
    by_nodes = {name: chapter["dual"](phi, *q.numpy(), nodes=80) for name, phi in kinds.items()}
    assert by_nodes["erf"] == pytest.approx(exact["erf"], abs=1e-9)
    assert abs(chapter["dual"](kinds["relu"], *q.numpy(), nodes=160) - exact["relu"]) > 1e-5
    for name in kinds:
        a_x, a_y = (hermite.coefficients(getattr(torch, name), 160, v) for v in (q[0], q[2]))
        rho = q[1] / (q[0] * q[2]).sqrt()
        series = (a_x * a_y * rho ** torch.arange(161)).sum().item()
        assert series == pytest.approx(exact[name], abs=1e-12)


@pytest.mark.parametrize(("sigma_w", "sigma_b"), [(0.7, 0.3), (1.23, 0.3), (2.5, 0.3)])
def test_order_and_chaos(chapter, sigma_w, sigma_b):
    """The map of correlations and its slope, against the kernel of a deep network."""
    q = chapter["fixed_variance"](sigma_w, sigma_b)
    size = np.sqrt(2 * (q - sigma_b**2)) / sigma_w  # inputs whose first layer has the variance q
    x, y = size * np.array([1.0, 0.0]), size * np.array([np.cos(1), np.sin(1)])
    c = wide.NNGP(1, "erf", sigma_w, sigma_b)(x, y).item() / q
    for depth in range(2, 6):
        K = wide.NNGP(depth, "erf", sigma_w, sigma_b)
        c = chapter["R"](c, q, sigma_w, sigma_b)
        assert K(x, x).item() == pytest.approx(q, rel=1e-6)
        assert K(x, y).item() / q == pytest.approx(c, abs=1e-6)
    slope = (1 - chapter["R"](1 - 1e-6, q, sigma_w, sigma_b)) / 1e-6
    assert chapter["chi"](q, sigma_w) == pytest.approx(slope, rel=1e-4)
    phi = activations.get("erf")
    assert chapter["chi"](q, sigma_w) == pytest.approx(
        sigma_w**2 * phi.derivative_moment(torch.tensor(q)).item()
    )


@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_training_side_by_side(chapter, alpha):
    """Network and linearisation, each against gradient descent on its own parameters."""
    net = Network((2, 25, 1), "erf", 1.5, 0.3)
    start = net.initialise(np.random.default_rng(0), dtype=torch.float32)
    angle = 0.3 + np.arange(6) * np.pi / 3
    X, points = chapter["circle"](angle), chapter["circle"](np.array([0.0, 1.0]))
    y = torch.as_tensor(3 * np.sin(2 * angle)).float()
    chapter["X"], chapter["y"] = X, y
    *_, (_, f, f_lin) = chapter["train_both"](net, start, points, alpha, steps=30)
    everywhere = torch.cat([X, points])
    for model, values in ((net, f), (wide.linearise(net, start), f_lin)):
        *_, end = networks.descent(model, start, X, y, learning_rate=0.05, steps=30, scale=alpha)
        torch.testing.assert_close(values, alpha * model(end, everywhere), atol=2e-4, rtol=0)
