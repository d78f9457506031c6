"""The start page's menu, and the alternative texts of the notebooks' pictures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

# Of the menu: titles of groups and their documents. "*" means every document of docs that no group names.
GROUPS = {
    "How to": [
        "install",
        "host-arrays",
        "device-arrays",
        "repeated",
        "larger-than-memory",
        "recipes",
        "sums",
        "errors",
        "tuning",
        "why",
        "why-programs",
        "check",
        "commands",
        "fleet",
    ],
    "Reference": ["api/vecadd", "api/*"],
    "Laboratory": ["laboratory", "*"],
    "Notebooks": ["/notebooks/*"],
    "Measured": ["results-device", "results-host", "/benchmarks/README"],
    "The project": [
        "The README </README>",
        "All documents <README>",
        "/ARCHITECTURE",
        "/CONTRIBUTING",
        "/SECURITY",
        "/CHANGELOG",
        "pypi",
    ],
}


def complete(app: Sphinx, docname: str, source: list[str]) -> None:
    """Gives the start page the menu."""
    if docname == app.config.root_doc:
        source[0] += "".join(menu(app.env.found_docs))


def menu(found: set[str]) -> Iterator[str]:
    """A tree of contents for each group, of the documents that are there."""
    named = {entry.rpartition("<")[2].rstrip(">") for entries in GROUPS.values() for entry in entries} | {"index"}
    others = sorted({path.name for path in map(Path, found) if path.parent == Path("docs")} - named)
    for title, entries in GROUPS.items():
        listed = [name for entry in entries for name in (others if entry == "*" else [entry])]
        yield "\n".join(["", ":::{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *listed, ":::", ""])


def name_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Gives a notebook's picture the alternative text that is beside it in its output, as plain text."""
    for output in doctree.findall(lambda node: isinstance(node, nodes.container) and "mime_type" in node):
        for picture in output.findall(nodes.image):
            plain = [node for node in output.parent.children if node.get("mime_type") == "text/plain"]
            picture["alt"] = " ".join("".join(node.astext() for node in plain).split())


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("source-read", complete)
    app.connect("doctree-read", name_pictures)
    return {"parallel_read_safe": True}
