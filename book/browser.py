"""Chromium, looking at a folder as if it were a site, and at nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

OLDEST = 131  # the first version of Chromium that prints page numbers from a style sheet
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-gpu-compositing"
    " --disable-software-rasterizer --num-raster-threads=1"
)
# A name that cannot exist: every request is answered from the folder or refused.
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
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=path, args=FLAGS.split()) as chromium,
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
        page.route("**/*", self._answer)
        page.on(
            "console", lambda message: message.type == "error" and self.errors.append(message.text)
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _answer(self, route: Any) -> None:
        url = route.request.url
        path = unquote(urlsplit(url).path)
        file = self.folder / path.removeprefix(self.base)
        inside = url.startswith(HOST + self.base)
        if inside and path in self.documents:
            route.fulfill(body=self.documents[path], content_type="text/html")
        elif inside and file.is_file():
            self.answered.append(file)
            route.fulfill(path=file)
        else:
            self.refused.append(url)
            route.abort()

    def open(self, path: str) -> None:
        """Go to a page of the site and forget what the one before it asked for and reported."""
        self.page.goto("about:blank")
        for seen in (self.answered, self.refused, self.errors):
            seen.clear()
        self.page.goto(f"{HOST}{self.base}{path}")
