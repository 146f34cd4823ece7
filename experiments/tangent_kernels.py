"""Tangent kernels against the clock, kept as `featlearn/data/speed.json`.

Run ``python -m experiments tangent-kernels``. All contestants of a case take turns in each round,
so that a slow spell of the machine touches all of them, and a ratio compares two times of one
round. neural-tangents runs in an environment of its own, built on first use, with the last versions
that work together; compilation is not counted. With ``--device cuda`` only the contestants that are
torch run, on that device, and the file is `speed_cuda.json`.
"""

from __future__ import annotations

import datetime
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, jacrev, vmap

from experiments import stored
from experiments.timing import seconds_of
from featlearn import seeding
from featlearn.networks import Network
from featlearn.notebook.tables import ratios
from featlearn.ntk import NTK, empirical_ntk

PEER = (
    "neural-tangents==0.6.5",
    "jax==0.4.23",
    "jaxlib==0.4.23",
    "numpy<2",
    "scipy<1.13",
    "tf2jax==0.3.6",
)
PEER += ("tensorflow==2.15.*",)
DIMENSION, WIDTH, POINTS = 100, 1024, 256
Run = Callable[[], Any]


class Peer:
    """The process that runs neural-tangents in one precision."""

    def __init__(self, python: Path, dtype: str, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [python, Path(__file__).with_name("neural_tangents_process.py"), dtype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def seconds(self, task: dict[str, Any]) -> float:
        """The time of one call of this task."""
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(
                "neural-tangents stopped: run experiments/neural_tangents_process.py to see why"
            )
        return json.loads(answer)["seconds"]


def peer_python(folder: Path) -> Path:
    """The Python of neural-tangents' environment, which is built if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        print(f"Installing neural-tangents into {folder.name} (once, a few minutes) ...")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
        (folder / ".installed").touch()
    return python


def points(n: int, dtype: str) -> np.ndarray:
    """n Gaussian points in 100 dimensions."""
    return seeding.stream("bench/points").standard_normal((n, DIMENSION)).astype(dtype)


def tutorial_ntk(module: torch.nn.Module, X: torch.Tensor) -> torch.Tensor:
    """The way of PyTorch's tutorial.

    The Jacobian of every row in every parameter, then their products.
    """
    parameters = {name: p.detach() for name, p in module.named_parameters()}

    def value(at: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(module, at, (x[None],))[0]

    jacobians = vmap(jacrev(value), (None, 0))(parameters, X)
    parts = [J.flatten(2) for J in jacobians.values()]
    return torch.stack([torch.einsum("Naf,Mbf->NMab", J, J) for J in parts]).sum(0)


def empirical_runs(device: str) -> dict[str, Run]:
    """One network with three hidden layers of width 1024 at 256 points, in float32."""
    widths = (DIMENSION, WIDTH, WIDTH, WIDTH, 1)
    net = Network(widths, "relu", 2**0.5)
    theta = net.initialise(seeding.stream("bench/network"), dtype=torch.float32, device=device)
    X = torch.as_tensor(points(POINTS, "float32"), device=device)
    layers: list[torch.nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [torch.nn.Linear(fan_in, fan_out, bias=False), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1]).to(device)
    return {
        "featlearn, layer by layer": lambda: empirical_ntk(net, X, theta=theta),
        "featlearn, any module": lambda: empirical_ntk(module, X),
        "jacrev + vmap": lambda: tutorial_ntk(module, X),
    }


def cases(device: str) -> list[dict[str, Any]]:
    """What is timed: a name, our run, the neural-tangents task and further contestants."""
    found = []
    for dtype in ("float32", "float64"):
        for activation, sigma_b, hidden in (
            ("relu", 0.0, 1),
            ("relu", 0.0, 3),
            ("relu", 0.0, 10),
            ("relu", 0.3, 1),
            ("relu", 0.3, 3),
            ("relu", 0.3, 10),
            ("erf", 0.0, 3),
        ):
            found.append(
                {
                    "kind": "analytic",
                    "n": 2000,
                    "dtype": dtype,
                    "activation": activation,
                    "sigma_b": sigma_b,
                    "hidden": hidden,
                    "rounds": 9,
                }
            )
    large = {
        "kind": "analytic",
        "n": 8000 if device == "cpu" else 30000,
        "dtype": "float32",
        "activation": "relu",
    }
    found.append({**large, "sigma_b": 0.0, "hidden": 3, "rounds": 5, "floor": True})
    found.append({**large, "sigma_b": 0.3, "hidden": 3, "rounds": 5})
    found.append(
        {
            "kind": "empirical",
            "n": POINTS,
            "dtype": "float32",
            "activation": "relu",
            "sigma_b": 0.0,
            "hidden": 3,
            "rounds": 5,
        }
    )
    return found


def contestants(case: dict[str, Any], device: str) -> dict[str, Run]:
    """The contestants of a case that run in this process."""
    if case["kind"] == "empirical":
        return empirical_runs(device)
    array = points(case["n"], case["dtype"])
    X = torch.as_tensor(array, device=device)
    kernel = NTK(case["hidden"] + 1, case["activation"], 2**0.5, case["sigma_b"])
    runs: dict[str, Run] = {"featlearn": lambda: kernel(X)}
    if case.get("floor") and device == "cpu":
        from sklearn.metrics.pairwise import rbf_kernel

        runs["scikit-learn rbf_kernel"] = lambda: rbf_kernel(array)
    if case.get("floor"):
        runs["X @ X.T alone"] = lambda: X @ X.T
    return runs


def measure(case: dict[str, Any], peers: dict[str, Peer], device: str) -> dict[str, Any]:
    """Seconds of all contestants of a case in each round.

    With them, how far the values of neural-tangents are from ours.
    """
    runs = contestants(case, device)
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    result: dict[str, Any] = {**case, "seconds": seconds}
    task = None
    if peers:
        peer = peers[case["dtype"]]
        inputs, values = (
            peer.folder / f"{case['n']}-{case['dtype']}.npy",
            peer.folder / "values.npy",
        )
        np.save(inputs, points(case["n"], case["dtype"]))
        keys = ("kind", "hidden", "activation", "sigma_b")
        task = {
            **{key: case[key] for key in keys},
            "X": str(inputs),
            "values": str(values),
            "width": WIDTH,
            "sigma_w": 2**0.5,
        }
        peer.seconds(task)
        seconds["neural-tangents"] = []
        if case["kind"] == "analytic":
            ours, theirs = (
                runs["featlearn"]()[:200, :200].double().numpy(),
                np.load(values).astype(float),
            )
            off = ~np.eye(200, dtype=bool)
            result["difference"] = float(np.abs(ours - theirs)[off].max() / np.abs(ours).max())
    for _ in range(case["rounds"]):
        for name, run in runs.items():
            seconds[name].append(round(seconds_of(run, device), 5))
        if task is not None:
            seconds["neural-tangents"].append(round(peer.seconds(task), 5))
    return result


def peak() -> int:
    """The largest resident size of this process so far, in kB (Linux)."""
    return int(
        re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]
    )


def peak_memory(name: str) -> float:
    """MB by which the peak of a fresh process grows while a contestant (empirical case) runs."""
    code = (
        "from experiments.tangent_kernels import empirical_runs, peak; "
        f"run = empirical_runs('cpu')[{name!r}]; "
        "before = peak(); run(); print(peak() - before)"
    )
    grown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(int(grown.stdout) / 1000, 1)


def table(results: list[dict[str, Any]]) -> str:
    """One line for each contestant: its time, and its time over ours."""
    lines = [
        f"{'case':46s} {'contestant':27s} {'seconds':>9s} {'times ours':>12s}  range over rounds"
    ]
    for r in results:
        biases = f", biases {r['sigma_b']:g}" if r["sigma_b"] else ""
        case = f"{r['kind']} {r['activation']}{biases}, {r['hidden']} hidden, "
        case += f"n = {r['n']}, {r['dtype']}"
        ours = next(iter(r["seconds"]))
        for name, seconds in r["seconds"].items():
            middle, low, high = ratios(r["seconds"], name, ours)
            line = f"{case:46s} {name:27s} {statistics.median(seconds):9.4f}"
            lines.append(
                line if name == ours else f"{line} {middle:11.2f}x  [{low:.2f}, {high:.2f}]"
            )
            case = ""
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Time all cases and store them."""
    parser = stored.options("tangent-kernels", "Time tangent kernels against other libraries.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--peer", type=Path, default=Path(".venv-peer"), help="environment of neural-tangents"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        peers = {}
        if options.device == "cpu":
            python = peer_python(options.peer)
            peers = {dtype: Peer(python, dtype, Path(folder)) for dtype in ("float32", "float64")}
        results = []
        for case in cases(options.device):
            results.append(measure(case, peers, options.device))
            lines = table(results[-1:]).splitlines()
            print("\n".join(lines if len(results) == 1 else lines[1:]), flush=True)
        for peer in peers.values():
            peer.process.stdin.close()
            peer.process.wait()
    versions = {"torch": torch.__version__.split("+")[0]}
    if options.device == "cpu":
        versions["scikit-learn"] = version("scikit-learn")
        versions |= dict(package.split("==") for package in PEER[:2])
    result = {
        **stored.origin(
            f"python -m experiments tangent-kernels --device {options.device}", options.device
        ),
        "date": datetime.date.today().isoformat(),
        "versions": versions,
        "results": results,
    }
    if Path("/proc/self/status").exists() and options.device == "cpu":
        result["memory"] = {name: peak_memory(name) for name in empirical_runs("cpu")}
    name = "speed.json" if options.device == "cpu" else "speed_cuda.json"
    stored.write(options.out or stored.DATA / name, result, indent=1)
    return 0
