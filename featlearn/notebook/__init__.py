"""What a notebook needs from its surroundings.

Glued numbers, the scale of a run, progress bars, claims, figures.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

from IPython import get_ipython
from IPython.display import display

from featlearn import validate
from featlearn.progress import progress
from featlearn.seeding import scale

__all__ = ["at_scale", "glue", "progress"]
T = TypeVar("T")
MEASURED = "≈"


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
    number = value if is_exact else validate.real(value, "value")
    if not isinstance(fmt, str):
        raise TypeError(f"fmt must be a string, got {type(fmt).__name__}")
    try:
        text = format(number, fmt if is_exact else fmt or ".3g")
    except ValueError as error:
        raise ValueError(f"fmt must fit the value {value!r}, got {fmt!r}") from error
    text = text if is_exact else f"{MEASURED}{text}"
    prefix = "application/papermill.record/"
    if get_ipython() is not None:
        metadata = {"scrapbook": {"name": name, "mime_prefix": prefix}}
        display({prefix + "text/plain": text}, raw=True, metadata=metadata)
