"""Times of the kernel solvers, kept as `featlearn/data/solvers.json` for chapter 1 to draw.

Run ``python -m experiments solvers``. The solvers take turns within each round, so that a slow
spell of the machine touches all of them; ratios compare times of one round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.kernel_ridge import KernelRidge

from experiments import stored
from experiments.timing import seconds_of
from featlearn import seeding
from featlearn.kernels import Gaussian, KernelOperator, KernelRegression
from featlearn.notebook import progress

TARGET = stored.DATA / "solvers.json"
DIMENSION, BANDWIDTH, RIDGE, TOLERANCE = 10, 3.0, 0.05, 1e-3
ROUNDS = {1250: 5, 2500: 5, 5000: 5, 10000: 5, 16000: 3}


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n Gaussian points in 10 dimensions with y = sin(x·w) + noise."""
    rng = seeding.stream("benchmark/solvers")
    X, w = rng.standard_normal((n, DIMENSION)), rng.standard_normal(DIMENSION)
    return X, np.sin(X @ w) + 0.1 * rng.standard_normal(n)


def contestants(n: int) -> dict[str, Callable[[], Any]]:
    """One call each: whole fits, except `product`, which is one product with K."""
    X, y = data(n)
    kernel, v = Gaussian(BANDWIDTH), torch.ones(n, dtype=torch.float64)
    single = torch.as_tensor(X, dtype=torch.float32)
    options = {"tolerance": TOLERANCE, "dtype": torch.float32}
    store = {"cache": 2 * n * n + n * 4096 * 4}
    return {
        "scikit-learn": lambda: KernelRidge(
            alpha=RIDGE, kernel="rbf", gamma=0.5 / BANDWIDTH**2
        ).fit(X, y),
        "cholesky": lambda: KernelRegression(kernel, RIDGE, "cholesky").fit(X, y),
        "product": lambda: KernelOperator(kernel, single, RIDGE)(v),
        "nystrom": lambda: KernelRegression(kernel, RIDGE, "nystrom", **options).fit(X, y),
        "nystrom, K kept": lambda: KernelRegression(
            kernel, RIDGE, "nystrom", **options, **store
        ).fit(X, y),
    }


def measure() -> dict[str, Any]:
    """Seconds by contestant and n, one entry for each round."""
    for run in contestants(500).values():
        run()
    seconds: dict[str, dict[int, list[float]]] = {name: {} for name in contestants(500)}
    for n, rounds in progress(ROUNDS.items(), "sizes"):
        runs = contestants(n)
        for _ in range(rounds):
            for name, run in runs.items():
                seconds[name].setdefault(n, []).append(round(seconds_of(run, least=0.5), 4))
    return {
        **stored.origin("python -m experiments solvers"),
        "problem": f"Gaussian kernel, d = {DIMENSION}, ridge {RIDGE}, "
        f"residual {TOLERANCE:g}, float32 products",
        "seconds": seconds,
    }


def main(arguments: list[str]) -> int:
    """Measure and write the file."""
    options = stored.options("solvers", "Time the kernel solvers of chapter 1.", TARGET)
    stored.write(options.parse_args(arguments).out, measure(), indent=1)
    return 0
