"""vecadd.ladder.source: the file of each rung, and that of its kernel where it is another."""

import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vecadd import _carried, _core, code, ladder
from vecadd.code import Code

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
RUNGS = {rung["name"]: rung for rung in _core.rungs()}
WITH_KERNELS = [
    name
    for name, rung in RUNGS.items()
    if rung["kind"] in code.WITH_KERNELS and code.launched_rung(rung) and name != "copy_device"  # which has naive's
]


@pytest.mark.parametrize("name", RUNGS)
def test_a_rungs_source_begins_with_what_it_is_and_holds_its_row(name: str) -> None:
    code = ladder.source(name)
    assert re.match(r"//|/\*", code)
    assert code.count(f'.name = "{name}",') == 1


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_a_rungs_source_defines_its_kernel(name: str) -> None:
    function = code.kernel_function(name)
    assert len(re.findall(rf"__global__[^;{{]*\b{function}\(", ladder.source(name))) == 1


def test_a_file_is_shown_as_it_is() -> None:
    code = ladder.source("naive")
    assert code == (ROOT / "cuda/lab/ladder/06_naive.cu").read_text()
    assert (code.language, code.caption) == ("cuda", "cuda/lab/ladder/06_naive.cu")
    assert ladder.source("pinned").language == "c"


def test_a_kernel_in_another_file_follows_below_that_files_name() -> None:
    own, shared = (ROOT / "cuda/lab/ladder" / name for name in ("10_unroll2.cu", "unrolled.cuh"))
    code = ladder.source("unroll2")
    assert code == f"{own.read_text()}\n// cuda/lab/ladder/unrolled.cuh\n\n{shared.read_text()}"
    assert code.caption == "cuda/lab/ladder/10_unroll2.cu, cuda/lab/ladder/unrolled.cuh"


def test_an_installed_package_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_tree = _carried.sources()
    (tmp_path / "vecadd").mkdir()
    _carried.write_archive(tmp_path / _carried.ARCHIVE)
    monkeypatch.setattr(_carried, "ROOT", tmp_path)
    assert _carried.sources() == in_the_tree


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no rung is called 'nave'; did you mean naive"):
        ladder.source("nave")


# As a notebook shows it


class Text(HTMLParser):
    """The text of an HTML page's pre elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inside, self.text = False, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = self.inside or tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.text += data


@pytest.mark.parametrize("with_pygments", [True, False])
def test_a_notebook_shows_the_text_below_its_caption(with_pygments: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if with_pygments:
        pytest.importorskip("pygments")
    else:
        monkeypatch.setitem(sys.modules, "pygments", None)
    code = ladder.source("naive")
    page = code._repr_html_()
    assert page.startswith("<p><code>cuda/lab/ladder/06_naive.cu</code></p>\n")
    assert Text(page).text == code
    assert ('<span class="' in page) == with_pygments


def test_a_console_shows_the_text_itself() -> None:
    code = ladder.source("naive")
    assert repr(code) == str(code)


def test_a_pickle_keeps_what_it_is() -> None:
    code = pickle.loads(pickle.dumps(Code("x", "cuda", "a.cu")))
    assert (code, code.language, code.caption) == ("x", "cuda", "a.cu")
