"""Results of runs too long for a notebook.

Where they come from, and how they are written to `featlearn/data`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import torch

from featlearn import seeding

DATA = Path(__file__).parents[1] / "featlearn" / "data"


def machine(device: str = "cpu") -> str:
    """The machine in a few words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), ""
    )
    return f"{os.cpu_count()} cores, {platform.machine()} {model}".strip()


def origin(command: str, device: str = "cpu") -> dict[str, Any]:
    """The command, the commit, the machine and `FEATLEARN_SEED` of a run.

    The commit ends with ``-dirty`` if the files differed from it.
    """
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(
        describe, cwd=DATA, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "command": command,
        "commit": commit,
        "machine": f"{machine(device)}, torch {torch.__version__.split('+')[0]}",
        "seed": seeding.seed(),
    }


def write(path: Path, result: dict[str, Any], indent: int | None = None) -> None:
    """Write `result` as JSON, whole or not at all."""
    part = path.with_suffix(".part")
    separators = (",", ":") if indent is None else None
    part.write_text(
        json.dumps(result, indent=indent, separators=separators) + "\n", encoding="utf-8"
    )
    os.replace(part, path)
    print(f"wrote {path.name}")


def rounded(value: Any) -> Any:
    """Tensors, arrays and what holds them as lists of numbers with three significant digits."""
    if isinstance(value, dict):
        return {str(key): rounded(part) for key, part in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, list, tuple)):
        return [rounded(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.3g}") if isinstance(value, float) else value


def options(name: str, about: str, target: Path | None = None) -> argparse.ArgumentParser:
    """The parser of an experiment's options; every experiment can write to another file."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments {name}", description=about)
    parser.add_argument("--out", type=Path, default=target, help="file to write")
    return parser
