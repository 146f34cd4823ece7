"""The experiments of chapter 6 at d up to 100, kept as `featlearn/data/damian.json` for the chapter
to draw.

Run ``make full`` (a few minutes on a GPU, hours without).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from experiments import stored
from featlearn import damian, seeding
from featlearn.ntk import NTK

TARGET = stored.DATA / "damian.json"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNEL_LIMIT = 2**14
SEEDS = range(20)
DIMS = (10, 20, 50, 100)


def alignment(
    dims: Sequence[int] = DIMS, ratios: Sequence[float] = (0.25, 0.5, 1, 2, 4, 8, 16)
) -> dict[str, Any]:
    """Alignment of the first step on n = ratio · d² samples, for the example of each rank."""

    def one(r: int, d: int, ratio: float, seed: int) -> float:
        rng = seeding.stream(f"full/alignment/{r}/{d}/{ratio}/{seed}")
        return damian.step_alignment(d, int(ratio * d * d), damian.EXAMPLES[r], rng, device=DEVICE)

    runs = {
        f"{r}/{d}": [[one(r, d, ratio, seed) for ratio in ratios] for seed in SEEDS]
        for r in damian.EXAMPLES
        for d in dims
    }
    return {"dims": list(dims), "ratios": list(ratios), "runs": runs}


def transformed(
    dims: Sequence[int] = (30, 100), ratios: Sequence[int] = (1, 4, 16, 64)
) -> dict[str, Any]:
    """Alignment of the first step on n = ratio · d² samples of He₃ and He₆, with the labels y and
    with min(y², 3), centred.
    """
    degrees = [3, 6]

    def one(p: int, d: int, ratio: int, seed: int) -> list[float]:
        name, terms = f"full/transformed/{p}/{d}/{ratio}/{seed}", {(p,): 1.0}
        return [
            damian.step_alignment(
                d, ratio * d * d, terms, seeding.stream(name), label=label, device=DEVICE
            )
            for label in (None, damian.clipped_square)
        ]

    runs = {
        f"{p}/{d}": [[one(p, d, ratio, seed) for ratio in ratios] for seed in SEEDS]
        for p in degrees
        for d in dims
    }
    return {"degrees": degrees, "dims": list(dims), "ratios": list(ratios), "runs": runs}


def sample_complexity(
    dims: Sequence[int] = DIMS, sizes: Sequence[int] = tuple(2**k for k in range(8, 18))
) -> dict[str, Any]:
    """Risks and learned shares of the three methods; the kernel only up to `KERNEL_LIMIT` samples."""
    kernel = NTK(2, "relu", 2**0.5, 0.5)
    results = {}
    for d in dims:
        rows = []
        for seed in SEEDS:
            runs = []
            for n in sizes:
                rng = seeding.stream(f"full/sample/{d}/{n}/{seed}")
                k = kernel if n <= KERNEL_LIMIT else None
                runs.append(damian.compare_methods(d, n, rng, kernel=k, device=DEVICE).tolist())
            rows.append(runs)
        results[str(d)] = rows
    return {"dims": list(dims), "sizes": list(sizes), "runs": results}


def transfer(
    dims: Sequence[int] = DIMS, sizes: Sequence[int] = tuple(2**k for k in range(2, 14))
) -> dict[str, Any]:
    """Risks of a new head on N samples, after a first step on n = d⁰, d, d², 16d², d³ samples and
    after none (n = 0).
    """
    results = {}
    for d in dims:
        for name, n in {
            "0": 0,
            "1": 1,
            "d": d,
            "d^2": d**2,
            "16d^2": 16 * d**2,
            "d^3": d**3,
        }.items():
            runs = [
                damian.transfer(
                    d, n, sizes, seeding.stream(f"full/transfer/{d}/{name}/{seed}"), device=DEVICE
                ).tolist()
                for seed in SEEDS
            ]
            results[f"{d}/{name}"] = runs
    return {"dims": list(dims), "sizes": list(sizes), "runs": results}


def rounded(values: Any) -> Any:
    """Nested lists with three significant digits."""
    if isinstance(values, dict):
        return {key: rounded(value) for key, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return float(f"{values:.3g}") if isinstance(values, float) else values


def main() -> None:
    """Measure everything, then write the file (its path is the only argument)."""
    result = {**stored.origin("make full", DEVICE), "seeds": len(SEEDS)}
    for experiment in (alignment, sample_complexity, transfer, transformed):
        start = time.perf_counter()
        result[experiment.__name__] = rounded(experiment())
        print(f"{experiment.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    stored.write(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET, result)


if __name__ == "__main__":
    main()
