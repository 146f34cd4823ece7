"""How the tests themselves are ordered and chosen."""

import random
import subprocess
from types import SimpleNamespace

import changed
import conftest
import pytest

from book import notebooks

FILES = {"test_quick.py": 3, "1_patterns.ipynb": 4, "test_pages.py": 2, "new.ipynb": 12}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parallel", [False, True])
def test_cells_stay_in_order_and_long_files_come_first(seed, parallel):
    paths = [notebooks.ROOT / name for name in FILES]
    items = [
        SimpleNamespace(path=path, **({"cell_num": i} if path.suffix == ".ipynb" else {}))
        for path in paths
        for i in range(FILES[path.name])
    ]
    random.Random(seed).shuffle(items)
    first = list(dict.fromkeys(item.path.name for item in items))
    config = SimpleNamespace(workerinput={}) if parallel else SimpleNamespace()
    conftest.pytest_collection_modifyitems(config, items)
    names = [item.path.name for item in items]
    if parallel:
        first = [*[n for n in first if n in conftest.SECONDS], "new.ipynb", "test_quick.py"]
        first.sort(key=lambda name: -conftest.SECONDS.get(name, 0))
    assert names == [name for name in first for _ in range(FILES[name])], "files are whole"
    for name in ("1_patterns.ipynb", "new.ipynb"):
        cells = [item.cell_num for item in items if item.path.name == name]
        assert cells == list(range(FILES[name]))


def test_long_files_exist():
    there = {
        path.name
        for folder in ("chapters", "tests")
        for path in (notebooks.ROOT / folder).rglob("*.*")
    }
    assert set(conftest.SECONDS) <= there


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("featlearn/kernels.py", ["featlearn/kernels.py", "tests/package/test_kernels.py"]),
        ("featlearn/shi/data.py", ["featlearn/shi/data.py", "tests/package/test_shi.py"]),
        ("featlearn/checks/ntk.py", ["featlearn/checks/ntk.py", "tests/chapters/test_checks.py"]),
        ("tests/package/test_gp.py", ["tests/package/test_gp.py"]),
        ("tests/package/elsewhere.py", []),
        ("tests/site/test_pages.py", []),
        ("README.md", []),
    ],
)
def test_a_changed_file_has_its_tests(path, tests):
    assert changed.tests_of(path) == tests


def test_a_module_without_a_file_of_tests_is_tested_by_those_that_import_it():
    assert "tests/package/test_plot_and_notebook.py" in changed.tests_of(
        "featlearn/notebook/plot.py"
    )


def test_changed_and_new_files_are_seen(tmp_path):
    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet")
    for name in ("kept.py", "edited.py", "deleted.py"):
        (tmp_path / name).write_text("before\n")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--message", "one")
    (tmp_path / "edited.py").write_text("after\n")
    (tmp_path / "deleted.py").unlink()
    (tmp_path / "new.py").write_text("new\n")
    assert changed.changed(tmp_path) == ["edited.py", "new.py"]
