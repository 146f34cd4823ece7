"""Every kernel in every call form: derivatives, transforms of torch.func, promotion of types."""

import functools

import numpy as np
import pytest
import torch
from elsewhere import Elsewhere
from torch.func import grad, jacrev, vmap
from torch.utils._python_dispatch import TorchDispatchMode

import featlearn as fl

FEATURES = fl.random_features.fourier_features(7, 3, np.random.default_rng(0))
KERNELS = {
    "polynomial": fl.Polynomial(3, 1.0),
    "gaussian": fl.Gaussian(1.3),
    "laplace": fl.Laplace(1.3),
    "matern 3/2": fl.Matern(1.5, 1.3),
    "matern 5/2": fl.Matern(2.5, 1.3),
    "arc-cosine": fl.ArcCosine(),
    "random features": FEATURES.kernel,
    "nngp relu": fl.NNGP(3, "relu", 1.4, 0.3),
    "nngp erf": fl.NNGP(3, "erf", 1.4, 0.3),
    "ntk relu": fl.NTK(3, "relu", 1.4, 0.3),
    "ntk relu, no bias": fl.NTK(2, "relu", 1.4),
    "ntk erf": fl.NTK(3, "erf", 1.4, 0.3),
    "ntk tanh": fl.NTK(2, "tanh", 1.4, 0.3),
}
FORMS = {
    "k(X)": lambda k, X, Y: k(X),
    "k(X, X)": lambda k, X, Y: k(X, X),
    "k(X, Y)": lambda k, X, Y: k(X, Y),
}
PARAMETERS = {
    "polynomial constant": (lambda c: fl.Polynomial(3, c), 0.7),
    "gaussian bandwidth": (fl.Gaussian, 1.3),
    "laplace bandwidth": (fl.Laplace, 1.3),
    "matern bandwidth": (lambda s: fl.Matern(2.5, s), 1.3),
    "nngp sigma_w": (lambda s: fl.NNGP(3, "relu", s, 0.3), 1.4),
    "ntk sigma_w": (lambda s: fl.NTK(3, "relu", s, 0.3), 1.4),
    "ntk sigma_b": (lambda s: fl.NTK(3, "erf", 1.4, s), 0.3),
}


def points(n=4, seed=0, dtype=torch.float64):
    return torch.as_tensor(np.random.default_rng(seed).standard_normal((n, 3)), dtype=dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_derivative_in_the_points(name, form):
    """For the series of tanh along random directions, which takes fewer evaluations."""
    X, Y = points().requires_grad_(), points(5, 1).requires_grad_()
    call = functools.partial(FORMS[form], KERNELS[name])
    assert torch.autograd.gradcheck(call, (X, Y), atol=1e-6, fast_mode="tanh" in name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PARAMETERS)
def test_derivative_in_a_parameter(name, form):
    make, value = PARAMETERS[name]
    X, Y = points(), points(5, 1)
    parameter = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda at: FORMS[form](make(at), X, Y), parameter, atol=1e-6)
    torch.testing.assert_close(
        FORMS[form](make(parameter), X, Y).detach(), FORMS[form](make(value), X, Y)
    )


@pytest.mark.parametrize("name", KERNELS)
def test_values_do_not_depend_on_whether_a_gradient_is_asked_for(name):
    k, X, Y = KERNELS[name], points(), points(5, 1)
    for form in FORMS.values():
        plain, followed = form(k, X, Y), form(k, X.clone().requires_grad_(), Y)
        torch.testing.assert_close(plain, followed.detach(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_transforms(name):
    k, X, Y = KERNELS[name], points(), points(5, 1)
    batch = torch.stack([X, 2 * X, X + 1])
    torch.testing.assert_close(
        vmap(lambda Z: k(Z, Y))(batch), torch.stack([k(Z, Y) for Z in batch]), rtol=1e-9, atol=1e-11
    )
    torch.testing.assert_close(
        vmap(k)(batch), torch.stack([k(Z) for Z in batch]), rtol=1e-9, atol=1e-11
    )
    leaf = X.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(k(leaf, Y).sum(), leaf)
    torch.testing.assert_close(grad(lambda Z: k(Z, Y).sum())(X), wanted)
    assert jacrev(lambda Z: k(Z, Y))(X).shape == (4, 5, 4, 3)


@pytest.mark.parametrize("name", KERNELS)
def test_promotion_is_symmetric(name):
    k, X, Y = KERNELS[name], points(dtype=torch.float32), points(5, 1)
    assert k(X, Y).dtype == k(Y, X).dtype == torch.float64
    torch.testing.assert_close(k(X, Y), k(Y, X).T)
    assert k(X).dtype == k(X, X.clone()).dtype == torch.float32
    assert k(X, Y.numpy()).dtype == k(Y.numpy(), X).dtype == torch.float64


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "random features"])
def test_vectors_give_numbers(name):
    k, X = KERNELS[name], points()
    torch.testing.assert_close(k(X[0], X[1]), k(X)[0, 1])
    assert k(X[0]).shape == ()


@pytest.mark.parametrize("name", ["gaussian", "laplace", "matern 5/2", "polynomial", "arc-cosine"])
@pytest.mark.parametrize(("dtype", "size"), [(torch.float64, 1e200), (torch.float32, 1e20)])
def test_points_whose_distance_overflows_are_refused(name, dtype, size):
    X = points(dtype=dtype)
    with pytest.raises(ValueError, match="X and Y must have smaller entries"):
        KERNELS[name](size * X)
    model = fl.KernelRegression(KERNELS[name], 0.1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="X and Y must have smaller entries"):
        model.predict(size * X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (torch.ones(2, 3, dtype=torch.float16), TypeError, "X must be float32 or float64"),
        (torch.ones(2, 3, dtype=torch.bfloat16), TypeError, "X must be float32 or float64"),
        (torch.ones(2, 3, device="meta"), TypeError, "X must be a dense tensor"),
        (torch.ones(2, 3).to_sparse(), TypeError, "X must be a dense tensor"),
        (np.ma.masked_less(np.eye(3), 0.5), TypeError, "X must not be a masked array"),
    ],
)
def test_tensors_that_are_no_plain_numbers(X, error, message):
    with pytest.raises(error, match=message):
        fl.Gaussian()(X)


class NoWaiting(TorchDispatchMode):
    """Raises where an operation would wait for a GPU: numbers and shapes that come from entries."""

    ATEN = torch.ops.aten
    WAITS = (ATEN._local_scalar_dense.default, ATEN.nonzero.default, ATEN.equal.default)

    def __init__(self, machine):
        super().__init__()
        self.machine = machine

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        waits = operation in self.WAITS and self.machine.place(args[0]).type == "cuda"
        assert not waits, f"{operation} waits for the device"
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "ntk tanh"])
def test_no_kernel_waits_for_a_gpu(name, form):
    """On a simulated device. What must look at entries says so: tiles, which have close pairs, and
    Hermite series, which end where their rest is below rounding.
    """
    with Elsewhere() as machine:
        X, Y = points().to("cuda"), points(5, 1).to("cuda")
        if name.startswith(("nngp", "ntk")):
            X = X.requires_grad_()  # as the formulas stand, without tiles
        with NoWaiting(machine):
            FORMS[form](KERNELS[name], X, Y)


def test_whole_numbers_beyond_64_bits_are_numbers():
    assert fl.Gaussian(1e30)([[10**30], [0]])[0, 1].item() == pytest.approx(np.exp(-0.5))
    with pytest.raises(ValueError, match="X must have smaller entries"):
        fl.Gaussian()([[10**400]])
    with pytest.raises(TypeError, match="X must be an array of numbers"):
        fl.Gaussian()([[None]])


def test_a_wait_is_seen():
    with Elsewhere() as machine:
        X = points().to("cuda")
        with NoWaiting(machine), pytest.raises(AssertionError, match="waits for the device"):
            X.sum().item()
