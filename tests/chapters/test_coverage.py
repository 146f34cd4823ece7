"""Coverage: every item of the syllabus has its place in the book, and every place exists."""

import re
from dataclasses import dataclass
from functools import cache

import pytest

from book import notebooks, scoreboard

PAGE = notebooks.CHAPTERS / "appendix" / "coverage.md"

# Kinds: D definition, T theorem, F figure, M measurement, Q question, E erratum.
SYLLABUS = {
    "01_kernels": {
        "ker-lift": "D F",
        "ker-poly": "D M",
        "ker-closed": "T M",
        "ker-flow": "T F M",
        "ker-curse": "T F M",
        "ker-support": "F M",
        "ker-smooth": "F M",
        "ker-latent": "F M",
        "ker-bigdata": "T F M",
    },
    "02_random_features": {
        "rf-model": "D F",
        "rf-kernel": "T M",
        "rf-evolution": "T M",
        "rf-gp": "D F",
        "rf-init": "T M",
        "rf-infty": "T M",
        "rf-ensemble": "F M",
    },
    "03_wide_networks": {
        "wide-def": "D",
        "wide-nngp": "T F M",
        "wide-lin": "D F M",
        "wide-move": "F M",
        "wide-table": "D",
        "wide-circle": "F M",
    },
    "04_ntk": {
        "ntk-recursion": "D T E M",
        "ntk-limit": "T M",
        "ntk-frozen": "F M",
        "ntk-ensemble": "F M",
        "ntk-layers": "D M",
        "ntk-deep": "T M",
        "ntk-laplace": "F M",
        "ntk-pl": "T F M",
        "ntk-lipschitz": "T M",
        "ntk-width": "T F M",
        "ntk-jury": "Q F M",
    },
    "05_beyond_linearization": {
        "bey-categories": "D F M",
        "bey-teacher": "D Q M",
        "bey-spaces": "D M",
        "bey-monomial": "T F M",
        "bey-staircase": "F M",
        "bey-quad": "T F M",
        "bey-three": "T F M",
        "bey-table": "D F",
        "bey-open": "Q",
    },
    "06_damian": {
        "dam-setup": "D M",
        "dam-init": "D E M",
        "dam-alg": "D",
        "dam-grad": "T F M",
        "dam-lemma1": "T M",
        "dam-features": "F M",
        "dam-thm1": "T M",
        "dam-sample": "F M",
        "dam-thm2": "T F M",
        "dam-transfer": "T F M",
        "dam-questions": "Q",
    },
    "07_shi": {
        "shi-data": "D F M",
        "shi-net": "D",
        "shi-lemma4": "T M",
        "shi-step1": "T F M",
        "shi-step2": "T F M",
        "shi-thm1": "T M",
        "shi-thm2": "T M",
        "shi-thm3": "T M",
        "shi-accuracy": "F M",
        "shi-mds": "F M",
        "shi-real": "F M",
    },
    "08_feature_learning_kernels": {
        "post-rfm": "T F M",
        "post-exponent": "F M",
        "post-mup": "F M",
    },
}
ITEMS = {id: (chapter, kinds) for chapter, items in SYLLABUS.items() for id, kinds in items.items()}
# Claims outside the syllabus, with the reason why they are there.
BEYOND_SYLLABUS = (
    ("wide-order", "order and chaos, which every reader of deep networks looks for (Poole et al.)"),
    ("rf-enough", "how many random features a good prediction takes (Rudi and Rosasco)"),
    ("rf-few", "fewer features than points: the documents assume an invertible kernel"),
    ("rf-direction", "random features on the single-index target of chapter 1"),
    ("ntk-modes", "training eigenmode by eigenmode, the first thing to see with a constant kernel"),
    ("ntk-fluctuation", "how the kernel of a finite network fluctuates (Hanin and Nica)"),
    ("ntk-wide", "the theorem that everybody quotes: wide enough, hence zero loss"),
    ("dam-layer", "the layer as a whole against its neurons: what exactly needs d² samples"),
    ("shi-kinks", "where the random biases put the kinks, which the documents leave to a lemma"),
    ("shi-blur", "the accuracy after n samples as a formula, the missing proposition"),
    ("shi-known", "what a learner that knows the dictionary needs"),
    ("dam-repair", "the obvious repair: project onto the singular vector before fitting the head"),
    ("dam-optima", "many global optima, the motivation of the paper, in three numbers"),
    ("dam-rank", "what r and κ do, which the theorems have in their bounds"),
    (
        "dam-joint",
        "the paper names training both layers together as future work; the chapter tries it",
    ),
)
APPENDICES = ("err", "her", "not")  # the first parts of the ids of claims in the appendices

ROW = re.compile(r"\| `([a-z0-9-]+)` \| (.+?) \| ([A-Z ]+) \| (.*?) \| (.*?) ?\|")
ROLE = re.compile(r"\{(ref|prf:ref|numref)\}`(?:[^`<]+<)?([\w-]+)>?`")
PROVED = ("theorem", "lemma", "proposition", "corollary")


@dataclass(frozen=True)
class Row:
    """One row of the page."""

    id: str
    item: str
    kinds: str
    where: str
    measured: str


def rows(text):
    """The rows of the page's tables, in order."""
    return [Row(*match.groups()) for line in text.splitlines() if (match := ROW.fullmatch(line))]


@cache
def places():
    """Every label a role can name, as {label: (role, what it is, chapter)}."""
    found = {}
    for path in notebooks.paths():
        chapter = notebooks.name(path).split("/")[0]
        for cell in notebooks.load(path).cells:
            if cell.cell_type == "markdown":
                for label in re.findall(r"^\(([\w-]+)\)=\s*^#", cell.source, re.MULTILINE):
                    found[label] = ("ref", "section", chapter)
                stated = r"^:{3,}\{prf:(\w+)\}.*\n:label: ([\w-]+)$"
                for kind, label in re.findall(stated, cell.source, re.MULTILINE):
                    found[label] = ("prf:ref", kind, chapter)
            elif name := cell.metadata.get("mystnb", {}).get("figure", {}).get("name"):
                found[name] = ("numref", "figure", chapter)
    return found


@cache
def recorded():
    """The recorded claims of every item, as {item: [(page, id), …]}, in the order of the book."""
    found = {}
    for page, records in scoreboard.collect(notebooks.CHAPTERS).items():
        for claim in records:
            place = (page.removesuffix(".ipynb"), claim.id)
            found.setdefault(claim.id.split(".")[0], []).append(place)
    return found


def measured(id):
    """What the last column says of an item: the number of its claims, linked to the first card."""
    found = recorded().get(id, [])
    if not found:
        return ""
    page, first = found[0]
    card = first.replace(".", "-")
    number = f"{len(found)} claim{'s' if len(found) > 1 else ''}"
    return f"[{number}](../{page}.html#claim-{card}){{.external}}"


def gaps(row):
    """What is wrong with a row, in sentences."""
    chapter, kinds = ITEMS[row.id]
    roles = ROLE.findall(row.where)
    known = {label: places()[label] for _, label in roles if label in places()}
    said = [f"{label} is no label of the book" for _, label in roles if label not in known]
    said += [
        f"{label} is no target of {role}"
        for role, label in roles
        if label in known and known[label][0] != role
    ]
    said += [
        f"{label} is not in {chapter}" for label, place in known.items() if place[2] != chapter
    ]
    what = {place[1] for place in known.values()}
    if row.kinds != kinds:
        said.append(f"the kinds are {kinds}")
    if "section" not in what:
        said.append("no section")
    if "T" in kinds and not what.intersection(PROVED):
        said.append("no theorem")
    if "F" in kinds and "figure" not in what:
        said.append("no figure")
    if "M" in kinds and row.id not in recorded():
        said.append("no claim")
    if "E" in kinds and "(errata.ipynb)" not in row.where:
        said.append("no link to the errata")
    if row.measured != measured(row.id):
        said.append(f"the last column should be {measured(row.id)!r}")
    return said


def test_the_page_has_every_item_once_and_no_other():
    assert [row.id for row in rows(PAGE.read_text(encoding="utf-8"))] == list(ITEMS)


@pytest.mark.parametrize("id", ITEMS)
def test_every_item_has_its_place(id):
    found = [row for row in rows(PAGE.read_text(encoding="utf-8")) if row.id == id]
    assert len(found) == 1
    assert gaps(found[0]) == []


def test_linked_pages_exist():
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / link).is_file(), link


def test_every_claim_belongs_to_an_item():
    beyond = {
        item for item in recorded() if item not in ITEMS and item.split("-")[0] not in APPENDICES
    }
    assert beyond == {item for item, _ in BEYOND_SYLLABUS}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("`thm-flow`", "`thm-flaw`", "thm-flaw is no label of the book"),
        ("{prf:ref}`thm-flow`", "{numref}`thm-flow`", "thm-flow is no target of numref"),
        ("`thm-flow`", "`thm-rf-init`", "thm-rf-init is not in 01_kernels"),
        ("{ref}`sec-flow`", "", "no section"),
        (r"\{prf:ref\}\S+", "", "no theorem"),
        (r"\{numref\}\S+", "", "no figure"),
        (r"T F M", "T F", "the kinds are T F M"),
        (r"\d claims", "99 claims", "the last column should be"),
    ],
)
def test_a_broken_row_is_noticed(old, new, complaint):
    line = next(
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`ker-flow` |" in line
    )
    broken = re.sub(old, new, line)
    assert broken != line
    assert complaint in " ".join(gaps(*rows(broken)))
