"""Times at scale, chapters at full scale and stored results: their book-keeping; nothing is timed."""

import json
from itertools import pairwise

import nbformat
import numpy as np
import pytest
import torch

from book import notebooks
from experiments import full_chapter, kernel_scale, stored
from featlearn import data
from featlearn.kernels import Gaussian, KernelOperator
from featlearn.notebook import claims

NAMES = sorted(path.stem for path in stored.DATA.glob("*.json"))


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


def test_the_entries_counted_are_those_computed():
    X = torch.zeros(100, kernel_scale.D)
    A = KernelOperator(Gaussian(), X, block=25)
    A(torch.ones(100, dtype=torch.float64))
    assert A.evaluations == 100 * 125 / 2
    off, on = 100 * 75 // 2, 100 * 25
    slow = {"operations": 1.0, "bytes": 1e9}
    assert kernel_scale.roofline(A.evaluations, on, slow) == 30 * off + 28 * on
    assert (
        kernel_scale.roofline(A.evaluations, on, {"operations": 1e9, "bytes": 1.0})
        == 28 * off + 24 * on
    )
    assert kernel_scale.diagonal(1000, "cpu") == 1000**2
    assert kernel_scale.diagonal(4096, "cpu") == 4096 * 2048


def test_all_solvers_reach_the_goal_on_the_same_problem(monkeypatch):
    monkeypatch.setattr(kernel_scale, "GOAL", 0.2)
    for solver in ("direct", "richardson", "cg", "nystrom"):
        found = kernel_scale.solve(solver, 600, 0, "cpu")
        assert found["error"] <= 0.2
        assert (found["iterations"] == 0) == (solver == "direct")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_stored_times_at_scale(device):
    found = data.load(f"scale_{device}")
    sizes = [p["n"] for p in found["products"]]
    assert sizes[0] <= 1024
    assert all(b == 2 * a for a, b in pairwise(sizes))
    for p in found["products"]:
        assert p["n"] ** 2 / 2 < p["entries"] <= p["n"] ** 2
        diagonal = kernel_scale.diagonal(p["n"], device)
        assert min(p["seconds"]) > kernel_scale.roofline(p["entries"], diagonal, found["ceilings"])
    assert {r["solver"] for r in found["solvers"]} == {"direct", "richardson", "cg", "nystrom"}
    assert "block=" in found["beyond"]["error"]


def test_plain_keeps_three_digits():
    values = {(1, 0.5): [torch.tensor([0.123456]), np.array([[2]]), np.float32(7.7777), 3, "x"]}
    assert full_chapter.plain(values) == {"(1, 0.5)": [[0.123], [[2]], 7.78, 3, "x"]}


def test_a_chapter_at_full_scale(tmp_path, monkeypatch):
    """Claims settled anew, the stored value beside the new one, kept arrays, and errors that are
    not hidden.
    """
    cells = [
        "import featlearn\nfrom featlearn import at_scale, claims\n\nwidths = at_scale([1.0, 2.0], [1.0, 4.0])",
        "claims.bound('ntk-limit.test', 'the last is below three', measured=widths[-1], at_most=3, source='a test')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    monkeypatch.setattr(notebooks, "CHAPTERS", tmp_path)
    monkeypatch.setattr(full, "KEPT", {"small": ("widths",)})
    notebooks.save(notebooks.execute(notebook, tmp_path), tmp_path / "small.ipynb")
    assert claims.read(notebook)[0].verdict == "holds"
    found = full_chapter.run("small")
    assert found["kept"] == {"widths": [1.0, 4.0]}
    (claim,) = found["claims"]
    assert (claim["quick"], claim["measured"], claim["verdict"]) == (2.0, 4.0, "fails")
    assert found["errors"][0].startswith("ClaimFailed")
    table = stored.full_claims([found])
    assert '<td class="fl-fails">✗ fails</td>' in table
    assert "<td>2</td><td>4</td>" in table
    assert stored.full_claims([full_chapter.run("small", scale="quick")]).count("<tr>") == 1
