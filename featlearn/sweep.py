r"""Sweeps: one experiment over a grid of settings and seeds, on all cores or on a cluster, and
resumable.

``run(experiment, {"d": [10, 20], "n": [100, 200]}, seeds=5, name="demo", file="demo.jsonl")`` calls
``experiment(rng, d=10, n=100)`` for every setting and every seed, each time with a stream of its
own. joblib spreads the calls over the local cores, or over a Dask cluster where a client is given.
Each result is written as it arrives. Called again after an interruption, `run` computes what is
missing and nothing else. The file is text, a line for each cell, to be read and kept in a
repository; joblib's own cache is a folder of pickles.

The numbers do not depend on the number of workers, nor on who does what: a cell's stream is named
after its setting and its seed, and every cell runs on one thread, so that sums are taken in one
order.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import ThreadpoolController, threadpool_limits

from featlearn import validate
from featlearn.progress import progress
from featlearn.seeding import SCALE_VARIABLE, SEED_VARIABLE, scale, seed, stream

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Setting = dict[str, Any]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOST_CELLS, MOST_WORKERS = 10**6, 10**4
Experiment = Callable[..., Any]


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep.

    `settings` are the axes of the grid, `seeds` is the number of seeds, `computed` says how many
    cells this call computed (the others came from the file), and `values` is an array of shape
    (axis 1, axis 2, …, seeds, …): the last axes are those of one result.
    """

    settings: dict[str, list[Any]]
    seeds: int
    values: np.ndarray
    computed: int


def run(
    experiment: Experiment,
    settings: Mapping[str, Sequence[Any]],
    seeds: int,
    *,
    name: str,
    file: str | Path | None = None,
    workers: int | None = None,
    client: Any = None,
    show_progress: bool = True,
) -> Sweep:
    """Call `experiment(rng, **setting)` for each setting of the grid and each seed.

    Parameters
    ----------
    experiment
        A function of a numpy generator and the settings that returns a number or an array of
        numbers, of one shape for all cells; NaN says that a cell has no answer. It must take all
        its randomness from the generator or from `featlearn.stream`.
    settings
        The axes of the grid by name, each a sequence of numbers or strings.
    seeds
        How many times each setting is run.
    name
        Begins the names of the streams; two sweeps with one name see the same random numbers.
    file
        Where results are kept, a line of JSON for each cell, in the order of their arrival. If it
        exists, its cells are not computed again; the grid may have grown since. Results of another
        experiment are refused, as far as its own code tells: after a change in a function that it
        calls, name another file. Without a file nothing is kept.
    workers
        Local processes, as many as there are cores unless given.
    client
        A `dask.distributed.Client`; the cells then run on its cluster, which gives the cells of a
        lost worker to others.
    show_progress
        Show a bar.
    """
    validate.function(experiment, "experiment")
    axes, seeds = _axes(settings), validate.integer(seeds, "seeds")
    count = math.prod(map(len, axes.values())) * seeds
    if count > MOST_CELLS:
        raise ValueError(f"settings and seeds must ask for at most {MOST_CELLS} cells, got {count}")
    name = validate.text(name, "name")
    if file is not None and Path(validate.instance(file, "file", (str, os.PathLike))).is_dir():
        raise ValueError(f"file must not be a folder, got {str(file)!r}")
    workers = -1 if workers is None else validate.integer(workers, "workers", at_most=MOST_WORKERS)
    if not (client is None or hasattr(client, "get_executor")):
        raise TypeError(f"client must be a dask Client, got {type(client).__name__}")
    validate.flag(show_progress, "show_progress")
    cells = [
        (dict(zip(axes, values, strict=True)), s)
        for values in product(*axes.values())
        for s in range(seeds)
    ]
    keys = [_key(setting, s) for setting, s in cells]
    environment = {
        SEED_VARIABLE: str(seed()),
        SCALE_VARIABLE: scale(),
        **dict.fromkeys(THREADS, "1"),
    }
    with _results(file) as results, _one_thread(environment), _backend(client):
        known = {} if results is None else _read(results, _header(name, experiment))
        missing = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in known}
        found = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)(
            delayed(_compute)(experiment, name, key, cell, environment)
            for key, cell in missing.items()
        )
        for key, value in progress(found, name, total=len(missing), show=show_progress):
            known[key] = value
            first = np.shape(next(iter(known.values())))
            if np.shape(value) != first:
                raise ValueError(
                    "experiment must return results of one shape, got "
                    f"{first} and {np.shape(value)}"
                )
            if results is not None:
                setting, s = missing[key]
                _append(results, {"setting": setting, "seed": s, "value": value})
    values = np.array([known[key] for key in keys], dtype=float)
    shape = (*map(len, axes.values()), seeds, *values.shape[1:])
    return Sweep(axes, seeds, values.reshape(shape), len(missing))


def _axes(settings: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The axes with plain Python values, so that JSON keeps them."""
    if not validate.instance(settings, "settings", Mapping):
        raise ValueError("settings must not be empty")
    axes = {}
    for axis, values in settings.items():
        name = f"settings[{validate.text(axis, 'settings')!r}]"
        if hasattr(values, "__len__") and len(values) > MOST_CELLS:
            raise ValueError(f"{name} must hold at most {MOST_CELLS} values, got {len(values)}")
        plain = [
            v.item() if isinstance(v, np.generic) else v for v in validate.sequence(values, name)
        ]
        for value in plain:
            if not isinstance(value, (str, int, float)):
                raise TypeError(f"{name} must hold numbers or strings, got {value!r}")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must hold finite numbers, got {value!r}")
        if len(set(plain)) < len(plain):
            raise ValueError(f"{name} must hold each value once, got {plain}")
        axes[axis] = plain
    return axes


def _key(setting: Setting, s: int) -> str:
    """The name of a cell; 1 and 1.0 are one setting."""
    plain = {
        axis: int(value) if isinstance(value, float) and value.is_integer() else value
        for axis, value in setting.items()
    }
    return f"{json.dumps(plain, sort_keys=True)}/{s}"


def _compute(
    experiment: Experiment,
    name: str,
    key: str,
    cell: tuple[Setting, int],
    environment: dict[str, str],
) -> tuple[str, Any]:
    """One cell, in the process of a worker."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            value = experiment(stream(f"{name}/{key}"), **cell[0])
    except Exception as error:
        raise RuntimeError(f"the cell {cell[0]}, seed {cell[1]} failed: {error!r}") from error
    what = f"what experiment returns for {cell[0]}, seed {cell[1]},"
    return key, validate.as_tensor(value, what, finite=False).detach().double().cpu().tolist()


@contextlib.contextmanager
def _one_thread(environment: dict[str, str]) -> Iterator[None]:
    """This environment and one thread for the process that calls, as long as the sweep runs.

    The environment keeps libraries to one thread that are loaded later, by a cell. They get as many
    as torch has here when the sweep is over.
    """
    threads = torch.get_num_threads()
    variables = {name: os.environ.get(name) for name in environment}
    loaded = {pool.filepath for pool in ThreadpoolController().lib_controllers}
    os.environ.update(environment)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for pool in ThreadpoolController().lib_controllers:
            if pool.filepath not in loaded:
                pool.set_num_threads(threads)
        for name, value in variables.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _backend(client: Any) -> contextlib.AbstractContextManager[Any]:
    if client is None:
        return parallel_config(backend="loky")
    return parallel_config(backend="dask", client=client)


def _header(name: str, experiment: Experiment) -> dict[str, Any]:
    """What the results in a file have in common.

    The sweep, `FEATLEARN_SEED`, the scale, the code of the experiment.
    """
    digest = hashlib.sha256("\0".join(_identity(experiment)).encode()).hexdigest()[:16]
    return {"sweep": name, "experiment": digest, SEED_VARIABLE: seed(), SCALE_VARIABLE: scale()}


def _identity(experiment: Experiment) -> Iterator[str]:
    """What tells a function from others.

    Its source, its defaults and what it closes over; not what it calls.
    """
    if isinstance(experiment, partial):
        yield repr((experiment.args, sorted(experiment.keywords.items())))
        yield from _identity(experiment.func)
        return
    if not inspect.isfunction(experiment):
        raise TypeError(
            "experiment must be a function, or a partial of one, if results are kept in a file, "
            f"got {experiment!r}"
        )
    code, source = experiment.__code__, ""
    with contextlib.suppress(OSError):
        source = inspect.getsource(experiment)
    yield source
    yield repr((experiment.__defaults__, experiment.__kwdefaults__))
    if not source or experiment.__name__ == "<lambda>":  # a line may hold several
        constants = sorted(
            repr(constant) for constant in code.co_consts if not inspect.iscode(constant)
        )
        yield repr((code.co_code, code.co_names, constants))
    for cell in experiment.__closure__ or ():
        content = cell.cell_contents
        yield from _identity(content) if inspect.isfunction(content) else [repr(content)]


@contextlib.contextmanager
def _results(file: str | Path | None) -> Iterator[BinaryIO | None]:
    """The file, open for this sweep alone."""
    if file is None:
        yield None
        return
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with Path(file).open("a+b") as results:
        if fcntl is not None:
            try:
                fcntl.flock(results, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"file must not be in use by another sweep: {file}") from None
        yield results


def _read(results: BinaryIO, header: dict[str, Any]) -> dict[str, Any]:
    """The finished cells in the file, which is begun if it is empty.

    A last line without its end is cut off.
    """
    results.seek(0)
    first, text = _line(header), results.read()
    if first.startswith(text):
        results.truncate(0)
        _append(results, header)
        return {}
    if not text.startswith(first):
        raise ValueError(
            f"file must hold results of this sweep, but {results.name} begins with "
            f"{text.splitlines()[0][:300]!r} instead of {first!r}: name another file, or delete it"
        )
    *lines, rest = text.split(b"\n")
    if rest:
        results.truncate(len(text) - len(rest))
    found = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = json.loads(line)
            found[_key(record["setting"], record["seed"])] = record["value"]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(
                f"file must hold a cell in each line, but line {number} of {results.name} is "
                f"{line[:100]!r}: delete the line, and its cell is computed again"
            ) from None
    return found


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _append(results: BinaryIO, record: dict[str, Any]) -> None:
    results.write(_line(record))
    results.flush()
    os.fsync(results.fileno())
