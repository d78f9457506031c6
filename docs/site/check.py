"""Checks a built site without a network: `python -m docs.site.check build/docs`.

Every link and picture leads to a file of the site, every anchor is there, every picture says in words what it shows,
and no page loads anything from elsewhere. `make docs-links` checks the links that a reader follows to elsewhere.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"audio", "iframe", "img", "script", "source", "video"}  # elements whose src a browser loads by itself
FETCHED = re.compile(r"@import|url\(\s*['\"]?(?:https?:)?//")


class Page(HTMLParser):
    """What a page names and what it leads to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []  # what the browser fetches to show the page
        self.nameless: list[str] = []  # pictures without an alternative text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given and tag != "meta"}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and "stylesheet" in given.get("rel", ""):
            self.loads.append(given.get("href", ""))
        if tag in LOADED and "src" in given:
            self.loads.append(given["src"])
        if tag == "img" and not given.get("alt", "").strip():
            self.nameless.append(given.get("src", ""))


def problems(site: Path) -> Iterator[str]:
    """One line for each thing that is wrong, with the page that has it."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        for picture in page.nameless:
            yield f"{name}: a picture without an alternative text: {picture[:60]}"
        for link in page.loads:
            if urlsplit(link).netloc:
                yield f"{name}: loads from elsewhere: {link}"
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{name}: leads nowhere: {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: no such anchor: {link}"
    for path in sorted(site.rglob("*.css")):
        if found := FETCHED.search(path.read_text()):
            yield f"{path.relative_to(site)}: loads from elsewhere: {found[0]}"


def main(site: Path) -> int:
    """The exit status: 1 where something is wrong."""
    found = list(problems(site.resolve()))
    print("\n".join(found) or f"{sum(1 for _ in site.rglob('*.html'))} pages: every link and anchor leads somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
