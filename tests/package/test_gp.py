"""Gaussian processes against scikit-learn, conditioning by hand and an ODE solver."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

from featlearn import gp, kernels


def problem(seed, n=12, m=7, d=2):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal((m, d))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    d=st.integers(1, 6),
    noise=st.floats(1e-2, 2.0),
    width=st.floats(0.3, 5.0),
    rough=st.booleans(),
)
def test_scikit_learn(seed, n, d, noise, width, rough):
    X, y, X_new = problem(seed, n, 9, d)
    kernel, other = (
        (kernels.Matern(1.5, width), theirs.Matern(width, nu=1.5))
        if rough
        else (kernels.Gaussian(width), theirs.RBF(width))
    )
    mean, covariance = (
        GaussianProcessRegressor(other, alpha=noise, optimizer=None)
        .fit(X, y)
        .predict(X_new, return_cov=True)
    )
    process = gp.GaussianProcess(kernel, noise**0.5).fit(X, y)
    np.testing.assert_allclose(process.mean(X_new), mean, atol=1e-8)
    np.testing.assert_allclose(process.covariance(X_new), covariance, atol=1e-8)
    np.testing.assert_allclose(process.variance(X_new), np.diag(covariance).clip(0), atol=1e-8)
    np.testing.assert_allclose(process.covariance(X_new, X_new[:3]), covariance[:, :3], atol=1e-8)


def test_prior():
    _, _, X = problem(0)
    process = gp.GaussianProcess(kernels.Gaussian(1.0))
    assert torch.equal(process.mean(X), torch.zeros(7, dtype=torch.float64))
    torch.testing.assert_close(process.covariance(X), kernels.Gaussian(1.0)(X))
    torch.testing.assert_close(process.variance(X), torch.ones(7, dtype=torch.float64))


def test_variance_in_blocks():
    X = np.random.default_rng(0).standard_normal((600, 2))
    process = gp.GaussianProcess(kernels.Polynomial(2, 1.0), 0.1).fit(X[:20], X[:20, 0])
    torch.testing.assert_close(
        process.variance(X), process.covariance(X).diagonal(), rtol=1e-8, atol=1e-9
    )


def test_root_of_singular_and_regular_matrices():
    rng = np.random.default_rng(1)
    for rank in (3, 8):
        A = rng.standard_normal((8, rank))
        R = gp.covariance_root(A @ A.T)
        torch.testing.assert_close(R @ R.T, torch.as_tensor(A @ A.T), rtol=1e-10, atol=1e-10)
    assert torch.equal(gp.covariance_root(np.eye(3)), torch.eye(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="K must be positive semi-definite"):
        gp.covariance_root(np.diag([1.0, -1.0]))


def test_samples_have_the_posterior_law():
    X, y, X_new = problem(2, n=4, m=3)
    process = gp.GaussianProcess(kernels.Gaussian(1.0), 0.1).fit(X, y)
    draws = process.sample(X_new, 200_000, np.random.default_rng(0))
    torch.testing.assert_close(draws.mean(dim=0), process.mean(X_new), atol=0.02, rtol=0)
    torch.testing.assert_close(torch.cov(draws.T), process.covariance(X_new), atol=0.02, rtol=0)


def test_samples_go_through_noise_free_data():
    X, y, _ = problem(3, n=5)
    process = gp.GaussianProcess(kernels.Gaussian(0.5)).fit(X, y)
    draws = process.sample(X, 10, np.random.default_rng(0))
    torch.testing.assert_close(draws, torch.as_tensor(y).expand(10, -1), atol=1e-5, rtol=0)


def test_after_training_is_the_posterior():
    X, y, X_new = problem(4, n=6)
    kernel = kernels.Matern(0.5, 1.0)
    process = gp.GaussianProcess(kernel).fit(X, y)
    mean, covariance = gp.after_training(kernel, X, y, X_new)
    torch.testing.assert_close(mean, process.mean(X_new), atol=1e-10, rtol=0)
    torch.testing.assert_close(covariance, process.covariance(X_new), atol=1e-10, rtol=0)


def test_after_training_starts_at_the_prior_and_is_continuous_at_infinity():
    X, y, X_new = problem(5, n=6)
    kernel = kernels.Matern(0.5, 1.0)
    mean, covariance = gp.after_training(kernel, X, y, X_new, t=0)
    assert torch.equal(mean, torch.zeros_like(mean))
    torch.testing.assert_close(covariance, kernel(X_new))
    late, end = (
        gp.after_training(kernel, X, y, X_new, t=1e4),
        gp.after_training(kernel, X, y, X_new),
    )
    for a, b in zip(late, end, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=0)


@pytest.mark.parametrize("rank", [3, 20])
def test_after_training_against_an_ode_with_another_prior(rank):
    """Two kernels, one of them singular.

    Integrate the values of f at all points from the prior's columns.
    """
    rng = np.random.default_rng(6)
    X, y, X_new = problem(6, n=5, m=4)
    A = rng.standard_normal((2, rank))

    def training(U, V=None):
        V = U if V is None else V
        return torch.as_tensor(np.tanh(np.asarray(U) @ A) @ np.tanh(np.asarray(V) @ A).T / rank)

    initial, everywhere = kernels.Gaussian(1.0), np.concatenate([X_new, X])
    K, t = training(everywhere, X).numpy(), 2.5

    def evolve(f0, labels):
        flow = solve_ivp(lambda _, f: K @ (labels - f[4:]), (0, t), f0, rtol=1e-10, atol=1e-12)
        return flow.y[:4, -1]

    mean, covariance = gp.after_training(training, X, y, X_new, t, initial=initial)
    np.testing.assert_allclose(mean, evolve(np.zeros(9), y), atol=1e-8)
    M = np.stack([evolve(e, np.zeros(5)) for e in np.eye(9)], axis=1)
    np.testing.assert_allclose(covariance, M @ initial(everywhere).numpy() @ M.T, atol=1e-8)


def test_after_training_to_the_end_with_a_singular_kernel():
    """The pseudo-inverse takes the place of the inverse; rank 2, five points."""
    X, y, X_new = problem(8, n=5, m=4)
    kernel = kernels.Polynomial(1)
    K, K_x = kernel(X), kernel(X_new, X)
    pinv = torch.linalg.pinv(K, rcond=1e-10)
    mean, covariance = gp.after_training(kernel, X, y, X_new)
    torch.testing.assert_close(mean, K_x @ pinv @ torch.as_tensor(y), atol=1e-9, rtol=0)
    torch.testing.assert_close(covariance, kernel(X_new) - K_x @ pinv @ K_x.T, atol=1e-9, rtol=0)


def test_conditioning_is_judged_row_by_row():
    """Rows of very different size are no reason to refuse."""
    X, y, kernel = (
        np.array([[1e4, 0.0], [2.0, 1.0], [1e-3, 1.0]]),
        np.array([1.0, 2.0, 3.0]),
        kernels.Polynomial(2),
    )
    got = gp.GaussianProcess(kernel, 1e-3).fit(X, y).mean([[1.0, 1.0]])
    K, K_x = kernel(X).numpy(), kernel(np.array([[1.0, 1.0]]), X).numpy()
    np.testing.assert_allclose(got, K_x @ np.linalg.solve(K + 1e-6 * np.eye(3), y), rtol=1e-6)


def test_variance_is_not_negative_at_the_data():
    X, y, _ = problem(9, n=30)
    assert (gp.GaussianProcess(kernels.Matern(0.5), 1e-6).fit(X, y).variance(X) >= 0).all()


def test_root_of_a_matrix_that_rounding_made_indefinite():
    K = np.outer([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    K[0, 1] = K[1, 0] = 1 + 1e-12
    assert torch.isfinite(gp.covariance_root(K)).all()


def test_precision_follows_the_training_points():
    X, y, X_new = problem(7)
    process = gp.GaussianProcess(kernels.Gaussian(1.0), 0.1).fit(torch.as_tensor(X).float(), y)
    assert process.mean(X_new).dtype == process.variance(X_new).dtype == torch.float32
    mean, covariance = gp.after_training(
        kernels.Gaussian(1.0), torch.as_tensor(X).float(), y, X_new
    )
    assert mean.dtype == covariance.dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gp.GaussianProcess("rbf").variance([[1.0]]), TypeError, "kernel must be callable"),
        (
            lambda: gp.GaussianProcess(kernels.Gaussian(), -1).fit([[1.0]], [1.0]),
            ValueError,
            "noise_std must be at least 0",
        ),
        (
            lambda: gp.GaussianProcess(kernels.Gaussian()).fit(np.zeros((2, 1)), np.zeros(2)),
            ValueError,
            "noise_std=0",
        ),
        (
            lambda: gp.GaussianProcess(kernels.Gaussian()).fit(np.zeros((2, 1)), np.zeros(3)),
            ValueError,
            "X and y must be valid: .*inconsistent",
        ),
        (
            lambda: gp.GaussianProcess(kernels.Gaussian()).sample(
                np.zeros((2, 1)), 0, np.random.default_rng()
            ),
            ValueError,
            "size must be",
        ),
        (
            lambda: gp.GaussianProcess(kernels.Gaussian()).sample(np.zeros((2, 1)), 1, 0),
            TypeError,
            "rng must be",
        ),
        (
            lambda: gp.after_training(
                kernels.Gaussian(), np.zeros((2, 1)), np.zeros(2), np.zeros((1, 1)), t=-1
            ),
            ValueError,
            "t must be",
        ),
        (
            lambda: gp.after_training(
                kernels.Gaussian(), np.zeros((2, 1)), np.zeros(2), np.zeros((1, 2))
            ),
            ValueError,
            "X_new must have 1 columns",
        ),
        (
            lambda: gp.after_training(
                kernels.Gaussian(), np.zeros((2, 1)), np.zeros(2), np.zeros((1, 1)), t=[1.0]
            ),
            TypeError,
            "t must be",
        ),
        (
            lambda: gp.after_training(
                kernels.Gaussian(), np.zeros((2, 1)), np.zeros(3), np.zeros((1, 1))
            ),
            ValueError,
            "X and y",
        ),
        (lambda: gp.covariance_root(np.zeros((2, 3))), ValueError, "K must be square"),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_points_that_almost_coincide_are_refused():
    """The pivot is the square of the diagonal of L: two points at distance h leave the pivot h²."""
    y = np.array([0.0, 1.0])
    for h, refused in ((1e-4, False), (1e-8, True)):
        process = gp.GaussianProcess(kernels.Gaussian(1.0))
        if refused:
            with pytest.raises(ValueError, match="singular to working precision"):
                process.fit([[0.0], [h]], y)
        else:
            assert process.fit([[0.0], [h]], y).alpha_.abs().max() < 2 / h**2


def test_noise_is_a_standard_deviation():
    process = gp.GaussianProcess(kernels.Gaussian(1.0), noise_std=2.0).fit([[0.0]], [3.0])
    assert process.mean([[0.0]]).item() == pytest.approx(3.0 / (1 + 4))
    assert process.variance([[0.0]]).item() == pytest.approx(1 - 1 / (1 + 4))


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_whether_a_matrix_is_singular_does_not_depend_on_its_scale(scale):
    X = np.array([[0.0], [1e-9], [1.0]])
    kernel = lambda X, Y=None: scale * kernels.Gaussian()(X, Y)  # noqa: E731
    with pytest.raises(ValueError, match="is singular to working precision"):
        gp.GaussianProcess(kernel).fit(X, np.zeros(3))
    apart = gp.GaussianProcess(kernel).fit(np.array([[0.0], [0.5], [1.0]]), np.ones(3))
    assert apart.mean(np.array([[0.5]])).item() == pytest.approx(1)
