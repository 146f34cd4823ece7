"""Read the MyST of a Markdown cell: fenced directives, their options and what they contain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

READER = MarkdownIt("zero").enable("fence").use(colon_fence_plugin)
HEAD = re.compile(r"\{(?P<name>[\w:-]+)\} *(?P<argument>.*)")
OPTION = re.compile(r":(?P<key>[\w-]+): *(?P<value>.*)")


@dataclass
class Directive:
    """``:::{name} argument`` with its options and body; the body may contain directives again."""

    name: str
    argument: str
    options: dict[str, str] = field(default_factory=dict)
    body: str = ""


def placed(source: str) -> list[tuple[Directive, int, int]]:
    """The directives of the source, in order, each with its first line and the line after it.

    An unclosed fence is an error.
    """
    found, lines = [], source.split("\n")
    for token in READER.parse(source):
        head = HEAD.fullmatch(token.info)
        if head is None:
            continue
        start, end = token.map
        if lines[end - 1].strip() != token.markup or end - start < 2:
            raise ValueError(f"the directive {lines[start]!r} is not closed")
        found.append((_directive(head, token.content.split("\n")), start, end))
    return found


def parse(source: str) -> list[str | Directive]:
    """The source as a list of plain Markdown and directives, in order."""
    parts: list[str | Directive] = []
    lines, read = source.split("\n"), 0
    for directive, start, end in placed(source):
        parts += [*_plain(lines[read:start]), directive]
        read = end
    return parts + _plain(lines[read:])


def _plain(lines: list[str]) -> list[str]:
    text = "\n".join(lines).strip("\n")
    return [text] if text.strip() else []


def _directive(head: re.Match[str], inside: list[str]) -> Directive:
    options: dict[str, str] = {}
    while inside and (option := OPTION.fullmatch(inside[0])):
        options[option["key"]] = option["value"].strip()
        inside = inside[1:]
    body = "\n".join(inside).strip("\n")
    return Directive(head["name"], head["argument"].strip(), options, body)
