"""``make colab``: plain Markdown, numbers kept, no solution left, stubs that wait and solutions
that pass, each on its own.
"""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book import colab, exercises, notebooks
from book.myst import Directive, parse

PATHS = notebooks.paths()
PAGES = [path for pages in notebooks.lectures().values() for path in pages]
FORGET = "%reset_selective -f ."  # as "%reset", which also looks at all that was ever loaded


@pytest.fixture(scope="module")
def book():
    return colab.load()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    target = tmp_path_factory.mktemp("colab")
    written = colab.export(target)
    return {str(path.relative_to(target)): notebooks.load(path) for path in written}


def text(notebook, kind="markdown"):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == kind)


def in_colab(exported, path):
    return exported[str(path.relative_to(notebooks.ROOT))]


def test_there_is_one_for_every_page_and_solutions_for_every_chapter(exported):
    pages = {str(path.relative_to(notebooks.ROOT)) for path in PATHS}
    assert set(exported) == pages | {f"solutions/{notebooks.name(path)}.ipynb" for path in PAGES}


def test_no_directive_syntax_is_left(exported):
    for name, notebook in exported.items():
        found = [match.group() for match in colab.LEFTOVER.finditer(text(notebook))]
        assert found == [], name


def test_the_scan_sees_what_it_looks_for():
    for syntax in (
        ":::{note}\nx\n:::",
        "```{math}\nx\n```",
        "see {prf:ref}`thm-a`",
        "{cite:t}`a`",
        "(sec-a)=\n## A",
        "[a](b){.external}",
        "$$\nx\n$$ (eq-a)",
    ):
        assert colab.LEFTOVER.search(syntax), syntax
    assert not colab.LEFTOVER.search("{a: `b`}, $x_{i}$, $$y$$ (as above)\n\n(see) = 3")


@pytest.mark.parametrize("path", PATHS, ids=notebooks.name)
def test_set_up_first_and_code_unchanged_but_for_solutions(path, exported):
    source, made = notebooks.load(path), in_colab(exported, path)
    set_up = colab.SETUP.format(url=notebooks.repository_url(), version=colab.version())
    assert notebooks.code(made)[0].source == set_up
    assert made.cells[0].cell_type == "markdown" and made.cells[1] == notebooks.code(made)[0]
    kept = [c.source for c in notebooks.code(made)[1:] if c.source != colab.EXPERIMENT]
    wanted = [
        exercises.stub(c.source) if exercises.is_solution(c) else c.source
        for c in notebooks.code(source)[1:]
    ]
    assert kept == wanted


@pytest.mark.parametrize("path", PAGES, ids=notebooks.name)
def test_every_exercise_has_a_cell_and_a_place_for_its_answer(path, exported):
    cells = in_colab(exported, path).cells
    tasks = exercises.read(notebooks.load(path))
    places = [next(i for i, c in enumerate(cells) if f"({t.title})" in c.source) for t in tasks]
    assert len(set(places)) == len(tasks)
    for task, start, end in zip(tasks, places, [*places[1:], len(cells)], strict=True):
        after = [cell.source for cell in cells[start + 1 : end]]
        kind = task.about.kind.lower()
        words = ("?", "Then", "Predict", "Compare")
        written = task.code is None or any(word in task.text for word in words)
        assert (colab.ANSWER in after) == written
        assert (colab.EXPERIMENT in after) == (
            task.code is None and any(k in kind for k in ("experiment", "check", "open-ended"))
        )
        assert not any(source.startswith("**Your answer") for source in (cells[start].source,))


def test_the_set_up_is_that_of_this_commit_and_speaks_offline(exported):
    for name, notebook in exported.items():
        source = notebooks.code(notebook)[0].source
        assert re.search(r"git\+https://\S+@(\w{40}|v[\d.]+)$", source, re.MULTILINE), name
        assert "connection to the internet" in source


def test_notebooks_and_solutions_link_to_each_other_and_to_the_page(exported, book):
    for path in PAGES:
        page = notebooks.name(path)
        first = in_colab(exported, path).cells[0].source
        solved = exported[f"solutions/{page}.ipynb"].cells[0].source
        assert f"{book.site}/chapters/{page}.html" in first and f"{page}.html" in solved
        assert f"/blob/colab/solutions/{page}.ipynb" in first
        assert f"/blob/colab/chapters/{page}.ipynb" in solved


def test_nothing_is_said_to_move_where_nothing_moves(exported):
    """Whoever speaks of dragging says that it is on the site."""
    for name, notebook in exported.items():
        for sentence in re.split(r"(?<=[.?!)])\s", text(notebook)):
            if re.search(r"\b(drag|slider|hover)\b", sentence, re.IGNORECASE):
                assert "On the site" in sentence, (name, sentence)


def test_without_solutions_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setenv("SOLUTIONS", "no")
    written = [path.relative_to(tmp_path).as_posix() for path in colab.export(tmp_path)]
    assert written and not any(path.startswith("solutions") for path in written)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    first = notebooks.load(tmp_path / "chapters" / "01_kernels" / "1_regression.ipynb").cells[0]
    assert "folder `solutions`" not in readme and "solutions" not in first.source


@pytest.mark.parametrize("path", PATHS, ids=notebooks.name)
def test_numbers_are_those_of_the_site(path, exported, book):
    source, made = text(notebooks.load(path)), text(in_colab(exported, path))
    for label in re.findall(r"^:label: ((?!eq-)[\w-]+)$", source, re.MULTILINE):
        assert f"**{book.labels[label]}**" in made
    for label in re.findall(r"\$\$ *\(([\w-]+)\)", source):
        assert f"\\tag{{{book.labels[label.lower()].strip('()')}}}" in made
    for cell in notebooks.code(notebooks.load(path)):
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            assert f"*{book.labels[figure['name']]}. " in made


@pytest.mark.parametrize("path", PAGES, ids=notebooks.name)
def test_no_solution_is_left_and_every_one_is_in_its_notebook(path, exported, book):
    made, solved = in_colab(exported, path), exported[f"solutions/{notebooks.name(path)}.ipynb"]
    for exercise in exercises.read(notebooks.load(path)):
        for part in exercise.solution:
            if isinstance(part, str) and part.strip():
                words = colab.plain(book, notebooks.name(path), part)
                assert words not in text(made) and words in text(solved)
            elif not isinstance(part, str):
                assert part.source in text(solved, "code")
        if exercise.code is not None:
            body = exercise.code.source.splitlines()[-1].strip()
            assert body not in text(made, "code")
            assert f"check.{exercise.function}({exercise.function})" in text(made, "code")
        assert exercise.title in text(made) and exercise.title in text(solved)


def asked(path):
    """The exercises of a chapter that ask for a function."""
    return [exercise for exercise in exercises.read(notebooks.load(path)) if exercise.code]


@pytest.fixture(scope="module")
def verdicts(exported, tmp_path_factory):
    """What the checks of each chapter say, of its stubs and then of its solutions.

    Each notebook begins with nothing defined. All of them share a kernel, which loads torch once.
    """
    folder = tmp_path_factory.mktemp("empty")
    sources, ends = [], {}
    for path in PAGES:
        code = [cell.source for cell in notebooks.code(in_colab(exported, path))]
        answers = [
            cell.source
            for cell in notebooks.code(exported[f"solutions/{notebooks.name(path)}.ipynb"])
        ]
        set_up, imports, *solved = answers
        code = [s for s in code if s not in ("claims.table()", colab.EXPERIMENT)]
        stubs = code[len(code) - 2 * len(asked(path)) :]
        sources += [FORGET, set_up, imports, *stubs, FORGET, set_up, imports, *solved]
        ends[path] = len(sources)
    cells = [new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    notebook = notebooks.execute(new_notebook(cells=cells), folder, allow_errors=True)
    assert list(folder.iterdir()) == []
    starts = [0, *ends.values()]
    return {
        path: [said for cell in notebook.cells[start:end] for said in shown(cell)]
        for start, (path, end) in zip(starts, ends.items(), strict=False)
    }


def shown(cell):
    """The first words of what the cell shows: a check's sign and function, or an error."""
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        elif output.output_type == "execute_result":
            line = output.data.get("text/plain", "")
            if line[:1] in "✓○✗":
                yield line.split(":")[0]


@pytest.mark.parametrize("path", PAGES, ids=notebooks.name)
def test_stubs_wait_solutions_pass_and_both_run_without_the_chapter(path, verdicts):
    """All else in an exported notebook comes before the first stub, as in the chapter, where nbval
    runs it.
    """
    code = [c for c in notebooks.code(notebooks.load(path)) if c.source != "claims.table()"]
    found = (i for i, cell in enumerate(code) if exercises.is_solution(cell))
    first = next(found, len(code))
    assert code[first:] == [cell for e in asked(path) for cell in (e.code, e.check)]
    assert verdicts[path] == [f"{sign} {e.function}" for sign in "○✓" for e in asked(path)]


def test_directives_nest_and_must_close():
    inner = ":::{prf:lemma} L\n:label: lem-a\nc\n:::"
    outer = f"a\n\n::::{{dropdown}} Proof\n:class: x\nb\n{inner}\nd\n::::\n\ne"
    first, proof, last = parse(outer)
    assert (first, last) == ("a", "e")
    assert (proof.argument, proof.options) == ("Proof", {"class": "x"})
    assert parse(proof.body) == ["b", Directive("prf:lemma", "L", {"label": "lem-a"}, "c"), "d"]
    for unclosed in (":::{note}", ":::{note}\nx", "::::{note}\nx\n:::", "```{math}\nx"):
        with pytest.raises(ValueError, match="is not closed"):
            parse(unclosed)


def test_a_directive_inside_a_block_of_code_is_code():
    source = "```python\n:::{note}\nx\n```"
    assert parse(source) == [source]


def test_rewriting(book):
    def rewritten(source):
        return colab.plain(book, "01_kernels/4_structure", source)

    limit = book.labels["thm-closed"]
    assert (
        rewritten("By {prf:ref}`thm-closed`, {prf:ref}`this <thm-closed>`") == f"By {limit}, this"
    )
    assert rewritten("{cite:t}`damian2022` and {cite:p}`bach2017,damian2022`") == (
        "Damian et al. (2022) and (Bach, 2017; Damian et al., 2022)"
    )
    assert rewritten("{cite:t}`scholkopf2002`") == "Schölkopf and Smola (2002)"
    assert rewritten("[next](../07_shi/1_patterns.ipynb)") == (
        f"[next]({book.site}/chapters/07_shi/1_patterns.html)"
    )
    assert (
        rewritten(":::{dropdown} Proof\nSo.\n:::")
        == "<details>\n<summary>Proof</summary>\n\nSo.\n\n</details>"
    )
    theorem = rewritten(":::{prf:theorem} A\n:label: thm-closed\nLet\n\n$$\nx\n= 1\n$$\n:::")
    assert theorem == f"> **{limit}** (A). Let\n>\n> $$ x = 1 $$"
    for unknown in ("{unknown}`a`", ":::{unknown} a\n:::"):
        with pytest.raises(ValueError, match="no rule for the"):
            rewritten(unknown)


def test_a_stub_keeps_imports_signature_and_docstring_and_nothing_else():
    source = "import numpy as np\n\nSECRET = 42\n\n\n"
    source += 'def f(x, *, y=1):\n    """Formula."""\n    return SECRET\n\n\ndef g():\n    return 2'
    made = exercises.stub(source)
    assert "42" not in made and "return" not in made and "import numpy" in made
    scope = {}
    exec(made, scope)
    assert scope["f"].__doc__ == "Formula."
    for function, arguments in (("f", (1,)), ("g", ())):
        with pytest.raises(NotImplementedError, match="your turn"):
            scope[function](*arguments)


def test_hidden_code_is_folded_and_outputs_are_left_out(exported):
    chapter = exported["chapters/01_kernels/1_regression.ipynb"]
    assert any(cell.metadata.get("cellView") == "form" for cell in chapter.cells)
    assert not any(cell.get("outputs") for cell in chapter.cells)


def test_a_solution_must_follow_its_exercise():
    cells = [new_markdown_cell(":::{solution} ex-b\n:class: dropdown\nx\n:::"), new_code_cell("1")]
    with pytest.raises(ValueError, match="does not follow its exercise"):
        exercises.read(new_notebook(cells=cells))


def test_an_unbuilt_site_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="run make book"):
        colab.load(tmp_path)
