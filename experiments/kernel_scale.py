r"""Kernel regression at scale: the time of a product beside the roofline, the time to a test error,
other libraries, a million images.

Run ``python -m experiments kernel-scale`` on a CPU and with ``--device cuda`` on a GPU; the results
are kept as `featlearn/data/scale_cpu.json` and `scale_cuda.json`. The labels are $y = \sin(w\cdot
x) + 0.1\,\xi$ with Gaussian $x\in\mathbb{R}^{10}$ and $\|w\| = 1$. The kernel is Gaussian, its
entries are float32, and only the direct solver, in float64, stores them.

*In blocks*, by plain PyTorch, a product computes $n^2/2$ entries and half of the diagonal blocks.
An entry crosses the memory seven times, 28 bytes: written by the matrix product, read and written
twice by the sign and the exponential, read by two products. *Fused* (`featlearn.fused`) it computes
$n^2$ entries and writes none: each costs an exponential and $3d$ multiplications and additions of
halves. The rates of all of these are measured in the same run: a large matrix product in float32
and in halves, a large copy, and exponentials of numbers that never leave the registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments import stored
from experiments.timing import clock, seconds_of
from featlearn import data, linalg, seeding
from featlearn.kernels import (
    Gaussian,
    Kernel,
    KernelOperator,
    KernelRegression,
    Laplace,
    Matern,
    nystrom_preconditioner,
)
from featlearn.notebook import progress
from featlearn.ntk import NTK

D, NOISE, BANDWIDTH, RIDGE = 10, 0.1, 2.0, 0.1
COLUMNS, MORE = 500, 2000  # of the preconditioner of all points
GOAL = 0.05
HUGE = 10**7
COPIES = (1, 5, 21, 171)  # of the images, turned and moved
LIMITS = {
    "cpu": {"product": 2**16, "direct": 2**14, "richardson": 2**13, "cg": 2**15, "nystrom": 2**15},
    "cuda": {
        "product": 2**20,
        "direct": 2**16,
        "richardson": 2**18,
        "cg": 2**19,
        "nystrom": 2**20,
        "nystrom, more columns": 2**20,
        "nystrom, in blocks": 2**18,
        "centres": 2**20,
    },
}
LONG = {"cpu": 2**13, "cuda": 2**20}  # beyond, every solver runs once
ROUNDS = 3


def problem(n: int, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """n points with noisy labels, and 2000 test points with clean ones."""
    rng = seeding.stream(f"scale/{run}")
    w = rng.standard_normal(D)
    X_test = rng.standard_normal((2000, D))
    X = rng.standard_normal((n, D))
    signal, clean = np.sin(X @ w / np.linalg.norm(w)), np.sin(X_test @ w / np.linalg.norm(w))
    return X, signal + NOISE * rng.standard_normal(n), X_test, clean


def in_blocks(kernel: Kernel) -> Kernel:
    """The same kernel, which `featlearn.fused` does not recognise."""
    return lambda X, Y=None: kernel(X, Y)


def ceilings(device: str) -> dict[str, float]:
    """Operations a second of a large float32 matrix product.

    Bytes a second, read and written, of a large copy. On a GPU also operations of a matrix product
    of halves, and exponentials a second.
    """
    side, length = (8192, 2**30) if device == "cuda" else (2048, 2**26)
    rng = seeding.stream("scale/ceilings", "torch", device)
    A = torch.randn(side, side, generator=rng, device=device)
    b = torch.rand(length, generator=rng, device=device)
    C, copy = torch.empty_like(A), torch.empty_like(b)
    multiply, move = (lambda: torch.mm(A, A, out=C)), (lambda: copy.copy_(b))
    multiply(), move()
    rates = {
        "operations": 2 * side**3 / seconds_of(multiply, device, 1.0),
        "bytes": 8 * length / seconds_of(move, device, 1.0),
    }
    if device == "cuda":
        from experiments.exponentials import evaluate

        half = A.half()
        (half @ half), evaluate()
        rates["halves"] = 2 * side**3 / seconds_of(lambda: half @ half, device, 1.0)
        rates["exponentials"] = evaluate() / seconds_of(evaluate, device, 1.0)
    return rates


class Meter:
    """Watches the test error of an iterative solver, off the clock, and asks it to stop at the
    goal.

    The predictor is that of coefficients at the points X.
    """

    def __init__(
        self, X: Tensor, X_test: np.ndarray, clean: np.ndarray, device: str, goal: float
    ) -> None:
        self.X, self.device, self.goal = X, device, goal
        self.X_test = torch.as_tensor(X_test).to(X)
        self.clean = torch.as_tensor(clean).to(X)
        self.start, self.spent = clock(device), 0.0

    def error(self, alpha: Tensor) -> float:
        """Mean squared test error over the variance of the clean labels."""
        low, kernel = alpha.to(self.X.dtype), Gaussian(BANDWIDTH)
        parts = zip(self.X.split(65536), low.split(65536), strict=True)
        f = sum(kernel(self.X_test, rows) @ part for rows, part in parts)
        return ((f - self.clean).square().mean() / self.clean.var(correction=0)).item()

    def __call__(self, alpha: Tensor) -> bool:
        before = clock(self.device)
        reached = self.error(alpha) <= self.goal
        self.spent += clock(self.device) - before
        return reached

    @property
    def seconds(self) -> float:
        """Time since the start, less that spent on test errors."""
        return clock(self.device) - self.start - self.spent


class Centres:
    r"""$f(x) = \sum_{j\le m}k(x, c_j)\,a_j$ with m of the points as centres, and the system for
    $a$.

    $(K_{nm}^\top K_{nm} + \lambda K_{mm})\,a = K_{nm}^\top y$, by conjugate gradients. The
    preconditioner of Rudi, Carratino and Rosasco (2017) puts $\frac nmK_{mm}^2$ in the place of
    $K_{nm}^\top K_{nm}$.
    """

    def __init__(self, kernel: Kernel, X: Tensor, count: int, rng: np.random.Generator) -> None:
        from featlearn import fused

        self.C = X[torch.as_tensor(rng.choice(len(X), count, replace=False), device=X.device)]
        self.down, self.up = fused.product(kernel, self.C, X), fused.product(kernel, X, self.C)
        self.K = kernel(self.C.double())
        self.K.diagonal().add_(1e-7)
        self.share = len(X) / count

    def solve(
        self, y: Tensor, callback: Callable[[Tensor], bool] | None, tolerance: float
    ) -> linalg.Solution:
        """The coefficients of the labels y."""
        T = torch.linalg.cholesky(self.K)  # K = T Tᵀ, so n/m K² + λK = T(n/m TᵀT + λ)Tᵀ
        M = self.share * T.T @ T
        M.diagonal().add_(RIDGE)
        A = torch.linalg.cholesky(M)

        def precondition(v: Tensor) -> Tensor:
            inner = torch.linalg.solve_triangular(T, v[:, None], upper=False)
            inner = torch.cholesky_solve(inner, A)
            return torch.linalg.solve_triangular(T.T, inner, upper=True)[:, 0]

        def system(a: Tensor) -> Tensor:
            return self.down(self.up(a.float())).double() + RIDGE * (self.K @ a)

        return linalg.conjugate_gradients(
            system,
            self.down(y.float()).double(),
            preconditioner=precondition,
            tolerance=tolerance,
            max_iterations=100,
            callback=callback,
        )


def centres(n: int) -> int:
    r"""How many: $8\sqrt n$, at least 2048, at most n."""
    return min(n, max(2048, round(8 * math.sqrt(n))))


def solve(solver: str, n: int, run: int, device: str, goal: float = GOAL) -> dict[str, Any]:
    """Seconds until the test error is at most the goal, iterations, and the error then."""
    X, y, X_test, clean = problem(n, run)
    kernel, labels = Gaussian(BANDWIDTH), torch.as_tensor(y, device=device)
    points = torch.as_tensor(X).to(device, torch.float64 if solver == "direct" else torch.float32)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    meter = Meter(points, X_test, clean, device, goal)
    rng = seeding.stream(f"scale/pivots/{run}")
    if solver == "direct":
        alpha = KernelRegression(kernel, RIDGE, "cholesky").fit(points, labels).alpha_
        seconds, iterations = meter.seconds, 0
    else:
        if solver == "centres":
            few = Centres(kernel, points, centres(n), rng)
            meter.X = few.C
            found = few.solve(labels, meter, 1e-8)
        else:
            entries = in_blocks(kernel) if solver.endswith("in blocks") else kernel
            A = KernelOperator(entries, points, RIDGE)
            if solver == "richardson":
                step = 1 / (1.05 * A.largest_eigenvalue())
                found = linalg.richardson(A, labels, step, tolerance=1e-8, callback=meter)
            else:
                P = None
                if solver.startswith("nystrom"):
                    columns = MORE if solver.endswith("more columns") else COLUMNS
                    P = nystrom_preconditioner(kernel, points, RIDGE, columns, rng)
                found = linalg.conjugate_gradients(
                    A, labels, preconditioner=P, tolerance=1e-8, callback=meter
                )
        alpha, seconds, iterations = found.alpha, meter.seconds, found.iterations
    result = {
        "solver": solver,
        "n": n,
        "run": run,
        "seconds": float(f"{seconds:.4g}"),
        "iterations": iterations,
        "error": float(f"{meter.error(alpha):.4g}"),
    }
    if device == "cuda":
        result["gigabytes"] = float(f"{torch.cuda.max_memory_allocated() / 1e9:.3g}")
    return result


def gaussians(n: int, d: int, device: str) -> tuple[Tensor, Tensor]:
    """n points in d dimensions and a vector, all Gaussian."""
    rng = seeding.stream(f"scale/products/{d}", "torch", device)
    return torch.randn(n, d, generator=rng, device=device), torch.randn(
        n, generator=rng, device=device
    )


def distance_to_exact(kernel: Kernel, X: Tensor, v: Tensor, found: Tensor) -> float:
    """Relative error of the first 512 entries of a product with K."""
    exact = torch.cat([kernel(X[rows].double(), X.double()) @ v.double() for rows in _rows(512)])
    return float(f"{((found[:512] - exact).norm() / exact.norm()).item():.2g}")


def _rows(count: int, size: int = 64) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))


def product(
    n: int, d: int, device: str, kernel: Kernel | None = None, least: float = 0.2
) -> dict[str, Any]:
    """Seconds of one product with K, `ROUNDS` times; on a GPU fused and in blocks by turns."""
    X, v = gaussians(n, d, device)
    kernel = Gaussian(BANDWIDTH * math.sqrt(d / D)) if kernel is None else kernel
    ways = {"seconds": KernelOperator(in_blocks(kernel), X)}
    if device == "cuda":
        ways["fused"] = KernelOperator(kernel, X)
    result: dict[str, Any] = {"kernel": repr(kernel), "n": n, "d": d}
    for name, A in ways.items():
        error = distance_to_exact(kernel, X, v, A(v))
        result |= {name: [], "entries" if name == "seconds" else "entries fused": A.evaluations}
        result["error" if name == "seconds" else "error fused"] = error
    for _ in range(ROUNDS):
        for name, A in ways.items():
            seconds = seconds_of(lambda A=A: A(v), device, least)
            result[name].append(float(f"{seconds:.4g}"))
    return result


def products(device: str) -> list[dict[str, Any]]:
    """Products of the Gaussian kernel for all n, and of other kernels and dimensions for one."""
    sizes = [2**k for k in range(10, int(math.log2(LIMITS[device]["product"])) + 1)]
    found = [product(n, D, device) for n in progress(sizes, "products")]
    if device == "cuda":
        others = [Laplace(BANDWIDTH), Matern(2.5, BANDWIDTH), NTK(2, "relu"), NTK(4, "relu")]
        found += [product(2**16, D, device, kernel) for kernel in others]
        found += [product(2**16, d, device) for d in (3, 32, 100, 784)]
    return found


def huge(device: str) -> dict[str, Any]:
    """Ten million points: one product, and the time to the goal with centres."""
    X, v = gaussians(HUGE, D, device)
    A = KernelOperator(Gaussian(BANDWIDTH), X)
    return {
        "n": HUGE,
        "product": float(f"{seconds_of(lambda: A(v), device):.4g}"),
        "centres": solve("centres", HUGE, 0, device),
    }


def turned(images: Tensor, rng: torch.Generator) -> Tensor:
    """A copy of each image: turned by up to 15°, scaled by up to 15 %, sheared and moved by up to 2
    pixels.
    """
    n, side = len(images), 28

    def uniform(largest: float, *shape: int) -> Tensor:
        draw = torch.rand(n, *shape, generator=rng, device=images.device)
        return largest * (2 * draw - 1)

    angle, size, shear = uniform(math.pi / 12), 1 + uniform(0.15), uniform(0.2)
    cos, sin = angle.cos() * size, angle.sin() * size
    map_ = torch.stack([cos, shear - sin, sin, cos], dim=1).reshape(n, 2, 2)
    grid = torch.nn.functional.affine_grid(
        torch.cat([map_, uniform(4 / side, 2, 1)], dim=2), [n, 1, side, side], align_corners=False
    )
    pixels = images.reshape(n, 1, side, side)
    return torch.nn.functional.grid_sample(pixels, grid, align_corners=False).reshape(n, -1)


def images(device: str) -> list[dict[str, Any]]:
    """Test errors of kernel regression on MNIST's extract, enlarged by turned copies.

    One column of labels for each digit, at most 8192 centres; the 6,000 images are those of
    the package, so the million holds no new handwriting.
    """
    digits = data.mnist()
    train, labels = digits.train.to(device), digits.train_digits.to(device)
    test, truth = digits.test.to(device), digits.test_digits.to(device)
    found = []
    for copies in progress(COPIES, "images"):
        rng = seeding.stream("scale/images", "torch", device)
        X = torch.cat([train, *(turned(train, rng) for _ in range(copies - 1))])
        Y = 2 * torch.nn.functional.one_hot(labels.repeat(copies), 10).double() - 1
        torch.cuda.reset_peak_memory_stats()
        start = clock(device)
        kernel = Gaussian(5.0)
        few = Centres(kernel, X, min(len(X), 8192), seeding.stream("scale/images/centres"))
        a = torch.stack([few.solve(y, None, 1e-3).alpha for y in Y.T], dim=1)
        seconds = clock(device) - start
        wrong = (kernel(test, few.C) @ a.float()).argmax(dim=1) != truth
        found.append(
            {
                "n": len(X),
                "centres": len(few.C),
                "seconds": float(f"{seconds:.4g}"),
                "gigabytes": float(f"{torch.cuda.max_memory_allocated() / 1e9:.3g}"),
                "error": wrong.double().mean().item(),
            }
        )
    return found


def parts() -> dict[str, list[float]]:
    """Seconds of the steps of one block of a product on a CPU, of other ways to compute its
    exponentials, and of the whole block, as it is and compiled; by turns.
    """
    import numexpr

    rng = seeding.stream("scale/parts", "torch")
    x, y = torch.randn(2, 2048, D, generator=rng) / BANDWIDTH
    one, v = torch.ones(2048, 1), torch.randn(2048, generator=rng)
    u = torch.cat([x, -x.square().sum(1, keepdim=True) / 2, one], dim=1)
    w = torch.cat([y, one, -y.square().sum(1, keepdim=True) / 2], dim=1)
    S = u @ w.T
    K, s = torch.empty_like(S), S.numpy()

    def block(u: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        K = (u @ w.T).clamp_(max=0).exp_()
        return K @ v, K.T @ v

    compiled = torch.compile(block)
    ways = {
        "matrix product": lambda: torch.mm(u, w.T, out=K),
        "no positive exponents": lambda: torch.clamp(S, max=0, out=K),
        "exponential": lambda: torch.exp(S, out=K),
        "two products with the vector": lambda: (K @ v, K.T @ v),
        "a copy": lambda: K.copy_(S),
        "exponential, numpy": lambda: np.exp(s, out=K.numpy()),
        "exponential, numexpr": lambda: numexpr.evaluate("exp(s)", {"s": s}, out=K.numpy()),
        "exponential, 16 bits": lambda: S.bfloat16().exp(),
        "whole": lambda: block(u, w, v),
        "whole, compiled": lambda: compiled(u, w, v),
    }
    for run in ways.values():
        run()
    found = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, run in ways.items():
            found[name].append(float(f"{seconds_of(run, least=0.5):.4g}"))
    return found


def beyond(device: str) -> dict[str, Any]:
    """What the direct solver says where K does not fit."""
    n = 4 * LIMITS[device]["direct"] if device == "cuda" else HUGE // 10
    X, y, *_ = problem(n, 0)
    try:
        KernelRegression(Gaussian(BANDWIDTH), RIDGE, "cholesky", device=device).fit(X, y)
    except MemoryError as error:
        return {"n": n, "error": str(error)}
    raise RuntimeError(f"the direct solver was expected to run out of memory at n = {n}")


def solvers(device: str, largest: int) -> list[dict[str, Any]]:
    """Every solver for all n up to its limit, by turns; programs are compiled off the clock."""
    limits = {name: min(limit, largest) for name, limit in LIMITS[device].items()}
    del limits["product"]
    runs = []
    for k in progress(range(10, int(math.log2(max(limits.values()))) + 1), "solvers"):
        names = [name for name in limits if 2**k <= limits[name]]
        for name in names:
            solve(name, 2**k, 0, device, math.inf)
        for run in range(ROUNDS if 2**k <= LONG[device] else 1):
            runs += [solve(name, 2**k, run, device) for name in names]
    return runs


def by_block(n: int = 2**16) -> dict[str, list[float]]:
    """Seconds of a product in blocks of other sizes on a GPU, `ROUNDS` times, by turns."""
    X, v = gaussians(n, D, "cuda")
    entries = in_blocks(Gaussian(BANDWIDTH))
    ways = {rows: KernelOperator(entries, X, block=rows) for rows in (2048, 4096, 8192, 16384)}
    found: dict[str, list[float]] = {str(rows): [] for rows in ways}
    for _ in range(ROUNDS):
        for rows, A in ways.items():
            A(v)
            found[str(rows)].append(float(f"{seconds_of(lambda A=A: A(v), 'cuda', least=0.2):.4g}"))
    return found


def measure(device: str, largest: int) -> dict[str, Any]:
    """All times on one device, for n = 2¹⁰ up to the limits."""
    command = f"python -m experiments kernel-scale --device {device}"
    origin = stored.origin(
        command if largest == 2**20 else f"{command} --largest {largest}", device
    )
    before = ceilings(device)
    result = {
        **origin,
        "problem": {
            "d": D,
            "noise": NOISE,
            "bandwidth": BANDWIDTH,
            "ridge": RIDGE,
            "columns": COLUMNS,
            "more columns": MORE,
        },
        "goal": GOAL,
        "products": products(device),
        "solvers": solvers(device, largest),
        "beyond": beyond(device),
    }
    if device == "cuda":
        from experiments import kernel_peers

        result |= {"blocks": by_block(), "huge": huge(device), "images": images(device)}
        result["peers"] = kernel_peers.measure()
    else:
        result["parts"] = parts()
    after = ceilings(device)  # the better of two rounds: a disturbance only slows
    best = {name: max(rate, after[name]) for name, rate in before.items()}
    return result | {"ceilings": {name: float(f"{rate:.4g}") for name, rate in best.items()}}


def main(arguments: list[str]) -> int:
    """Measure on one device and write the file."""
    parser = stored.options("kernel-scale", "Time kernel regression against the roofline.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--largest", type=int, default=2**20, help="largest n of solvers and products"
    )
    options = parser.parse_args(arguments)
    if options.largest < 2**20 and options.out is None:
        parser.error("--largest needs --out: the stored results are those without it")
    result = measure(options.device, options.largest)
    stored.write(options.out or stored.DATA / f"scale_{options.device}.json", result, indent=1)
    return 0
