"""Solvers against dense linear algebra, the matrix exponential and a loop of gradient descent."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from featlearn import linalg
from featlearn.linalg import SpectralPath


def random_system(seed, n=8, p=20):
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, p)) / np.sqrt(p)
    return torch.as_tensor(Phi), torch.as_tensor(rng.standard_normal(n))


seeds = st.integers(0, 10**6)
shapes = st.sampled_from([(8, 20), (20, 8), (5, 1)])


@given(seeds, shapes)
def test_minimum_norm_is_least_squares(seed, shape):
    Phi, y = random_system(seed, *shape)
    theta = torch.linalg.lstsq(Phi, y[:, None], driver="gelsd").solution[:, 0]
    path = SpectralPath(Phi @ Phi.T, y)
    assert path.rank == min(shape)
    torch.testing.assert_close(Phi.T @ path.minimum_norm(), theta, rtol=1e-6, atol=1e-8)


@given(seeds, shapes, st.floats(1e-3, 1e3))
def test_ridge_in_primal_dual_and_by_cholesky(seed, shape, ridge):
    Phi, y = random_system(seed, *shape)
    K = Phi @ Phi.T
    primal = torch.linalg.solve(
        Phi.T @ Phi + ridge * torch.eye(shape[1], dtype=torch.float64), Phi.T @ y
    )
    torch.testing.assert_close(
        Phi.T @ SpectralPath(K, y).ridge(ridge), primal, rtol=1e-7, atol=1e-9
    )
    torch.testing.assert_close(
        Phi.T @ linalg.cholesky_solve(K, y, ridge), primal, rtol=1e-7, atol=1e-9
    )


@given(seeds, shapes, st.floats(0, 100))
def test_flow_against_the_matrix_exponential(seed, shape, t):
    """The block exponential exp([[-Kt, t y], [0, 0]]) holds the integral of exp(-K tau) y, singular
    K or not.
    """
    Phi, y = random_system(seed, *shape)
    K, n = (Phi @ Phi.T).numpy(), shape[0]
    block = np.zeros((n + 1, n + 1))
    block[:n, :n], block[:n, n] = -K * t, y.numpy() * t
    want = Phi.T.numpy() @ expm(block)[:n, n]
    np.testing.assert_allclose((Phi.T @ SpectralPath(K, y).flow(t)).numpy(), want, atol=1e-8)


@given(seeds, shapes, st.integers(1, 40))
def test_descent_is_gradient_descent_and_richardson(seed, shape, steps):
    Phi, y = random_system(seed, *shape)
    K = Phi @ Phi.T
    eta = 0.9 / torch.linalg.eigvalsh(K)[-1].item()
    theta = torch.zeros(shape[1], dtype=torch.float64)
    for _ in range(steps):
        theta = theta - eta * Phi.T @ (Phi @ theta - y)
    torch.testing.assert_close(
        Phi.T @ SpectralPath(K, y).descent(eta, steps), theta, rtol=0, atol=1e-9
    )
    iterate = linalg.richardson(
        lambda v: K @ v, y, eta, tolerance=1e-300, max_iterations=steps
    ).alpha
    torch.testing.assert_close(Phi.T @ iterate, theta, rtol=0, atol=1e-9)


@given(seeds)
def test_paths_take_many_values_at_once(seed):
    Phi, y = random_system(seed)
    path = SpectralPath(Phi @ Phi.T, y)
    for method, values in (
        (path.ridge, [0.1, 1.0]),
        (path.flow, [0.0, 2.0]),
        (lambda k: path.descent(0.1, k), [1, 7]),
    ):
        many = method(values)
        for column, value in zip(many.T, values, strict=True):
            torch.testing.assert_close(column, method(value))


@given(seeds, st.floats(0.01, 10))
def test_conjugate_gradients_solve_in_n_steps(seed, ridge):
    Phi, y = random_system(seed)
    A = Phi @ Phi.T + ridge * torch.eye(8, dtype=torch.float64)
    found = linalg.conjugate_gradients(lambda v: A @ v, y, tolerance=1e-10, max_iterations=12)
    torch.testing.assert_close(found.alpha, torch.linalg.solve(A, y), rtol=1e-5, atol=1e-7)
    assert found.converged
    assert found.iterations == len(found.residuals) - 1


def test_flow_has_full_precision_for_small_times():
    path = SpectralPath(
        torch.diag(torch.tensor([1e-9, 1.0], dtype=torch.float64)), torch.ones(2), rank_tolerance=0
    )
    torch.testing.assert_close(path.flow(1e-6)[0].item(), 1e-6, rtol=1e-14, atol=0)


def test_limits_of_flow_and_ridge():
    Phi, y = random_system(0)
    path = SpectralPath(Phi @ Phi.T, y)
    torch.testing.assert_close(path.flow(1e6), path.minimum_norm())
    torch.testing.assert_close(path.ridge(1e-12), path.minimum_norm(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: linalg.cholesky_solve(np.eye(2), [1.0, 2.0], -1),
            ValueError,
            "ridge must be at least 0, got -1",
        ),
        (
            lambda: linalg.cholesky_solve(np.ones((2, 3)), [1.0, 2.0]),
            ValueError,
            "K must be square",
        ),
        (
            lambda: linalg.cholesky_solve([[1.0, 2.0], [0.0, 1.0]], [1.0, 2.0]),
            ValueError,
            "K must be symmetric",
        ),
        (
            lambda: linalg.cholesky_solve(np.eye(2), [1.0]),
            ValueError,
            "K and y must have the same number of rows",
        ),
        (
            lambda: SpectralPath(-np.eye(2), [1.0, 2.0]),
            ValueError,
            "K must be positive semi-definite",
        ),
        (
            lambda: SpectralPath(np.eye(2), [1.0, 2.0]).ridge(0),
            ValueError,
            "ridge must be positive here",
        ),
        (
            lambda: SpectralPath(np.eye(2), [1.0, 2.0]).ridge(-1),
            ValueError,
            "ridge must be at least 0, got -1",
        ),
        (lambda: SpectralPath(np.eye(2), [1.0, 2.0]).flow(-1), ValueError, "t must be at least 0"),
        (lambda: SpectralPath(np.eye(2), [1.0, 2.0]).flow(np.inf), ValueError, "t must be finite"),
        (
            lambda: SpectralPath(np.eye(2), [1.0, 2.0]).descent(0, 1),
            ValueError,
            "learning_rate must be greater than 0",
        ),
        (
            lambda: SpectralPath(np.eye(2), [1.0, 2.0]).descent(0.1, 2.5),
            ValueError,
            "steps must be whole numbers",
        ),
        (
            lambda: linalg.conjugate_gradients(lambda v: v * np.nan, [1.0, 2.0]),
            ValueError,
            "A must give finite numbers",
        ),
        (
            lambda: linalg.nystrom_preconditioner(np.ones((3, 2)), [0, 5], 1.0),
            ValueError,
            "pivots must be at most 2, got 5",
        ),
        (
            lambda: linalg.richardson(lambda v: 100 * v, [1.0, 2.0], 1.0),
            ValueError,
            "diverges with learning_rate=1",
        ),
        (
            lambda: linalg.richardson(lambda v: 3.0, [1.0, 2.0], 1.0),
            ValueError,
            r"A must return a tensor of shape \(2,\)",
        ),
        (
            lambda: linalg.richardson(lambda v: v.sum(), [1.0, 2.0], 1.0),
            ValueError,
            r"A must return a tensor of shape \(2,\)",
        ),
        (lambda: linalg.richardson(None, [1.0, 2.0], 1.0), TypeError, "A must be callable"),
        (
            lambda: linalg.conjugate_gradients(lambda v: v, [1.0], preconditioner=3),
            TypeError,
            "preconditioner must be callable",
        ),
        (
            lambda: SpectralPath(np.eye(2), [1.0, 2.0]).descent(100.0, 10**6),
            ValueError,
            "diverges with learning_rate=100",
        ),
        (
            lambda: SpectralPath(np.eye(2), np.eye(2)).ridge([1.0, 2.0]),
            ValueError,
            "y must be one output",
        ),
        (
            lambda: linalg.nystrom_preconditioner(np.ones((3, 2)), "ab", 1.0),
            TypeError,
            "pivots must be a sequence",
        ),
        (
            lambda: linalg.conjugate_gradients(lambda v: -v, [1.0, 2.0]),
            ValueError,
            "A must be positive definite",
        ),
        (
            lambda: linalg.conjugate_gradients(lambda v: v, [1.0], tolerance=0),
            ValueError,
            "tolerance must be greater than 0",
        ),
        (
            lambda: linalg.conjugate_gradients(lambda v: v, [1.0], max_iterations=0),
            ValueError,
            "max_iterations must be at least 1",
        ),
        (
            lambda: linalg.nystrom_preconditioner(np.ones((3, 2)), [0], 1.0),
            ValueError,
            "pivots must name 2 rows",
        ),
        (
            lambda: linalg.nystrom_preconditioner(np.ones((3, 2)), [0, 1], 0),
            ValueError,
            "ridge must be greater than 0",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(seeds)
def test_cholesky_refuses_equal_inputs(seed):
    Phi, y = random_system(seed, 6, 20)
    Phi[3] = Phi[1]
    with pytest.raises(ValueError, match="singular to working precision"):
        linalg.cholesky_solve(Phi @ Phi.T, y)


def test_descent_keeps_digits_of_small_eigenvalues():
    path = SpectralPath(torch.diag(torch.tensor([1e-6, 1.0])), torch.ones(2), rank_tolerance=0)
    torch.testing.assert_close(path.descent(0.01, 10)[0].item(), 0.1, rtol=1e-5, atol=0)


def test_one_entry_breaks_symmetry():
    K = np.eye(600)
    K[1, 5] = 0.5
    with pytest.raises(ValueError, match="K must be symmetric"):
        linalg.cholesky_solve(K, np.ones(600))


def test_python_numbers_keep_their_digits():
    """A list of floats is float64, not torch's default float32."""
    alpha = SpectralPath([[1.0, 0.0], [0.0, 0.5]], [0.1, 0.2]).flow(0.3)
    np.testing.assert_allclose(
        alpha.numpy(), [-np.expm1(-0.3) * 0.1, -np.expm1(-0.15) * 0.4], rtol=1e-14
    )


@pytest.mark.parametrize(
    "solver", [linalg.conjugate_gradients, partial(linalg.richardson, learning_rate=0.2)]
)
def test_a_callback_sees_the_iterates_and_may_stop(solver):
    A = torch.diag(torch.linspace(1, 4, 30, dtype=torch.float64))
    y, seen = torch.ones(30, dtype=torch.float64), []

    def watch(alpha):
        seen.append(alpha)
        return len(seen) == 3

    solution = solver(lambda v: A @ v, y, tolerance=1e-12, callback=watch)
    assert solution.iterations == 3
    assert solution.converged
    assert torch.equal(seen[-1], solution.alpha)
    plain = solver(lambda v: A @ v, y, tolerance=1e-12, callback=lambda alpha: None)
    assert plain.iterations > 3


@pytest.mark.parametrize(
    "solver", [linalg.conjugate_gradients, partial(linalg.richardson, learning_rate=0.2)]
)
def test_labels_of_zero_need_no_iteration(solver):
    solution = solver(lambda v: v, torch.zeros(3))
    assert solution.converged and solution.iterations == 0 and not solution.alpha.any()


def test_coefficients_in_the_null_space_grow_with_time():
    """Where K is zero the residual stays y, so that the coefficients are t y."""
    path, y = SpectralPath(np.zeros((2, 2)), [1.0, -2.0]), np.array([1.0, -2.0])
    np.testing.assert_allclose(path.flow(3.0).numpy(), 3 * y)
    np.testing.assert_allclose(path.flow([1.0, 3.0]).numpy(), np.outer(y, [1.0, 3.0]))
    np.testing.assert_allclose(path.descent(0.1, 5).numpy(), 0.5 * y)
    K = np.array([[1.0, 1.0], [1.0, 1.0]])
    step = linalg.richardson(
        lambda v: torch.as_tensor(K) @ v, y, 0.1, tolerance=1e-300, max_iterations=5
    )
    np.testing.assert_allclose(SpectralPath(K, y).descent(0.1, 5).numpy(), step.alpha.numpy())


def test_several_outputs_at_once():
    rng = np.random.default_rng(0)
    A, Y = rng.standard_normal((6, 6)), rng.standard_normal((6, 2))
    K = A @ A.T
    wanted = np.linalg.solve(K + 0.3 * np.eye(6), Y)
    np.testing.assert_allclose(linalg.cholesky_solve(K, Y, 0.3).numpy(), wanted)
    np.testing.assert_allclose(SpectralPath(K, Y).ridge(0.3).numpy(), wanted)
