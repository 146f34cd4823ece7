r"""Every kernel, solver and experiment on two devices.

Run ``python -m experiments agreement``; it prints the table and stores it. The cases are in
`experiments.agreement_cases`, the rule is here.

What "agree to the precision of the type" means must come from the type. For a case with result $r$
on the CPU,

* the *gap* is $\|r_{\text{device}}-r\|/\|r\|$, both in the same type;
* the *yardstick* is $\|r'-r\|/\|r\|$, where $r'$ is the result on the CPU from inputs multiplied
  by $1+\varepsilon\xi$, entry by entry, with $\xi \sim N(0, 1)$ and $\varepsilon$ the rounding of
  the type. It is the largest of three draws and at least $\varepsilon$.

Inputs are known to $\varepsilon$ only, so no result in this type means more than its yardstick. A
badly conditioned system or a training loop amplifies roundings, and the yardstick is amplified with
them.

A case agrees if its gap is at most 16 yardsticks. Two devices do the same operations but add in
another order. Adding N terms one after the other leaves $\sqrt N$ roundings where the inputs bring
one, adding them in pairs $\log_2N$. The long sums of the cases have some hundred terms, and $16 =
\sqrt{256}$. The factor is one for all cases and both types. Iterative solvers stop at
$8\varepsilon$, so that a stop which comes an iteration earlier is no disagreement; with iterations
of a fixed number nothing stops.

Both types see the same random numbers, rounded to float32. The distance between the results in
float32 and in float64 is therefore the rounding of float32, and a test holds it against the same
rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from experiments import stored
from experiments.agreement_cases import CASES, DOUBLE, Case, Setting
from featlearn.notebook.tables import in_roundings

TARGET = stored.DATA / "agreement.json"
FACTOR, DRAWS = 16, 3


def values(result: Any) -> Tensor:
    """A result as a vector in float64 on the CPU."""
    return torch.as_tensor(result).detach().to("cpu", DOUBLE).flatten()


def distance(result: Tensor, reference: Tensor) -> float:
    r"""$\|r'-r\|/\|r\|$."""
    return ((result - reference).norm() / reference.norm()).item()


@cache
def reference(case: Case, dtype: torch.dtype) -> tuple[Tensor, float]:
    """The result on the CPU and its yardstick."""
    found = [values(case.run(Setting("cpu", dtype, draw))) for draw in range(DRAWS + 1)]
    eps = torch.finfo(dtype).eps
    return found[0], max(eps, *(distance(other, found[0]) for other in found[1:]))


def on_device(case: Case, dtype: torch.dtype, device: str) -> Any:
    """The result on a device; on the CPU in one thread, where the reference may have several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if device == "cpu" else threads)
    try:
        result = case.run(Setting(device, dtype))
    finally:
        torch.set_num_threads(threads)
    place = result.device.type if isinstance(result, Tensor) else device
    if place != device:
        raise RuntimeError(f"the result is on {place}")
    return result


def compared(case: Case, dtype: torch.dtype, device: str) -> dict[str, Any]:
    """One row of the table; what a case raises becomes its `error`."""
    row = {"name": case.name, "group": case.group, "dtype": str(dtype).removeprefix("torch.")}
    try:
        expected, yardstick = reference(case, dtype)
        gap = distance(values(on_device(case, dtype, device)), expected)
        if not math.isfinite(gap + yardstick):
            raise ArithmeticError(f"gap {gap} and yardstick {yardstick} must be finite")
    except Exception as error:  # the table goes on, whatever a case does
        why = f"{type(error).__name__}: {error}"
        return {**row, "gap": None, "yardstick": None, "agrees": False, "error": why}
    agrees = gap <= FACTOR * yardstick
    return {
        **row,
        "gap": float(f"{gap:.3g}"),
        "yardstick": float(f"{yardstick:.3g}"),
        "agrees": agrees,
    }


def rows(device: str) -> Iterator[dict[str, Any]]:
    """The whole table, one row for each case and type."""
    return (compared(case, dtype, device) for case in CASES for dtype in case.dtypes)


def line(row: dict[str, Any]) -> str:
    """A row for a terminal."""
    said = f"{row['group']:20s} {row['name']:44s} {row['dtype']:8s}"
    if "error" in row:
        return f"{said} {row['error']}"
    verdict = "agrees" if row["agrees"] else "DISAGREES"
    return f"{said} {in_roundings(row, 'gap'):>9s} {in_roundings(row, 'yardstick'):>9s}  {verdict}"


def main(arguments: list[str]) -> int:
    """Compare all cases, print them and write the file; 1 if one disagrees."""
    parser = stored.options("agreement", "Compare every case on a device with the CPU.", TARGET)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args(arguments)
    command = f"python -m experiments agreement --device {options.device}"
    origin = stored.origin(command, options.device)
    result: dict[str, Any] = {**origin, "cpu": stored.machine(), "factor": FACTOR, "rows": []}
    print(f"{'group':20s} {'case':44s} {'type':8s} {'gap/eps':>9s} {'yardstick':>9s}  verdict")
    for row in rows(options.device):
        result["rows"].append(row)
        print(line(row), flush=True)
    failed = sum(not row["agrees"] for row in result["rows"])
    print(f"{len(CASES)} cases, {len(result['rows'])} rows, {failed} disagree")
    stored.write(options.out, result, indent=1)
    return int(failed > 0)
