"""``make plant``: every prediction has a mistake that it must notice."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book import notebooks, planting, replication

PAGE = """
from featlearn.notebook import claims

claims.prediction("ker-a", "a is two", predicted=2, measured=2.01, tol=0.1, rival=("three", 3))
claims.prediction("ker-b", "b is small", measured=0.1, at_most=0.5, rival=("large", 1))
claims.table()
"""


def test_every_prediction_of_a_sorted_page_has_a_mistake_with_one_place():
    pages = {
        notebooks.name(path): path for path in notebooks.paths() if replication.is_sorted(path)
    }
    assert set(json.loads(planting.STORE.read_text(encoding="utf-8"))) == set(pages)
    for page, path in pages.items():
        notebook = notebooks.load(path)
        mistakes = planting.plants(page)
        assert set(mistakes) == set(planting.predictions(notebook)), page
        planting.plant(notebook, mistakes)


def test_a_mistake_that_no_claim_notices_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "CHAPTERS", tmp_path)
    notebooks.save(new_notebook(cells=[new_code_cell(PAGE)]), tmp_path / "01_a.ipynb")
    store = tmp_path / "plants.json"
    mistakes = {"ker-a": ["predicted=2", "predicted=4"], "ker-b": ["measured=0.1", "measured=0.2"]}
    store.write_text(json.dumps({"01_a": mistakes}), encoding="utf-8")
    assert planting.run("01_a", store) == 1
    said = capsys.readouterr().out
    assert "ker-a: fails" in said and "ker-b: holds" in said
    assert "1 of 2 mistakes are noticed" in said


def test_a_mistake_needs_one_place():
    page = new_notebook(cells=[new_code_cell("x = 1\ny = 1")])
    for old in ("= 1", "z"):
        with pytest.raises(ValueError, match=r"ker-a: .* must stand in the code of the page once"):
            planting.plant(page, {"ker-a": (old, "2")})
