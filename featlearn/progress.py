"""Progress bars that `FEATLEARN_PROGRESS=off` silences, so that none ends up in a stored output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

from tqdm import tqdm

from featlearn import validate

T = TypeVar("T")
PROGRESS_VARIABLE = "FEATLEARN_PROGRESS"


def progress(
    items: Iterable[T], describe: str = "", total: int | None = None, show: bool = True
) -> Iterable[T]:
    """`items` behind a progress bar, which vanishes when it is done."""
    if not isinstance(items, Iterable):
        raise TypeError(f"items must be iterable, got {type(items).__name__}")
    validate.instance(describe, "describe", str)
    total = None if total is None else validate.integer(total, "total", at_least=0)
    show = validate.flag(show, "show")
    setting = validate.one_of(
        os.environ.get(PROGRESS_VARIABLE, "on"), PROGRESS_VARIABLE, ("on", "off")
    )
    return tqdm(
        items, desc=describe, total=total, leave=False, disable=not show or setting == "off"
    )
