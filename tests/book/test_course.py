"""``make course``: nbgrader makes, validates and marks the assignments.

Solutions get full marks, stubs none; and a term is played through by nbgrader's command line.
"""

import csv
import shutil
import subprocess

import commands
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.validator import Validator

from book import colab, course, exercises, notebooks

CHAPTERS = notebooks.lectures()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A course with one assignment for each chapter: its folder, and (source, release) of each."""
    root = tmp_path_factory.mktemp("course")
    sources = course.write(list(CHAPTERS), root)
    return root, {
        path.stem: (path, root / "release" / path.relative_to(root / "source")) for path in sources
    }


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_students_get_stubs_and_no_hidden_test(chapter, made):
    source, release = map(notebooks.load, made[1][chapter])
    text = "\n".join(cell.source for cell in release.cells)
    assert "HIDDEN" not in text and "reload" not in text and "SOLUTION" not in text
    read = [e for path in CHAPTERS[chapter] for e in exercises.read(notebooks.load(path))]
    answers = [e for e in read if e.code is not None]
    assert text.count("raise NotImplementedError()") >= len(answers) >= 2
    points = [
        cell.metadata.nbgrader.points for cell in source.cells if cell.metadata.nbgrader.grade
    ]
    assert points == [exercise.about.points for exercise in answers]
    for exercise in answers:
        assert exercise.code.source.splitlines()[-1].strip() not in text


def test_solutions_pass_the_hidden_tests_of_every_chapter(made, tmp_path):
    """What nbgrader runs, in one kernel, which loads torch once; each chapter begins with
    nothing defined.
    """
    cells = []
    for source, _ in made[1].values():
        cells += [new_code_cell("%reset_selective -f ."), *notebooks.code(notebooks.load(source))]
    assert sum("BEGIN HIDDEN TESTS" in cell.source for cell in cells) >= 2 * len(CHAPTERS)
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
        cell.source = cell.source.replace("in range(3)", "in range(1)")  # a term asks all
    notebooks.execute(new_notebook(cells=cells), tmp_path)


def nbgrader(root, *arguments):
    """What ``nbgrader`` does when a lecturer calls it in the course folder."""
    commands.run("nbgrader.apps.nbgraderapp", list(arguments), root)


def hand_in(root, student, name, answers, changes=(), when="2026-11-01 12:00:00 UTC"):
    """Put the students' version with these answers, by exercise, where nbgrader collects it.

    `changes` are replacements anywhere in the notebook.
    """
    notebook = notebooks.load(root / "release" / name / f"{name}.ipynb")
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.nbgrader.grade_id, cell.source)
        for old, new in changes:
            cell.source = cell.source.replace(old, new)
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True)
    notebooks.save(notebook, folder / f"{name}.ipynb")
    (folder / "timestamp.txt").write_text(when)


def test_a_term(made, tmp_path):
    """Release, submissions, marks, feedback, export; then ``make course`` once more.

    Right, wrong, tampered, late and slow submissions of three students, while the other tests keep
    the machine busy.
    """
    root = tmp_path / "course"
    shutil.copytree(made[0], root)
    one, two = "01_kernels", "02_random_features"
    right = {
        name: {
            cell.metadata.nbgrader.grade_id: cell.source
            for cell in notebooks.load(root / "source" / name / f"{name}.ipynb").cells
            if cell.metadata.nbgrader.solution
        }
        for name in (one, two)
    }
    points = {
        exercise.label: exercise.about.points
        for name in (one, two)
        for path in CHAPTERS[name]
        for exercise in exercises.read(notebooks.load(path))
        if exercise.code is not None
    }
    wrong = "def centre(K):\n    return K - K.mean(axis=0)"
    endless = "def fourier_pairs(X, W):\n    while True:\n        pass"
    asleep = "import time\n\ntime.sleep(10**6)"
    cheat = [
        ("assert result, result", "assert True"),
        ("check.centre(centre)", "True"),
    ]
    patched = right[one]["ex-ker-loo"].split("\n")[0] + "\n    return 0 * y"
    patched += "\n\n\ncheck.leave_one_out = lambda f: True"
    hand_in(root, "ada", one, right[one])
    hand_in(root, "ben", one, right[one] | {"ex-ker-centre": wrong})
    archive = root / "downloaded" / one / "archive"  # as a learning platform hands it over
    archive.mkdir(parents=True)
    sent = root / "submitted" / "ben" / one
    (sent / f"{one}.ipynb").rename(archive / f"ben_17_assignsubmission_file_{one}.ipynb")
    shutil.rmtree(sent)
    nbgrader(root, "zip_collect", one)
    assert (sent / f"{one}.ipynb").is_file()
    hand_in(root, "cem", one, {"ex-ker-loo": patched}, cheat)
    hand_in(root, "ada", two, right[two], when="2026-11-03 12:00:00 UTC")
    hand_in(root, "ben", two, right[two] | {"ex-rf-pairs": endless})
    hand_in(root, "cem", two, right[two] | {"ex-rf-pairs": asleep})
    nbgrader(root, "db", "assignment", "add", two, "--duedate=2026-11-02 18:00:00 UTC")
    config = root / "nbgrader_config.py"
    assert "c.Execute.timeout = 300" in config.read_text()

    nbgrader(root, "autograde", one)
    nbgrader(root, "autograde", two, "--student=[ab]*")  # an answer's check stops what never ends
    config.write_text(
        config.read_text().replace("c.Execute.timeout = 300", "c.Execute.timeout = 10")
    )
    nbgrader(root, "autograde", two, "--student=cem")  # nbgrader stops a cell that never ends
    nbgrader(root, "generate_feedback", one)
    nbgrader(root, "export", "--to", "grades.csv")

    grades = list(csv.DictReader((root / "grades.csv").open()))
    score = {(row["student_id"], row["assignment"]): float(row["score"]) for row in grades}
    most = {name: sum(points[label] for label in right[name]) for name in (one, two)}
    assert score["ada", one] == most[one]
    assert score["ben", one] == most[one] - points["ex-ker-centre"]
    assert score["cem", one] == 0
    assert score["ada", two] == most[two]
    assert score["ben", two] == most[two] - points["ex-rf-pairs"]
    assert score["cem", two] == most[two] - points["ex-rf-pairs"]
    late = next(r for r in grades if r["student_id"] == "ada" and r["assignment"] == two)
    assert late["timestamp"] > late["duedate"] and float(late["late_submission_penalty"]) == 0
    told = (root / "feedback" / "ben" / one / f"{one}.html").read_text(encoding="utf-8")
    assert "did you centre only one argument?" in told

    before = notebooks.load(root / "release" / one / f"{one}.ipynb")
    assert course.write([one], root) == []  # an assignment with submissions is left alone
    assert notebooks.load(root / "release" / one / f"{one}.ipynb") == before


def test_make_clean_and_git_leave_the_course_alone(tmp_path):
    shutil.copy(notebooks.ROOT / "Makefile", tmp_path)
    marks = tmp_path / "course" / "gradebook.db"
    marks.parent.mkdir()
    marks.write_text("a term of marks")
    (tmp_path / "_build").mkdir()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    assert marks.read_text() == "a term of marks" and not (tmp_path / "_build").exists()
    ignored = (notebooks.ROOT / ".gitignore").read_text().splitlines()
    assert "/course/" in ignored


def test_nbgrader_says_what_a_student_has_not_done(made):
    assert Validator().validate(str(made[1]["04_ntk"][1]))["failed"]


def test_derivations_are_marked_by_hand(tmp_path):
    name = "02_random_features"
    (path,) = course.write([name], tmp_path, with_written=True)
    source, release = map(notebooks.load, (path, tmp_path / "release" / name / path.name))
    by_hand = [
        c for c in source.cells if c.metadata.nbgrader.grade and c.metadata.nbgrader.solution
    ]
    assert len(by_hand) >= 2
    assert "YOUR ANSWER HERE" in "\n".join(cell.source for cell in release.cells)
    assert all("SOLUTION" not in cell.source for cell in release.cells)


def test_marks_go_around_bodies_and_leave_docstrings():
    source = (
        'def f(x):\n    """Formula."""\n    y = 2 * x\n    return y\n\n\ndef g(x):\n    return f(x)'
    )
    assert course.marked(source) == (
        'def f(x):\n    """Formula."""\n'
        "    ### BEGIN SOLUTION\n    y = 2 * x\n    return y\n    ### END SOLUTION"
        "\n\n\ndef g(x):\n    ### BEGIN SOLUTION\n    return f(x)\n    ### END SOLUTION"
    )


@pytest.mark.parametrize("number", ["0", "9", "four", "-1"])
def test_an_unknown_chapter_is_refused(number, capsys):
    assert course.main([number] if not number.startswith("-") else ["--", number]) == 1
    assert "CHAPTER must be one of 01, 02" in capsys.readouterr().err


def test_no_leftover_syntax(made):
    for source, _ in made[1].values():
        for cell in notebooks.load(source).cells:
            assert cell.cell_type == "code" or not colab.LEFTOVER.search(cell.source)
