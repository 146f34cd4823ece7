"""The fused product, in Triton's interpreter, against the matrix in float64."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from featlearn import fused, kernels
from featlearn.kernels import Gaussian, KernelOperator, KernelRegression, Laplace, Matern
from featlearn.ntk import NTK
from featlearn.wide import NNGP

ALL = [
    Gaussian(1.5),
    Laplace(2.0),
    Matern(1.5, 2.0),
    Matern(2.5, 2.0),
    kernels.Polynomial(1),
    kernels.Polynomial(3, 0.5),
    NNGP(2, "relu", 2**0.5),
    NTK(3, "relu", 2**0.5),
]
NAMES = ["gaussian", "laplace", "matern-3/2", "matern-5/2", "linear", "cubic", "nngp", "ntk"]
SIZES = [(1, 1, 1), (5, 300, 3), (257, 130, 10), (130, 129, 40), (33, 65, 200)]


def draw(seed, *shape):
    return torch.as_tensor(np.random.default_rng(seed).standard_normal(shape), dtype=torch.float32)


def distance(found, exact):
    return ((found - exact).norm() / exact.norm()).item()


def exact(kernel, X, Y, V):
    X64 = X.double()
    return kernel(X64, X64 if Y is X else Y.double()) @ V.double()


@pytest.mark.parametrize("kernel", ALL, ids=NAMES)
@pytest.mark.parametrize("outputs", [None, 3, 17])
def test_product_is_that_of_the_matrix(kernel, outputs):
    for n, m, d in SIZES:
        shape = () if outputs is None else (outputs,)
        X, Y = (draw(seed, size, d) / max(1, d / 10) ** 0.5 for seed, size in ((1, n), (2, m)))
        V = draw(3, m, *shape)
        found = fused.product(kernel, X, Y)(V)
        assert found.dtype == torch.float32
        assert found.shape == (n, *shape)
        assert distance(found, exact(kernel, X, Y, V)) < 3e-6


@pytest.mark.parametrize("kernel", ALL, ids=NAMES)
def test_one_set_of_points_has_its_diagonal(kernel):
    X, v = draw(1, 150, 12), draw(2, 150)
    assert distance(fused.product(kernel, X, X)(v), exact(kernel, X, X, v)) < 1e-6
    far = 1e3 + X  # the diagonal would lose its digits here
    if isinstance(kernel, (Gaussian, Matern)):
        assert distance(fused.product(kernel, far, far)(v), exact(kernel, far, far, v)) < 3e-4


def test_the_kink_of_a_tangent_kernel():
    X, v = draw(1, 60, 12), draw(2, 60)
    kernel = NTK(3, "relu", 2**0.5)
    for near, most in ((X.clone(), 1e-6), (X + 2e-4 * draw(3, 60, 12), 1e-3)):
        found = distance(fused.product(kernel, X, near)(v), exact(kernel, X, near, v))
        assert found < most, near


def test_many_tiles_lose_no_more_than_one():
    v = draw(1, 20_000).abs()
    found = fused.product(Gaussian(), torch.zeros(1, 1), torch.zeros(len(v), 1))(v)
    assert distance(found.double(), v.double().sum()) < 1e-7


def test_rows_that_are_not_contiguous():
    big, v = draw(1, 40, 60), draw(2, 20)
    X, Y = big[::3, 5:55:5], big.T[:10, ::2].T
    assert not (X.is_contiguous() or Y.is_contiguous())
    assert distance(fused.product(Gaussian(3.0), X, Y)(v), exact(Gaussian(3.0), X, Y, v)) < 2e-6


@pytest.mark.parametrize("family", [Gaussian, Laplace])
def test_limits_of_the_bandwidth(family):
    X, v = draw(1, 70, 3), draw(2, 70)
    assert torch.equal(fused.product(family(1e-12), X, X)(v), v)
    assert fused.product(family(1e12), X, X)(v) == pytest.approx(v.sum().item(), rel=1e-5)


@pytest.mark.parametrize("size", [1e-15, 1e15])
def test_points_of_any_size(size):
    X, v = draw(1, 70, 3), draw(2, 70)
    at_one = fused.product(Gaussian(2.0), X, X)(v)
    assert distance(fused.product(Gaussian(2 * size), size * X, size * X)(v), at_one) < 1e-6


def test_equal_points_zeros_and_nan():
    X, v = torch.ones(9, 4), draw(2, 9)
    for kernel in ALL:
        assert distance(fused.product(kernel, X, X)(v), exact(kernel, X, X, v)) < 1e-5
    zero = torch.zeros(9, 4)
    assert distance(fused.product(Gaussian(), zero, zero)(v), v.sum().expand(9)) < 1e-6
    v[3] = torch.nan
    assert fused.product(Gaussian(), X, X)(v).isnan().all()


def test_what_it_leaves_to_others():
    X, Y = draw(1, 5, 3), draw(2, 4, 3)
    width = torch.tensor(1.0, requires_grad=True)
    assert fused.product(Gaussian(), X.double(), Y.double()) is None
    assert fused.product(Gaussian(width), X, Y) is None
    assert fused.product(Gaussian(), X.clone().requires_grad_(), Y) is None
    assert fused.product(lambda A, B: A @ B.T, X, Y) is None
    assert fused.product(kernels.Polynomial(40), X, Y) is None
    assert fused.product(NTK(3, "relu", 1.0, 1.0), X, Y) is None  # not a function of the angle
    on_sphere = X / X.norm(dim=1, keepdim=True), Y / Y.norm(dim=1, keepdim=True)
    kernel = NTK(3, "relu", 1.0, 1.0)
    v = draw(3, 4)
    assert distance(fused.product(kernel, *on_sphere)(v), exact(kernel, *on_sphere, v)) < 3e-6


@pytest.fixture
def chip(monkeypatch):
    """The CPU as a device with fused products."""
    calls = []

    def product(kernel, X, Y):
        calls.append((len(X), len(Y)))
        return fused.product(kernel, X, Y)

    monkeypatch.setattr(kernels, "_on_chip", product)
    return calls


def test_operators_and_regression_use_it(chip):
    X, y, points = draw(1, 90, 3), draw(2, 90).double(), draw(3, 7, 3)
    A = KernelOperator(Gaussian(), X, 0.5)
    assert distance(A(y), exact(Gaussian(), X, X, y) + 0.5 * y) < 1e-6
    assert A.evaluations == 90**2
    assert A.peak_entries == 0
    for solver in ("richardson", "cg", "nystrom"):
        labels = torch.stack([y, y.cos()], dim=1) if solver == "nystrom" else y
        chip.clear()
        found = KernelRegression(Gaussian(), 5.0, solver, rank=20).fit(X, labels).predict(points)
        assert (90, 90) in chip
        assert (7, 90) in chip
        direct = KernelRegression(Gaussian(), 5.0, dtype=torch.float64).fit(X, labels)
        assert distance(found, direct.predict(points)) < 1e-5


def test_points_of_very_different_size_do_not_overflow():
    X, Y, v = draw(1, 40, 5), 1e4 * draw(2, 30, 5), draw(3, 30)
    Y[0] = 0
    kernel = kernels.Polynomial(1)
    assert distance(fused.product(kernel, X, Y)(v), exact(kernel, X, Y, v)) < 3e-6
