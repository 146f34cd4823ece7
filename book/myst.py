"""Read the MyST of a Markdown cell: fenced directives, their options and what they contain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

OPEN = re.compile(r"^(?P<fence>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} *(?P<argument>.*)$")
OPTION = re.compile(r"^:(?P<key>[\w-]+): *(?P<value>.*)$")


@dataclass
class Directive:
    """``:::{name} argument`` with its options and body; the body may contain directives again."""

    name: str
    argument: str
    options: dict[str, str] = field(default_factory=dict)
    body: str = ""


def parse(source: str) -> list[str | Directive]:
    """The source as a list of plain Markdown and directives, in order.

    An unclosed fence is an error.
    """
    parts: list[str | Directive] = []
    plain: list[str] = []
    lines = iter(source.split("\n"))
    for line in lines:
        opening = OPEN.match(line)
        if opening is None:
            plain.append(line)
            continue
        if any(text.strip() for text in plain):
            parts.append("\n".join(plain).strip("\n"))
        plain = []
        parts.append(_directive(opening, _until_closed(opening["fence"], lines, line)))
    if any(text.strip() for text in plain):
        parts.append("\n".join(plain).strip("\n"))
    return parts


def _until_closed(fence: str, lines, opening: str) -> list[str]:
    inside: list[str] = []
    open_fences = [fence]
    for line in lines:
        nested = OPEN.match(line)
        if nested is not None:
            open_fences.append(nested["fence"])
        elif line.strip() == open_fences[-1]:
            open_fences.pop()
            if not open_fences:
                return inside
        inside.append(line)
    raise ValueError(f"the directive {opening!r} is not closed")


def _directive(opening: re.Match[str], inside: list[str]) -> Directive:
    options: dict[str, str] = {}
    while inside and (option := OPTION.match(inside[0])):
        options[option["key"]] = option["value"].strip()
        inside = inside[1:]
    body = "\n".join(inside).strip("\n")
    return Directive(opening["name"], opening["argument"].strip(), options, body)
