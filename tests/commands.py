"""Command lines that tests run often, each in a process forked from one that has loaded them."""

import multiprocessing
import os
import sys
from importlib import import_module
from pathlib import Path

MODULES = ("nbgrader.apps.nbgraderapp",)


def run(module: str, arguments: list[str], folder: Path) -> None:
    """What ``main`` of the module does in this folder, given these arguments; its output if it
    fails.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(list(MODULES))
    log = folder.parent / "command.log"
    process = server.Process(target=_call, args=(module, arguments, folder, log))
    process.start()
    process.join()
    assert process.exitcode == 0, log.read_text()


def _call(module: str, arguments: list[str], folder: Path, log: Path) -> None:
    with open(log, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sys.argv = [module.split(".")[0], *arguments]
    sys.exit(import_module(module).main())
