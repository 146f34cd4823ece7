"""How many exponentials a GPU computes in a second when nothing else holds it up."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SIZE, REPEATS = 1024, 2000


@triton.jit
def _chains(out, REPEATS: tl.constexpr, SIZE: tl.constexpr):
    """Two chains of exponentials, each of the one before, in the registers of a program."""
    lane = tl.arange(0, SIZE)
    x, y = lane * (1.0 / SIZE), lane * (0.5 / SIZE)
    for _ in range(REPEATS):
        x, y = tl.exp2(-x), tl.exp2(-y)
    tl.store(out + tl.program_id(0) * SIZE + lane, x + y)


def evaluate() -> int:
    """Evaluate many exponentials on all processors; returns how many."""
    programs = 16 * torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.empty(programs * SIZE, device="cuda")
    _chains[(programs,)](out, REPEATS, SIZE)
    return 2 * REPEATS * len(out)
