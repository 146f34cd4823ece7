"""Single-index targets: moments of the links, errors as fractions of the variance, alignment."""

import numpy as np
import pytest
import torch

from featlearn import harmonics, single_index
from featlearn.kernels import Polynomial


@pytest.mark.parametrize("d", [3, 10, 24])
@pytest.mark.parametrize("name", single_index.LINKS)
def test_links_have_mean_zero_and_variance_one(name, d):
    g = single_index.link(name, d)
    energies = harmonics.ridge_energies(g, d, range(41), kinks=[0.0])
    assert energies[0] == pytest.approx(0, abs=1e-12)
    assert energies.sum() == pytest.approx(1, abs=0.01)


def test_each_link_has_its_degrees():
    of = {
        n: harmonics.ridge_energies(single_index.link(n, 24), 24, [2, 4, 6])
        for n in ("z²", "degree 4")
    }
    np.testing.assert_allclose(of["z²"], [1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(of["degree 4"], [0, 1, 0], atol=1e-9)


def test_the_quadratic_kernel_learns_a_quadratic_with_enough_samples():
    d, rng = 6, np.random.default_rng(0)
    g = single_index.link("z²", d)
    U, X, y = single_index.draw(g, d, 40, 2, rng)
    new = harmonics.sphere(200, d, rng).reshape(2, 100, d)
    truth = g(np.einsum("rnd,rd->rn", new, U))
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1)
    few, enough = (
        single_index.kernel_errors(Polynomial(2), [1e-10], X[:, :n], y[:, :n], new, truth)
        for n in (10, 40)
    )
    assert enough.max() < 1e-6 < few.min()


def test_a_network_that_predicts_the_truth_or_nothing():
    d, rng = 5, np.random.default_rng(1)
    U, X, y = single_index.draw(np.abs, d, 30, 2, rng)
    net = single_index.train(X, y, width=2, steps=1, random_state=0)
    with torch.no_grad():  # |u·x| is a sum of two ReLUs
        directions = torch.as_tensor(U, dtype=torch.float32)
        net.theta_["W1"].copy_(torch.stack([directions, -directions], dim=1))
        net.theta_["b1"].zero_(), net.theta_["b2"].zero_()
        net.theta_["W2"].fill_(1.0)
    np.testing.assert_allclose(single_index.network_errors(net, X, y), 0, atol=1e-10)
    np.testing.assert_allclose(single_index.alignment(net, U), 1, atol=1e-6)
    with torch.no_grad():
        net.theta_["W2"].zero_()
    means = y.mean(axis=1) ** 2 / y.var(axis=1)
    np.testing.assert_allclose(single_index.network_errors(net, X, y), 1 + means)
