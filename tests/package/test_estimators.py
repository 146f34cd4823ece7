"""Estimators: scikit-learn's own checks, pipelines, grids, clones, pickles; and edge cases."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import featlearn as fl
from featlearn.kernels import SOLVERS

REGRESSORS = [
    fl.KernelRegression(fl.Gaussian(2.0), ridge=1e-3),
    fl.RecursiveFeatureMachine(fl.Laplace(2.0), rounds=1, ridge=1e-3),
]
ESTIMATORS = [*REGRESSORS, fl.RandomFeatures(20, random_state=0)]


@parametrize_with_checks(
    [
        fl.KernelRegression(ridge=1e-3),
        fl.RandomFeatures(20),
        fl.RecursiveFeatureMachine(rounds=1, ridge=1e-3),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def problem(n=40, d=3, outputs=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] if outputs is None else X[:, :outputs]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_clone_and_pickle(estimator):
    X, y = problem()
    fitted = clone(estimator).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    run = "transform" if hasattr(estimator, "transform") else "predict"
    np.testing.assert_array_equal(getattr(copy, run)(X), getattr(fitted, run)(X))
    assert repr(clone(fitted)) == repr(estimator)
    with pytest.raises(NotFittedError):
        getattr(clone(fitted), run)(X)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_arrays_and_tensors_give_the_same_and_come_back_as_they_were(estimator):
    X, y = problem()
    array = estimator.fit(X, y).predict(X)
    tensor = estimator.fit(torch.as_tensor(X), torch.as_tensor(y)).predict(torch.as_tensor(X))
    assert isinstance(array, np.ndarray) and isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(array, tensor.numpy())
    assert estimator.fit(np.float32(X), y).predict(np.float32(X)).dtype == np.float32


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_fit_keeps_a_copy_of_the_points(estimator):
    X, y = (torch.as_tensor(part) for part in problem())
    new = torch.ones(2, 3, dtype=torch.float64)
    before = estimator.fit(X, y).predict(new)
    X += 1
    y += 1
    assert torch.equal(estimator.predict(new), before)


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_outputs_are_those_of_one_at_a_time(solver):
    X, Y = problem(outputs=2)
    model = fl.KernelRegression(fl.Gaussian(2.0), 1.0, solver, tolerance=1e-9)
    both = model.fit(X, Y).predict(X)
    assert both.shape == Y.shape
    each = [model.fit(X, Y[:, k]).predict(X) for k in range(2)]
    np.testing.assert_allclose(both, np.stack(each, axis=1), atol=1e-8)


def test_metric_of_several_outputs_sums_their_gradients():
    X, Y = problem(n=60, outputs=2)
    machine = fl.RecursiveFeatureMachine(fl.Gaussian(2.0), rounds=0, ridge=1e-6)
    found = machine.fit(X, Y).next_metric_
    parts = []
    for k in range(2):
        alpha = machine.fit(X, Y[:, k]).alphas_[0]
        parts.append(fl.rfm.agop(fl.rfm.gradients(fl.Gaussian(2.0), X, X, alpha)))
    total = parts[0] + parts[1]
    torch.testing.assert_close(found, total * (3 / total.trace()))


def test_pipeline_grid_search_and_cross_validation():
    X, y = problem(n=60)
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), fl.KernelRegression(fl.Gaussian(2.0))),
        {
            "kernelregression__ridge": [10.0, 1e-3],
            "kernelregression__kernel": [fl.Gaussian(0.01), fl.Gaussian(3.0)],
        },
        cv=3,
    ).fit(X, y)
    assert grid.best_params_["kernelregression__ridge"] == 1e-3
    assert grid.best_params_["kernelregression__kernel"] == fl.Gaussian(3.0)
    features = make_pipeline(fl.RandomFeatures(300, bandwidth=3.0, random_state=0), Ridge(1e-3))
    assert cross_val_score(features, X, y, cv=3).min() > 0.9
    machine = fl.RecursiveFeatureMachine(fl.Laplace(3.0), rounds=2, ridge=1e-6)
    assert machine.fit(X[:40], y[:40]).score(X[40:], y[40:]) > 0.95


def test_random_state_is_an_integer_or_a_generator():
    X, _ = problem()
    first, second, third = (
        fl.RandomFeatures(5, random_state=seed).fit_transform(X)
        for seed in (3, np.random.default_rng(3), 4)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, third)
    with pytest.raises(TypeError, match="random_state must be a numpy Generator"):
        fl.RandomFeatures(5, random_state="luck").fit(X)


@pytest.mark.parametrize(
    ("kind", "kernel"), [("fourier", fl.Gaussian(2.0)), ("relu", fl.ArcCosine())]
)
def test_inner_products_of_random_features_converge_to_the_kernel(kind, kernel):
    X, _ = problem(n=10)
    errors = []
    for p in (100, 10_000):
        Z = fl.RandomFeatures(p, kind, bandwidth=2.0, random_state=0).fit_transform(X)
        errors.append(np.abs(Z @ Z.T - kernel(X).numpy()).max())
    assert errors[1] < 0.3 * errors[0]


# Edge cases: the same answer from every solver, or a clear error


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_labels_of_zero_have_the_solution_zero(solver, ridge):
    X, y = problem(n=10)
    if solver == "nystrom" and ridge == 0:
        with pytest.raises(ValueError, match="ridge must be greater than 0"):
            fl.KernelRegression(fl.Gaussian(), ridge, solver).fit(X, 0 * y)
        return
    model = fl.KernelRegression(fl.Gaussian(), ridge, solver).fit(X, 0 * y)
    assert not model.alpha_.any() and not model.predict(X).any()
    assert getattr(model, "residual_", 0.0) == 0.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_point(solver):
    model = fl.KernelRegression(fl.Gaussian(), 1.0, solver).fit([[2.0]], [3.0])
    np.testing.assert_allclose(model.predict([[2.0]]), [1.5], rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_points_with_a_ridge(solver):
    X, y = [[0.0], [0.0], [1.0]], [1.0, 3.0, 5.0]
    model = fl.KernelRegression(fl.Gaussian(), 0.1, solver, tolerance=1e-10).fit(X, y)
    wanted = fl.KernelRegression(fl.Gaussian(), 0.1, "spectral").fit(X, y)
    np.testing.assert_allclose(model.predict(X), wanted.predict(X), rtol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("y", "solvable"), [([1.0, 1.0, 5.0], True), ([1.0, 3.0, 5.0], False)])
def test_singular_kernel_without_a_ridge(solver, y, solvable):
    """Every solver gives the interpolant of least norm or says that K is singular."""
    X = [[0.0], [0.0], [1.0]]
    model = fl.KernelRegression(fl.Gaussian(), 0.0, solver, tolerance=1e-9)
    if solver == "spectral" or (solvable and solver in ("richardson", "cg")):
        wanted = [1.0, 1.0, 5.0] if solvable else [2.0, 2.0, 5.0]
        np.testing.assert_allclose(model.fit(X, y).predict(X), wanted, atol=1e-6)
        least = fl.KernelRegression(fl.Gaussian(), 0.0, "spectral").fit(X, y)
        torch.testing.assert_close(model.alpha_, least.alpha_, atol=1e-6, rtol=0)
    else:
        with pytest.raises(ValueError, match=r"singular|positive definite|ridge must be greater"):
            model.fit(X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_kernel_that_is_zero(solver):
    def zero(X, Y=None):
        return X.new_zeros(len(X), len(X if Y is None else Y))

    model, X, y = fl.KernelRegression(zero, 0.0, solver), [[1.0], [2.0]], [1.0, 2.0]
    if solver == "spectral":
        assert not model.fit(X, y).alpha_.any(), "least squares of least norm"
        return
    with pytest.raises(
        ValueError, match=r"singular|must not be zero|positive definite|ridge must be"
    ):
        model.fit(X, y)
