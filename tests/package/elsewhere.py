"""A simulated device, to find tensors that would meet across devices on CUDA.

Inside ``with Elsewhere():`` the device "cuda" exists. Its tensors live in the memory of the CPU,
and a list of storages says which they are. An operation that mixes them with tensors of the CPU
raises, as CUDA would; numbers, that is tensors of the CPU without axes, may enter where CUDA lets
them. Values are those of the CPU, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
MOVES = ("to", "cpu", "cuda", "type_as", "as_tensor", "asarray")
TO_HOST = ("numpy", "__array__")
COPIES = (torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default)
NO_NUMBERS = (torch.ops.aten.cat.default, torch.ops.aten.stack.default, torch.ops.aten.mm.default)
INDEXED = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


def _plain(tensor: Tensor) -> Tensor:
    """The tensor inside the wrappers of torch.func."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _tensors(values: Any) -> list[Tensor]:
    """All tensors in arguments or results; ten times as fast as torch's own walk."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = values.values()
    elif not isinstance(values, (list, tuple)):
        return []
    return [tensor for value in values for tensor in _tensors(value)]


class Elsewhere:
    """The device "cuda" for the length of a block."""

    def __init__(self) -> None:
        self.storages: dict[
            int, StorageWeakRef
        ] = {}  # weak references, so that no address is used again
        self.moving_to: torch.device | None = None
        self.call: Any = ()
        self.modes = _Operations(self), _Calls(self)

    def __enter__(self) -> Elsewhere:
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(*error)

    def place(self, tensor: Tensor) -> torch.device:
        """Where a tensor counts as living."""
        return CUDA if _plain(tensor).untyped_storage()._cdata in self.storages else CPU

    def put(self, tensor: Tensor) -> None:
        """Enter a new tensor of the device in the list."""
        storage = tensor.untyped_storage()
        self.storages[storage._cdata] = StorageWeakRef(storage)


class _Operations(TorchDispatchMode):
    """Below automatic differentiation: no operation mixes, and its results live where its inputs
    do.

    What an operation without inputs makes (zeros, inside torch) lives where the inputs of the call
    around it do.
    """

    def __init__(self, world: Elsewhere) -> None:
        super().__init__()
        self.world = world

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = _tensors((args, kwargs or {}))
        places = [self.world.place(tensor) for tensor in given]
        around = places or [self.world.place(tensor) for tensor in _tensors(self.world.call)]
        device = self.world.moving_to or (CUDA if CUDA in around else CPU)
        if self.world.moving_to is None and func not in COPIES:
            indices = (
                _tensors(args[1]) if func._schema.name in INDEXED and places[0] == CUDA else []
            )
            for tensor, place in zip(given, places, strict=True):
                number = tensor.ndim == 0 and func not in NO_NUMBERS
                if place != device and not number and not any(tensor is i for i in indices):
                    shapes = [
                        f"{tuple(t.shape)} on {p.type}" for t, p in zip(given, places, strict=True)
                    ]
                    raise RuntimeError(f"{func} meets tensors on two devices: {', '.join(shapes)}")
        if device == CUDA:
            old = {tensor.untyped_storage()._cdata for tensor in given}
            for tensor in _tensors(result):
                if tensor.untyped_storage()._cdata not in old:
                    self.world.put(tensor)
        return result


class _Calls(TorchFunctionMode):
    """What Python code says about devices: `device=`, `.to`, `.device`, `.numpy`."""

    def __init__(self, world: Elsewhere) -> None:
        super().__init__()
        self.world = world

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func == Tensor.device.__get__:
            return self.world.place(args[0])
        if func == Tensor.is_cuda.__get__:
            return self.world.place(args[0]) == CUDA
        if name in TO_HOST and self.world.place(args[0]) == CUDA:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first"
            )
        if name in MOVES or "device" in kwargs:
            return self._moved(func, name, args, kwargs)
        before, self.world.call = self.world.call, (args, kwargs)
        try:
            return func(*args, **kwargs)
        finally:
            self.world.call = before

    def _moved(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        source = args[0] if args and isinstance(args[0], Tensor) else None
        target = CPU if source is None else self.world.place(source)
        likes = [value for value in args[1:] if isinstance(value, Tensor)] + _tensors(
            kwargs.get("other")
        )
        named = [torch.device(v) for v in args[1:] if isinstance(v, (str, torch.device))]
        if kwargs.get("device") is not None:
            named = [torch.device(kwargs["device"])]
        if likes and name in ("to", "type_as"):
            target = self.world.place(likes[0])
        elif named:
            target = CUDA if named[0].type == "cuda" else CPU
        elif name in ("cpu", "cuda"):
            target = CUDA if name == "cuda" else CPU
        args, kwargs = tree_map(lambda v: CPU if isinstance(v, torch.device) else v, (args, kwargs))
        args = tuple("cpu" if isinstance(v, str) and v.startswith("cuda") else v for v in args)
        if kwargs.get("device") is not None:
            kwargs["device"] = CPU
        before, self.world.moving_to = self.world.moving_to, target
        try:
            result = func(*args, **kwargs)
            stays = source is not None and self.world.place(result) != target
            return result.clone() if stays or (source is None and target == CUDA) else result
        finally:
            self.world.moving_to = before
