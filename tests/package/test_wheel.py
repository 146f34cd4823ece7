"""What the package ships: the wheel holds featlearn and nothing else, and a chapter runs from it;
the floors of the package import only what is below them."""

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "featlearn"
SOURCES = sorted(PACKAGE.rglob("*.py"))
CHAPTER = ROOT / "chapters" / "01_kernels" / "2_training.ipynb"
SCIENCE = [p for p in SOURCES if p.relative_to(PACKAGE).parts[0] not in ("checks", "notebook")]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def output(*command, **options):
    found = subprocess.run(command, capture_output=True, text=True, **options)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution, made from a copy of the tree, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("built")
    away = shutil.ignore_patterns(".*", "_build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, folder / "copy", ignore=away)
    output(sys.executable, "-m", "build", "--no-isolation", "-o", folder, folder / "copy")
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def empty(built, tmp_path_factory):
    """The Python of an environment with the wheel.

    The packages that it needs are found where they are installed here, by a path file; the
    editable installation of this tree is not, because path files are not read from there.
    """
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    installed = {str(Path(module.__file__).parents[1]) for module in (np, pytest)}
    (site / "dependencies.pth").write_text("\n".join(sorted(installed)))
    install = ["--python", python, "install", "--quiet", "--no-deps", "--no-index", built[1]]
    output(sys.executable, "-m", "pip", "--disable-pip-version-check", *install)
    return python


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel = built[1]
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    info = {name for name in names if name.parts[0].endswith(".dist-info")}
    kept = {path.relative_to(ROOT) for path in PACKAGE.rglob("*") if path.is_file()}
    kept = {path for path in kept if "__pycache__" not in path.parts}
    assert names - info == kept
    assert {name.parts[0] for name in info} == {f"{wheel.name.rsplit('-', 3)[0]}.dist-info"}
    assert wheel.stat().st_size < 3e6


def test_the_source_distribution_holds_what_the_wheel_needs(built):
    """The wheel is built from it; here: it has the licence, the README and no notebook."""
    with tarfile.open(built[0]) as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert {Path("LICENSE"), Path("README.md"), Path("pyproject.toml")} <= names
    assert {path.relative_to(ROOT) for path in SOURCES} <= names
    assert {name.parts[0] for name in names if len(name.parts) > 1} <= {
        "featlearn",
        "featlearn.egg-info",
    }


def test_a_chapter_runs_from_the_wheel(empty, tmp_path):
    code = "import importlib.util as u; print(u.find_spec('featlearn').origin)"  # loads no torch
    file = Path(output(empty, "-c", code, cwd=tmp_path, env=CLEAN))
    assert file.is_relative_to(empty.parents[1])
    for name in (ROOT / "tests" / "run_notebooks.py", CHAPTER):
        shutil.copy(name, tmp_path)
    command = [empty, "run_notebooks.py", CHAPTER.name]
    assert "claims hold" in output(*command, cwd=tmp_path, env=CLEAN | {"MPLBACKEND": "agg"})


def imports(path):
    """The modules that a file imports, by their full names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def forbidden(path, roots):
    return [name for name in imports(path) if any(f"{name}.".startswith(f"{r}.") for r in roots)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_the_package_imports_nothing_that_is_not_installed_with_it(path):
    assert forbidden(path, ["book", "experiments", "tests"]) == []
    if "notebook" not in path.relative_to(PACKAGE).parts:
        assert forbidden(path, ["IPython", "matplotlib", "featlearn.notebook"]) == []


def test_the_science_is_imported_without_ipython_and_matplotlib():
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in SCIENCE]
    modules = [name.removesuffix(".__init__") for name in names]
    code = "import sys, " + ", ".join(modules) + "; print(*sys.modules)"
    loaded = {name.split(".")[0] for name in output(sys.executable, "-c", code).split()}
    assert "featlearn" in loaded
    assert loaded.isdisjoint({"IPython", "book", "experiments", "matplotlib"})
