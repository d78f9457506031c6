"""vecadd bench --html: the tables and pictures of a run on one page."""

import re
from dataclasses import replace
from typing import Any

import made_up
import pytest
from made_up import run

from vecadd.bench import output
from vecadd.bench.sweeps import list_pictures, make_tables

pytestmark = pytest.mark.no_native

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

ELSEWHERE = ("<script", "<link", "@import", " src=", "url(http", 'href="http')
META: dict[str, Any] = {"failures": [], "skipped": []}
ROWS = [row for row in made_up.ladder() + made_up.size() if row.n <= 2**12]
OK = [row for row in ROWS if row.ok]


@pytest.fixture(scope="module")
def page() -> str:
    """A page of two sweeps, one of which has a row that failed."""
    return output.as_page(run(ROWS, machine="here & <there>", **META))


def section(page: str, anchor: str) -> str:
    return page.partition(f'<h2 id="{anchor}">')[2].partition("<h2 ")[0]


def test_each_sweep_has_its_pictures_and_tables(page: str) -> None:
    assert re.findall(r'<h2 id="([\w-]+)">', page) == ["the-machine", "ladder", "size", "method"]
    for sweep in ("ladder", "size"):
        rows = [row for row in ROWS if row.sweep == sweep]
        shown = section(page, sweep)
        assert re.findall(r'aria-label="Picture: ([\w-]+)"', shown) == list(list_pictures(run(rows)))
        assert re.findall(r"<caption>(.*)</caption>", shown) == [table.title for table in make_tables(rows)]
    assert '<th scope="row">naive</th>' in section(page, "size")
    assert "device memory: 4535 GB/s for an addition" in section(page, "the-machine")
    assert "<p>Size: by events</p>" in section(page, "method")
    assert "2026-01-02, commit 0123456789ab" in page


def test_a_page_says_first_what_failed(page: str) -> None:
    first = page.partition("<h2 ")[0]
    assert '<p class="verdict bad">Something failed or is above its limit.</p>' in first
    assert "<p>ladder float4 float32 2^12 failed: wrong result: element 3 is 1.0, the sum is 2.0</p>" in first
    passed = output.as_page(run(OK[:1], **META))
    assert '<p class="verdict good">Every sum is right, and no figure is above its limit.</p>' in passed
    assert '<p class="verdict bad">Nothing was measured.</p>' in output.as_page(run([], **META))
    for meta, rows in (
        ({**META, "failures": ["size: x"]}, OK[:1]),
        (META, [replace(OK[0], limit=(OK[0].gbps or 0) / 1.01)]),
    ):
        assert 'class="verdict bad"' in output.as_page(run(rows, **meta))


def test_a_page_loads_nothing_and_escapes_what_it_shows(page: str) -> None:
    assert [word for word in ELSEWHERE if word in page] == []
    assert "<h1>vecadd bench of here &amp; &lt;there&gt;</h1>" in page


def test_no_two_elements_of_a_page_have_one_id_and_every_reference_leads_to_one(page: str) -> None:
    found = re.findall(r'\bid="([^"]+)"', page)
    assert len(found) == len(set(found))
    referred = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)|aria-labelledby="([^"]+)"', page)
    assert {name for names in referred for each in names for name in each.split()} <= set(found)


def test_a_picture_has_the_pages_colours_and_no_black_or_white_of_its_own(page: str) -> None:
    picture = section(page, "size").partition('<svg class="picture"')[2].partition("</svg>")[0]
    assert "var(--paper)" in picture
    assert "var(--blue)" in picture
    assert not re.search(r"#(000000|ffffff|0072b2|dddddd)\b", picture, re.IGNORECASE)
