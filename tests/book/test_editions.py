"""Builds with and without solutions."""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from book import editions, exercises, notebooks

INSTRUCTOR = notebooks.CHAPTERS / "appendix" / "instructor.md"
CONFIG = """
extensions = ["myst_nb", "sphinx_proof", "sphinx_exercise", "book.editions"]
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
html_theme = "basic"
"""


@pytest.mark.parametrize("path", notebooks.paths(), ids=notebooks.name)
def test_a_page_without_solutions_keeps_its_exercises(path):
    whole = notebooks.load(path)
    tasks = exercises.read(whole)
    made = editions.page(notebooks.load(path), "no")
    text = "\n".join(cell.source for cell in made.cells)
    nbformat.validate(made)
    assert "{solution" not in text
    assert text.count("{exercise}") == len(tasks)
    for task in tasks:
        assert task.text.split("\n")[0] in text and task.hint in text
        for part in task.solution:
            if isinstance(part, str):
                assert part.strip() == "" or part.strip() not in text
            elif not exercises.is_solution(part):
                assert part.source not in text
        if task.code is not None:
            assert exercises.stub(task.code.source) in text and task.code.source not in text
            assert f"check.{task.function}({task.function})" in text
    for cell in notebooks.code(made):
        assert not ("raise NotImplementedError" in cell.source and cell.outputs)
        assert "fresh inputs" not in str(cell.outputs), "a check that passed"
    assert editions.page(notebooks.load(path), "yes") == whole


def test_solutions_of_the_exam_are_in_the_lecturers_edition_alone():
    text = INSTRUCTOR.read_text(encoding="utf-8")
    assert editions.markdown(text, "all") == text
    public = editions.markdown(text, "yes")
    assert public == editions.markdown(text, "no")
    assert text.count("{dropdown} Solution") >= 16 and "{dropdown} Solution" not in public
    questions = r"^\*\*\d[ab]\. .*$"
    assert re.findall(questions, public, re.MULTILINE) == re.findall(questions, text, re.MULTILINE)


def test_other_words_are_refused(monkeypatch):
    monkeypatch.setenv("SOLUTIONS", "some")
    with pytest.raises(ValueError, match="SOLUTIONS must be one of no, yes, all, got 'some'"):
        editions.edition()


def test_sphinx_builds_the_edition_and_offers_its_sources(tmp_path, monkeypatch):
    page = notebooks.CHAPTERS / "01_kernels" / "1_regression.ipynb"
    sources, built = tmp_path / "sources", tmp_path / "site" / "html"
    sources.mkdir()
    (sources / "conf.py").write_text(CONFIG)
    shutil.copy(page, sources / "index.ipynb")
    answer = "return H @ K @ H"
    monkeypatch.setenv("SOLUTIONS", "no")
    command = [sys.executable, "-m", "sphinx", "-q", str(sources), str(built)]
    subprocess.run(command, cwd=notebooks.ROOT, check=True, capture_output=True)
    whole = notebooks.ROOT / "_build" / "html"
    here, there = "index", "chapters/01_kernels/1_regression"
    for site, name, end, with_solutions in ((built, here, ".txt", False), (whole, there, "", True)):
        shown = re.sub(r"<[^>]+>", "", (site / f"{name}.html").read_text(encoding="utf-8"))
        offered = (site / "_sources" / f"{name}.ipynb{end}").read_text(encoding="utf-8")
        assert "Centred features" in shown and "Centred features" in offered
        assert (answer in shown) == (answer in offered) == with_solutions
