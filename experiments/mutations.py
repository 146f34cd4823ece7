"""Faults in the formulas of the package: do its tests notice?

Run ``python -m experiments.mutations``, an hour on two cores. A fault is a change of one place in
the body of a function: another sign or operation, a number that is one larger, a comparison that is
turned around, a sum in place of a mean, a sine in place of a cosine. The places are drawn at
random, as many in each module of science as its length asks for, at least three. Each fault is
planted in a copy of the project; first the tests of its module run there, then all tests of the
package, until one fails. What no test notices is printed, and kept with the counts in
`experiments/mutations.json`. With ``--again`` only what the stored run did not notice is planted.

Some faults change nothing that a test could see: the order of a symmetric rule, a factor whose sign
alone is used. `experiments/equivalent.json` lists them, each with its reason; they are counted
apart.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from experiments import stored
from featlearn import seeding
from featlearn.notebook import progress

ROOT = Path(__file__).parents[1]
STORE = Path(__file__).with_name("mutations.json")
EQUIVALENT = Path(__file__).with_name("equivalent.json")
FAULTS = 140
AT_LEAST = 3  # in each module
PATIENCE = 900  # seconds until tests that do not end count as failed
NO_SCIENCE = ("__init__", "estimators", "progress", "scikit", "validate")
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
TURNS = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Gt, ast.GtE: ast.Lt}
NAMES = {
    "sum": "mean",
    "mean": "sum",
    "cos": "sin",
    "sin": "cos",
    "exp": "expm1",
    "sqrt": "log1p",
    "min": "max",
    "max": "min",
    "clamp_min": "clamp_max",
}
AWAY = ("test_sweep", "test_wheel")  # no formulas: asked for a fault of their own module only
SPARED = ("validate", "ValueError", "TypeError", "warnings", "len")  # messages and doors


@dataclass(frozen=True)
class Fault:
    """A place in a module, and what stands there instead."""

    module: str
    line: int
    text: str  # of the line
    old: str
    new: str


def modules() -> list[Path]:
    """The files of science, from the root of the project."""
    package = ROOT / "featlearn"
    found = [*package.glob("*.py"), *package.glob("damian/*.py"), *package.glob("shi/*.py")]
    return sorted(path.relative_to(ROOT) for path in found if path.stem not in NO_SCIENCE)


def _changed(node: ast.AST) -> ast.AST | None:
    """The node with a fault, None where this module knows none."""
    new = deepcopy(node)
    if isinstance(new, ast.BinOp) and type(new.op) in SWAPS:
        new.op = SWAPS[type(new.op)]()
    elif isinstance(new, ast.Compare) and len(new.ops) == 1 and type(new.ops[0]) in TURNS:
        new.ops = [TURNS[type(new.ops[0])]()]
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.USub):
        return new.operand
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float):
        new.value = new.value + 1
    elif isinstance(new, ast.Attribute) and new.attr in NAMES:
        new.attr = NAMES[new.attr]
    else:
        return None
    return new


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """What may be changed below a node: formulas, not the axes, sizes and messages around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Subscript, ast.arguments)):
            continue
        if isinstance(child, ast.keyword) and child.arg in ("dim", "axis", "keepdim", "keepdims"):
            continue
        if isinstance(child, ast.Call) and any(word in ast.unparse(child.func) for word in SPARED):
            continue
        yield child
        yield from _places(child)


def faults(path: Path) -> list[tuple[Fault, str]]:
    """Every fault of a module, and the source with it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    found = {}
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in (place for f in functions for statement in f.body for place in _places(statement)):
        new = _changed(node)
        if new is None:
            continue
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        source = text.encode()
        old, replaced = source[begin:end].decode(), f"({ast.unparse(new)})"
        text_of_line = lines[node.lineno - 1].strip()
        fault = Fault(str(path), node.lineno, text_of_line, old, replaced)
        found[begin, end] = fault, (source[:begin] + replaced.encode() + source[end:]).decode()
    return [found[place] for place in sorted(found)]


def drawn(count: int) -> list[tuple[Fault, str]]:
    """`count` faults, or a few more: each module has as many as its share of all places."""
    every = {path: faults(path) for path in modules()}
    places = sum(map(len, every.values()))
    chosen = []
    for path, found in every.items():
        share = min(len(found), max(AT_LEAST, round(count * len(found) / places)))
        rng = seeding.stream(f"mutations/{path}")
        chosen += [found[i] for i in sorted(rng.choice(len(found), share, replace=False))]
    return chosen


def noticed(copy: Path, fault: Fault, source: str) -> bool:
    """Whether a test of the package fails in a copy of the project with this fault."""
    path = copy / fault.module
    whole = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    name = Path(fault.module).parts[1].removesuffix(".py")
    own = copy / "tests" / "package" / f"test_{name}.py"
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    rest = ["featlearn", "tests/package", *(f"--ignore=tests/package/{name}.py" for name in AWAY)]
    try:
        for tests in ([str(own)] if own.exists() else [], rest):
            run = tests and subprocess.run(
                [*pytest, *tests],
                cwd=copy,
                env=environment,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
            if run and run.returncode:
                return True
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(whole, encoding="utf-8")
    return False


def _listed(rows: list[dict[str, str]], chosen: list[tuple[Fault, str]]) -> set[Fault]:
    """Those of the chosen faults that a file lists; lines may have moved since."""
    names = ("module", "text", "old", "new")
    listed = {tuple(row[name] for name in names) for row in rows}
    return {f for f, _ in chosen if tuple(getattr(f, name) for name in names) in listed}


def measure(count: int, again: bool = False) -> dict[str, object]:
    """Plant the faults, one after the other in a copy for each core."""
    chosen = drawn(count)
    same = _listed(json.loads(EQUIVALENT.read_text(encoding="utf-8")), chosen)
    chosen = [(fault, source) for fault, source in chosen if fault not in same]
    due = {fault for fault, _ in chosen}
    if again:
        due = _listed(json.loads(STORE.read_text(encoding="utf-8"))["survivors"], chosen)
    with TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(os.cpu_count() or 1):
            copy = Path(folder, str(number))
            shutil.copytree(
                ROOT, copy, ignore=shutil.ignore_patterns(".venv*", "_build", ".git", "course")
            )
            copies.put(copy)
        first = modules()[0]
        if noticed(
            copy, Fault(str(first), 0, "", "", ""), (ROOT / first).read_text(encoding="utf-8")
        ):
            raise RuntimeError("the tests fail without a fault")

        def seen(pair: tuple[Fault, str]) -> bool:
            if pair[0] not in due:
                return True
            copy = copies.get()
            try:
                return noticed(copy, *pair)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(copies.qsize()) as pool:
            found = list(progress(pool.map(seen, chosen), "faults", total=len(chosen)))
    by_module: dict[str, list[int]] = {}
    for (fault, _), caught in zip(chosen, found, strict=True):
        counts = by_module.setdefault(fault.module, [0, 0])
        counts[0] += caught
        counts[1] += 1
    survivors = [
        asdict(fault) for (fault, _), caught in zip(chosen, found, strict=True) if not caught
    ]
    return {
        **stored.origin(f"python -m experiments.mutations --faults {count}" + " --again" * again),
        "caught": sum(found),
        "of": len(found),
        "equivalent": len(same),
        "modules": by_module,
        "survivors": survivors,
    }


def main(arguments: list[str]) -> int:
    """Plant faults, print what no test notices, and write the file."""
    parser = stored.options("mutations", "Plant faults in the package's formulas.", STORE)
    parser.add_argument("--faults", type=int, default=FAULTS, help="how many, about")
    parser.add_argument("--again", action="store_true", help="only what was not noticed last time")
    options = parser.parse_args(arguments)
    result = measure(options.faults, options.again)
    for fault in result["survivors"]:
        print("{module}:{line}: {new} for {old} was not noticed".format(**fault))
    print(f"{result['caught']} of {result['of']} faults were noticed;", end=" ")
    print(f"{result['equivalent']} more change nothing that a test could see")
    stored.write(options.out, result, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
