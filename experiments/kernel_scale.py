r"""Kernel regression at scale: the time of a product and the time to a test error, beside the
roofline.

Run ``python -m experiments kernel-scale`` on a CPU and with ``--device cuda`` on a GPU; the results
are kept as `featlearn/data/scale_cpu.json` and `scale_cuda.json`. The labels are $y = \sin(w\cdot
x) + 0.1\,\xi$ with Gaussian $x\in\mathbb{R}^{10}$ and $\|w\| = 1$. The kernel is Gaussian, its
entries are float32, and only the direct solver, in float64, stores them.

One product with $K$ computes its entries in blocks, $n^2/2$ of them and half of the diagonal
blocks. An entry costs $2(d + 2)$ operations in the matrix product that gives the distances, one for
its sign, one exponential (counted as one operation) and four in the two products with the vector:
30 for $d = 10$. It crosses the memory seven times: written by the matrix product, read and written
twice by the sign and the exponential, read by two products: 28 bytes. In a diagonal block there is
one product with the vector, not two. The roofline is the larger of operations over the rate of a
large matrix product and bytes over the speed of a large copy, both measured in the same run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments import stored
from experiments.timing import clock, seconds_of
from featlearn import linalg, seeding
from featlearn.kernels import (
    BLOCK,
    Gaussian,
    KernelOperator,
    KernelRegression,
    nystrom_preconditioner,
)
from featlearn.notebook import progress

D, NOISE, BANDWIDTH, RIDGE, RANK = 10, 0.1, 2.0, 0.1, 500
GOAL = 0.05
OPERATIONS, BYTES = 2 * (D + 2) + 2 + 4, 7 * 4
HUGE = 10**7
LIMITS = {
    "cpu": {"product": 2**16, "direct": 2**14, "richardson": 2**13, "cg": 2**15, "nystrom": 2**15},
    "cuda": {"product": 2**20, "direct": 2**16, "richardson": 2**18, "cg": 2**19, "nystrom": 2**20},
}
LONG = {"cpu": 2**13, "cuda": 2**16}  # beyond, every solver runs once
ROUNDS = 3


def problem(n: int, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """n points with noisy labels, and 2000 test points with clean ones."""
    rng = seeding.stream(f"scale/{run}")
    w = rng.standard_normal(D)
    X_test = rng.standard_normal((2000, D))
    X = rng.standard_normal((n, D))
    signal, clean = np.sin(X @ w / np.linalg.norm(w)), np.sin(X_test @ w / np.linalg.norm(w))
    return X, signal + NOISE * rng.standard_normal(n), X_test, clean


def ceilings(device: str) -> dict[str, float]:
    """Operations a second of a large float32 matrix product.

    Bytes a second, read and written, of a large copy.
    """
    side, length = (8192, 2**30) if device == "cuda" else (2048, 2**26)
    rng = seeding.stream("scale/ceilings", "torch", device)
    A = torch.rand(side, side, generator=rng, device=device)
    b = torch.rand(length, generator=rng, device=device)
    C, copy = torch.empty_like(A), torch.empty_like(b)
    multiply, move = (lambda: torch.mm(A, A, out=C)), (lambda: copy.copy_(b))
    multiply(), move()
    return {
        "operations": 2 * side**3 / seconds_of(multiply, device, 1.0),
        "bytes": 8 * length / seconds_of(move, device, 1.0),
    }


def roofline(entries: int, diagonal: int, ceiling: dict[str, float]) -> float:
    """Least seconds for a product that computes so many entries, `diagonal` of them in diagonal
    blocks, through memory.
    """
    operations, moved = OPERATIONS * entries - 2 * diagonal, BYTES * entries - 4 * diagonal
    return max(operations / ceiling["operations"], moved / ceiling["bytes"])


def diagonal(n: int, device: str) -> int:
    """Entries in the diagonal blocks of K, for n a multiple or a part of a block."""
    return n * min(n, BLOCK[device])


class Meter:
    """Watches the test error of an iterative solver, off the clock, and asks it to stop at the goal
    unless `stops` is off.
    """

    def __init__(self, X: Tensor, X_test: np.ndarray, clean: np.ndarray, device: str) -> None:
        self.X, self.device = X, device
        self.X_test = torch.as_tensor(X_test).to(X)
        self.clean = torch.as_tensor(clean).to(X)
        self.start, self.spent, self.errors, self.stops = clock(device), 0.0, [], True

    def error(self, alpha: Tensor) -> float:
        """Mean squared test error over the variance of the clean labels."""
        low, kernel = alpha.to(self.X.dtype), Gaussian(BANDWIDTH)
        parts = zip(self.X.split(65536), low.split(65536), strict=True)
        f = sum(kernel(self.X_test, rows) @ part for rows, part in parts)
        return ((f - self.clean).square().mean() / self.clean.var(correction=0)).item()

    def __call__(self, alpha: Tensor) -> bool:
        before = clock(self.device)
        self.errors.append(self.error(alpha))
        self.spent += clock(self.device) - before
        return self.stops and self.errors[-1] <= GOAL

    @property
    def seconds(self) -> float:
        """Time since the start, less that spent on test errors."""
        return clock(self.device) - self.start - self.spent


def solve(solver: str, n: int, run: int, device: str) -> dict[str, Any]:
    """Seconds until the test error is at most the goal, iterations, and the error then."""
    X, y, X_test, clean = problem(n, run)
    kernel, labels = Gaussian(BANDWIDTH), torch.as_tensor(y, device=device)
    dtype = torch.float64 if solver == "direct" else torch.float32
    points = torch.as_tensor(X).to(device, dtype)
    meter = Meter(points, X_test, clean, device)
    if solver == "direct":
        alpha = KernelRegression(kernel, RIDGE, "cholesky").fit(points, labels).alpha_
        seconds, iterations = meter.seconds, 0
    else:
        A = KernelOperator(kernel, points, RIDGE)
        if solver == "richardson":
            step = 1 / (1.05 * A.largest_eigenvalue())
            found = linalg.richardson(A, labels, step, tolerance=1e-8, callback=meter)
        else:
            rng = seeding.stream(f"scale/pivots/{run}")
            P = (
                nystrom_preconditioner(kernel, points, RIDGE, RANK, rng)
                if solver == "nystrom"
                else None
            )
            found = linalg.conjugate_gradients(
                A, labels, preconditioner=P, tolerance=1e-8, callback=meter
            )
        alpha, seconds, iterations = found.alpha, meter.seconds, found.iterations
    return {
        "solver": solver,
        "n": n,
        "run": run,
        "seconds": float(f"{seconds:.4g}"),
        "iterations": iterations,
        "error": float(f"{meter.error(alpha):.4g}"),
    }


def product(n: int, device: str) -> dict[str, Any]:
    """Seconds of one product with K, and the entries it computes."""
    X, y, *_ = problem(n, 0)
    A = KernelOperator(
        Gaussian(BANDWIDTH), torch.as_tensor(X, dtype=torch.float32, device=device), RIDGE
    )
    v = torch.as_tensor(y, device=device)
    A(v)
    entries = A.evaluations
    return {
        "n": n,
        "entries": entries,
        "seconds": [float(f"{seconds_of(lambda: A(v), device, 0.3):.4g}")],
    }


def products(sizes: list[int], device: str) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The ceilings, the best of all rounds, and the products.

    Rounds go through all sizes, so that a slow spell touches all.
    """
    found = {n: product(n, device) for n in sizes}
    best = ceilings(device)
    for _ in progress(range(ROUNDS - 1), "products"):
        for n in (n for n in sizes if n <= 4 * LONG[device]):
            found[n]["seconds"] += product(n, device)["seconds"]
        best = {name: max(rate, best[name]) for name, rate in ceilings(device).items()}
    return best, list(found.values())


def part_of_huge(device: str, blocks: int = 100) -> dict[str, Any]:
    """Seconds of the first blocks of a product with n = 10⁷ points, and the share of the product
    they are.
    """
    rng = seeding.stream("scale/huge")
    X = torch.as_tensor(rng.standard_normal((HUGE, D), dtype=np.float32), device=device)
    kernel, v = Gaussian(BANDWIDTH), torch.ones(HUGE, device=device)
    side = KernelOperator(kernel, X[:1]).block
    rows, out = slice(0, side), torch.zeros(HUGE, device=device)

    def some() -> None:
        for start in range(side, (blocks + 1) * side, side):
            columns = slice(start, start + side)
            K = kernel(X[rows], X[columns])
            out[rows] += K @ v[columns]
            out[columns] += v[rows] @ K

    some()
    whole = math.ceil(HUGE / side)
    share = blocks / (whole * (whole + 1) / 2)
    seconds = [float(f"{seconds_of(some, device, 0.3):.4g}") for _ in range(ROUNDS)]
    return {"n": HUGE, "share": share, "entries": blocks * side**2, "seconds": seconds}


def beyond(device: str) -> dict[str, Any]:
    """What the direct solver says where K does not fit."""
    n = 4 * LIMITS[device]["direct"] if device == "cuda" else HUGE // 10
    X, y, *_ = problem(n, 0)
    try:
        KernelRegression(Gaussian(BANDWIDTH), RIDGE, "cholesky", device=device).fit(X, y)
    except MemoryError as error:
        return {"n": n, "error": str(error)}
    raise RuntimeError(f"the direct solver was expected to run out of memory at n = {n}")


def measure(device: str, largest: int) -> dict[str, Any]:
    """All times on one device, for n = 2¹⁰ up to the limits."""
    command = f"python -m experiments kernel-scale --device {device}"
    origin = stored.origin(
        command if largest == 2**20 else f"{command} --largest {largest}", device
    )
    limits = {name: min(limit, largest) for name, limit in LIMITS[device].items()}
    sizes = [2**k for k in range(10, int(math.log2(max(limits.values()))) + 1)]
    solvers = [name for name in limits if name != "product"]
    for name in solvers:
        solve(name, 2**9, 0, device)
    ceiling, timed = products([n for n in sizes if n <= limits["product"]], device)
    runs = []
    for n in progress(sizes, "solvers"):
        for run in range(ROUNDS if n <= LONG[device] else 1):
            runs += [solve(name, n, run, device) for name in solvers if n <= limits[name]]
    return {
        **origin,
        "problem": {"d": D, "noise": NOISE, "bandwidth": BANDWIDTH, "ridge": RIDGE, "rank": RANK},
        "goal": GOAL,
        "ceilings": {name: float(f"{rate:.4g}") for name, rate in ceiling.items()},
        "products": timed,
        "part": part_of_huge(device),
        "solvers": runs,
        "beyond": beyond(device),
    }


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
