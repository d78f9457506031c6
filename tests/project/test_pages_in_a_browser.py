"""The pages of bench, check, fleet and compare in Chromium: nothing is loaded, no width breaks them, and all can read.

Needs Playwright for Python and axe-core (``pip install playwright axe-playwright-python``), and the distribution's
Chromium.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import checks
import made_up
import pytest
import simulated_fleet as simulated

from vecadd import cli
from vecadd.bench import output
from vecadd.check import outputs
from vecadd.figures import write_run

pytestmark = [pytest.mark.no_native, pytest.mark.slow]

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core is not installed: pip install axe-playwright-python"
)

PAGES = ("fleet", "bench", "compare", "check")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
PATIENCE = 120e3  # milliseconds: a busy machine is slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each command, of made-up files."""
    made = tmp_path_factory.mktemp("pages")
    machines = made / "machines"
    machines.mkdir()
    for day in (1, 2):
        faults = simulated.planted(simulated.hosts(200), 1) if day == 2 else {}
        for content in simulated.fleet(200, day, faults, day):
            (machines / f"{content['host']}-{day}.json").write_text(json.dumps(content))
    rows = [*made_up.ladder(), *made_up.size(), *made_up.latency()]
    slower = [replace(row, value=row.value and 1.3 * row.value) for row in rows[::2]]
    write_run(made / "old.json", made_up.META, rows)
    write_run(made / "new.json", made_up.META, slower)
    assert cli.main(["fleet", str(machines), "--html", str(made / "fleet.html")]) == 1
    (made / "bench.html").write_text(output.as_page(made_up.run(rows)))
    both = [str(made / name) for name in ("old.json", "new.json")]
    assert cli.main(["compare", *both, "--html", str(made / "compare.html")]) == 1
    (made / "check.html").write_text(outputs.page(checks.graded()))
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(browser: Any, path: Path, **look: Any) -> Any:
    page = browser.new_context(**{"viewport": WIDE, **look}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(path.as_uri())
    return page


def test_it_asks_for_nothing_but_itself_and_reports_no_error(browser: Any, folder: Path, name: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    path = folder / f"{name}.html"
    page.goto(path.as_uri())
    assert (asked, said) == ([path.as_uri()], [])


@pytest.mark.parametrize(
    "look",
    [{}, {"color_scheme": "dark"}, {"viewport": PHONE}],
    ids=["light", "dark", "phone"],
)
def test_axe_finds_nothing(look: dict[str, Any], browser: Any, folder: Path, name: str) -> None:
    page = opened(browser, folder / f"{name}.html", **look)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_a_phone_scrolls_tables_and_pictures_and_not_the_page(browser: Any, folder: Path, name: str) -> None:
    page = opened(browser, folder / f"{name}.html", viewport=PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_first_tab_skips_to_the_content_and_the_others_reach_all_that_scrolls_or_opens(
    browser: Any, folder: Path, name: str
) -> None:
    page = opened(browser, folder / f"{name}.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    wanted = page.evaluate("document.querySelectorAll('main summary, main .scroll').length") - page.evaluate(
        "document.querySelectorAll('main details .scroll').length"
    )
    reached = 0
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached += page.evaluate("document.activeElement.matches('main summary, main .scroll')")
    assert reached == wanted > 0


def test_dark_is_dark_and_print_is_light(browser: Any, folder: Path, name: str) -> None:
    page = opened(browser, folder / f"{name}.html", color_scheme="dark")
    assert brightness(page) < 60
    page.emulate_media(media="print")
    assert brightness(page) == 255
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.pdf().startswith(b"%PDF")


def brightness(page: Any) -> float:
    """Of the page's ground, 0 to 255."""
    found = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    return sum(map(int, found[:3])) / 3


def test_the_pictures_take_the_pages_colours(browser: Any, folder: Path) -> None:
    inks = []
    for scheme in ("light", "dark"):
        page = opened(browser, folder / "bench.html", color_scheme=scheme)
        inks.append(page.evaluate("getComputedStyle(document.querySelector('svg.picture text')).fill"))
    assert inks == ["rgb(26, 26, 26)", "rgb(232, 232, 232)"]


def test_the_structure_has_its_landmarks_and_headings_in_order(browser: Any, folder: Path, name: str) -> None:
    page = opened(browser, folder / f"{name}.html")
    assert page.evaluate("document.documentElement.lang") == "en"
    counts = page.evaluate(
        "['header', 'nav', 'main', 'footer', 'h1'].map(each => document.querySelectorAll(each).length)"
    )
    assert counts == [1, 1, 1, 1, 1]
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => +each.tagName[1])")
    assert all(after <= before + 1 for before, after in pairwise(levels))
    heads = page.evaluate("[...document.querySelectorAll('th')].filter(each => !each.scope).length")
    assert heads == 0
