"""``make colab``: the notebooks in plain Markdown, for Colab, without solutions; the solutions in
notebooks of their own.

Directives, roles and citations are rewritten; the numbers of theorems, equations, figures and
exercises are those of the built site. The set-up cell installs the package of the same commit.
Everything goes to ``_build/colab``, which the deploy workflow publishes as the branch ``colab``.
With ``SOLUTIONS=no`` the notebooks of solutions are left out.
"""

from __future__ import annotations

import ast
import html
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from pybtex.database import BibliographyData, parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

import featlearn
from book import editions, exercises, maths, notebooks
from book.myst import Directive, parse
from book.site import brief, claim_of, options

SITE = notebooks.ROOT / "_build" / "html"
TARGET = notebooks.ROOT / "_build" / "colab"
ASKS = re.compile(r"\?|\b(Then|Predict|Compare)\b")  # for more than a function
LEFTOVER = re.compile(
    r"^(:{3,}|`{3,}\{)|\{[\w:-]+\}`|^\([\w-]+\)=$|\)\{\.\w+\}|\$\$ *\([\w-]+\)", re.MULTILINE
)
NUMBERED = (
    re.compile(
        r'<div class="(?:proof|exercise)[^"]*" id="([\w-]+)">\s*'
        r'<p class="admonition-title"><span[^>]*>(\w+ [\d.]+)'
    ),
    re.compile(r'id="equation-([\w-]+)">\s*<span class="eqno">(\([\d.]+\))'),
    re.compile(
        r'<figure [^>]*id="([\w-]+)">(?:(?!</figure>).)*?'
        r'<span class="caption-number">(Fig\. [\d.]+)',
        re.DOTALL,
    ),
    re.compile(
        r'<span id="([\w-]+)"></span><h\d>(?:<span[^>]*>[^<]*</span>)?(.*?)<a class="headerlink"'
    ),
)
README = """\
# Notebooks for Colab

Made from the chapters of [{title}]({site}) by `make colab`, one notebook for each page, without
solutions{solutions}. Changes belong into the [source]({url}), not here.
"""
SETUP = """\
try:
    import featlearn
except ModuleNotFoundError:  # on Colab
    %pip install -q git+{url}@{version}
    try:
        import featlearn
    except ModuleNotFoundError:
        raise SystemExit(
            "featlearn could not be installed. Is there a connection to the internet? Then run "
            "this cell again; it says above what pip tried."
        ) from None"""
ANSWER = "**Your answer.** *(Double-click to write it here.)*"
PREDICTION = "**Your prediction.** *(Double-click to write it here, before you run the next cell.)*"
EXPERIMENT = "# Your experiment"


@dataclass(frozen=True)
class Book:
    """What a rewritten cell may refer to.

    Numbers and titles by label, glued values, citations, the site's address.
    """

    labels: dict[str, str]
    values: dict[str, str]
    bibliography: BibliographyData
    url: str
    version: str

    def set_up(self) -> NotebookNode:
        """The cell that installs the package as it was when the notebooks were made."""
        return nbformat.v4.new_code_cell(SETUP.format(url=self.url, version=self.version))

    def on_colab(self, path: str) -> str:
        """The address at which Colab opens a notebook of the branch ``colab``."""
        return notebooks.on_colab(self.url, path)

    @property
    def site(self) -> str:
        """The address at which GitHub Pages serves the book."""
        owner, name = self.url.removeprefix("https://github.com/").split("/")
        return f"https://{owner}.github.io/{name}"


def labels(site: Path = SITE) -> dict[str, str]:
    """What the site calls each label.

    "Theorem 4.1", "(4.2)", "Fig. 4.3", "Exercise 4.1" or the title of a section.
    """
    pages = [
        maths.sources(path.read_text(encoding="utf-8"))
        for path in sorted((site / "chapters").rglob("*.html"))
    ]
    found = {
        label: text
        for page in pages
        for pattern in NUMBERED
        for label, text in pattern.findall(page)
    }
    return {label: html.unescape(re.sub(r"<[^>]*>", "", text)) for label, text in found.items()}


def values(chapters: Path = notebooks.CHAPTERS) -> dict[str, str]:
    """Glued values as the book prints them, by ``page::key``."""
    found = {}
    for path in notebooks.paths(chapters):
        for cell in notebooks.code(notebooks.load(path)):
            for output in cell.outputs:
                if "scrapbook" in output.get("metadata", {}):
                    key = f"{notebooks.name(path, chapters)}::{output.metadata.scrapbook.name}"
                    found[key] = next(iter(output.data.values()))
    return found


def load(site: Path = SITE) -> Book:
    """The book as it was built."""
    if not (site / "index.html").is_file():
        raise FileNotFoundError("the site is not built: run make book")
    bibliography = parse_file(notebooks.CHAPTERS / "references.bib")
    return Book(labels(site), values(), bibliography, notebooks.repository_url(), version())


def version() -> str:
    """The commit that the notebooks come from; where there is no git, the tag of the release."""
    command = ["git", "-C", str(notebooks.ROOT), "rev-parse", "--verify", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"v{featlearn.__version__}"


def authors(book: Book, key: str) -> tuple[str, str]:
    """The authors, as one cites them, and the year."""
    entry = book.bibliography.entries[key]
    names = [
        " ".join([*person.prelast_names, *person.last_names]) for person in entry.persons["author"]
    ]
    names = [str(Text.from_latex(name)) for name in names]
    cited = (
        names[0]
        if len(names) == 1
        else " and ".join(names)
        if len(names) == 2
        else f"{names[0]} et al."
    )
    return cited, entry.fields["year"]


def role(book: Book, page: str, match: re.Match[str]) -> str:
    """One inline role in plain words."""
    name, content = match["role"], match["content"]
    named = re.fullmatch(r"(?P<words>.*?)\s*<(?P<label>[\w-]+)>", content, re.DOTALL)
    if name == "glue:text":
        return book.values[f"{page}::{content}"]
    if name in ("cite:t", "cite:p"):
        cited = [authors(book, key.strip()) for key in content.split(",")]
        if name == "cite:t":
            return ", ".join(f"{who} ({year})" for who, year in cited)
        return "(" + "; ".join(f"{who}, {year}" for who, year in cited) + ")"
    if name == "claim":
        return brief(claim_of(page, content))
    if name == "term":
        return named["words"] if named else content
    if name in ("prf:ref", "eq", "numref", "ref"):
        return named["words"] if named else book.labels[content.lower()]
    raise ValueError(f"{page}: no rule for the role {name}")


def inline(book: Book, page: str, text: str) -> str:
    """Plain Markdown without roles, targets, labels of equations and attributes of links."""

    def tag(match: re.Match[str]) -> str:
        number = book.labels[match["label"].lower()].strip("()")
        return f"$${match['maths'].rstrip()} \\tag{{{number}}}\n$$"

    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"\$\$(?P<maths>(?:(?!\$\$).)*?)\$\$ *\((?P<label>[\w-]+)\)", tag, text, flags=re.DOTALL
    )
    text = re.sub(r"\{(?P<role>[\w:-]+)\}`(?P<content>[^`]+)`", partial(role, book, page), text)
    text = re.sub(r"(\]\([^)]*\))\{\.\w+\}", r"\1", text)

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), match["target"]))
        return f"]({book.site}/chapters/{target}.html{match['anchor'] or ''})"

    return re.sub(r"\]\((?P<target>[\w./]+)\.(?:ipynb|md|html)(?P<anchor>#[\w-]*)?\)", link, text)


def heading(notebook: NotebookNode) -> str:
    """The title of a page."""
    return notebook.cells[0].source.split("\n", 1)[0].removeprefix("# ")


def title(chapter: str) -> str:
    """The title of a chapter: of its opening page, or of its only notebook."""
    opening = notebooks.CHAPTERS / chapter / "index.md"
    if opening.is_file():
        return opening.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
    return heading(notebooks.load(notebooks.CHAPTERS / f"{chapter}.ipynb"))


def quote(text: str) -> str:
    """A block quotation. Displayed formulas go on one line each.

    Inside them a ``>`` would be read as a sign.
    """
    joined = re.sub(r"\$\$.*?\$\$", lambda m: " ".join(m.group().split()), text, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in joined.split("\n"))


def fold(summary: str, text: str) -> str:
    """A section that opens by a click."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def directive(book: Book, page: str, part: Directive) -> str:
    """A directive as plain Markdown.

    Statements quoted, proofs and hints folded, solutions left out.
    """
    if part.name.startswith("solution"):
        return ""
    body = plain(book, page, part.body)
    title = inline(book, page, part.argument)
    if part.name.startswith("prf:") or part.name == "exercise":
        head = f"**{book.labels[part.options['label']]}**" + (f" ({title})" if title else "")
        return quote(f"{head}. {body}")
    if part.name == "admonition":
        return quote(f"**{title}**\n\n{body}")
    if part.name == "dropdown":
        return fold(title, body)
    if part.name == "question":
        told = [
            fold(option, f"{'✓ Right.' if is_right else '✗ No.'} {why}")
            for is_right, option, why in options(body)
        ]
        return "\n\n".join([f"**Check yourself.** {title}", *told])
    if part.name == "div":
        return body
    raise ValueError(f"{page}: no rule for the directive {part.name}")


def plain(book: Book, page: str, source: str) -> str:
    """A Markdown cell without directives and roles."""
    parts = [
        inline(book, page, p) if isinstance(p, str) else directive(book, page, p)
        for p in parse(source)
    ]
    return "\n\n".join(part for part in parts if part)


@cache
def _formatting() -> tuple[Any, Any]:
    """pybtex's style and Markdown: finding a plugin reads what all packages say of themselves."""
    style = find_plugin("pybtex.style.formatting", "plain")()
    return style, find_plugin("pybtex.backends", "markdown")()


def references(book: Book, sources: Iterable[str]) -> str:
    """The works that the sources cite, as a list."""
    cited = {
        key.strip()
        for s in sources
        for m in re.findall(r"\{cite:[tp]\}`([^`]+)`", s)
        for key in m.split(",")
    }
    if not cited:
        return ""
    style, backend = _formatting()
    entries = style.format_entries([book.bibliography.entries[key] for key in sorted(cited)])
    texts = [
        re.sub(r"\\([^a-zA-Z])", r"\1", " ".join(entry.text.render(backend).split()))
        for entry in entries
    ]
    return "## References\n\n" + "\n".join(f"- {text}" for text in texts)


def markdown(source: str) -> NotebookNode:
    """A new Markdown cell."""
    return nbformat.v4.new_markdown_cell(source)


def notebook_of(cells: list[NotebookNode]) -> NotebookNode:
    """A notebook with our metadata and cell ids."""
    made = notebooks.clean(nbformat.v4.new_notebook(cells=cells))
    made.metadata["colab"] = {"provenance": [], "toc_visible": True}
    return made


def answers(exercise: exercises.About | None) -> list[NotebookNode]:
    """Places for an answer: a cell to write in and, where something is to be tried, one to run."""
    kind = exercise.kind.lower() if exercise else ""
    tries = any(word in kind for word in ("experiment", "check", "open-ended"))
    return [nbformat.v4.new_code_cell(EXPERIMENT)] * tries + [markdown(ANSWER)]


def texts(book: Book, page: str, source: str, inside: bool) -> tuple[list[NotebookNode], bool]:
    """A Markdown cell as cells: one for each exercise, and places for answers after it.

    `inside` says whether a solution goes on from the cell before, and then after this one.
    """
    cells: list[NotebookNode] = []
    gathered: list[str] = []
    about: exercises.About | None = None

    def close() -> None:
        if gathered:
            cells.append(markdown("\n\n".join(gathered)))
            gathered.clear()

    for part in parse(source):
        if isinstance(part, str):
            gathered += [] if inside else [inline(book, page, part)]
            if not inside and "**Predict first.**" in part:
                close()
                cells.append(markdown(PREDICTION))
        elif part.name in ("solution-start", "solution-end"):
            inside = part.name == "solution-start"
        elif part.name == "solution":
            close()
            cells += answers(about)
        elif not inside:
            if part.name == "exercise":
                close()
                about = exercises.about(part.body.split("*")[1])
            gathered.append(directive(book, page, part))
    close()
    return cells, inside


def chapter(book: Book, path: Path) -> NotebookNode:
    """The Colab notebook of a page.

    Stubs for solutions, a place for each answer, captions below figures.
    """
    source, page = notebooks.load(path), notebooks.name(path)
    asks = {
        exercise.check.source
        for exercise in exercises.read(source)
        if exercise.check is not None and ASKS.search(exercise.text)
    }
    cells: list[NotebookNode] = []
    inside = False
    for cell in source.cells:
        if cell.cell_type == "markdown":
            made, inside = texts(book, page, cell.source, inside)
            cells += made
            continue
        if inside and not exercises.is_solution(cell):
            continue
        made = nbformat.v4.new_code_cell(
            exercises.stub(cell.source) if exercises.is_solution(cell) else cell.source
        )
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        made.metadata["tags"] = [
            tag for tag in cell.metadata.get("tags", []) if tag == "hide-input"
        ]
        cells.append(made)
        if cell.source in asks:
            cells.append(markdown(ANSWER))
        if figure:
            cells.append(
                markdown(
                    f"*{book.labels[figure['name']]}. {inline(book, page, figure['caption'])}*"
                )
            )
    first = next(number for number, cell in enumerate(cells) if cell.cell_type == "code")
    cells[first] = book.set_up()
    cited = references(book, [cell.source for cell in source.cells if cell.cell_type == "markdown"])
    cells += [markdown(cited)] if cited else []
    where = f"[this page of the book]({book.site}/chapters/{page}.html)"
    solved = f" [The solutions]({book.on_colab(f'solutions/{page}')}) have a notebook of their own."
    there = bool(exercises.read(source)) and editions.edition() != "no"
    cells[
        0
    ].source += (
        f"\n\n*Made for Colab from {where}, where the figures and the numbers are.{solved * there}*"
    )
    made = notebook_of(cells)
    for cell in notebooks.code(made):
        if "hide-input" in cell.metadata.get("tags", []):
            cell.metadata = nbformat.from_dict(
                {"cellView": "form", "jupyter": {"source_hidden": True}}
            )
    return made


def solutions(book: Book, path: Path) -> NotebookNode:
    """The exercises of a page with their solutions; it runs without the rest of the page."""
    source, page = notebooks.load(path), notebooks.name(path)
    where = f"[the page of the book]({book.site}/chapters/{page}.html)"
    tasks = f"[the notebook without solutions]({book.on_colab(f'chapters/{page}')})"
    cells = [
        markdown(f"# Solutions: {heading(source)}\n\n*To {tasks}, to {where}.*"),
        book.set_up(),
        nbformat.v4.new_code_cell(exercises.imports(source)),
    ]
    for exercise in exercises.read(source):
        head = f"## {book.labels[exercise.label]}: {exercise.title}\n\n"
        text = f"*{exercise.about}* {exercise.text}"
        cells.append(markdown(head + plain(book, page, text)))
        for part in exercise.solution:
            if not isinstance(part, str):
                cells.append(nbformat.v4.new_code_cell(part.source))
            elif part.strip():
                cells.append(markdown("**Solution.** " + plain(book, page, part)))
        if exercise.check is not None:
            call = ast.unparse(ast.parse(exercise.check.source).body[-1])
            cells.append(nbformat.v4.new_code_cell(call))
    return notebook_of(cells)


def export(target: Path = TARGET, site: Path = SITE) -> list[Path]:
    """Write all notebooks below `target`; the paths written."""
    book = load(site)
    written = []
    for path in notebooks.paths():
        relative = path.relative_to(notebooks.ROOT)
        made = {target / relative: chapter(book, path)}
        if exercises.read(notebooks.load(path)) and editions.edition() != "no":
            made[target / "solutions" / path.relative_to(notebooks.CHAPTERS)] = solutions(
                book, path
            )
        for where, notebook in made.items():
            where.parent.mkdir(parents=True, exist_ok=True)
            notebooks.save(notebook, where)
            written.append(where)
    solved = "" if editions.edition() == "no" else "; the solutions are in the folder `solutions`"
    title = "Why Neural Networks Beat Kernels"
    about = README.format(title=title, site=book.site, url=book.url, solutions=solved)
    (target / "README.md").write_text(about, encoding="utf-8")
    return written


def main() -> int:
    """Export and say where to."""
    try:
        written = export()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    for path in written:
        print(path.relative_to(notebooks.ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
