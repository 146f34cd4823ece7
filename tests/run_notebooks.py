"""Run notebooks from their first cell to the last, each in an empty folder, and count their claims.

``python tests/run_notebooks.py NOTEBOOK...`` needs nbclient, ipykernel and the installed package,
and nothing else of this repository. Outputs are not compared with the stored ones; a cell that
raises ends the run with an error, and a claim that fails raises.
"""

import json
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient


def run(path: Path) -> int:
    """The number of claims that held in the notebook, run by the Python that runs this file."""
    notebook = nbformat.read(path, as_version=4)
    stored = held(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    with TemporaryDirectory() as home, TemporaryDirectory() as folder:
        kernel = Path(home, "kernels", "this", "kernel.json")
        kernel.parent.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel.write_text(json.dumps({"argv": command, "display_name": "this Python"}))
        os.environ["JUPYTER_PATH"] = home
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="this", resources=resources).execute()
        if left := os.listdir(folder):
            raise AssertionError(f"{path} must leave nothing in its folder, got {left}")
    if held(notebook) != stored:
        raise AssertionError(f"{path} must have {stored} claims that hold, got {held(notebook)}")
    return stored


def held(notebook: nbformat.NotebookNode) -> int:
    """How many claims hold by the notebook's outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    records = [output.get("metadata", {}).get("featlearn-claim") for output in outputs]
    return sum(record["verdict"] == "holds" for record in records if record)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        start = time.perf_counter()
        number = run(Path(name))
        print(f"{name}: {number} claims hold, {time.perf_counter() - start:.0f} s", flush=True)
