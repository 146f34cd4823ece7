"""The bibliography: every entry is cited and leads to the work."""

import re

from pybtex.database import parse_file

from book import notebooks

NO_LINK = {"matthews2017", "samarov1993"}  # none was found that could be checked


def test_every_entry_has_a_link():
    entries = parse_file(notebooks.CHAPTERS / "references.bib").entries
    found = {key for key, e in entries.items() if {"doi", "eprint", "url"} & set(e.fields)}
    assert set(entries) - found == NO_LINK


def test_links_look_like_links():
    shapes = {"doi": r"10\.\d{4,}/\S+", "eprint": r"\d{4}\.\d{4,5}", "url": r"https?://\S+"}
    entries = parse_file(notebooks.CHAPTERS / "references.bib").entries
    assert [
        (key, kind)
        for key, entry in entries.items()
        for kind, shape in shapes.items()
        if kind in entry.fields and not re.fullmatch(shape, entry.fields[kind])
    ] == []


def test_every_entry_is_cited():
    text = "".join(
        path.read_text(encoding="utf-8")
        for kind in ("ipynb", "md")
        for path in notebooks.CHAPTERS.rglob(f"*.{kind}")
    )
    cited = {
        key.strip()
        for keys in re.findall(r"\{cite:\w+\}`([^`]*)`", text)
        for key in keys.split(",")
    }
    assert set(parse_file(notebooks.CHAPTERS / "references.bib").entries) == cited
