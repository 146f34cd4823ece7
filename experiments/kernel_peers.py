"""Products with a kernel matrix by other libraries, for `experiments.kernel_scale`, on a GPU.

The contestants of a case take turns, so that a ratio compares times of one round. A library that is
not there, or stops, leaves its message. (``pip install pykeops gpytorch neural-tangents``.)
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

import torch
from torch import Tensor

from experiments.timing import seconds_of
from featlearn import seeding
from featlearn.kernels import Gaussian, Kernel, KernelOperator
from featlearn.ntk import NTK

ROUNDS, BLOCK = 3, 16384
CASES = [("gaussian", 2**16, 10), ("gaussian", 2**16, 100), ("ntk", 2**15, 10)]
LIBRARIES = ("torch", "triton", "pykeops", "gpytorch", "linear_operator", "neural-tangents", "jax")
MOVED = (
    *("Jaxpr", "JaxprEqn", "Literal", "ShapedArray", "Value", "Var", "AbstractValue"),
    *("Primitive", "DShapedArray", "zeros_like_p", "add_jaxvals_p"),
)


def compiled(X: Tensor, v: Tensor, bandwidth: float) -> Callable[[], Tensor]:
    """The formula block by block, through ``torch.compile``."""

    @torch.compile
    def rows(x: Tensor, X: Tensor, v: Tensor) -> Tensor:
        squares = (x * x).sum(1)[:, None] + (X * X).sum(1) - 2 * (x @ X.T)
        return (squares.clamp(min=0) * (-0.5 / bandwidth**2)).exp() @ v

    return lambda: torch.cat([rows(x, X, v) for x in X.split(BLOCK)])


def keops(X: Tensor, v: Tensor, bandwidth: float, backend: str) -> Callable[[], Tensor]:
    """KeOps' symbolic matrix."""
    Genred = import_module("pykeops.torch").Genred
    d = X.shape[1]
    formula = "Exp(-g * SqDist(x, y)) * b"
    reduce = Genred(
        formula, ["g = Pm(1)", f"x = Vi({d})", f"y = Vj({d})", "b = Vj(1)"], "Sum", axis=1
    )
    g = X.new_tensor([0.5 / bandwidth**2])
    return lambda: reduce(g, X, X, v[:, None], backend=backend)[:, 0]


def keops_stops(backend: str) -> str | None:
    """Why KeOps does not work here, tried in a process of its own, which it may take down."""
    code = (
        "import torch; from experiments.kernel_peers import keops;"
        f"x = torch.ones(100, 3, device='cuda'); keops(x, x[:, 0].clone(), 1.0, {backend!r})()"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    if child.returncode < 0:
        return f"ended by {signal.Signals(-child.returncode).name}"
    return child.stderr.strip().splitlines()[-1] if child.returncode else None


def gpytorch(X: Tensor, v: Tensor, bandwidth: float) -> Callable[[], Tensor]:
    """GPyTorch's kernel, which stores the matrix."""
    kernel = import_module("gpytorch").kernels.RBFKernel().to(X.device)
    kernel.lengthscale = bandwidth

    def product() -> Tensor:
        with torch.no_grad():
            return kernel(X) @ v

    return product


def neural_tangents(X: Tensor, v: Tensor) -> Callable[[], Tensor]:
    """The tangent kernel of neural-tangents, compiled, with its product."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    jax = import_module("jax")
    for public in (jax.core, jax.interpreters.ad):  # 0.6.5 asks for names that jax has moved
        for name in MOVED:
            if not hasattr(public, name):
                setattr(public, name, object)
    sys.modules.setdefault("jax.util", import_module("jax._src.util"))
    nt = import_module("neural_tangents")
    stax = nt.stax
    dense = [stax.Dense(1, W_std=2**0.5, b_std=None) for _ in range(3)]
    *_, kernel = stax.serial(dense[0], stax.Relu(), dense[1], stax.Relu(), dense[2])
    points, vector = (jax.numpy.asarray(z.cpu().numpy()) for z in (X, v))
    rows = jax.jit(lambda x, X, v: kernel(x, X, "ntk") @ v)
    parts = [points[i : i + 4096] for i in range(0, len(points), 4096)]

    def product() -> Tensor:
        found = jax.numpy.concatenate([rows(x, points, vector) for x in parts])
        return torch.as_tensor(jax.device_get(found).copy())

    return product


def contestants(case: str, X: Tensor, v: Tensor) -> tuple[Kernel, dict[str, Callable[[], Any]]]:
    """The kernel, and how each makes its product with v; a maker is called once."""
    if case == "ntk":
        kernel = NTK(3, "relu", 2**0.5)
        others = {"neural-tangents": lambda: neural_tangents(X, v)}
    else:
        bandwidth = 2.0 * math.sqrt(X.shape[1] / 10)
        kernel = Gaussian(bandwidth)
        others = {
            "torch.compile": lambda: compiled(X, v, bandwidth),
            "GPyTorch": lambda: gpytorch(X, v, bandwidth),
        }
        for backend in ("GPU_1D", "GPU_2D"):
            others[f"KeOps, {backend}"] = lambda b=backend: keops(X, v, bandwidth, b)

    def ours(entries: Kernel) -> Callable[[], Any]:
        A = KernelOperator(entries, X)
        return lambda: lambda: A(v)

    mine = {"fused": ours(kernel), "in blocks": ours(lambda X, Y=None: kernel(X, Y))}
    return kernel, mine | others


def compare(case: str, n: int, d: int) -> dict[str, Any]:
    """Seconds of all that run, round by round, their errors, and what the others said."""
    rng = seeding.stream(f"scale/peers/{d}", "torch", "cuda")
    X = torch.randn(n, d, generator=rng, device="cuda")
    v = torch.randn(n, generator=rng, device="cuda")
    kernel, makers = contestants(case, X, v)
    exact = kernel(X[:256].double(), X.double()) @ v.double()
    runs, said, errors = {}, {}, {}
    for name, make in makers.items():
        if name.startswith("KeOps") and (why := keops_stops(name.split()[-1])):
            said[name] = why
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run = make()
                first = run()[:256].to(exact)
        except Exception as error:  # of any library
            said[name] = f"{type(error).__name__}: {str(error).strip()[:300]}"
            continue
        runs[name] = run
        errors[name] = float(f"{((first - exact).norm() / exact.norm()).item():.2g}")
    seconds = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            seconds[name].append(float(f"{seconds_of(run, 'cuda', 0.2):.4g}"))
    torch.cuda.empty_cache()
    return {
        "case": case,
        "n": n,
        "d": d,
        "seconds": seconds,
        "errors": errors,
        "said": said,
    }


def measure() -> dict[str, Any]:
    """All cases, and the versions of the libraries that are there."""
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return {"versions": found, "cases": [compare(*case) for case in CASES]}
