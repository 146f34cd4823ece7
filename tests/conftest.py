"""What all tests share: no progress bars, notebooks in empty folders and in order, long files
first, the same examples for every property test, one line if there is no browser."""

import ast
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import kernels
import nbval.plugin
import pytest
from hypothesis import settings

from book import browser, notebooks

os.environ["FEATLEARN_PROGRESS"] = "off"
os.environ["TRITON_INTERPRET"] = "1"  # kernels for a GPU run on the CPU
os.environ.pop("FEATLEARN_SEED", None)
os.environ.pop("FEATLEARN_SCALE", None)
if sys.platform == "linux" and "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it
    FOLDER = TemporaryDirectory()
    kernels.specify(Path(FOLDER.name))
settings.register_profile("featlearn", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("featlearn")

# Seconds that the longest files take, in round numbers: workers take files in this order, so that
# all end at about the same time. A file that is not here counts as ANY_NOTEBOOK or ANY_FILE.
SECONDS = {
    "test_pages.py": 190,
    "test_live.py": 70,
    "1_metric.ipynb": 60,
    "2_directions.ipynb": 45,
    "3_scaling.ipynb": 45,
    "2_norms.ipynb": 55,
    "3_second_order.ipynb": 45,
    "4_three_layers.ipynb": 45,
    "test_browser.py": 50,
    "test_printing.py": 50,
    "test_slides.py": 35,
    "test_course.py": 90,
    "test_attack.py": 35,
    "test_colab.py": 35,
    "2_enough.ipynb": 35,
    "3_spectrum.ipynb": 30,
    "test_finish.py": 30,
    "3_ensemble.ipynb": 30,
    "3_curse.ipynb": 30,
    "4_structure.ipynb": 30,
    "2_training.ipynb": 25,
    "test_checks.py": 25,
    "2_lazy.ipynb": 25,
    "2_samples.ipynb": 45,
    "3_experiments.ipynb": 45,
    "4_transfer.ipynb": 40,
    "2_learning.ipynb": 65,
    "4_images.ipynb": 45,
    "3_limits.ipynb": 30,
    "1_patterns.ipynb": 22,
}
ANY_NOTEBOOK, ANY_FILE = 20, 5


class Elsewhere(nbval.plugin.RunningKernel):
    """Where nbval runs a notebook: in an empty folder, as on Colab, in which it leaves nothing."""

    def __init__(self, kernel_name, cwd, startup_timeout):
        self.folder = TemporaryDirectory()
        super().__init__(kernel_name, self.folder.name, startup_timeout)

    def stop(self):
        super().stop()
        left = os.listdir(self.folder.name)
        self.folder.cleanup()
        assert left == []


nbval.plugin.RunningKernel = Elsewhere


def functions(chapter, **names):
    """The functions that the pages of a chapter define, by name, with `names` as their
    surroundings.

    Only definitions are executed, and defaults only where they are plain values.
    """
    pages = [notebooks.load(path) for path in notebooks.lectures()[chapter]]
    cells = [cell for page in pages for cell in notebooks.code(page)]
    tree = ast.parse("\n".join(notebooks.python(cell.source) for cell in cells))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in tree.body:
        function.args.defaults = [
            d for d in function.args.defaults if isinstance(d, (ast.Constant, ast.Tuple))
        ]
    exec(compile(ast.unparse(tree), chapter, "exec"), names)
    return names


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """The cells of a notebook stay in order, whoever shuffles; for workers, long files come first.

    `--dist loadfile --no-loadscope-reorder` hands files out in the order in which they are here.
    """
    place, parallel = {}, hasattr(config, "workerinput")
    for item in items:
        place.setdefault(item.path, len(place))

    def key(item):
        default = ANY_NOTEBOOK if item.path.suffix == ".ipynb" else ANY_FILE
        seconds = SECONDS.get(item.path.name, default) if parallel else 0
        return -seconds, place[item.path], getattr(item, "cell_num", 0)

    items.sort(key=key)


@pytest.fixture(scope="session")
def needs_chromium():
    try:
        browser.program()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def chromium(needs_chromium):
    """Playwright's browser, one for each file of tests."""
    with browser.launch() as running:
        yield running


def tab(chromium, **options):
    """A new page of the browser, or of one of its contexts, which has its own options; it has more
    time than Playwright's 30 seconds.
    """
    if hasattr(chromium, "new_context"):
        options = {"viewport": {"width": 1280, "height": 900}} | options
    page = chromium.new_page(**options)
    page.set_default_timeout(120_000)
    return page


def pytest_terminal_summary(terminalreporter):
    """Say in one line how many tests need a browser that is not there."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    missing = [reason for reason in reasons if "no Chromium" in reason]
    if missing:
        terminalreporter.write_line(
            f"{len(missing)} tests skipped, {missing[0].removeprefix('Skipped: ')}"
        )
