"""Sphinx extension of the figures with several panels: on a phone the panels are stacked.

The panels of a picture are found by the white columns between them. A phone shows the pieces of the
same picture, each as wide as the page; every other screen and paper show it whole.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sphinx.application import Sphinx

WIDE = re.compile(r'<img\b[^>]*\bclass="[^"]*\bfl-wide\b[^"]*"[^>]*>')
LEAST = 0.2  # of the picture's width: what is narrower is the label or the scale of a panel
GAP = 5  # pixels: the white between letters is less
Span = tuple[int, int]


def pieces(image: Image.Image) -> list[Span]:
    """The columns of `image` that are not white, as spans from left to right."""
    inked = (np.asarray(image.convert("L")) < 250).any(axis=0)
    edges = np.flatnonzero(np.diff(np.r_[False, inked, False].astype(int))).reshape(-1, 2)
    found: list[Span] = []
    for start, end in edges.tolist():
        if found and start - found[-1][1] < GAP:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _is_colour_bar(image: Image.Image, span: Span) -> bool:
    """Whether most of these columns is coloured, as a label in black never is."""
    saturation = np.asarray(image.convert("HSV"))[:, span[0] : span[1], 1]
    return bool((saturation > 60).mean() > 0.5)


def _has_grid(image: Image.Image, span: Span) -> bool:
    """Whether lines go across a panel above its lower edge: then its height has a scale."""
    upper = np.asarray(image.convert("L"))[: 3 * image.height // 4, span[0] : span[1]]
    return bool(((upper < 250).mean(axis=1) > 0.8).any())


def panels(image: Image.Image) -> list[list[Span]]:
    """The panels of a picture, each as the spans that a phone shows next to each other.

    Labels and scales belong to the panel on their right, a colour bar and its scale to the one on
    their left. Panels without scales of their own, but with lines across, show that of the first.
    Empty if there are not two to four panels.
    """
    image = image.convert("RGB")
    least, before, bar = LEAST * image.width, [], 0
    groups: list[list[Span]] = []
    scales: list[Span | None] = []  # of each group: its labels, if it has any
    for span in pieces(image):
        bar = 2 if groups and not before and _is_colour_bar(image, span) else bar
        if span[1] - span[0] >= least:
            groups.append([*before, span])
            scales.append((before[0][0], span[0]) if before else None)
            before, bar = [], 0
        elif bar:
            groups[-1].append(span)
            bar -= 1
        else:
            before.append(span)
    if not 2 <= len(groups) <= 4:
        return []
    groups[-1] += before
    wholes = [(group[0][0], group[-1][1]) for group in groups]
    shared = scales[0] and not any(scales[1:])
    if shared and all(_has_grid(image, group[-1]) for group in groups[1:]):
        return [[wholes[0]], *([scales[0], whole] for whole in wholes[1:])]
    return [[whole] for whole in wholes]


@cache
def _cut(path: Path, changed: int) -> tuple[tuple[int, int], list[list[Span]]]:
    """The size and the panels of the picture at `path` as it was at the time `changed`."""
    with Image.open(path) as image:
        return image.size, panels(image)


def stacked(tag: str, size: tuple[int, int], found: list[list[Span]]) -> str:
    """The picture `tag`, and its panels for a phone; who listens hears the picture alone."""
    source, (width, height) = re.search(r'\bsrc="([^"]*)"', tag)[1], size
    rows = []
    for spans in found:
        total = sum(end - start for start, end in spans)
        crops = "".join(
            f'<span style="width:{100 * (end - start) / total:.3f}%;'
            f"background:url('{source}') {100 * start / (width - end + start):.3f}% 0"
            f'/{100 * width / (end - start):.3f}% 100%"></span>'
            for start, end in spans
        )
        rows.append(f'<span class="fl-row" style="aspect-ratio:{total}/{height}">{crops}</span>')
    return f'{tag}<span class="fl-stack" aria-hidden="true">{"".join(rows)}</span>'


def stack(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the panels of the wide pictures on `page` after each of them."""
    files = {name: Path(app.srcdir, source) for source, name in app.builder.images.items()}

    def replaced(match: re.Match[str]) -> str:
        path = files.get(Path(re.search(r'\bsrc="([^"]*)"', match[0])[1]).name)
        if path is None:
            return match[0]
        size, found = _cut(path, path.stat().st_mtime_ns)
        return stacked(match[0], size, found) if found else match[0]

    if "body" in context and app.builder.name == "html":
        context["body"] = WIDE.sub(replaced, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", stack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
