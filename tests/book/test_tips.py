"""What a tip shows of a page."""

import pytest

from book import tips

PAGE = """<p id="other">x</p>
<div class="proof theorem admonition" id="thm-a"><div><a href="b.html">A</a>
<a class="headerlink" href="#thm-a">#</a></div><p id="inner">end</p></div>
<div class="math notranslate" id="equation-eq-a">\\[x\\]</div>
<figure class="align-default" id="fig-a"><img src="../_images/a.png"/></figure>
<dl><dt id="term-kernel">kernel</dt><dd><p>A function.</p></dd></dl>
<div class="citation" id="id3"><p>Book.</p></div>
<div class="exercise admonition" id="ex-a"><p>no tip</p></div>"""


def test_terms_theorems_equations_figures_and_references_have_tips():
    found = {id: tips.bare(text, "chapters/one") for id, text in tips.targets(PAGE)}
    assert list(found) == ["thm-a", "equation-eq-a", "fig-a", "term-kernel", "id3"]
    assert found["thm-a"].endswith("<p>end</p></div>") and "<a" not in found["thm-a"]
    assert "#" not in found["thm-a"] and "id=" not in "".join(found.values())
    assert 'src="_images/a.png"' in found["fig-a"]
    assert found["term-kernel"] == "<dd><p>A function.</p></dd>"


def test_an_element_that_does_not_end_is_named():
    with pytest.raises(ValueError, match="<div> is not closed"):
        tips.element("<div><div></div>", 0, "div")
