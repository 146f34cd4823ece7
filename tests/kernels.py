"""Kernels for the notebooks that tests run, from one process that has loaded what all of them need.

Loading torch, scikit-learn and matplotlib takes seconds, dozens of times in a run of the tests. A
server does it once, and each kernel is a fork of it. What Jupyter starts in place of a kernel is
this file: it asks the server for one, hands over its files, folder and environment, and lives as
long as it. The first one to ask starts the server, which ends when its folder is removed.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = (
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "scipy.integrate",
    "scipy.stats",
    "sklearn.manifold",
    "torch",
    "torch._dynamo",  # which the first gradient of a function loads
)


def specify(folder: Path) -> None:
    """Let Jupyter find a kernel python3 in `folder` that comes from a server."""
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    command = [sys.executable, "-S", __file__, str(folder / "socket"), "-f", "{connection_file}"]
    about = {"argv": command, "display_name": "Python 3", "language": "python"}
    spec.write_text(json.dumps(about | {"interrupt_mode": "message"}))
    os.environ["JUPYTER_PATH"] = str(folder)


def without_layout() -> None:
    """Draw figures as they are, once and small, with the places of axes not worked out.

    nbval does not compare pictures, and working out their layout takes most of a figure's time.
    """
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    draw = FigureCanvasBase.print_figure

    def draw_once(canvas: FigureCanvasBase, *arguments: Any, **options: Any) -> Any:
        return draw(canvas, *arguments, **options | {"bbox_inches": None, "dpi": 20})

    FigureCanvasBase.print_figure = draw_once
    ConstrainedLayoutEngine.execute = lambda engine, figure: None
    figure = Figure()
    figure.add_subplot(xscale="log", xlim=(1, 10), title="$x$")
    FigureCanvasAgg(figure).draw()  # fonts are found and the parser of formulas is made once


def ask(path: str, arguments: list[str]) -> None:
    """Ask the server for a kernel and wait until it ends."""
    try:
        os.close(os.open(f"{path}.lock", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        command = [sys.executable, __file__, path]
        with open(f"{path}.log", "w") as log:  # not the pipes of whoever came first: it stays open
            subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
    while not os.path.exists(path):  # the server is still loading
        time.sleep(0.1)
    about = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(about).encode()], [0, 1, 2])
        server.recv(1)


def serve(path: str) -> None:
    """Fork a kernel for each request that arrives at the socket `path`, while it exists."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as in a kernel
    for name in LOADED:
        import_module(name)
    without_layout()
    gc.freeze()  # a kernel need not look for garbage in what it starts with
    del sys.path[0]  # the folder of this file
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the kernels
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{path}.new")
        server.listen()
        server.settimeout(2)
        os.rename(f"{path}.new", path)  # now it answers
        while os.path.exists(path):
            try:
                client, _ = server.accept()
            except TimeoutError:
                continue
            if not os.fork():
                server.close()
                become_kernel(client)
            client.close()


def become_kernel(client: socket.socket) -> None:
    """Run a kernel with the arguments, files, folder and environment of the client."""
    from ipykernel.kernelapp import IPKernelApp

    server = os.getppid()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    client.setblocking(True)
    message, files, _, _ = socket.recv_fds(client, 10**6, 3)
    request = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])

    def follow() -> None:
        client.recv(1)  # returns when the client is gone
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    IPKernelApp.launch_instance([*request["arguments"], f"--IPKernelApp.parent_handle={server}"])
    os._exit(0)


if __name__ == "__main__":
    place, *rest = sys.argv[1:]
    ask(place, rest) if rest else serve(place)
