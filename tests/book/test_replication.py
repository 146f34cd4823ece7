"""``make replicate``: what held under new seeds, by how much, and when it is out of date."""

import json
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import notebooks, replication, scoreboard
from book import site as extension
from book.__main__ import main
from featlearn.notebook.claims import Claim


def claim(measured, verdict="holds", limits=(0.0, 1.0), interval=None):
    return Claim(
        "ker-a", "a", "", "r", verdict, measured, interval, kind="prediction", limits=limits
    )


def test_room_is_the_least_distance_to_the_edge_in_standard_deviations():
    found = [claim(0.4), claim(0.6)]  # standard deviation 0.1, both edges 0.4 away
    assert replication.room(found) == pytest.approx(4)
    assert replication.room([claim(0.5, interval=(0.4, 0.9)), claim(0.7)]) == pytest.approx(1)
    assert replication.room([claim(0.9, limits=(None, 0.8)), claim(0.7)]) == pytest.approx(-1)
    assert replication.room([claim(0.4, limits=None), claim(0.6, limits=None)]) is None
    assert replication.room([]) is None


def test_what_held_and_what_failed():
    runs = {
        7: ([claim(0.5)], []),
        8: ([claim(2.0, "fails")], ["ValueError: no"]),
        9: ([], []),
        10: ([claim("nan", "fails")], []),
    }
    result = replication.summarise([claim(0.5)], runs)
    about = result["claims"]["ker-a"]
    assert (about["held"], about["of"], about["least"], about["greatest"]) == (1, 4, 0.5, 2.0)
    assert result["failures"] == [
        "seed 8: ValueError: no",
        *(f"seed {seed}: ker-a" for seed in (8, 9, 10)),
    ]


PAGE = """
from featlearn import stream
from featlearn.notebook import claims

x = stream("a").random()
claims.prediction("ker-a", "it is small", measured=x, at_most=2, rival=("large", 3))
claims.prediction("ker-b", "it is below one half", measured=x, at_most=0.5, rival=("large", 3))
claims.table()
"""


def test_a_page_is_run_under_new_seeds_and_grows_stale(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "CHAPTERS", tmp_path)
    notebook = new_notebook(cells=[new_markdown_cell("# A"), new_code_cell(PAGE)])
    path = tmp_path / "01_a.ipynb"
    notebooks.execute(notebook, tmp_path, allow_errors=True)
    notebook.metadata["featlearn"] = {"fingerprint": "now"}
    notebooks.save(notebook, path)
    assert replication.is_sorted(path)
    assert replication.replicate("01_a", 4, tmp_path, workers=1) == 1
    kept = json.loads((tmp_path / "01_a.json").read_text(encoding="utf-8"))
    assert kept["seeds"] == [1000, 1003]
    assert kept["claims"]["ker-a"]["held"] == 4 > kept["claims"]["ker-b"]["held"]
    assert "seed 1" in capsys.readouterr().out
    assert replication.current("01_a", path, tmp_path) == kept
    notebook.metadata["featlearn"] = {"fingerprint": "later"}
    notebooks.save(notebook, path)
    assert replication.current("01_a", path, tmp_path) is None


def test_a_replication_is_carried_over_to_the_same_records_only(tmp_path, monkeypatch):
    monkeypatch.setattr(replication, "STORE", tmp_path)
    monkeypatch.setattr(replication, "stored", lambda page: {"fingerprint": "old", "claims": {}})
    store, before = tmp_path / "a-b.json", [claim(0.5)]
    other = [claim(0.5 + 1e-4)], [claim(0.5, limits=(0.0, 2.0))], [claim(0.5)] * 2
    for after in other:
        assert not replication.carry("a/b", before, after, "old", "new")
    assert not replication.carry("a/b", before, before, "another", "new")
    assert not store.exists()
    assert replication.carry("a/b", before, [claim(0.5 + 1e-9)], "old", "new")
    assert json.loads(store.read_text(encoding="utf-8"))["fingerprint"] == "new"


@pytest.mark.parametrize("command", ["replicate", "plant"])
def test_an_unknown_page_is_refused(command, capsys):
    assert main([command, "02_b"]) == 1
    assert "PAGE must be one of 01_kernels/1_regression" in capsys.readouterr().err


def test_the_scoreboard_shows_how_often_a_claim_held():
    about = {"held": 29, "of": 30, "least": 0.1, "greatest": 0.25, "room": 1.0}
    assert scoreboard._held(about) == "29 of 30 seeds, [0.1, 0.25]"
    assert scoreboard._held(None) == ""


def test_a_question_has_one_right_option():
    body = "- [ ] one: too few\n- [x] two: yes"
    assert extension.options(body) == [(False, "one", "too few"), (True, "two", "yes")]
    for bad in ("- [ ] one: no", "- [x] one: yes\n- [x] two: yes", "- [x] one", "x\n- [x] one: y"):
        with pytest.raises(ValueError, match="a question needs one line"):
            extension.options(bad)


def test_a_claim_in_a_sentence_must_be_recorded_on_its_page():
    id = "ker-latent.count"
    assert extension.claim_of("01_kernels/4_structure", id).id == id
    with pytest.raises(ValueError, match=r"records no claim 'ker-flow\.order'"):
        extension.claim_of("01_kernels/4_structure", "ker-flow.order")


def test_a_negative_number_has_a_sign_of_minus():
    said = SimpleNamespace(brief=lambda: "✓ predicted -0.5, measured ≈ -4.79e-05 on page 1-2")
    assert extension.brief(said) == "✓ predicted −0.5, measured ≈ −4.79e-05 on page 1-2"
