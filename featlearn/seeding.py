"""Random streams by name: the same name gives the same numbers everywhere, in every order of cells.

`FEATLEARN_SEED` (an integer, 0 unless set) moves all streams at once. Nothing in featlearn touches
the global state of numpy or torch. `FEATLEARN_SCALE` says how large the experiments are.
"""

from __future__ import annotations

import hashlib
import os
from typing import Literal, overload

import numpy as np
import torch

from featlearn import validate

SEED_VARIABLE = "FEATLEARN_SEED"
SCALE_VARIABLE = "FEATLEARN_SCALE"


def seed() -> int:
    """The integer in `FEATLEARN_SEED`, or 0."""
    value = os.environ.get(SEED_VARIABLE, "0")
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{SEED_VARIABLE} must be an integer, got {value!r}") from None


def scale() -> str:
    """`"quick"` (the default) or `"full"`, from `FEATLEARN_SCALE`."""
    return validate.one_of(
        os.environ.get(SCALE_VARIABLE, "quick"), SCALE_VARIABLE, ("quick", "full")
    )


@overload
def stream(
    name: str, backend: Literal["numpy"] = ..., device: str = ...
) -> np.random.Generator: ...
@overload
def stream(name: str, backend: Literal["torch"], device: str = ...) -> torch.Generator: ...


def stream(
    name: str, backend: str = "numpy", device: str = "cpu"
) -> np.random.Generator | torch.Generator:
    """A fresh generator at the start of the stream called `name`.

    The seed is taken from SHA-256 of (`FEATLEARN_SEED`, `name`), so the stream does not depend on
    what ran before, on the process or on the machine. Two names give unrelated streams.

    Parameters
    ----------
    name : str
        What the numbers are for, such as ``"ker-curse/points"``.
    backend : {"numpy", "torch"}
        Kind of generator.
    device : str
        Device of a torch generator.
    """
    validate.text(name, "name")
    validate.one_of(backend, "backend", ("numpy", "torch"))
    place = validate.device(device)
    digest = hashlib.sha256(f"{seed()}/{name}".encode()).digest()
    if backend == "numpy":
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
    generator = torch.Generator(device=place)
    generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator
