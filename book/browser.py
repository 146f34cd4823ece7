"""Chromium, looking at a folder as if it were a site, and at nothing else."""

from __future__ import annotations

import mimetypes
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

OLDEST = 131  # the first version of Chromium that prints page numbers from a style sheet
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-gpu-compositing"
    " --disable-software-rasterizer --num-raster-threads=1"
)
# A name that cannot exist: it leads to a server in this process, and all other names lead nowhere.
HOST = "http://book.invalid"


def program() -> str:
    """The path of Chromium or Chrome."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise FileNotFoundError(
            "no Chromium is installed: install it (on Debian and Ubuntu: apt install chromium)"
        )
    return found


@contextmanager
def launch() -> Iterator[Any]:
    """Playwright's browser, running."""
    path = program()
    rules = (
        f"--host-resolver-rules=MAP {urlsplit(HOST).netloc} 127.0.0.1:{_port()}, MAP * ~NOTFOUND"
    )
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=path, args=[*FLAGS.split(), rules]) as chromium,
    ):
        if int(chromium.version.split(".")[0]) < OLDEST:
            raise FileNotFoundError(
                f"{path} is version {chromium.version}: {OLDEST} or newer is needed"
            )
        yield chromium


class Folder:
    """The site that a page of the browser sees: the files of a folder under the path `base`.

    `documents` holds pages that are in no file, by their paths. `answered` lists the files sent,
    `refused` the addresses of all else that was asked for, and `errors` what the page's console
    reported.
    """

    def __init__(self, page: Any, folder: Path, base: str = "/") -> None:
        self.page, self.folder, self.base = page, folder, base
        self.documents: dict[str, str] = {}
        self.answered: list[Path] = []
        self.refused: list[str] = []
        self.errors: list[str] = []
        SERVED.append(self)
        page.on("response", self._note)
        page.on("requestfailed", self._fail)
        page.on("close", lambda _: SERVED.remove(self))
        page.on(
            "console", lambda message: message.type == "error" and self.errors.append(message.text)
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def file(self, path: str) -> Path | None:
        """The file at a path of the site, if there is one."""
        file = self.folder / path.removeprefix(self.base)
        return file if path.startswith(self.base) and file.is_file() else None

    def _note(self, response: Any) -> None:
        file = self.file(unquote(urlsplit(response.url).path))
        if response.status >= 400:
            self.refused.append(response.url)
        elif file is not None and response.url.startswith(HOST):
            self.answered.append(file)

    def _fail(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left
            self.refused.append(request.url)

    def open(self, path: str) -> None:
        """Go to a page of the site and forget what the one before it asked for and reported."""
        self.page.goto("about:blank")
        for seen in (self.answered, self.refused, self.errors):
            seen.clear()
        self.page.goto(f"{HOST}{self.base}{path}")


SERVED: list[Folder] = []  # the last one that has an answer gives it


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # a connection serves many files

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        for site in reversed(SERVED):
            file = site.file(path)
            if path in site.documents:
                return self._send(200, site.documents[path].encode(), "text/html")
            if file is not None:
                kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
                return self._send(200, file.read_bytes(), kind)
        return self._send(404, b"", "text/plain")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        text = kind.startswith("text/") or kind.endswith(("javascript", "json"))
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(body)))
        kept = "/_static/" in self.path  # other files are written anew while a browser runs
        self.send_header("Cache-Control", "max-age=3600" if kept else "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: tests read what pages say."""


@cache
def _port() -> int:
    """The port of the server of all folders, which ends with this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
