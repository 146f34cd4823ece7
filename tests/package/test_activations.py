"""Hermite polynomials and duals of activations against quadrature, closed forms and finite
differences.
"""

import math

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermeval
from scipy import integrate, special

from featlearn import activations, hermite
from featlearn.activations import Activation


def leaky(z):
    return torch.where(z > 0, z, 0.1 * z)


def covariances(seed, n=40):
    """Random variances and covariances of n Gaussian pairs."""
    rng = np.random.default_rng(seed)
    A = torch.as_tensor(rng.standard_normal((n, 2, 2)))
    S = A @ A.mT
    return S[:, 0, 0], S[:, 0, 1], S[:, 1, 1]


def test_polynomials_are_orthonormal_and_those_of_numpy():
    z, w = hermite.rule()
    H = hermite.polynomials(z, 20)
    torch.testing.assert_close(
        (H * w) @ H.T, torch.eye(21, dtype=torch.float64), atol=1e-11, rtol=0
    )
    for k in (0, 1, 2, 7):
        theirs = hermeval(z.numpy(), [0] * k + [1]) / np.sqrt(special.factorial(k))
        np.testing.assert_allclose(H[k], theirs, rtol=1e-9, atol=1e-9)
    assert hermite.polynomials(z, 0).shape == (1, len(z))


def test_mehler():
    """E[h_j(z) h_k(z')] = δ ρ^k, by the rule in two variables."""
    z, w = hermite.rule()
    rho, H = 0.6, hermite.polynomials(z, 6)
    shifted = hermite.polynomials(rho * z[:, None] + (1 - rho**2) ** 0.5 * z, 6)
    table = torch.einsum("ji,kiu,i,u->jk", H, shifted, w, w)
    torch.testing.assert_close(
        table, torch.diag(rho ** torch.arange(7).double()), atol=1e-10, rtol=0
    )


def test_coefficients_of_relu():
    """c₀ = 1/√2π, c₁ = 1/2, c₂ = 1/(2√π), c₃ = 0 for the normalised polynomials."""
    a = hermite.coefficients(torch.relu, 3)
    wanted = [1 / np.sqrt(2 * np.pi), 0.5, 1 / (2 * np.sqrt(np.pi)), 0]
    np.testing.assert_allclose(a, wanted, atol=1e-13)


@pytest.mark.parametrize("name", ["relu", "erf"])
def test_closed_forms_against_adaptive_quadrature(name):
    phi = {"relu": lambda z: max(z, 0.0), "erf": special.erf}[name]
    for q_x, rho, q_y in ((1.0, 0.3, 2.0), (0.5, -0.8, 0.1), (3.0, 0.0, 1.0)):
        q_xy = rho * np.sqrt(q_x * q_y)

        def inner(u, q_x=q_x, q_xy=q_xy, q_y=q_y):
            mean, sd = q_xy / np.sqrt(q_x) * u, np.sqrt(q_y - q_xy**2 / q_x)
            value = integrate.quad(
                lambda v: phi(mean + sd * v) * np.exp(-v * v / 2),
                -9,
                9,
                points=[np.clip(-mean / sd, -9, 9)],
            )[0]
            return value * phi(np.sqrt(q_x) * u) * np.exp(-u * u / 2) / (2 * np.pi)

        wanted = integrate.quad(inner, -9, 0)[0] + integrate.quad(inner, 0, 9)[0]
        got = activations.get(name).dual(
            *(torch.tensor(q, dtype=torch.float64) for q in (q_x, q_xy, q_y))
        )
        assert got.item() == pytest.approx(wanted, abs=1e-8)


def test_series_equals_closed_form():
    q_x, q_xy, q_y = covariances(0)
    apart = (q_xy / (q_x * q_y).sqrt()).abs() < 0.9
    series, exact = Activation("erf", torch.erf), activations.get("erf")
    for name in ("dual", "derivative_dual"):
        for q in zip(q_x[apart], q_xy[apart], q_y[apart], strict=True):
            found, wanted = (getattr(phi, name)(*q).item() for phi in (series, exact))
            assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9)
    torch.testing.assert_close(
        series.second_moment(q_x), exact.second_moment(q_x), rtol=1e-3, atol=0
    )
    short = Activation("erf", torch.erf, degree=40).second_moment(q_x)
    assert (
        (short - exact.second_moment(q_x)).abs()
        > (series.second_moment(q_x) - exact.second_moment(q_x)).abs()
    ).any()


@pytest.mark.parametrize("slope", [0.0, 0.1, 0.99, -1.0])
def test_a_kink_at_zero_costs_nothing(slope):
    """max(z, 0) + slope min(z, 0) has closed forms.

    (1 - slope)² times ReLU's, plus slope q_xy, or slope.
    """
    phi = Activation("leaky", lambda z: torch.relu(z) - slope * torch.relu(-z))
    q = covariances(4)
    relu = activations.get("relu")
    torch.testing.assert_close(
        phi.dual(*q), (1 - slope) ** 2 * relu.dual(*q) + slope * q[1], rtol=1e-11, atol=1e-13
    )
    torch.testing.assert_close(
        phi.derivative_dual(*q),
        (1 - slope) ** 2 * relu.derivative_dual(*q) + slope,
        rtol=1e-11,
        atol=1e-13,
    )


@pytest.mark.parametrize(
    "activation", ["relu", "erf", "tanh", torch.sigmoid, torch.nn.functional.gelu]
)
def test_derivative_dual_is_the_slope_of_the_dual(activation):
    """Price's theorem: the derivative in q_xy, by central differences."""
    phi = activations.get(activation)
    q_x, q_xy, q_y = covariances(5)
    q_xy, h = 0.9 * q_xy, 1e-5
    slope = (phi.dual(q_x, q_xy + h, q_y) - phi.dual(q_x, q_xy - h, q_y)) / (2 * h)
    torch.testing.assert_close(phi.derivative_dual(q_x, q_xy, q_y), slope, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(phi.derivative_moment(q_x), phi.derivative_dual(q_x, q_x, q_x))


def test_derivatives_where_inputs_vanish_or_are_equal():
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    assert activations.get("relu").derivative_moment(1.7 * one).item() == 0.5
    for activation in (torch.sigmoid, torch.cos, torch.tanh):
        phi = activations.get(activation)
        slope = phi.derivative(zero).item()
        assert phi.derivative_moment(zero).item() == pytest.approx(slope**2, abs=1e-12)


def test_the_functions_of_torch_are_recognised():
    for relu in (torch.relu, torch.nn.functional.relu, torch.nn.ReLU()):
        assert activations.get(relu) is activations.get("relu")
    for erf in (torch.erf, torch.special.erf):
        assert activations.get(erf) is activations.get("erf")


def test_small_variances_keep_a_kink():
    """max(z, 0) + 0.1 min(z, 0) is homogeneous: its dual scales with the variance."""
    phi = Activation("leaky", lambda z: torch.relu(z) - 0.1 * torch.relu(-z))
    q = covariances(6)
    for scale in (1e-12, 1e-30, 1e-100):
        torch.testing.assert_close(
            phi.dual(*(scale * v for v in q)) / scale, phi.dual(*q), rtol=1e-9, atol=1e-12
        )


def test_what_is_no_activation():
    with pytest.raises(ValueError, match="entry by entry"):
        activations.get(lambda z: z - z.mean())
    step = activations.get(lambda z: (z > 0).to(z))
    with pytest.raises(ValueError, match="jumps at zero"):
        step.derivative_moment(torch.ones(1, dtype=torch.float64))


def test_the_series_survives_inference_mode():
    hermite._rule.cache_clear()
    hermite._weighted.cache_clear()
    q = torch.ones(2, dtype=torch.float64)
    with torch.inference_mode():
        activations.get("tanh").second_moment(q)
    q.requires_grad_()
    (gradient,) = torch.autograd.grad(activations.get("tanh").second_moment(q).sum(), q)
    assert torch.isfinite(gradient).all()


def test_a_kink_elsewhere_has_no_derivative_dual():
    phi = activations.get(lambda z: torch.relu(z - 1))
    with pytest.raises(ValueError, match="closed form"):
        phi.derivative_moment(torch.ones(1, dtype=torch.float64))


def test_sine_has_a_closed_form_of_its_own():
    q_x, q_xy, q_y = (q / 4 for q in covariances(1))
    got = activations.get(torch.sin).dual(q_x, q_xy, q_y)
    torch.testing.assert_close(
        got, torch.exp(-(q_x + q_y) / 2) * torch.sinh(q_xy), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", leaky])
def test_dual_is_symmetric_and_broadcasts(activation):
    phi = activations.get(activation)
    q_x, q_xy, q_y = covariances(2, 6)
    torch.testing.assert_close(
        phi.dual(q_x, q_xy, q_y), phi.dual(q_y, q_xy, q_x), rtol=1e-12, atol=1e-14
    )
    X = torch.as_tensor(np.random.default_rng(0).standard_normal((5, 3)))
    q = (X**2).sum(dim=1)
    matrix = phi.dual(q[:, None], X @ X.T, q)
    assert matrix.shape == (5, 5)
    assert matrix[1, 3].item() == pytest.approx(phi.dual(q[1], X[1] @ X[3], q[3]).item(), rel=1e-10)


def test_series_computes_in_double_precision():
    q_x, q_xy, q_y = (q.float() for q in covariances(3))
    phi = activations.get("tanh")
    torch.testing.assert_close(
        phi.dual(q_x, q_xy, q_y), phi.dual(q_x.double(), q_xy.double(), q_y.double()).float()
    )


def test_nan_is_refused_at_the_door_and_stays_nan_inside():
    nan, one = torch.tensor(float("nan")), torch.tensor(1.0)
    for name in ("relu", "erf"):
        with pytest.raises(ValueError, match="q_x must be finite"):
            activations.get(name).dual(nan, 0.1 * one, one)
        assert activations.get(name)._dual(nan, 0.1 * one, one).isnan()


@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("method", ["dual", "derivative_dual"])
def test_what_is_no_covariance_is_refused(name, method):
    """A negative variance, a covariance above its bound, shapes that do not go together."""
    dual = getattr(activations.get(name), method)
    with pytest.raises(ValueError, match="q_x must be at least 0"):
        dual(-1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="q_y must be at least 0"):
        dual(1.0, 0.0, [1.0, -1.0])
    with pytest.raises(ValueError, match="q_xy must be at most"):
        dual(1.0, [0.0, -2.1], 4.0)
    with pytest.raises(ValueError, match="q_x, q_xy and q_y must have shapes"):
        dual(np.ones(3), np.ones(2), np.ones(3))
    moments = {"dual": "second_moment", "derivative_dual": "derivative_moment"}
    moment = getattr(activations.get(name), moments[method])
    with pytest.raises(ValueError, match="q must be at least 0"):
        moment([1.0, -1e-3])
    assert torch.equal(dual(1.0, 0.5, 4.0), dual(*torch.tensor([1.0, 0.5, 4.0]).double()))


def test_duals_promote_their_arguments():
    single, double = torch.tensor(1.0), torch.tensor(1.0, dtype=torch.float64)
    phi = activations.get("relu")
    assert phi.dual(single, 0.5 * single, double).dtype == torch.float64
    assert phi.dual(double, 0.5 * single, single).dtype == torch.float64
    assert phi.dual(single, 0.5 * single, single).dtype == torch.float32


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", torch.sigmoid])
def test_duals_work_under_vmap(activation):
    phi, q = activations.get(activation), covariances(7, 5)
    for method in (phi.dual, phi.derivative_dual):
        batched = torch.func.vmap(method)(*q)
        torch.testing.assert_close(batched, method(*q), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", torch.sin, torch.cos])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_degenerate_pairs_are_finite_with_gradients(activation, dtype):
    """Equal, opposite and zero inputs, and rounding that pushes the correlation past 1."""
    q_x = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 1e-30, 3.0], dtype=dtype, requires_grad=True)
    q_xy = torch.tensor(
        [1.0, -1.0, 0.0, 0.0, 1.0 + 2e-7, 1e-30, 3.0], dtype=dtype, requires_grad=True
    )
    q_y = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 1e-30, 3.0], dtype=dtype, requires_grad=True)
    value = activations.get(activation).dual(q_x, q_xy, q_y)
    assert value.dtype == dtype
    gradients = torch.autograd.grad(value.sum(), (q_x, q_xy, q_y))
    assert all(torch.isfinite(part).all() and part.abs().max() < 10 for part in (value, *gradients))


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", torch.sin])
def test_price(activation):
    """∂dual/∂q_xy = E[φ'(u)φ'(v)] also at equal inputs, where it is E[φ'(u)²]."""
    phi, (z, w) = activations.get(activation), hermite.rule()
    q = torch.tensor(1.3, dtype=torch.float64)
    for sign in (1, -1):
        q_xy = (sign * q).clone().requires_grad_()
        got = torch.autograd.grad(phi.dual(q, q_xy, q), q_xy)[0]
        u = (q.sqrt() * z).requires_grad_()
        slope = torch.autograd.grad(phi(u).sum(), u)[0]
        other = slope if sign > 0 else slope.flip(0)
        assert got.item() == pytest.approx((w * slope * other).sum().item(), abs=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: activations.get("swish"), ValueError, "activation must be one of 'relu'"),
        (lambda: activations.get(3), TypeError, "activation must be a name or a function"),
        (lambda: activations.get(lambda z: z.sum()), ValueError, "activation must map a tensor"),
        (lambda: activations.get(lambda z: z.numpy()), ValueError, "activation must map a tensor"),
        (lambda: activations.get(lambda z: z > 0), ValueError, "same shape and dtype"),
        (lambda: activations.get(torch.relu_), ValueError, "activation must not change its input"),
        (lambda: hermite.polynomials([1.0], -1), ValueError, "degree must be at least 0"),
        (lambda: hermite.polynomials([np.nan], 2), ValueError, "z must be finite"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("d", "degree"), [(1, 3), (2, 3), (3, 2), (4, 0)])
def test_hermite_features_are_orthonormal(d, degree):
    """Against the product rule of Gauss and Hermite, exact for these polynomials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    grid = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    mass = np.prod(
        np.stack(np.meshgrid(*[weights] * d, indexing="ij"), axis=-1).reshape(-1, d), axis=1
    )
    G = hermite.features(grid, degree).numpy()
    assert G.shape[1] == math.comb(d + degree - 1, degree)
    np.testing.assert_allclose((G.T * (mass / mass.sum())) @ G, np.eye(G.shape[1]), atol=1e-10)


def test_a_hermite_polynomial_in_any_direction_is_linear_in_the_features():
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((40, 3)), np.array([2.0, -1.0, 2.0]) / 3
    G = hermite.features(X, 3).numpy()
    y = hermite.polynomials(X @ u, 3)[3].numpy()
    theta = np.linalg.lstsq(G, y, rcond=None)[0]
    np.testing.assert_allclose(G @ theta, y, atol=1e-10)
    assert np.linalg.norm(theta) == pytest.approx(1)


def test_hermite_features_keep_leading_axes():
    X = torch.as_tensor(np.random.default_rng(1).standard_normal((2, 7, 3)))
    together = hermite.features(X, 2)
    assert together.shape == (2, 7, 6)
    torch.testing.assert_close(together[1, 2], hermite.features(X[1, 2], 2))
    with pytest.raises(ValueError, match="X must have at least one axis"):
        hermite.features(1.0, 2)
