"""Recursive feature machines.

Gradients against differences, the exact mean against samples, and what must raise.
"""

import math

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from featlearn import hermite, kernels, linalg, rfm, stream
from featlearn.damian import EXAMPLES, LatentPolynomial, mixture
from featlearn.ntk import NTK

KERNELS = {
    "gaussian": kernels.Gaussian(2.0),
    "laplace": kernels.Laplace(2.0),
    "matern-3/2": kernels.Matern(1.5, 2.0),
    "matern-5/2": kernels.Matern(2.5, 2.0),
    "polynomial": kernels.Polynomial(3, 1.0),
    "ntk": NTK(2, "relu", 2**0.5, 1.0),
    "ntk-erf": NTK(3, "erf", 1.5, 0.5),
}


def data(n=12, d=4, seed=0):
    rng = stream(f"test/rfm/{seed}")
    return torch.as_tensor(rng.standard_normal((n, d))), torch.as_tensor(rng.standard_normal(n))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_central_differences(name):
    """Also at the centres, where kinked kernels have the mean of both one-sided slopes."""
    kernel, (X, alpha), step = KERNELS[name], data(), 1e-5
    points = torch.cat([X[:3], data(3, seed=1)[0]])
    found = rfm.gradients(kernel, points, X, alpha)
    for axis in range(4):
        shift = torch.zeros(4, dtype=torch.float64)
        shift[axis] = step
        slope = (kernel(points + shift, X) @ alpha - kernel(points - shift, X) @ alpha) / (2 * step)
        assert torch.allclose(found[:, axis], slope, atol=1e-6)


def test_one_far_point_does_not_blur_the_others():
    """In float32, where squared distances are rounded on the scale of the farthest point."""
    X, alpha = data(60, 5)
    X[0] += 2000
    for name in ("laplace", "matern-3/2"):
        exact = rfm.gradients(KERNELS[name], X, X, alpha)
        found = rfm.gradients(KERNELS[name], X.float(), X.float(), alpha.float()).double()
        assert (found - exact).norm() < 1e-3 * exact.norm()


def test_agop_is_the_mean_of_outer_products():
    G = data(7, 3)[0]
    assert torch.allclose(rfm.agop(G), sum(torch.outer(g, g) for g in G) / 7)


def test_gradients_in_inference_mode():
    X, alpha = data()
    wanted = rfm.gradients(KERNELS["laplace"], X, X, alpha)
    with torch.inference_mode():
        assert torch.equal(rfm.gradients(KERNELS["laplace"], X, X, alpha), wanted)


def test_predict_needs_a_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        rfm.RecursiveFeatureMachine(KERNELS["laplace"]).predict(np.eye(3))
    with pytest.raises(TypeError, match="kernel must be callable"):
        rfm.RecursiveFeatureMachine("laplace").fit(np.eye(3), np.ones(3))


def test_machine_takes_its_own_steps():
    X, y = data(30, 5)
    machine = rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=2, ridge=1e-6).fit(X, y)
    assert len(machine.metrics_) == 3 and torch.equal(
        machine.metrics_[0], torch.eye(5, dtype=torch.float64)
    )
    for t, after in ((0, machine.metrics_[1]), (1, machine.metrics_[2]), (2, machine.next_metric_)):
        R = linalg.matrix_sqrt(machine.metrics_[t])
        assert torch.allclose(R @ R, machine.metrics_[t], atol=1e-12)
        K = kernels.Laplace(2.0)(X @ R)
        alpha = torch.linalg.solve(K + 1e-6 * 30 * torch.eye(30, dtype=torch.float64), y)
        M = rfm.agop(rfm.gradients(kernels.Laplace(2.0), X @ R, X @ R, alpha) @ R)
        assert torch.allclose(after, M * 5 / M.trace(), atol=1e-8)
        assert torch.allclose(machine.predict(X, t), K @ alpha, atol=1e-8)
    assert torch.equal(machine.predict(X), machine.predict(X, 2))


def test_no_round_is_plain_ridge_regression():
    X, y = data(20, 3)
    kernel = kernels.Gaussian(1.5)
    machine = rfm.RecursiveFeatureMachine(kernel, rounds=0, ridge=1e-3).fit(X, y)
    plain = kernels.KernelRegression(kernel, ridge=1e-3 * 20).fit(X, y)
    assert torch.allclose(machine.predict(X[:4]), plain.predict(X[:4]), atol=1e-9)


def test_rotating_the_inputs_rotates_the_metric():
    X, y = data(25, 4)
    Q = torch.linalg.qr(data(4, 4, 2)[0])[0]
    first, second = (
        rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=2).fit(inputs, y)
        for inputs in (X, X @ Q.T)
    )
    assert torch.allclose(second.metrics_[2], Q @ first.metrics_[2] @ Q.T, atol=1e-6)


@pytest.mark.parametrize(("r", "noise"), [(1, 0.0), (2, 0.5), (3, 0.0)])
def test_mean_of_the_square(r, noise):
    """Against E[B²] summed over an exact grid in all d coordinates."""
    d, n, f = r + 2, 7, LatentPolynomial(torch.eye(r + 2, dtype=torch.float64)[:, :r], EXAMPLES[r])
    Z, omega = hermite.grid(d, 2 * f.degree + 4)
    y2 = f(Z).square() + noise**2
    B2 = torch.einsum("n,ni,nj->ij", omega * y2 * (Z.square().sum(dim=1) - 2), Z, Z)
    B2 = B2 + (omega @ y2) * torch.eye(d).to(Z)
    mean = f.hessian @ f.hessian + (B2 - f.hessian @ f.hessian) / n
    A, c = rfm.expected_square(f, n, noise)
    wanted = torch.block_diag(A, c * torch.eye(d - r).to(A))
    assert torch.allclose(mean, wanted, atol=1e-10 * mean.abs().max().item())


def test_empirical_hessian_is_the_gradient_of_one_step():
    X, y = data(15, 4)

    def quadratic(A, B):
        squares = A.square().sum(dim=1)[:, None] + B.square().sum(dim=1)
        return ((A @ B.T).square() - squares + 4) / 2

    found = rfm.gradients(quadratic, X, X, y / 15)
    assert torch.allclose(found, X @ rfm.empirical_hessian(X, y), atol=1e-12)


def test_empirical_hessian_has_mean_h():
    f = LatentPolynomial.draw(5, {(2,): 1.0}, stream("test/rfm/h"))
    points = f.sample(200_000, stream("test/rfm/sample"))
    assert (rfm.empirical_hessian(points.X, points.y) - f.hessian).abs().max() < 0.05


def test_shares():
    U = torch.eye(4, dtype=torch.float64)[:, :2]
    M = torch.diag(torch.tensor([4.0, 1.0, 2.0, 1.0], dtype=torch.float64))
    assert rfm.trace_fraction(M, U) == pytest.approx(5 / 8)
    assert rfm.subspace_alignment(M, U) == pytest.approx(1 / 2)
    assert rfm.subspace_alignment(
        torch.diag(torch.tensor([4.0, 3.0, 2.0, 1.0])).double(), U
    ) == pytest.approx(1)


def test_it_learns_what_the_plain_kernel_cannot():
    rng = stream("test/rfm/learn")
    f = LatentPolynomial.draw(10, mixture(4), rng)
    points, test = f.sample(400, rng), f.stratified(512, rng)
    machine = rfm.RecursiveFeatureMachine(kernels.Gaussian(2 * math.sqrt(10))).fit(
        points.X, points.y
    )
    assert test.risk(machine.predict(test.X)) < 0.2 < 0.4 < test.risk(machine.predict(test.X, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_passes_through(dtype):
    X, y = (part.to(dtype) for part in data(20, 3))
    machine = rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=1, ridge=1e-4).fit(X, y)
    assert machine.next_metric_.dtype == machine.predict(X).dtype == dtype


def test_numpy_is_welcome():
    X, y = (part.numpy() for part in data(20, 3))
    assert isinstance(X, np.ndarray)
    assert rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=1).fit(X, y).predict(
        X
    ).shape == (20,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rfm.RecursiveFeatureMachine(KERNELS["gaussian"]).fit(
                *(p.float() for p in data(200, 2))
            ),
            "ridge must be larger for this kernel in torch.float32, got 1e-08",
        ),
        (
            lambda: (
                rfm.RecursiveFeatureMachine(KERNELS["laplace"])
                .fit(np.eye(3), np.arange(3.0))
                .predict(np.eye(2))
            ),
            "X has 2 features, but RecursiveFeatureMachine is expecting 3",
        ),
        (
            lambda: rfm.trace_fraction(np.zeros((3, 3)), np.eye(3)[:, :1]),
            "M must have a positive trace",
        ),
        (lambda: rfm.subspace_alignment(np.eye(3), np.ones((3, 2))), "U must have orthonormal"),
        (
            lambda: rfm.RecursiveFeatureMachine(KERNELS["laplace"], rounds=-1).fit(*data()),
            "rounds must be at least 0",
        ),
        (
            lambda: rfm.RecursiveFeatureMachine(KERNELS["laplace"], ridge=-1.0).fit(*data()),
            "ridge must be at least 0",
        ),
        (
            lambda: rfm.RecursiveFeatureMachine(KERNELS["laplace"]).fit(np.eye(3), np.ones(2)),
            "X and y must be valid: .*inconsistent",
        ),
        (
            lambda: (
                rfm.RecursiveFeatureMachine(KERNELS["laplace"], rounds=1)
                .fit(np.eye(3), np.arange(3.0))
                .predict(np.eye(3), 2)
            ),
            "rounds must be at most 1",
        ),
        (lambda: linalg.matrix_sqrt(np.array([[1.0, 2.0], [0.0, 1.0]])), "M must be symmetric"),
        (lambda: linalg.matrix_sqrt(-np.eye(2)), "M must have no negative"),
        (lambda: rfm.trace_fraction(np.eye(3), np.eye(4)[:, :1]), "M must have shape"),
        (
            lambda: rfm.gradients(KERNELS["laplace"], np.eye(3), np.eye(3), np.ones(2)),
            "centres and coeff",
        ),
        (lambda: rfm.empirical_hessian(np.eye(3), np.ones(2)), "X and y must have the same"),
        (
            lambda: rfm.expected_square(LatentPolynomial(np.eye(3)[:, :1], {(2,): 1.0}), 0),
            "n must be",
        ),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_fit_without_gradient_leaves_the_metric():
    machine = rfm.RecursiveFeatureMachine(KERNELS["laplace"], rounds=2).fit(np.eye(3), np.zeros(3))
    assert all(torch.equal(M, torch.eye(3, dtype=torch.float64)) for M in machine.metrics_)
    assert not machine.predict(np.eye(3)).any()


def test_directions_that_are_not_of_length_one_are_refused():
    for U in (0.5 * torch.eye(3)[:, :1], torch.tensor([[1.0], [0.01], [0.0]])):
        with pytest.raises(ValueError, match="U must have orthonormal columns"):
            rfm.subspace_alignment(torch.eye(3), U)
