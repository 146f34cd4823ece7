"""Hyperparameters for the single-index targets of chapter 1, kept as
`featlearn/data/single_index.json`.

Kernels and networks are tuned with the same care: for each target and each sample size, on four
draws of the problem that no page uses, everything that can be chosen is, by the error on fresh
points. For kernels that is the family, the bandwidth and the ridge; for networks the learning rate
and the weight decay.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments import stored
from featlearn import seeding, single_index
from featlearn.kernels import Gaussian, Laplace
from featlearn.notebook import progress

TARGET = stored.DATA / "single_index.json"
DIMENSION, SIZES, DRAWS, STEPS = 24, (60, 120, 240, 480, 960), 4, 1000
FAMILIES = {"Gaussian": Gaussian, "Laplace": Laplace}
BANDWIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # times √d
RIDGES = tuple(float(f"1e{k}") for k in range(-11, 3))
RATES, DECAYS, WIDTH = (0.01, 0.03, 0.1, 0.3), (0.0, 0.1, 0.3, 1.0), 48


def tune(name: str, n: int, d: int = DIMENSION) -> dict[str, Any]:
    """The best kernel and the best network for n samples of one target, and their errors."""
    rng = seeding.stream(f"tuning/{name}/{n}" + (f"/{d}" if d != DIMENSION else ""))
    g = single_index.link(name, d)
    U, X, y = single_index.draw(g, d, n, DRAWS, rng)
    X_test = single_index.draw(g, d, 2000, DRAWS, rng)[1]
    y_test = g(np.einsum("rnd,rd->rn", X_test, U))
    by_kernel = {
        (family, factor): single_index.kernel_errors(
            make(factor * d**0.5), RIDGES, X, y, X_test, y_test
        ).mean(dim=0)
        for (family, make), factor in product(FAMILIES.items(), BANDWIDTHS)
    }
    by_network = {}
    for rate, decay in product(RATES, DECAYS):
        options = {"learning_rate": rate, "weight_decay": decay, "width": WIDTH, "steps": STEPS}
        net = single_index.train(X, y, **options, random_state=seeding.stream("tuning/start"))
        by_network[rate, decay] = single_index.network_errors(net, X_test, y_test).mean().item()
    family, factor = min(by_kernel, key=lambda key: by_kernel[key].min())
    rate, decay = min(by_network, key=by_network.__getitem__)
    errors = by_kernel[family, factor]
    return {
        "kernel": {"family": family, "factor": factor, "ridge": RIDGES[int(errors.argmin())]},
        "kernel_error": float(errors.min()),
        "network": {"learning_rate": rate, "weight_decay": decay, "width": WIDTH, "steps": STEPS},
        "network_error": by_network[rate, decay],
    }


def measure() -> dict[str, Any]:
    """The choices for each target and sample size."""
    cases = list(product(single_index.LINKS, SIZES))
    found: dict[str, dict[str, Any]] = {name: {} for name in single_index.LINKS}
    jobs = Parallel(n_jobs=-1, return_as="generator")(delayed(tune)(*case) for case in cases)
    for (name, n), chosen in zip(cases, progress(jobs, "cases", total=len(cases)), strict=True):
        found[name][str(n)] = stored.rounded(chosen)
    return {
        **stored.origin("python -m experiments single-index"),
        "d": DIMENSION,
        "grids": {
            "family": list(FAMILIES), "factor": BANDWIDTHS, "ridge": RIDGES,
            "learning_rate": RATES, "weight_decay": DECAYS, "width": [WIDTH],
        },
        "choices": found,
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    """Tune and write the file."""
    options = stored.options("single-index", "Tune kernels and networks of page 1.4.", TARGET)
    stored.write(options.parse_args(arguments).out, measure(), indent=1)
    return 0
