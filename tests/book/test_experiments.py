"""The experiments: one command for all, and their book-keeping; nothing is timed."""

import json
from importlib import import_module
from itertools import pairwise

import nbformat
import numpy as np
import pytest
import torch

from book import notebooks
from experiments import (
    __main__,
    full_chapter,
    full_damian,
    kernel_scale,
    mutations,
    stored,
    tangent_kernels,
    timing,
)
from featlearn import damian, data
from featlearn.kernels import Gaussian, KernelOperator
from featlearn.notebook import claims, tables
from featlearn.ntk import NTK
from featlearn.seeding import stream

NAMES = sorted(path.stem for path in stored.DATA.glob("*.json"))


# --- one command ------------------------------------------------------------------------------


def test_the_list_names_all_experiments_and_existing_files(capsys):
    assert __main__.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(__main__.EXPERIMENTS)
    for experiment in __main__.EXPERIMENTS.values():
        for name in experiment.stores.split(", "):
            assert list(stored.DATA.glob(name.replace("CHAPTER", "*"))), name


def test_an_unknown_name_is_refused_with_the_list(capsys):
    assert __main__.main(["solver"]) == 1
    printed = capsys.readouterr()
    assert "NAME must be one of the experiments below, got 'solver'" in printed.err
    assert "tangent-kernels" in printed.out


@pytest.mark.parametrize("name", __main__.EXPERIMENTS)
def test_every_experiment_has_its_options_and_names_itself(name, capsys):
    with pytest.raises(SystemExit) as stop:
        __main__.main([name, "--help"])
    assert stop.value.code == 0
    assert f"usage: python -m experiments {name}" in capsys.readouterr().out
    module = import_module(f"experiments.{name.replace('-', '_')}")
    with open(module.__file__, encoding="utf-8") as file:
        assert f"python -m experiments {name}" in file.read()


def test_the_makefile_has_one_target_for_experiments():
    text = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "-m experiments" in line]
    assert lines == [
        "\t@$(BIN)/python -m experiments $(NAME) $(CHAPTER) $(if $(DEVICE),--device $(DEVICE))"
    ]


# --- stored results ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_stored_results_say_where_they_come_from(name):
    found = data.load(name)
    assert found["command"]
    assert found["machine"]
    assert found["commit"]
    assert "dirty" not in found["commit"]


def test_a_result_is_written_whole_or_not_at_all(tmp_path, capsys):
    target = tmp_path / "result.json"
    stored.write(target, {"a": [1, 2]})
    assert json.loads(target.read_text()) == {"a": [1, 2]}
    with pytest.raises(TypeError):
        stored.write(target, {"a": object()})
    assert json.loads(target.read_text()) == {"a": [1, 2]}
    assert {"command", "commit", "machine", "seed"} == stored.origin("make it").keys()


def test_rounding_keeps_three_digits():
    values = {(1, 0.5): [torch.tensor([0.123456]), np.array([[2]]), np.float32(7.7777), 3, "x"]}
    assert stored.rounded(values) == {"(1, 0.5)": [[0.123], [[2]], 7.78, 3, "x"]}
    assert stored.rounded({"a": [0.123456, 7]}) == {"a": [0.123, 7]}


def test_a_call_is_repeated_until_time_has_passed(monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(times))
    calls = []
    assert timing.seconds_of(lambda: calls.append(1)) == 2
    assert len(calls) == 1
    calls.clear()
    timing.seconds_of(lambda: calls.append(1), least=3)
    assert len(calls) == 3


# --- tangent kernels --------------------------------------------------------------------------

RESULT = {
    "kind": "analytic",
    "n": 10,
    "dtype": "float32",
    "activation": "relu",
    "sigma_b": 0.3,
    "hidden": 3,
    "seconds": {"featlearn": [0.1, 0.2, 0.1], "neural-tangents": [0.4, 0.4, 0.5]},
}


def test_ratios_compare_times_of_one_round():
    found = tables.ratios(RESULT["seconds"], "neural-tangents", "featlearn")
    assert found == pytest.approx((4, 2, 5))


def test_tables_of_times_show_every_contestant():
    assert "4.00x  [2.00, 5.00]" in tangent_kernels.table([RESULT])
    result = {"machine": "a laptop", "results": [RESULT]}
    html = tables.times(result, "analytic")
    assert 'aria-label="Times, analytic, a laptop"' in html
    assert html.count("<tr>") == 2
    assert "<td>100</td><td>neural-tangents</td><td>400</td><td><b>4</b> [2, 5]</td>" in html
    assert tables.times(result, "empirical").count("<tr>") == 1
    alone = {**RESULT, "seconds": {"featlearn": [0.0123]}}
    assert "<td>12.3</td><td></td>" in tables.times({**result, "results": [alone]}, "analytic")


def test_contestants_of_the_empirical_case_agree(monkeypatch):
    """At a small size: the layer-by-layer kernel is that of the same network as a module."""
    monkeypatch.setattr(tangent_kernels, "WIDTH", 8)
    monkeypatch.setattr(tangent_kernels, "POINTS", 5)
    runs = tangent_kernels.empirical_runs("cpu")
    any_module, tutorial = runs["featlearn, any module"](), runs["jacrev + vmap"]()
    torch.testing.assert_close(any_module, tutorial[:, :, 0, 0], rtol=1e-4, atol=1e-5)
    assert runs["featlearn, layer by layer"]().shape == (5, 5)


def test_every_case_has_its_contestants():
    for case in tangent_kernels.cases("cpu"):
        small = {**case, "n": 6}
        if case["kind"] == "analytic":
            runs = tangent_kernels.contestants(small, "cpu")
            assert next(iter(runs)) == "featlearn"
            assert all(np.asarray(run()).shape == (6, 6) for run in runs.values())


@pytest.mark.parametrize("name", ["speed", "speed_cuda"])
def test_stored_times_are_complete(name):
    found = data.load(name)
    assert found["date"]
    assert found["versions"]["torch"]
    for result in found["results"]:
        rounds = {len(seconds) for seconds in result["seconds"].values()}
        assert rounds == {result["rounds"]}
        assert min(min(seconds) for seconds in result["seconds"].values()) > 0


# --- kernel regression at scale ---------------------------------------------------------------


def test_the_entries_counted_are_those_computed():
    X = torch.zeros(100, kernel_scale.D)
    A = KernelOperator(Gaussian(), X, block=25)
    A(torch.ones(100, dtype=torch.float64))
    assert A.evaluations == 100 * 125 / 2


def test_all_solvers_reach_the_goal_on_the_same_problem(monkeypatch):
    monkeypatch.setattr(kernel_scale, "GOAL", 0.2)
    for solver in ("direct", "richardson", "cg", "nystrom", "nystrom, in blocks", "centres"):
        found = kernel_scale.solve(solver, 600, 0, "cpu")
        assert found["error"] <= 0.2
        assert (found["iterations"] == 0) == (solver == "direct")


def test_centres_solve_their_system():
    X, y, *_ = kernel_scale.problem(500, 0)
    points, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    few = kernel_scale.Centres(Gaussian(2.0), points, 40, stream("test/centres"))
    found = few.solve(labels, None, 1e-7).alpha
    K, k = few.K, Gaussian(2.0)(points.double(), few.C.double())
    exact = torch.linalg.solve(k.T @ k + kernel_scale.RIDGE * K, k.T @ labels)
    assert found.numpy() == pytest.approx(exact.numpy(), rel=1e-3)
    assert len(few.C) == 40
    assert kernel_scale.centres(10**6) == 8000


def test_copies_of_an_image_are_near_it():
    image = torch.zeros(1, 784).reshape(1, 28, 28)
    image[0, 10:18, 10:18] = 1
    rng = torch.Generator().manual_seed(0)
    copies = kernel_scale.turned(image.reshape(1, 784).expand(50, -1), rng)
    assert copies.shape == (50, 784)
    assert copies.sum(dim=1).numpy() == pytest.approx(64, rel=0.45)
    at = torch.arange(28.0)
    middle = (copies.reshape(50, 28, 28).sum(1) @ at) / copies.sum(dim=1)
    assert 0.3 < (middle - 13.5).abs().max() < 3


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_stored_times_at_scale(device):
    found = data.load(f"scale_{device}")
    sizes = [p["n"] for p in found["products"] if p["kernel"] == "Gaussian(bandwidth=2.0)"]
    assert sizes[0] <= 1024
    assert all(b == 2 * a for a, b in pairwise(sizes))
    solvers = set(kernel_scale.LIMITS[device]) - {"product"}
    assert {r["solver"] for r in found["solvers"]} == solvers
    assert "block=" in found["beyond"]["error"]
    rates = found["ceilings"]
    for p in found["products"]:
        assert p["n"] ** 2 / 2 < p["entries"] <= p["n"] ** 2
        assert p["error"] < 1e-6
        if device == "cuda":
            per_entry = max(1 / rates["exponentials"], 6 * p["d"] / rates["halves"])
            assert min(p["fused"]) > p["n"] ** 2 * per_entry or "Gaussian" not in p["kernel"]
            assert p["error fused"] < 1e-6


def test_the_table_of_products_compares_with_the_fused_one():
    seconds = {"fused": [0.002, 0.002], "in blocks": [0.02, 0.03]}
    case = {"case": "gaussian", "n": 1024, "d": 10, "seconds": seconds}
    html = tables.products([{**case, "errors": {"fused": 1e-7, "in blocks": 2e-7}}])
    assert "Gaussian, n = 1,024, d = 10" in html
    assert "<td>in blocks</td><td>25</td><td>12.5 [10, 15]</td><td>2e-07</td>" in html


# --- a chapter at full scale ------------------------------------------------------------------

CELLS = (
    "from featlearn.notebook import at_scale, claims\n\nwidths = at_scale([1.0, 2.0], [1.0, 4.0])",
    "claims.prediction('ntk-limit.test', 'the last is below three', measured=widths[-1],"
    " at_most=3, rival=('four', 4.0))\nclaims.table()",
)


def test_a_chapter_at_full_scale(tmp_path, monkeypatch):
    """Claims settled anew beside their stored values, kept arrays, and errors that are seen."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    monkeypatch.setattr(notebooks, "CHAPTERS", tmp_path)
    monkeypatch.setattr(full_chapter, "KEPT", {"small": ("widths",)})
    notebooks.save(notebooks.execute(notebook, tmp_path), tmp_path / "small.ipynb")
    assert claims.read(notebook)[0].verdict == "holds"
    found = full_chapter.run("small")
    assert found["kept"] == {"widths": [1.0, 4.0]}
    (claim,) = found["claims"]
    assert (claim["quick"], claim["measured"], claim["verdict"]) == (2.0, 4.0, "fails")
    assert found["errors"][0].startswith("ClaimFailed")
    table = tables.full_claims([found])
    assert '<td class="fl-fails">✗ fails</td>' in table
    assert "<td>2</td><td>4</td>" in table
    assert tables.full_claims([full_chapter.run("small", scale="quick")]).count("<tr>") == 1


# --- chapter 6 up to d = 100 ------------------------------------------------------------------


@pytest.fixture
def few_seeds(monkeypatch):
    monkeypatch.setattr(full_damian, "SEEDS", range(2))
    monkeypatch.setattr(full_damian, "KERNEL_LIMIT", 40)


def test_the_sweep_of_alignments_is_the_direct_computation(few_seeds):
    dims, ratios = [4, 5], [0.5, 2, 8]
    found = full_damian.alignment(dims, ratios)
    assert (found["dims"], found["ratios"]) == (dims, ratios)
    assert found["runs"] == {
        f"{r}/{d}": [
            [
                damian.step_alignment(
                    d, int(q * d * d), terms, stream(f"full/alignment/{r}/{d}/{q}/{seed}")
                )
                for q in ratios
            ]
            for seed in range(2)
        ]
        for r, terms in damian.EXAMPLES.items()
        for d in dims
    }


def test_the_sweep_of_transformed_labels_is_the_direct_computation(few_seeds):
    found = full_damian.transformed([4], [4, 9])
    assert found["degrees"] == [3, 6]

    def one(p, q, seed, label):
        rng = stream(f"full/transformed/{p}/4/{q}/{seed}")
        return damian.step_alignment(4, q * 16, {(p,): 1.0}, rng, label=label)

    labels = (None, damian.clipped_square)
    assert found["runs"] == {
        f"{p}/4": [
            [[one(p, q, seed, label) for label in labels] for q in (4, 9)] for seed in range(2)
        ]
        for p in (3, 6)
    }


def test_the_sweep_of_sample_sizes_is_the_direct_computation(few_seeds):
    kernel = NTK(2, "relu", 2**0.5, 0.5)
    found = full_damian.sample_complexity([4], [40, 80])
    assert list(found["runs"]) == ["4"]
    for seed, row in enumerate(found["runs"]["4"]):
        for n, run in zip((40, 80), row, strict=True):
            rng = stream(f"full/sample/4/{n}/{seed}")
            direct = damian.compare_methods(4, n, rng, kernel=kernel if n == 40 else None)
            np.testing.assert_allclose(run, direct, rtol=1e-8, atol=1e-9)  # threads round apart
    assert [[len(run) for run in row] for row in found["runs"]["4"]] == [[3, 2], [3, 2]]


def test_the_sweep_of_transfer_is_the_direct_computation(few_seeds):
    sizes = {"0": 0, "1": 1, "d": 4, "d^2": 16, "16d^2": 256, "d^3": 64}
    assert full_damian.transfer([4], [8, 16])["runs"] == {
        f"4/{name}": [
            damian.transfer(4, n, [8, 16], stream(f"full/transfer/4/{name}/{seed}")).tolist()
            for seed in range(2)
        ]
        for name, n in sizes.items()
    }


def test_an_interrupted_grid_goes_on(few_seeds, tmp_path):
    whole = full_damian.alignment([4], [2], folder=tmp_path)
    (file,) = tmp_path.iterdir()
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * 2
    file.write_text("".join(lines[:3]))
    assert full_damian.alignment([4], [2], folder=tmp_path) == whole
    assert sorted(file.read_text().splitlines(keepends=True)) == sorted(lines)


def test_the_full_run_writes_its_file(few_seeds, tmp_path, monkeypatch):
    monkeypatch.setattr(full_damian, "SWEEPS", tmp_path / "sweeps")
    small = {
        "alignment": ([4], [2]),
        "sample_complexity": ([4], [40]),
        "transfer": ([4], [8]),
        "transformed": ([4], [4]),
    }
    for name, arguments in small.items():
        run = getattr(full_damian, name)

        def smaller(run=run, arguments=arguments, **how):
            return run(*arguments, **{**how, "workers": 1})

        smaller.__name__ = name
        monkeypatch.setattr(full_damian, name, smaller)
    assert full_damian.main(["--device", "cpu", "--out", str(tmp_path / "damian.json")]) == 0
    found = json.loads((tmp_path / "damian.json").read_text())
    assert found["command"] == "python -m experiments full-damian"
    assert found["seeds"] == 2
    assert set(small) <= set(found)
    assert len(list((tmp_path / "sweeps").iterdir())) == 4


# --- planted faults ---------------------------------------------------------------------------


def test_a_fault_changes_one_formula_and_nothing_else(monkeypatch, tmp_path):
    (tmp_path / "one.py").write_text(
        'def f(x):\n    """1 + 1."""\n    if x < 0:\n        raise ValueError(f"{x - 1}")\n'
        "    return -x.sum(dim=1) * x[2]\n"
    )
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    found = mutations.faults(mutations.Path("one.py"))
    changes = [(fault.line, fault.old, fault.new) for fault, _ in found]
    assert changes == [
        (3, "x < 0", "(x > 0)"),
        (3, "0", "(1)"),
        (5, "-x.sum(dim=1)", "(x.sum(dim=1))"),
        (5, "-x.sum(dim=1) * x[2]", "(-x.sum(dim=1) / x[2])"),
        (5, "x.sum", "(x.mean)"),
    ]
    assert found[1][1].splitlines()[2] == "    if x < (1):"
    assert all(source.count("\n") == 5 for _, source in found)


def test_every_module_of_science_gets_its_share_of_faults():
    chosen = [fault.module for fault, _ in mutations.drawn(120)]
    assert len(chosen) >= 120
    assert {str(path) for path in mutations.modules()} == set(chosen)


def test_faults_that_no_test_could_notice_are_still_there_and_have_a_reason():
    rows = json.loads(mutations.EQUIVALENT.read_text(encoding="utf-8"))
    every = [pair for path in mutations.modules() for pair in mutations.faults(path)]
    for row in rows:
        assert row["why"] and mutations._listed([row], every), row
