"""What every public function asks of its input, with errors that name the argument."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

SHORT = re.compile(r"out of memory|not enough memory|can't allocate|bad_alloc|ALLOC_FAILED", re.IGNORECASE)


def as_tensor(
    value: Any,
    name: str,
    ndim: int | tuple[int, ...] | None = None,
    *,
    finite: bool = True,
    beside: tuple[Any, ...] = (),
) -> Tensor:
    """`value` as a finite, non-empty floating-point tensor; integers become float64.

    Tensors of floating type keep their dtype and device, float32 arrays their precision. With `finite` off
    no entry is looked at, which `torch.func.vmap` does not allow. What has no device, such as an array of numpy, goes to that of
    the first tensor in `beside`.
    """
    if isinstance(value, Tensor):
        tensor = value
    else:
        try:
            array = np.array(value)
        except ValueError as error:
            raise TypeError(
                f"{name} must be an array of numbers, got a ragged {type(value).__name__}"
            ) from error
        if array.dtype.kind not in "fiubc":
            raise TypeError(f"{name} must be an array of numbers, got {type(value).__name__}")
        if array.dtype.kind != "c":
            array = array.astype(np.float32 if array.dtype == np.float32 else np.float64)
        device = next((partner.device for partner in beside if isinstance(partner, Tensor)), None)
        tensor = torch.as_tensor(array, device=device)
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, got dtype {tensor.dtype}")
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if dims is not None and tensor.ndim not in dims:
        wanted = " or ".join(f"{k}-dimensional" for k in dims)
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(tensor.shape)}")
    if tensor.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(tensor.shape)}")
    if finite and not torch.isfinite(tensor).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return tensor


def same_length(first: Tensor, first_name: str, second: Tensor, second_name: str) -> None:
    """Raise unless both have the same number of rows."""
    if first.shape[0] != second.shape[0]:
        raise ValueError(
            f"{first_name} and {second_name} must have the same number of rows, "
            f"got {first.shape[0]} and {second.shape[0]}"
        )


def square(K: Tensor, name: str) -> None:
    """Raise unless K is square and symmetric to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} must be square, got shape {tuple(K.shape)}")
    tiles = [slice(i, i + 1024) for i in range(0, len(K), 1024)]
    pairs = ((rows, columns) for i, rows in enumerate(tiles) for columns in tiles[i:])
    gap = max((K[rows, columns] - K[columns, rows].T).abs().max() for rows, columns in pairs)
    if gap > math.sqrt(torch.finfo(K.dtype).eps) * max(K.max(), -K.min()):
        raise ValueError(f"{name} must be symmetric, but {name} and its transpose differ")


def real(value: Any, name: str, *, above: float | None = None, at_least: float | None = None) -> float:
    """`value` as a finite float, optionally above or at least a limit."""
    if isinstance(value, Tensor) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    if above is not None and not number > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {value!r}")
    if at_least is not None and not number >= at_least:
        raise ValueError(f"{name} must be at least {at_least:g}, got {value!r}")
    return number


def integer(value: Any, name: str, *, at_least: int = 1) -> int:
    """`value` as an int of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    return int(value)


@contextlib.contextmanager
def memory(advice: str) -> Iterator[None]:
    """Raise a `MemoryError` with this advice where torch, numpy or a library below them runs out of memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or SHORT.search(str(error)):
            raise MemoryError(advice) from error
        raise


def one_of(value: Any, name: str, choices: Collection[Any]) -> Any:
    """`value`, if it is among `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def text(value: Any, name: str) -> str:
    """`value`, if it is a non-empty string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{name} must not be empty")
    return value


def generator(value: Any, name: str) -> np.random.Generator:
    """`value`, if it is a numpy generator, such as `featlearn.stream` hands out."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a numpy Generator (see featlearn.stream), got {type(value).__name__}"
        )
    return value
