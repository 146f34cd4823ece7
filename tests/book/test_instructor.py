"""The instructor's plan agrees with the exercises and with itself."""

import re

import pytest

from book import exercises, notebooks, printing

PAGE = (notebooks.CHAPTERS / "appendix" / "instructor.md").read_text(encoding="utf-8")
CHAPTERS = notebooks.lectures()
PAGES = [path for pages in CHAPTERS.values() for path in pages]
EXERCISES = {e.label: e for path in PAGES for e in exercises.read(notebooks.load(path))}
SHEETS = printing.sheets(PAGE)


def minutes(labels):
    return sum(EXERCISES[label].about.minutes for label in labels)


def test_every_exercise_is_on_one_of_twelve_sheets_or_a_project():
    projects = printing.projects(PAGE).labels
    labels = [label for sheet in SHEETS for label in sheet.labels]
    assert sorted([*labels, *projects]) == sorted(EXERCISES)
    assert {EXERCISES[label].about.kind for label in projects} == {"Open-ended"}
    assert "Open-ended" not in {EXERCISES[label].about.kind for label in labels}
    assert [sheet.number for sheet in SHEETS] == list(range(1, 13))


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: f"sheet-{sheet.number}")
def test_a_sheet_fits_the_class_and_its_minutes_are_those_of_its_exercises(sheet):
    in_class, at_home = minutes(sheet.in_class), minutes(sheet.at_home)
    assert 30 <= in_class <= 90 and 20 <= at_home <= 90
    week = 2 * 90 + 90 + at_home
    row = rf"^\| {sheet.number} \| .* \| {in_class} \| {at_home} \| {week} \|$"
    assert re.search(row, PAGE, re.MULTILINE), (in_class, at_home, week)
    assert EXERCISES[sheet.labels[0]].about.difficulty == "easy"


@pytest.mark.parametrize("path", PAGES, ids=notebooks.name)
def test_the_first_exercise_of_a_page_is_easy_and_none_refers_to_the_one_above(path):
    found = exercises.read(notebooks.load(path))
    assert found[0].about.difficulty == "easy"
    for exercise in found:
        words = f"{exercise.text} {exercise.hint} {exercise.expect}"
        assert not re.search(r"(exercise|one) (above|below)|(previous|last) exercise", words)


@pytest.mark.parametrize("week", range(1, 13))
def test_lectures_last_ninety_minutes_and_a_week_has_all_its_parts(week):
    section = re.search(rf"^### Week {week}: .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL).group()
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    for column in (1, 3):
        assert sum(int(row[column]) for row in rows if row[column].strip()) == 90
    for part in ("**On the board.**", "**Run.**", "**Sheet.**", "**Typical errors.**"):
        assert part in section
    assert 3 <= section.count('\n- *"') <= 5


@pytest.mark.parametrize("lecture", range(1, 5))
def test_the_four_lectures_last_ninety_minutes(lecture):
    section = re.search(
        rf"^### Lecture {lecture}: .*?(?=^\(|^##)", PAGE, re.MULTILINE | re.DOTALL
    ).group()
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    assert sum(int(row[1]) for row in rows) == 90


def test_exam_questions_have_solutions_whose_points_add_up():
    exam = PAGE.split("## Exam questions", 1)[1].split("## What the checks catch", 1)[0]
    questions = re.findall(
        r"^\*\*\d[ab]\. .*? · (\d+) points · \d+ minutes\.\*\*(.*?)^:::$", exam, re.M | re.DOTALL
    )
    assert len(questions) == 2 * len(CHAPTERS)
    for points, text in questions:
        assert ":::{dropdown} Solution" in text
        assert sum(map(int, re.findall(r"\*\((\d+) points?\)\*", text))) == int(points), text[:60]
