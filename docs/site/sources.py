"""Pages of the source files and folders that the documents link to: the project has no address on the network."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx

FOLDER = "source"  # of the pages, on the site
LINKED = "linked sources"  # of a document's metadata: the paths
DATA = (".json",)  # copied as they are: a browser shows them
LEXERS = {".cu": "x.cpp", ".cuh": "x.cpp", ".h": "x.c", "": "x.sh"}  # as which file an ending is highlighted


def link_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Leads links to source files and to folders to their pages."""
    docname = app.env.docname
    linked = app.env.metadata[docname].setdefault(LINKED, set())
    for link in list(doctree.findall(_may_be_source)):
        path = Path(app.env.relfn2path(link["reftarget"], docname)[0])
        if path.suffix in DATA or not Path(app.srcdir, path).exists():
            continue
        linked.add(path.as_posix())
        uri = os.path.relpath(f"{FOLDER}/{path.as_posix()}.html", Path(docname).parent)
        link.replace_self(nodes.reference("", "", *link.children, internal=True, refuri=uri))


def _may_be_source(node: nodes.Node) -> bool:
    """Whether a node is a link of a document to a file, or to what MyST knows not: a folder."""
    if isinstance(node, addnodes.pending_xref):
        return node.get("reftype") == "myst" and not node["refdomain"]
    return isinstance(node, addnodes.download_reference)


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file and folder that is linked, and for all that is below such a folder."""
    every: set[Path] = set()
    for metadata in app.env.metadata.values():
        for name in metadata.get(LINKED, ()):
            every |= {Path(name), *_below(Path(app.srcdir), Path(name))}
    for path in sorted(every):
        there = Path(app.srcdir, path)
        body = _listing(there, every, path) if there.is_dir() else _code(there)
        up = f'<p><a href="../{path.parent.name}.html">{path.parent}</a></p>' if path.parent in every else ""
        wrapped = str(path).replace("/", "/<wbr>")
        yield f"{FOLDER}/{path.as_posix()}", {"title": str(path), "body": f"<h1>{wrapped}</h1>{up}{body}"}, "page.html"


def _below(root: Path, folder: Path) -> Iterator[Path]:
    for path in (root / folder).rglob("*"):
        if "__pycache__" not in path.parts and path.suffix not in (".so", *DATA):
            yield path.relative_to(root)


def _listing(there: Path, every: set[Path], path: Path) -> str:
    names = sorted(child.name for child in there.iterdir() if path / child.name in every)
    return "<ul>" + "".join(f'<li><a href="{there.name}/{name}.html">{name}</a></li>' for name in names) + "</ul>"


def _code(path: Path) -> str:
    try:
        lexer = get_lexer_for_filename(LEXERS.get(path.suffix, path.name))
    except ClassNotFound:
        lexer = TextLexer()
    return str(highlight(path.read_text(), lexer, HtmlFormatter(wrapcode=True)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("doctree-read", link_sources, priority=400)  # before Sphinx copies what it takes for downloads
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True}
