"""The clock of the benchmarks, which waits for the work that a GPU still has to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def clock(device: str = "cpu") -> float:
    """The time when all work given to the device is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds_of(run: Callable[[], Any], device: str = "cpu", least: float = 0.0) -> float:
    """Mean time of a call, repeated until `least` seconds have passed."""
    start, calls = clock(device), 0
    while calls == 0 or clock(device) - start < least:
        run()
        calls += 1
    return (clock(device) - start) / calls
