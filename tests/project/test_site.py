"""The documentation site: what its checker finds, how docstrings become its pages, and that the reference is complete.

`make docs` builds it, with every warning an error.
"""

import importlib
import re
from pathlib import Path

import pytest

import vecadd
from docs.site import check, docstrings

pytestmark = pytest.mark.no_native

DOCS = Path(__file__).resolve().parents[2] / "docs"

PAGE = """<html><head><link rel="stylesheet" href="style.css"></head><body>
<h1 id="title">A page</h1>
<a href="below/other.html#there">a link</a> <a href="#title">up</a> <a href="https://example.org/x#y">elsewhere</a>
<img src="picture.png" alt="what it shows"> %s
</body></html>
"""


def site(folder: Path, more: str = "", style: str = "p { color: red }") -> Path:
    """Two pages, a picture and a stylesheet; `more` is on the first page."""
    (folder / "below").mkdir()
    (folder / "index.html").write_text(PAGE % more)
    (folder / "below" / "other.html").write_text('<h1 id="there">Other</h1><a href="../index.html">back</a>')
    (folder / "picture.png").touch()
    (folder / "style.css").write_text(style)
    return folder


def test_a_site_whose_links_and_anchors_lead_somewhere_passes(tmp_path: Path) -> None:
    assert check.main(site(tmp_path)) == 0


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('<a href="below/nothing.html">x</a>', "leads nowhere: below/nothing.html"),
        ('<a href="below/other.html#nowhere">x</a>', "no such anchor: below/other.html#nowhere"),
        ('<a href="#nowhere">x</a>', "no such anchor: #nowhere"),
        ('<img src="no.png" alt="x">', "leads nowhere: no.png"),
        ('<img src="picture.png">', "a picture without an alternative text: picture.png"),
        ('<img src="picture.png" alt=" ">', "a picture without an alternative text: picture.png"),
        ('<script src="https://cdn.example.org/x.js"></script>', "loads from elsewhere: https://cdn.example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads from elsewhere: //example.org/x.css"),
    ],
)
def test_the_checker_finds(more: str, problem: str, tmp_path: Path) -> None:
    assert list(check.problems(site(tmp_path, more))) == [f"index.html: {problem}"]
    assert check.main(tmp_path) == 1


@pytest.mark.parametrize("style", ["@import 'x.css';", "@font-face { src: url(https://example.org/font.woff2) }"])
def test_the_checker_finds_styles_that_load_from_elsewhere(style: str, tmp_path: Path) -> None:
    (found,) = check.problems(site(tmp_path, style=style))
    assert found.startswith("style.css: loads from elsewhere: ")


@pytest.mark.parametrize(
    ("docstring", "page"),
    [
        ("as `vecadd.add` does", "as `vecadd.add` does"),  # a link
        ("by `vecadd tune` or ``out``", "by ``vecadd tune`` or ``out``"),
        ("resize_ and a * b | c, by `a * b`", r"resize\_ and a \* b \| c, by ``a * b``"),
        ("__dlpack__ and a_b", r"__dlpack\_\_ and a_b"),
        ("See:\n\n    >>> 2 * 3\n    6", "See:\n\n>>> 2 * 3\n6"),
        ("Files:\n\n    a.py  one * two", "Files:\n\n::\n\n    a.py  one * two"),
        ("out\n    Where the sum goes.", "out\n    Where the sum goes."),
    ],
)
def test_a_docstring_becomes_restructured_text(docstring: str, page: str) -> None:
    assert "\n".join(docstrings.convert(docstring.split("\n"))) == page


def test_the_reference_has_every_public_name() -> None:
    text = (DOCS / "api" / "vecadd.md").read_text()
    described = set(re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)(?:\(\))?$", text, re.MULTILINE))
    modules = {name for name in vecadd.__all__ if not callable(getattr(vecadd, name))}
    assert described == set(vecadd.__all__) - modules
    assert all((DOCS / "api" / f"{name}.md").exists() for name in modules)


@pytest.mark.parametrize("page", sorted((DOCS / "api").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_reference_describes_all_of_its_module(page: Path) -> None:
    text = page.read_text()
    name = f"vecadd.{page.stem}" if page.stem != "vecadd" else page.stem
    assert text.startswith(f"# {name}\n")
    documented = re.findall(r"^\.\. automodule:: (\S+)\n((?:   :.*\n)*)", text, re.MULTILINE)
    assert documented[0][0] == name
    for module, options in documented:
        if hasattr(importlib.import_module(module), "__all__") and page.stem != "vecadd":
            assert ":members:" in options
