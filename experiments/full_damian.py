"""The experiments of chapter 6 at d up to 100, kept as `featlearn/data/damian.json` for the chapter
to draw.

Run ``python -m experiments full-damian`` (a few minutes on a GPU, hours without). The four grids
are sweeps: each cell is written to ``_build/sweeps`` as it arrives, and a run that was interrupted
goes on where it stopped. The seed is an axis of the grid. A cell names its own stream and does not
use the sweep's, so that the stored numbers can be computed again one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments import stored
from experiments.stored import rounded
from featlearn import damian, seeding, sweep
from featlearn.ntk import NTK

TARGET = stored.DATA / "damian.json"
SWEEPS = stored.DATA.parents[1] / "_build" / "sweeps"
KERNEL_LIMIT = 2**14
SEEDS = range(20)
DIMS = (10, 20, 50, 100)
DEGREES = (3, 6)
PRETRAINING: dict[str, Callable[[int], int]] = {
    "0": lambda d: 0,
    "1": lambda d: 1,
    "d": lambda d: d,
    "d^2": lambda d: d**2,
    "16d^2": lambda d: 16 * d**2,
    "d^3": lambda d: d**3,
}


def grid(
    cell: Callable[..., Any],
    axes: Mapping[str, Sequence[Any]],
    *,
    device: str = "cpu",
    folder: Path | None = None,
    workers: int | None = 1,
    **fixed: Any,
) -> np.ndarray:
    """The results of a cell over a grid and all seeds, of shape (axis 1, …, seeds, …).

    Parameters
    ----------
    cell
        A function of a generator that it ignores, the axes, `seed`, `device` and `fixed`.
    axes
        The axes of the grid by name, without the seed.
    device, workers
        Where the cells run, and in how many processes; as many as there are cores for None.
    folder
        Where finished cells are kept, if they are.
    """
    name = f"full-damian-{cell.__name__}"
    found = sweep.run(
        partial(cell, device=device, **fixed),
        {**axes, "seed": SEEDS},
        seeds=1,
        name=name,
        file=None if folder is None else folder / f"{name}-{device}.jsonl",
        workers=workers,
    )
    return found.values.squeeze(axis=len(axes) + 1)


def one_alignment(_: Any, r: int, d: int, ratio: float, seed: int, *, device: str) -> float:
    """The alignment of one first step."""
    rng = seeding.stream(f"full/alignment/{r}/{d}/{ratio}/{seed}")
    return damian.step_alignment(d, int(ratio * d * d), damian.EXAMPLES[r], rng, device=device)


def alignment(
    dims: Sequence[int] = DIMS,
    ratios: Sequence[float] = (0.25, 0.5, 1, 2, 4, 8, 16),
    **how: Any,
) -> dict[str, Any]:
    """Alignment of the first step on n = ratio · d² samples, for the example of each rank."""
    ranks = list(damian.EXAMPLES)
    values = grid(one_alignment, {"r": ranks, "d": dims, "ratio": ratios}, **how)
    runs = {
        f"{r}/{d}": values[i, j].T.tolist() for i, r in enumerate(ranks) for j, d in enumerate(dims)
    }
    return {"dims": list(dims), "ratios": list(ratios), "runs": runs}


def one_transformed(_: Any, p: int, d: int, ratio: int, seed: int, *, device: str) -> list[float]:
    """The alignments of one first step with the labels y and with min(y², 3), centred."""
    name, terms = f"full/transformed/{p}/{d}/{ratio}/{seed}", {(p,): 1.0}
    return [
        damian.step_alignment(
            d, ratio * d * d, terms, seeding.stream(name), label=label, device=device
        )
        for label in (None, damian.clipped_square)
    ]


def transformed(
    dims: Sequence[int] = (30, 100), ratios: Sequence[int] = (1, 4, 16, 64), **how: Any
) -> dict[str, Any]:
    """Alignment of the first step on n = ratio · d² samples of He₃ and He₆, for both labels."""
    values = grid(one_transformed, {"p": DEGREES, "d": dims, "ratio": ratios}, **how)
    runs = {
        f"{p}/{d}": values[i, j].swapaxes(0, 1).tolist()
        for i, p in enumerate(DEGREES)
        for j, d in enumerate(dims)
    }
    return {"degrees": list(DEGREES), "dims": list(dims), "ratios": list(ratios), "runs": runs}


def one_comparison(_: Any, d: int, n: int, seed: int, *, device: str, limit: int) -> np.ndarray:
    """Risk and learned shares of the three methods, shape (3, 3).

    The kernel's row is NaN beyond `limit` samples.
    """
    kernel = NTK(2, "relu", 2**0.5, 0.5) if n <= limit else None
    rng = seeding.stream(f"full/sample/{d}/{n}/{seed}")
    values = np.full((3, 3), np.nan)
    found = damian.compare_methods(d, n, rng, kernel=kernel, device=device)
    values[: len(found)] = found
    return values


def sample_complexity(
    dims: Sequence[int] = DIMS,
    sizes: Sequence[int] = tuple(2**k for k in range(8, 18)),
    **how: Any,
) -> dict[str, Any]:
    """Risks and learned shares of the three methods; of two beyond `KERNEL_LIMIT` samples."""
    values = grid(one_comparison, {"d": dims, "n": sizes}, limit=KERNEL_LIMIT, **how)

    def methods(of_run: np.ndarray, n: int) -> list[list[float]]:
        return of_run[: 3 if n <= KERNEL_LIMIT else 2].tolist()

    runs = {
        str(d): [
            [methods(values[i, j, s], n) for j, n in enumerate(sizes)] for s in range(len(SEEDS))
        ]
        for i, d in enumerate(dims)
    }
    return {"dims": list(dims), "sizes": list(sizes), "runs": runs}


def one_transfer(
    _: Any, d: int, pretraining: str, seed: int, *, device: str, sizes: tuple[int, ...]
) -> np.ndarray:
    """The risks of a new head on each number of samples, after one first step."""
    rng = seeding.stream(f"full/transfer/{d}/{pretraining}/{seed}")
    return damian.transfer(d, PRETRAINING[pretraining](d), sizes, rng, device=device)


def transfer(
    dims: Sequence[int] = DIMS,
    sizes: Sequence[int] = tuple(2**k for k in range(2, 14)),
    **how: Any,
) -> dict[str, Any]:
    """Risks of a new head on N samples, after a first step on n = d⁰, d, d², 16d², d³ samples and
    after none (n = 0).
    """
    axes = {"d": dims, "pretraining": list(PRETRAINING)}
    values = grid(one_transfer, axes, sizes=tuple(sizes), **how)
    runs = {
        f"{d}/{name}": values[i, j].tolist()
        for i, d in enumerate(dims)
        for j, name in enumerate(PRETRAINING)
    }
    return {"dims": list(dims), "sizes": list(sizes), "runs": runs}


def main(arguments: list[str]) -> int:
    """Measure everything, then write the file."""
    parser = stored.options("full-damian", "Run the experiments of chapter 6 to d = 100.", TARGET)
    found = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=("cpu", "cuda"), default=found)
    options = parser.parse_args(arguments)
    result = stored.origin("python -m experiments full-damian", options.device)
    result["seeds"] = len(SEEDS)
    workers = 1 if options.device == "cuda" else None
    for experiment in (alignment, sample_complexity, transfer, transformed):
        start = time.perf_counter()
        runs = experiment(device=options.device, folder=SWEEPS, workers=workers)
        result[experiment.__name__] = rounded(runs)
        print(f"{experiment.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    stored.write(options.out, result)
    return 0
