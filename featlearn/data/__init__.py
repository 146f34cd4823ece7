"""Results of runs too long for a notebook, each with the command, commit and machine that made it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The stored result `name`, such as ``"solvers"``."""
    known = sorted(
        path.name.removesuffix(".json") for path in files(__name__).iterdir() if path.name.endswith(".json")
    )
    if name not in known:
        raise ValueError(f"name must be one of {known}, got {name!r}")
    return json.loads(files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
