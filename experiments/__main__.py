"""``python -m experiments`` lists the experiments, ``python -m experiments NAME`` runs one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Experiment:
    """One long run: what it does, how long it takes, and the file in `featlearn/data` it writes.

    The module ``experiments.NAME`` runs it with its function `main`.
    """

    does: str
    minutes: str
    stores: str


EXPERIMENTS = {
    "tangent-kernels": Experiment(
        "times tangent kernels against neural-tangents, jacrev and scikit-learn",
        "10 (1 on a GPU)",
        "speed.json, speed_cuda.json",
    ),
    "solvers": Experiment("times the kernel solvers of chapter 1", "10", "solvers.json"),
    "single-index": Experiment(
        "tunes the kernels and networks of page 1.4 on draws of their own",
        "15",
        "single_index.json",
    ),
    "kernel-scale": Experiment(
        "times kernel regression up to a million points, against the roofline",
        "10",
        "scale_cpu.json, scale_cuda.json",
    ),
    "full-chapter": Experiment(
        "runs a chapter at full scale, keeps its claims and curves",
        "2 to 3 on a GPU",
        "full_CHAPTER.json",
    ),
    "full-damian": Experiment(
        "runs the experiments of chapter 6 up to d = 100, resumable",
        "6 on a GPU, hours without",
        "damian.json",
    ),
    "agreement": Experiment(
        "compares every kernel, solver and experiment on a GPU with the CPU",
        "2 on a GPU",
        "agreement.json",
    ),
    "live-figures": Experiment("computes the data of the live figures", "2", "live.json"),
}


def listing() -> str:
    """All experiments, one line each."""
    rows = [("name", "what it does", "minutes", "stores in featlearn/data")]
    rows += [(name, e.does, e.minutes, e.stores) for name, e in EXPERIMENTS.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main(arguments: list[str]) -> int:
    """Run the experiment that the first argument names, with the others as its options."""
    name, *options = arguments or [""]
    if name not in EXPERIMENTS:
        if name not in ("", "-h", "--help"):
            print(f"NAME must be one of the experiments below, got {name!r}\n", file=sys.stderr)
        print(listing())
        return int(name not in ("", "-h", "--help"))
    return import_module(f"experiments.{name.replace('-', '_')}").main(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
