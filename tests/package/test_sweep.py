"""Sweeps: the same numbers for any number of workers, nothing lost or repeated after a kill, a real
Dask cluster.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from featlearn import sweep
from featlearn.progress import progress

GRID = {"d": [3, 40], "n": [50, 200]}
SEEDS = 3
CELLS = 12
CALLS = []


def largest(rng, d, n):
    return np.linalg.norm(rng.standard_normal((n, d)), 2)


def threads(rng, d):
    """The threads of torch and of all libraries."""
    environment = [os.environ[name] for name in sweep.THREADS]
    return [
        torch.get_num_threads(),
        *{i["num_threads"] for i in threadpool_info()},
        *map(int, environment),
    ]


def weighted(rng, d, n, k):
    return k * d


def interrupted(rng, d, n):
    """Stops at its fifth call, as Ctrl-C does."""
    CALLS.append(d)
    if len(CALLS) == 5:
        raise KeyboardInterrupt
    return largest(rng, d, n)


def slow(rng, d, n):
    """The same, after leaving a line in the file named by the environment."""
    with open(os.environ["SWEEP_LOG"], "a") as file:
        file.write(f"{d} {n}\n")
    time.sleep(0.1)
    return largest(rng, d, n)


def last_of_its_worker(rng, d, n):
    """Kills its worker in the middle of the grid, the first time."""
    mark = Path(os.environ["SWEEP_LOG"])
    if (d, n) == (40, 50) and not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return largest(rng, d, n)


def run(experiment=largest, settings=GRID, seeds=SEEDS, **options):
    return sweep.run(experiment, settings, seeds, **{"name": "test", "workers": 1, **options})


@pytest.fixture(scope="module")
def expected():
    return run().values


def lines(file):
    return file.read_text().splitlines()


def test_shape_and_order(expected):
    assert expected.shape == (2, 2, SEEDS)
    found = run(lambda rng, d, n: [d, n], seeds=1).values
    assert found.shape == (2, 2, 1, 2)
    assert found[1, 0, 0].tolist() == [40, 50]
    assert len(np.unique(expected)) == CELLS


def test_the_number_of_workers_does_not_change_a_bit(expected):
    assert np.array_equal(run(workers=2).values, expected)


def test_seeds_and_names_change_the_numbers(expected, monkeypatch):
    assert not np.isin(run(name="other").values, expected).any()
    monkeypatch.setenv("FEATLEARN_SEED", "17")
    other = run().values
    assert not np.isin(other, expected).any()
    assert np.array_equal(run(workers=2).values, other)


def pools():
    """The threads of each library that has some, by its file."""
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


@pytest.fixture
def two_threads(monkeypatch):
    """Two threads for torch and for every library, and no word of them in the environment."""
    for name in sweep.THREADS:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2):
        yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cell_has_one_thread_and_the_caller_gets_its_own_back(workers, two_threads):
    before = pools()
    found = run(threads, {"d": [3, 4]}, workers=workers).values
    assert (found == 1).all()
    assert pools() == before
    assert set(before.values()) == {2}
    assert torch.get_num_threads() == 2
    assert not {*sweep.THREADS} & os.environ.keys()


def test_a_library_that_a_cell_loads_is_not_left_with_one_thread(tmp_path, two_threads):
    """The library is a copy of one that numpy or SciPy brings, so that it is new to the process."""
    original = next(
        pool.filepath
        for pool in ThreadpoolController().lib_controllers
        if pool.internal_api == "openblas"
    )
    library = str(shutil.copy(original, tmp_path))

    def loads(rng, d):
        ctypes.CDLL(library)
        return pools()[library]

    assert (run(loads, {"d": [3]}, seeds=1).values == 1).all()
    assert pools()[library] == 2


def test_a_grid_may_grow(tmp_path, expected):
    file = tmp_path / "new folder" / "grid.jsonl"
    first = run(settings={"d": [3], "n": [50, 200]}, seeds=2, file=file)
    assert first.computed == 4
    grown = run(file=file)
    assert grown.computed == CELLS - 4
    assert np.array_equal(grown.values, expected)
    again = run(settings={"n": [50.0, 200.0], "d": [3.0, 40.0]}, file=file)
    assert again.computed == 0
    assert np.array_equal(again.values, expected.swapaxes(0, 1))


def test_a_killed_sweep_resumes_without_losing_or_repeating_a_cell(tmp_path, expected, monkeypatch):
    file, log = tmp_path / "killed.jsonl", tmp_path / "log"
    monkeypatch.setenv("SWEEP_LOG", str(log))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    script = f"import test_sweep as t; t.run(t.slow, file={str(file)!r}, workers=2)"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    while not file.exists() or len(lines(file)) < 5:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept, started = lines(file), len(lines(log))
    assert 5 <= len(kept) < CELLS + 1
    resumed = run(slow, file=file)
    assert resumed.computed == CELLS - (len(kept) - 1)
    assert len(lines(log)) == started + resumed.computed
    assert started - (len(kept) - 1) <= 2 + 1
    assert lines(file)[: len(kept)] == kept
    assert len(lines(file)) == CELLS + 1
    assert np.array_equal(resumed.values, expected)


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_result(tmp_path, expected, monkeypatch):
    mark = tmp_path / "killed"
    monkeypatch.setenv("SWEEP_LOG", str(mark))
    from distributed import Client, LocalCluster  # here, so that workers need not load it

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        found = run(last_of_its_worker, file=tmp_path / "dask.jsonl", workers=None, client=client)
        lost = int(mark.read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(lost, 0)
    assert len(before) == 2
    assert lost in before
    assert found.computed == CELLS
    assert len(lines(tmp_path / "dask.jsonl")) == CELLS + 1
    assert np.array_equal(found.values, expected)


def test_an_interruption_leaves_whole_lines(tmp_path, expected):
    file = tmp_path / "stopped.jsonl"
    CALLS.clear()
    with pytest.raises(KeyboardInterrupt):
        run(interrupted, file=file)
    assert [json.loads(line)["seed"] for line in lines(file)[1:]] == [0, 1, 2, 0]
    resumed = run(interrupted, file=file)
    assert resumed.computed == CELLS - 4
    assert np.array_equal(resumed.values, expected)


def test_half_a_line_is_cut_off(tmp_path, expected):
    file = tmp_path / "cut.jsonl"
    run(file=file)
    whole = file.read_bytes()
    for end in (len(whole) - 1, len(whole) - 7, whole.index(b"\n") + 9, 12, 0):
        file.write_bytes(whole[:end])
        assert np.array_equal(run(file=file).values, expected)
        assert sorted(file.read_bytes().split(b"\n")) == sorted(whole.split(b"\n"))


def test_results_of_another_experiment_are_not_mixed(tmp_path, monkeypatch):
    file = tmp_path / "mixed.jsonl"
    run(file=file)
    with pytest.raises(ValueError, match="file must hold results of this sweep"):
        run(lambda rng, d, n: d, file=file)

    def times(factor):
        return lambda rng, d, n: factor * d

    pairs = [
        (times(1), times(7)),
        (partial(weighted, k=1), partial(weighted, k=2)),
        (lambda rng, d, n: d + 1, lambda rng, d, n: d + 2),
        (eval("lambda rng, d, n: d * n"), eval("lambda rng, d, n: d - n")),
    ]
    for i, (one, other) in enumerate(pairs):
        run(one, file=tmp_path / f"{i}.jsonl")
        assert run(one, file=tmp_path / f"{i}.jsonl").computed == 0
        with pytest.raises(ValueError, match="file must hold results of this sweep"):
            run(other, file=tmp_path / f"{i}.jsonl")
    with pytest.raises(TypeError, match="experiment must be a function"):
        run(np.linalg.LinAlgError, file=tmp_path / "class.jsonl")
    with pytest.raises(ValueError, match="name another file"):
        run(file=file, name="other")
    monkeypatch.setenv("FEATLEARN_SEED", "5")
    with pytest.raises(ValueError, match="FEATLEARN_SEED"):
        run(file=file)
    file.write_text("a letter")
    with pytest.raises(ValueError, match="begins with b'a letter'"):
        run(file=file)
    assert file.read_text() == "a letter"


def test_two_sweeps_do_not_share_a_file(tmp_path):
    file = tmp_path / "shared.jsonl"

    def nested(rng, d, n):
        run(file=file)

    with pytest.raises(RuntimeError, match="file must not be in use by another sweep"):
        run(nested, file=file)


def test_a_failing_cell_is_named_and_the_others_are_kept(tmp_path):
    file = tmp_path / "failed.jsonl"

    def fails(rng, d, n):
        return largest(rng, d, n) if n < 100 else [][1]

    with pytest.raises(RuntimeError, match=r"cell \{'d': 3, 'n': 200\}, seed 0 failed: IndexError"):
        run(fails, file=file)
    assert len(lines(file)) == 1 + 3


@pytest.mark.parametrize(
    "damage", [b"{", b"\xff\xfe", b"[1]", b"{}", b'{"setting": 3, "seed": 0, "value": 1}']
)
def test_a_damaged_line_is_named(tmp_path, damage):
    file = tmp_path / "damaged.jsonl"
    run(file=file)
    whole = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*whole[:3], damage, *whole[4:]]) + b"\n")
    with pytest.raises(
        ValueError, match=r"file must hold a cell in each line, but line 4 of .*dam"
    ):
        run(file=file)
    file.write_bytes(b"\n".join([*whole[:3], *whole[4:]]) + b"\n")
    assert run(file=file).computed == 1


def test_a_result_may_have_no_answer(tmp_path):
    file = tmp_path / "nan.jsonl"
    for _ in range(2):
        found = run(lambda rng, d, n: [np.nan, d], file=file).values
        assert np.isnan(found[..., 0]).all()
        assert found[1, 0, 0, 1] == 40


@pytest.mark.parametrize(
    "result", [None, "a word", "3", [None], 1j, [], np.ma.masked_equal([1.0, 2.0], 2.0), object()]
)
def test_what_is_no_number_is_not_stored(result, tmp_path):
    file = tmp_path / "none.jsonl"
    with pytest.raises((TypeError, ValueError), match=r"experiment returns for \{'d': 2\}, seed 0"):
        run(lambda rng, d: result, {"d": [2]}, file=file)
    assert len(lines(file)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"experiment": 3}, "experiment must be callable"),
        ({"experiment": None}, "experiment must be callable"),
        ({"settings": {}}, "settings must not be empty"),
        ({"settings": [1]}, "settings must be a Mapping"),
        ({"settings": {"d": "abc"}}, r"settings\['d'\] must be a sequence"),
        ({"settings": {"d": None}}, r"settings\['d'\] must be a sequence"),
        ({"settings": {"d": []}}, r"settings\['d'\] must not be empty"),
        ({"settings": {"d": [1, 1.0]}}, r"settings\['d'\] must hold each value once"),
        ({"settings": {"d": [[1, 2]]}}, r"settings\['d'\] must hold numbers or strings"),
        ({"settings": {"d": [Fraction(1, 3)]}}, r"settings\['d'\] must hold numbers or strings"),
        ({"settings": {"d": [np.nan]}}, r"settings\['d'\] must hold finite numbers"),
        ({"settings": {"d": range(10**9)}}, r"settings\['d'\] must hold at most 1000000 values"),
        ({"settings": {3: [1]}}, "settings must be a string"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": 1.5}, "seeds must be an integer"),
        ({"seeds": 10**9}, "settings and seeds must ask for at most 1000000 cells"),
        ({"seeds": 10**300}, "settings and seeds must ask for at most 1000000 cells"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"workers": 1.5}, "workers must be an integer"),
        ({"workers": 10**10}, "workers must be at most"),
        ({"name": ""}, "name must not be empty"),
        ({"file": 3}, "file must be a str or PathLike"),
        ({"file": "."}, "file must not be a folder"),
        ({"client": 3}, "client must be a dask Client"),
        ({"show_progress": None}, "show_progress must be True or False"),
    ],
)
def test_arguments_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        run(**options)


def test_results_have_one_shape():
    with pytest.raises(ValueError, match="experiment must return results of one shape"):
        run(lambda rng, d: [0.0] * d, {"d": [2, 3]})


def test_progress_names_its_arguments():
    assert list(progress([1, 2], "demo", total=2, show=False)) == [1, 2]
    for options, message in (
        ({"items": 3}, "items must be iterable"),
        ({"items": [], "describe": 3}, "describe must be a str"),
        ({"items": [], "total": -1}, "total must be at least 0"),
        ({"items": [], "show": 2}, "show must be True or False"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            progress(**options)
