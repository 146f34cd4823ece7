"""What a notebook needs from its surroundings: glued numbers, the scale of a run, progress bars."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeVar

from IPython import get_ipython
from IPython.display import display
from tqdm import tqdm

from featlearn import validate

T = TypeVar("T")

SCALE_VARIABLE = "FEATLEARN_SCALE"
PROGRESS_VARIABLE = "FEATLEARN_PROGRESS"
MEASURED = "≈"


def scale() -> str:
    """`"quick"` (the default) or `"full"`, from `FEATLEARN_SCALE`."""
    return validate.one_of(os.environ.get(SCALE_VARIABLE, "quick"), SCALE_VARIABLE, ("quick", "full"))


def at_scale(quick: T, full: T) -> T:
    """`quick` in the default run (CI, the book, Colab), `full` when `FEATLEARN_SCALE=full`."""
    return full if scale() == "full" else quick


def glue(name: str, value: Any, fmt: str = "") -> None:
    """Store a number of this run under `name`, for the prose to quote in a ``glue:text`` role.

    Measured numbers (`fmt` given, value a float) are stored as ``≈0.12``: the sign tells the reader
    that the digits are this run's, and tells nbval not to compare them between machines.
    Strings and integers are stored as they are and must be the same everywhere.
    """
    validate.text(name, "name")
    is_exact = isinstance(value, (str, Integral)) and not isinstance(value, bool)
    if not is_exact and not math.isfinite(float(value)):
        raise ValueError(f"value must be finite, got {value!r}")
    text = format(value, fmt) if is_exact else f"{MEASURED}{format(float(value), fmt or '.3g')}"
    prefix = "application/papermill.record/"
    if get_ipython() is not None:
        metadata = {"scrapbook": {"name": name, "mime_prefix": prefix}}
        display({prefix + "text/plain": text}, raw=True, metadata=metadata)


def progress(
    items: Iterable[T], describe: str = "", total: int | None = None, show: bool = True
) -> Iterable[T]:
    """`items` behind a progress bar, which vanishes when it is done.

    `FEATLEARN_PROGRESS=off` silences all bars; tests and the book's own execution set it, so that
    no bar ends up in a stored output.
    """
    setting = validate.one_of(os.environ.get(PROGRESS_VARIABLE, "on"), PROGRESS_VARIABLE, ("on", "off"))
    return tqdm(items, desc=describe, total=total, leave=False, disable=not show or setting == "off")
