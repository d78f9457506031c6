"""vecadd.ladder.source: the file of each rung, and that of its kernel where it is another."""

import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vecadd import _carried, _core, ladder
from vecadd.code import kernels, source
from vecadd.code.text import Code

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
RUNGS = {rung["name"]: rung for rung in _core.rungs()}
WITH_KERNELS = [
    name
    for name, rung in RUNGS.items()
    if rung["kind"] in source.WITH_KERNELS and kernels.launched(rung) and name != "copy_device"  # which has naive's
]


@pytest.mark.parametrize("name", RUNGS)
def test_a_rungs_source_begins_with_what_it_is_and_has_its_row_and_no_other(name: str) -> None:
    code = ladder.source(name)
    assert code.startswith((f"// {name}: ", f"static const struct rung {name} = {{"))
    assert re.findall(r'\.name = "(\w+)"', code)[0] == name
    assert re.findall(r'\.name = "(\w+)"', code)[1:] == (["naive"] if name == "copy_device" else [])


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_a_rungs_source_defines_its_kernel(name: str) -> None:
    function = kernels.function(name)
    assert len(re.findall(rf"__global__[^;{{]*\b{function}\(", ladder.source(name))) == 1


def test_of_a_file_that_rungs_share_a_rungs_own_part_is_shown() -> None:
    code = ladder.source("naive")
    assert code in (ROOT / "cuda/lab/sharing.cu").read_text()
    assert code.startswith("// naive: one component a thread")
    assert code.endswith("    .launch = naive_launch,\n};\n")
    assert (code.language, code.caption) == ("cuda", "cuda/lab/sharing.cu")


def test_a_kernel_in_another_file_follows_below_that_files_name() -> None:
    shared = (ROOT / "cuda/lab/unrolled.cuh").read_text()
    code = ladder.source("unroll2")
    assert code.startswith("// unroll2: ")
    assert code.endswith(f"}};\n\n// cuda/lab/unrolled.cuh\n\n{shared}")
    assert code.caption == "cuda/lab/unrolling.cu, cuda/lab/unrolled.cuh"


def test_a_kernel_that_two_rungs_of_a_file_share_follows_without_the_other_rung() -> None:
    code = ladder.source("coarsen4")
    assert "\n// cuda/lab/unrolling.cu\n\n" in code
    assert "coarsen2" not in code.partition("};\n")[2]
    assert code.caption == "cuda/lab/unrolling.cu"


def test_what_a_row_runs_follows_it() -> None:
    code = ladder.source("pinned")
    assert "\n// csrc/lab/ladder/transfer_rung.c\n\n" in code
    assert re.search(r"^copies_run\(", code, re.MULTILINE)
    assert code.language == "c"


@pytest.mark.parametrize(
    ("name", "uses", "not_used"),
    [
        ("half", r"^add_one\(", "add_tail"),
        ("streams2", r"^enum \{ CHUNK = 1 << 22,", "STEPS_A_CHUNK"),
        ("tuned_transfer", r"^run_by_core\(", "run_staged"),
        ("sgemm_naive", r"^launch_product\(", "multiply_tiles"),
    ],
)
def test_what_a_rung_uses_of_its_file_follows_without_the_rest(name: str, uses: str, not_used: str) -> None:
    code = ladder.source(name)
    assert re.search(uses, code, re.MULTILINE)
    assert not_used not in code


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
    assert page.startswith("<p><code>cuda/lab/sharing.cu</code></p>\n")
    assert Text(page).text == code
    assert ('<span class="' in page) == with_pygments


def test_a_console_shows_the_text_itself() -> None:
    code = ladder.source("naive")
    assert repr(code) == str(code)


def test_a_pickle_keeps_what_it_is() -> None:
    code = pickle.loads(pickle.dumps(Code("x", "cuda", "a.cu")))
    assert (code, code.language, code.caption) == ("x", "cuda", "a.cu")
