"""What every public function asks of its input, with errors that name the argument.

Public functions check their arguments here, once; what they call trusts them. A call that no
machine could answer is refused before memory or time is spent (`size`, and the limits of
`integer`).
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

Choice = TypeVar("Choice")
Function = TypeVar("Function", bound=Callable[..., Any])
Array = Tensor | ArrayLike  # what every public door accepts for an array

OUT_OF_MEMORY = re.compile(
    r"out of memory|not enough memory|can't allocate|bad_alloc|ALLOC_FAILED", re.IGNORECASE
)
PRECISIONS = (torch.float32, torch.float64)
MOST_NUMBERS = 2**34  # 128 GiB in float64, more than a machine of this book's readers has


def is_transformed(*tensors: Any) -> bool:
    """Whether one of them is inside a transform of `torch.func`, where its entries cannot be looked
    at.
    """
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return any(isinstance(tensor, Tensor) and wrapped(tensor) for tensor in tensors)


def as_tensor(
    value: Array,
    name: str,
    ndim: int | tuple[int, ...] | None = None,
    *,
    finite: bool = True,
    like: tuple[Any, ...] = (),
) -> Tensor:
    """`value` as a finite, non-empty tensor of float32 or float64; integers become float64.

    Tensors keep their dtype and device, float32 arrays their precision. What has no device, such as
    a numpy array, goes to that of the first tensor in `like`. On a GPU and inside `torch.func` the
    entries are not looked at: the one would wait for the device, the other is not allowed.
    """
    if isinstance(value, Tensor):
        tensor = value
        if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
            kind = "without values" if tensor.device.type == "meta" else "sparse or quantised"
            raise TypeError(f"{name} must be a dense tensor, got one that is {kind}")
    else:
        tensor = _from_array(value, name, like)
    if tensor.is_complex():
        raise TypeError(f"{name} must be real, got dtype {tensor.dtype}")
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.float64)
    if tensor.dtype not in PRECISIONS:
        raise TypeError(f"{name} must be float32 or float64, got {tensor.dtype}")
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if dims is not None and tensor.ndim not in dims:
        wanted = " or ".join(f"{k}-dimensional" for k in dims)
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(tensor.shape)}")
    if tensor.numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(tensor.shape)}")
    looked_at = finite and tensor.device.type == "cpu" and not is_transformed(tensor)
    if looked_at and not is_finite(tensor):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return tensor


def is_finite(tensor: Tensor) -> bool:
    """Whether no entry is NaN or infinite. Nor is then, nearly always, their sum, which is an order
    of magnitude faster to compute than the answer for each entry.
    """
    return bool(torch.isfinite(tensor.detach().sum())) or bool(torch.isfinite(tensor).all())


def unmasked(value: Any, name: str) -> None:
    """Raise if `value` is an array with a mask, which a tensor does not have."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"{name} must not be a masked array: its mask would be lost")


def returned(value: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    """What the function `name` returned, if it is a tensor of this shape."""
    if not isinstance(value, Tensor) or value.shape != shape:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must return a tensor of shape {shape}, got {got}")
    return value


def _from_array(value: Any, name: str, like: tuple[Any, ...]) -> Tensor:
    unmasked(value, name)
    try:
        array = np.array(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be an array of numbers, got a ragged {type(value).__name__}"
        ) from error
    if array.dtype.kind == "O" and all(isinstance(entry, Integral) for entry in array.flat):
        try:
            array = array.astype(np.float64)  # integers too large for 64 bits
        except OverflowError as error:
            raise ValueError(f"{name} must have smaller entries: they overflow float64") from error
    if array.dtype.kind not in "fiubc":
        raise TypeError(f"{name} must be an array of numbers, got {type(value).__name__}")
    if array.dtype.kind != "c":
        array = array.astype(np.float32 if array.dtype == np.float32 else np.float64)
    devices = (partner.device for partner in like if isinstance(partner, Tensor))
    device = next((device for device in devices if device.type != "meta"), None)
    return torch.as_tensor(array, device=device)


def pair(
    X: Array, Y: Array, ndim: int | tuple[int, ...], names: tuple[str, str] = ("X", "Y")
) -> tuple[Tensor, Tensor]:
    """Both as tensors of one dtype, by torch's rules of promotion, on one device, with rows of one
    length.
    """
    first, second = as_tensor(X, names[0], ndim, like=(Y,)), as_tensor(Y, names[1], ndim, like=(X,))
    if first.device != second.device:
        raise ValueError(
            f"{names[0]} and {names[1]} must be on one device, "
            f"got {first.device} and {second.device}"
        )
    if first.ndim != second.ndim:
        raise ValueError(
            f"{names[0]} and {names[1]} must both be vectors or both matrices, "
            f"got {first.ndim} and {second.ndim} axes"
        )
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same dimension, "
            f"got {first.shape[-1]} and {second.shape[-1]}"
        )
    dtype = torch.promote_types(first.dtype, second.dtype)
    return first.to(dtype), second.to(dtype)


def columns(X: Tensor, name: str, count: int) -> None:
    """Raise unless the rows of X have this length."""
    if X.shape[-1] != count:
        raise ValueError(f"{name} must have {count} columns, got {X.shape[-1]}")


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


def real(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """`value` as a finite float within these limits."""
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {_brief(value)}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    if above is not None and not number > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {value!r}")
    if at_least is not None and not number >= at_least:
        raise ValueError(f"{name} must be at least {at_least:g}, got {value!r}")
    if at_most is not None and not number <= at_most:
        raise ValueError(f"{name} must be at most {at_most:g}, got {value!r}")
    return number


def parameter(
    value: Any, name: str, *, above: float | None = None, at_least: float | None = None
) -> float | Tensor:
    """A parameter of a kernel; a tensor without axes stays one, to be differentiated."""
    if not isinstance(value, Tensor):
        return real(value, name, above=above, at_least=at_least)
    tensor = as_tensor(value, name, 0)
    if tensor.device.type == "cpu" and not is_transformed(tensor):
        real(tensor.detach(), name, above=above, at_least=at_least)
    return tensor


def integer(value: Any, name: str, *, at_least: int = 1, at_most: int | None = None) -> int:
    """`value` as an int of at least `at_least` and at most `at_most`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {_brief(value)}")
    number = int(value)
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {value!r}")
    return number


def size(count: float, names: str) -> None:
    """Raise if `names` ask for more numbers than a machine holds."""
    if count > MOST_NUMBERS:
        asked = f"{count:.3g}" if count < 1e300 else "far too many"
        raise ValueError(f"{names} must be smaller: they ask for {asked} numbers at once")


def function(value: Function, name: str) -> Function:
    """`value`, if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {type(value).__name__}")
    return value


def instance(value: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """`value`, if it is of this class."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise TypeError(f"{name} must be a {wanted}, got {type(value).__name__}")
    return value


def sequence(value: Any, name: str) -> list[Any]:
    """`value` as a non-empty list, if it is a sequence, an array, a range or a set, and not a
    string.
    """
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} must be a sequence, got {_brief(value)}")
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0:
        raise TypeError(f"{name} must be a sequence, got a number")
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.device.type == "meta":
            raise TypeError(f"{name} must be a sequence of values, got a tensor without them")
        value = value.tolist()
    if hasattr(value, "__len__"):
        size(len(value), name)
    found = list(value)
    if not found:
        raise ValueError(f"{name} must not be empty")
    return found


def integers(values: Any, name: str, *, at_least: int = 1, at_most: int | None = None) -> list[int]:
    """`values` as a list of ints, each within the limits."""
    return [
        integer(value, name, at_least=at_least, at_most=at_most) for value in sequence(values, name)
    ]


@contextlib.contextmanager
def memory(advice: str) -> Iterator[None]:
    """Raise a `MemoryError` with this advice where torch, numpy or a library below them runs out of
    memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(str(error)):
            raise MemoryError(advice) from error
        raise


@contextlib.contextmanager
def pairs(X: Tensor, Y: Tensor, names: str = "X and Y") -> Iterator[None]:
    """Raise, naming them, if a matrix with a number for each pair of rows does not fit."""
    size(len(X) * len(Y), names)
    with memory(
        f"{names} must have fewer rows: a matrix of {len(X)} by {len(Y)} numbers does not fit"
    ):
        yield


def one_of(value: Choice, name: str, choices: Collection[Choice]) -> Choice:
    """`value`, if it is among `choices`."""
    try:
        known = value in choices
    except (TypeError, ValueError, RuntimeError):  # unhashable, or an array that has no truth value
        known = False
    if not known:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {_brief(value)}"
        )
    return value


def flag(value: Any, name: str) -> bool:
    """`value`, if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {_brief(value)}")
    return bool(value)


def text(value: Any, name: str) -> str:
    """`value`, if it is a non-empty string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{name} must not be empty")
    return value


def device(value: Any, name: str = "device") -> torch.device:
    """`value`, a name or a device of torch, as a device of this machine's torch."""
    try:
        found = torch.device(value) if isinstance(value, (str, torch.device)) else None
    except RuntimeError:
        found = None
    if found is None:
        raise ValueError(f"{name} must name a device such as 'cpu' or 'cuda', got {_brief(value)}")
    if found.type == "meta":
        raise ValueError(f"{name} must hold numbers, got 'meta'")
    return found


def generator(value: Any, name: str) -> np.random.Generator:
    """`value`, if it is a numpy generator, such as `featlearn.stream` hands out."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a numpy Generator (see featlearn.stream), got {type(value).__name__}"
        )
    return value


def random_state(value: Any, name: str = "random_state") -> np.random.Generator:
    """A generator from an integer seed, a numpy `Generator` or a `RandomState`."""
    if isinstance(value, np.random.RandomState):
        return np.random.default_rng(value.randint(2**32, size=4, dtype=np.uint64))
    if isinstance(value, Integral) and not isinstance(value, bool):
        return np.random.default_rng(integer(value, name, at_least=0))
    return generator(value, name)


def _brief(value: Any) -> str:
    """`value` as an error message shows it."""
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
