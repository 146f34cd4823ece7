"""Hermite polynomials, the two quadrature rules and the features, against closed forms.

What activations make of them is tested there.
"""

import math

import numpy as np
import pytest
import torch

from featlearn import hermite


@pytest.mark.parametrize(("r", "degree"), [(1, 0), (1, 7), (2, 6), (3, 5)])
def test_grid_is_exact_for_moments(r, degree):
    """E[z^k] = (k - 1)!! for even k, in each coordinate and for products."""
    Z, omega = hermite.grid(r, degree)
    assert Z.shape == (len(omega), r) and omega.dtype == torch.float64
    moments = [0 if k % 2 else math.prod(range(k - 1, 0, -2)) for k in range(degree + 1)]
    for k, moment in enumerate(moments):
        for i in range(r):
            assert (omega @ Z[:, i] ** k).item() == pytest.approx(moment, abs=1e-10)
        assert (omega @ Z.prod(dim=1) ** k).item() == pytest.approx(moment**r, abs=1e-9)


def test_grid_tells_its_coordinates_apart():
    """E[z₁²z₂⁴] = 3: every pair of nodes is there once, with the product of its weights."""
    Z, omega = hermite.grid(2, 4)
    assert len(Z) == len({tuple(z) for z in Z.tolist()}) == 9
    assert (omega @ (Z[:, 0] ** 2 * Z[:, 1] ** 4)).item() == pytest.approx(3)
    assert (omega @ (Z[:, 0] ** 4 * Z[:, 1] ** 2)).item() == pytest.approx(3)


def test_grid_of_no_coordinates_is_a_point():
    Z, omega = hermite.grid(0, 3)
    assert Z.shape == (1, 0) and omega.tolist() == [1.0] and omega.dtype == torch.float64


def test_polynomials_by_hand():
    z = torch.tensor([-1.3, 0.0, 0.4, 2.0], dtype=torch.float64)
    wanted = [
        torch.ones_like(z),
        z,
        (z**2 - 1) / math.sqrt(2),
        (z**3 - 3 * z) / math.sqrt(6),
        (z**4 - 6 * z**2 + 3) / math.sqrt(24),
    ]
    torch.testing.assert_close(hermite.polynomials(z, 4), torch.stack(wanted))


def test_the_rule_knows_smooth_and_kinked_means():
    """E[z⁸] = 105, E|z| = √(2/π), E[e^z] = √e, P(z > 1) = 0.1586…"""
    z, w = hermite.rule()
    assert (w @ z**8).item() == pytest.approx(105, rel=1e-13)
    assert (w @ z.abs()).item() == pytest.approx(math.sqrt(2 / math.pi), rel=1e-13)
    assert (w @ z.exp()).item() == pytest.approx(math.sqrt(math.e), rel=1e-13)
    assert (w @ (z > 1).double()).item() == pytest.approx(math.erfc(0.5**0.5) / 2, rel=1e-12)


def test_the_rule_is_the_callers_own():
    for part in hermite.rule():
        part.zero_()
    z, w = hermite.rule()
    assert w.sum().item() == pytest.approx(1) and z.max() > 15
    assert hermite.coefficients(torch.relu, 1)[1].item() == pytest.approx(0.5)


@pytest.mark.parametrize("q", [0.25, 1.0, 3.0])
def test_coefficients_of_an_exponential(q):
    """E[exp(√q z) h_k(z)] = e^{q/2} q^{k/2}/√k!"""
    a = hermite.coefficients(torch.exp, 6, q)
    wanted = [math.exp(q / 2) * q ** (k / 2) / math.sqrt(math.factorial(k)) for k in range(7)]
    np.testing.assert_allclose(a, wanted, rtol=1e-12)
    assert hermite.coefficients(torch.exp, 2, [[0.0, q]]).shape == (3, 1, 2)


def test_coefficients_are_differentiable_in_the_variance():
    q = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda at: hermite.coefficients(torch.tanh, 5, at), q)
    batched = torch.func.vmap(lambda at: hermite.coefficients(torch.tanh, 5, at))(q)
    torch.testing.assert_close(batched.T, hermite.coefficients(torch.tanh, 5, q))


def test_features_by_hand():
    """Degree 2 in two coordinates: h₂(x₁), x₁x₂, h₂(x₂)."""
    x = torch.tensor([[0.5, -2.0]], dtype=torch.float64)
    wanted = [[(0.25 - 1) / 2**0.5, -1.0, (4 - 1) / 2**0.5]]
    np.testing.assert_allclose(hermite.features(x, 2), wanted)
    np.testing.assert_allclose(hermite.features(x, 1), x)
    assert hermite.features(x, 0).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hermite.grid(-1, 2), ValueError, "r must be at least 0"),
        (lambda: hermite.grid(2, -1), ValueError, "degree must be at least 0"),
        (lambda: hermite.grid(1.5, 2), TypeError, "r must be an integer"),
        (lambda: hermite.grid(12, 20), ValueError, "r and degree must be smaller"),
        (lambda: hermite.grid(10**10, 1), ValueError, "r and degree must be smaller"),
        (lambda: hermite.grid(1, 10**10), ValueError, "degree must be at most 600"),
        (lambda: hermite.polynomials([1.0], 10**10), ValueError, "degree must be at most 10000"),
        (lambda: hermite.polynomials([1e200], 4), ValueError, "z and degree must be smaller"),
        (lambda: hermite.coefficients(torch.relu, 10**8), ValueError, "degree must be at most"),
        (lambda: hermite.coefficients(torch.relu, 2, -1.0), ValueError, "q must be at least 0"),
        (
            lambda: hermite.coefficients(torch.relu, 2, [1.0, -1e-9]),
            ValueError,
            "q must be at least",
        ),
        (lambda: hermite.coefficients(torch.log, 2), ValueError, "function must be finite"),
        (lambda: hermite.coefficients(3, 2), TypeError, "function must be callable"),
        (lambda: hermite.coefficients(torch.sum, 2), ValueError, "function must map a tensor"),
        (lambda: hermite.features(np.ones((2, 200)), 10), ValueError, "at most 1000000 features"),
        (lambda: hermite.features(1.0, 2), ValueError, "X must have at least one axis"),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
