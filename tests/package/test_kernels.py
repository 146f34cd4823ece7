"""Kernels against scikit-learn and brute force, products with K against K, regression against
KernelRidge.
"""

import weakref
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from featlearn import kernels, linalg, random_features
from featlearn.kernels import (
    Gaussian,
    KernelOperator,
    KernelRegression,
    Laplace,
    Matern,
    Polynomial,
)
from featlearn.ntk import NTK

ALL = [
    Gaussian(0.8),
    Laplace(1.3),
    Matern(1.5, 0.7),
    Matern(2.5, 2.0),
    Polynomial(3, 1.0),
    Polynomial(2),
]
ids = [repr(k) for k in ALL]


@st.composite
def points(draw, most=12):
    n, d, seed = draw(st.integers(1, most)), draw(st.integers(1, 5)), draw(st.integers(0, 10**6))
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("kernel", ALL, ids=ids)
@given(points())
def test_symmetric_and_positive_semi_definite(kernel, X):
    K = kernel(X)
    assert K.dtype == torch.float64
    assert torch.equal(K, kernel(X, X))
    torch.testing.assert_close(K, K.T, rtol=0, atol=1e-12 * K.abs().max().item())
    assert torch.linalg.eigvalsh(K).min() >= -1e-7 * K.abs().max()


@pytest.mark.parametrize("kernel", ALL, ids=ids)
@given(points(), st.integers(0, 10**6))
def test_rotation_invariant(kernel, X, seed):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((X.shape[1],) * 2))[0]
    torch.testing.assert_close(kernel(X @ Q), kernel(X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", ALL[:4], ids=ids[:4])
@given(points(), st.floats(-50, 50))
def test_distance_kernels_ignore_shifts_and_are_one_on_the_diagonal(kernel, X, shift):
    torch.testing.assert_close(kernel(X + shift), kernel(X), rtol=1e-5, atol=1e-5)
    assert torch.equal(kernel(X).diagonal(), torch.ones(len(X), dtype=torch.float64))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(0.8), lambda X, Y: rbf_kernel(X, Y, gamma=0.5 / 0.8**2)),
        (Laplace(1.3), SklearnMatern(1.3, nu=0.5)),
        (Matern(1.5, 0.7), SklearnMatern(0.7, nu=1.5)),
        (Matern(2.5, 2.0), SklearnMatern(2.0, nu=2.5)),
        (Polynomial(3, 1.0), lambda X, Y: polynomial_kernel(X, Y, degree=3, gamma=1, coef0=1)),
    ],
)
@given(points(), points())
def test_agrees_with_scikit_learn(ours, theirs, X, Y):
    Y = np.resize(Y, (len(Y), X.shape[1]))
    np.testing.assert_allclose(ours(X, Y).numpy(), theirs(X, Y), rtol=1e-6, atol=1e-7)


@given(points(), points())
def test_squared_distances_by_brute_force(X, Y):
    Y = np.resize(Y, (len(Y), X.shape[1]))
    brute = ((X[:, None] - Y[None]) ** 2).sum(2)
    np.testing.assert_allclose(kernels.squared_distances(X, Y).numpy(), brute, atol=1e-12)


def test_vectors_give_a_number_and_dtype_is_kept():
    x, y = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    assert Gaussian(1.0)(x, y).item() == pytest.approx(np.exp(-1))
    assert Gaussian(1.0)(torch.ones(3, 2, dtype=torch.float32)).dtype == torch.float32
    assert Polynomial(2)([[1, 2], [3, 4]]).dtype == torch.float64


def test_plugs_into_kernel_ridge():
    X, y = np.random.default_rng(0).standard_normal((15, 3)), np.arange(15.0)
    kernel = Laplace(2.0)
    pairwise = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y).predict(X[:4] + 0.1)
    precomputed = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel(X).numpy(), y)
    np.testing.assert_allclose(pairwise, precomputed.predict(kernel(X[:4] + 0.1, X).numpy()))
    np.testing.assert_allclose(
        pairwise, KernelRegression(kernel, 0.1).fit(X, y).predict(X[:4] + 0.1)
    )


@pytest.mark.parametrize("kernel", ALL, ids=ids)
@given(points(most=25), st.integers(1, 30), st.floats(0, 2), st.sampled_from([0, 10**3, 10**9]))
def test_operator_is_the_matrix(kernel, X, block, ridge, cache):
    A = KernelOperator(kernel, X, ridge, block, cache)
    v = torch.linspace(-1, 1, len(X), dtype=torch.float64)
    want = kernel(X) @ v + ridge * v
    for _ in range(2):
        torch.testing.assert_close(A(v), want, rtol=1e-6, atol=1e-6 * (1 + want.abs().max().item()))


def test_operator_counts_and_never_stores():
    X = np.random.default_rng(0).standard_normal((100, 2))
    A = KernelOperator(Gaussian(), X, block=25)
    A(torch.ones(100, dtype=torch.float64))
    assert A.evaluations == 100 * 125 / 2
    assert A.peak_entries == 25 * 25
    A(torch.ones(100, dtype=torch.float64))
    assert A.evaluations == 2 * 100 * 125 / 2
    kept = KernelOperator(Gaussian(), X, block=25, cache=10**6)
    for _ in range(3):
        kept(torch.ones(100, dtype=torch.float64))
    assert kept.evaluations == kept.peak_entries == 100 * 125 / 2


def test_reversed_views_integers_and_centred_data_are_fine():
    X = np.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(Gaussian()(X[::-1]), Gaussian()(X).flip(0, 1))
    A = KernelOperator(Gaussian(), X)
    torch.testing.assert_close(
        A([1, 2, 3]), Gaussian()(X) @ torch.tensor([1.0, 2, 3], dtype=torch.float64)
    )
    assert KernelOperator(
        Polynomial(1), [[-1.0], [1.0]], 0.1
    ).largest_eigenvalue() == pytest.approx(2.1)


def test_stopping_short_of_the_tolerance_warns():
    rng = np.random.default_rng(6)
    model = KernelRegression(Gaussian(), 1e-6, "cg", max_iterations=3)
    with pytest.warns(UserWarning, match="cg stopped at residual"):
        model.fit(rng.standard_normal((50, 2)), rng.standard_normal(50))


def test_largest_eigenvalue():
    X = np.random.default_rng(1).standard_normal((80, 3))
    exact = torch.linalg.eigvalsh(Gaussian()(X))[-1].item() + 0.3
    assert KernelOperator(Gaussian(), X, 0.3, block=32).largest_eigenvalue(30) == pytest.approx(
        exact, rel=1e-3
    )


@pytest.mark.parametrize("solver", kernels.SOLVERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_solver_agrees_with_kernel_ridge(solver, dtype):
    rng = np.random.default_rng(2)
    X, y, X_new = (
        rng.standard_normal((120, 3)),
        rng.standard_normal(120),
        rng.standard_normal((50, 3)),
    )
    kernel = Gaussian(1.0)
    want = (
        KernelRidge(alpha=0.5, kernel="precomputed")
        .fit(kernel(X).numpy(), y)
        .predict(kernel(X_new, X).numpy())
    )
    model = KernelRegression(
        kernel, 0.5, solver, tolerance=1e-6, max_iterations=3000, rank=40, block=50, dtype=dtype
    )
    got = model.fit(X, y).predict(X_new)
    assert got.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    np.testing.assert_allclose(got, want, atol=1e-5 if dtype == torch.float64 else 1e-3)
    if solver not in ("cholesky", "spectral"):
        assert model.solutions_[0].converged
        assert model.residual_ <= (2e-6 if dtype == torch.float64 else 1e-4)


def test_residual_is_the_true_one():
    """In float32 the solver's own residual is optimistic.

    The reported one is recomputed in float64.
    """
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    model = KernelRegression(
        Gaussian(2.0), 1e-4, "cg", tolerance=1e-5, dtype=torch.float32, max_iterations=400
    )
    with pytest.warns(UserWarning, match="cg stopped"):
        model.fit(X, y)
    K = Gaussian(2.0)(torch.as_tensor(X, dtype=torch.float32).double()) + 1e-4 * torch.eye(200)
    true = torch.linalg.norm(torch.as_tensor(y) - K @ model.alpha_) / np.linalg.norm(y)
    assert model.residual_ == pytest.approx(true.item(), rel=1e-6)


def test_preconditioner_saves_iterations_and_does_not_change_the_answer():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((400, 5)), rng.standard_normal(400)
    fits = {
        name: KernelRegression(
            Laplace(3.0),
            0.05,
            name,
            rank=100,
            tolerance=1e-8,
            random_state=np.random.default_rng(0),
        ).fit(X, y)
        for name in ("cg", "nystrom")
    }
    torch.testing.assert_close(fits["cg"].alpha_, fits["nystrom"].alpha_, rtol=0, atol=1e-6)
    assert fits["nystrom"].solutions_[0].iterations < 0.7 * fits["cg"].solutions_[0].iterations


def test_nystrom_preconditioner_inverts_its_matrix():
    rng = np.random.default_rng(5)
    K = Gaussian()(rng.standard_normal((60, 2)))
    pivots = torch.arange(0, 60, 4)
    columns = K[:, pivots]
    P = columns @ torch.linalg.solve(columns[pivots], columns.T) + 0.1 * torch.eye(60)
    v = torch.as_tensor(rng.standard_normal(60))
    torch.testing.assert_close(
        linalg.nystrom_preconditioner(columns, pivots, 0.1)(P @ v), v, rtol=0, atol=1e-6
    )


def test_interpolant_of_least_norm_without_ridge():
    X = np.array([[0.0], [0.0], [1.0]])
    model = KernelRegression(Gaussian(), 0.0, "spectral").fit(X, [1.0, 3.0, 5.0])
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [2.0, 5.0], atol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Gaussian(0), ValueError, "bandwidth must be greater than 0, got 0"),
        (lambda: Gaussian("wide"), TypeError, "bandwidth must be a real number"),
        (lambda: Matern(2.0), ValueError, "nu must be one of 0.5, 1.5, 2.5, got 2.0"),
        (lambda: Polynomial(0), ValueError, "degree must be at least 1"),
        (lambda: Polynomial(2, -1.0), ValueError, "constant must be at least 0"),
        (lambda: Gaussian()([[1.0, np.nan]]), ValueError, "X must be finite"),
        (lambda: Gaussian()(np.zeros((0, 2))), ValueError, "X must not be empty"),
        (
            lambda: Gaussian()(np.zeros((2, 2, 2))),
            ValueError,
            "X must be 1-dimensional or 2-dimensional",
        ),
        (
            lambda: Gaussian()(np.zeros((2, 2)), np.zeros((2, 3))),
            ValueError,
            "same dimension, got 2 and 3",
        ),
        (
            lambda: Gaussian()(np.zeros((2, 2)), np.zeros(2)),
            ValueError,
            "both be vectors or both matrices",
        ),
        (lambda: Gaussian()([["a"]]), TypeError, "X must be an array of numbers"),
        (lambda: Gaussian()(np.zeros((2, 2), complex)), TypeError, "X must be real"),
        (lambda: KernelRegression("rbf").fit([[1.0]], [1.0]), TypeError, "kernel must be callable"),
        (
            lambda: KernelRegression(Gaussian(), -1.0).fit([[1.0]], [1.0]),
            ValueError,
            "ridge must be at least 0, got -1",
        ),
        (
            lambda: KernelRegression(Gaussian(), 1.0, "magic").fit([[1.0]], [1.0]),
            ValueError,
            "solver must be one of",
        ),
        (
            lambda: KernelRegression(Gaussian(), 1.0, rank=0).fit([[1.0]], [1.0]),
            ValueError,
            "rank must be at least 1",
        ),
        (
            lambda: KernelRegression(Gaussian(), 1.0).fit(torch.ones(2, 1), [1.0]),
            ValueError,
            "X and y must have the same number of rows, got 2 and 1",
        ),
        (
            lambda: KernelRegression(Gaussian(), 1.0).predict([[1.0]]),
            NotFittedError,
            "not fitted yet",
        ),
        (
            lambda: KernelRegression(Gaussian(), 0.0).fit([[1.0], [1.0]], [1.0, 2.0]),
            ValueError,
            "singular to working precision",
        ),
        (
            lambda: KernelOperator(Gaussian(), [[1.0]])(torch.ones(2)),
            ValueError,
            r"v must have shape \(1,\)",
        ),
        (
            lambda: kernels.squared_distances(np.zeros((2, 2)), np.zeros((1, 1))),
            ValueError,
            "same dimension, got 2 and 1",
        ),
        (
            lambda: KernelRegression(Gaussian(), random_state="x").fit([[1.0]], [1.0]),
            TypeError,
            "random_state must be a numpy Generator",
        ),
        (
            lambda: KernelRegression(Gaussian(), dtype=torch.int64).fit([[1.0]], [1.0]),
            ValueError,
            "dtype must be one of",
        ),
        (lambda: Gaussian()([[1.0], [1.0, 2.0]]), TypeError, "got a ragged list"),
        (lambda: Gaussian()(None), TypeError, "X must be an array of numbers"),
        (
            lambda: KernelOperator(Gaussian(), [[1.0]], block=0),
            ValueError,
            "block must be at least 1",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def too_large(*points):
    """A kernel that asks for more memory than any machine has."""
    return torch.empty(2**50, dtype=torch.float64)


@pytest.mark.parametrize("solver", kernels.SOLVERS)
def test_out_of_memory_names_the_block_to_lower(solver):
    X, y = np.eye(6, 2), np.arange(6.0)
    with pytest.raises(MemoryError, match=r"out of memory on cpu.*lower block( |=)"):
        KernelRegression(too_large, 0.1, solver, block=4).fit(X, y)
    model = KernelRegression(Gaussian(), 0.1, solver, block=4).fit(X, y)
    model.kernel_ = too_large
    with pytest.raises(MemoryError, match=r"with block=4: a block of K takes 1\.28e-07 GB"):
        model.predict(X)


def test_out_of_memory_on_a_gpu_and_other_errors():
    def full(*points):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 8 GiB")

    def broken(text, *points):
        raise RuntimeError(text)

    X, v = np.eye(6, 2), torch.ones(6, dtype=torch.float64)
    with pytest.raises(MemoryError, match="block=2048"):
        KernelOperator(full, X)(v)
    for text in (
        "mat1 and mat2 shapes cannot be multiplied",
        "PYTORCH_CUDA_ALLOC_CONF: Unrecognized key",
        "its data is not allocated yet",
    ):
        with pytest.raises(RuntimeError, match=text):
            KernelOperator(partial(broken, text), X)(v)
    for text in (
        "CUDA error: out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
    ):
        with pytest.raises(MemoryError, match="lower block"):
            KernelOperator(partial(broken, text), X)(v)


def test_one_block_is_alive_at_a_time():
    alive, most = [], []

    def watched(X, Y=None):
        K = Gaussian()(X, Y)
        alive.append(weakref.ref(K))
        most.append(sum(block() is not None for block in alive))
        return K

    KernelOperator(watched, np.eye(12, 2), block=4)(torch.ones(12, dtype=torch.float64))
    assert max(most) == 1


@pytest.mark.parametrize("solver", kernels.SOLVERS)
def test_an_interrupted_fit_leaves_the_one_before(solver):
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    model = KernelRegression(Gaussian(), 0.1, solver).fit(X, y)
    before = model.predict(X)

    def interrupted(*points):
        raise KeyboardInterrupt

    kernel, model.kernel = model.kernel, interrupted
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:5] + 1, y[:5])
    model.kernel = kernel
    assert np.array_equal(model.predict(X), before)


def test_predictions_do_not_depend_on_the_block():
    rng = np.random.default_rng(9)
    X, y, X_new = (
        rng.standard_normal((50, 3)),
        rng.standard_normal(50),
        rng.standard_normal((23, 3)),
    )
    values = [
        KernelRegression(Gaussian(), 0.1, block=b).fit(X, y).predict(X_new) for b in (None, 7, 50)
    ]
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-10)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_equal_points_of_two_sets_have_distance_zero(nu):
    """Not the root of a rounding error, which is 1e-8 and depends on the order of the points."""
    X = torch.as_tensor(np.random.default_rng(0).uniform(0, 3, (50, 3)))
    assert torch.equal(
        kernels.Matern(nu)(X, X.flip(0)).fliplr().diagonal(), torch.ones(50).double()
    )


def test_a_matrix_that_no_machine_holds_is_refused_and_named():
    """Before memory is asked for, or where torch has none left."""
    many = torch.zeros(10**6, 1, dtype=torch.float64)
    features = random_features.fourier_features(2, 1, np.random.default_rng(0))
    for k in (Gaussian(), NTK(2), NTK(2).both, kernels.squared_distances, features.kernel):
        with pytest.raises(ValueError, match=r"X and Y must be smaller: they ask for 1e\+12"):
            k(many)

    class Greedy(Gaussian):
        def matrix(self, X, Y, same):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to ...")

    with pytest.raises(MemoryError, match="X and Y must have fewer rows: a matrix of 3 by 3"):
        Greedy()(many[:3])


def test_an_overflow_is_that_of_the_longest_point():
    X = torch.tensor([[1e-200], [1e160]], dtype=torch.float64)
    with pytest.raises(ValueError, match="overflow"):
        kernels.Polynomial(2)(X)


@pytest.mark.parametrize("gradient", [False, True])
def test_rounding_lifts_no_entry_above_one(gradient):
    X = torch.as_tensor(np.random.default_rng(0).standard_normal((60, 3)) * 1e3)
    assert Gaussian()(X.requires_grad_(gradient), X.detach().clone()).max() <= 1
