"""The code of the rungs: vecadd.ladder's source, sass and diff."""

import pickle
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vecadd import _carried, _core, code, ladder
from vecadd.bench.contestants import load_instruction
from vecadd.code import Code, difference

# vecadd.ladder.source: the file of each rung, and that of its kernel where it is another.

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
RUNGS = {rung["name"]: rung for rung in _core.rungs()}
WITH_KERNELS = [
    name
    for name, rung in RUNGS.items()
    if rung["kind"] in code.WITH_KERNELS and code.launched_rung(rung) and name != "copy_device"  # which has naive's
]


@pytest.mark.parametrize("name", RUNGS)
def test_a_rungs_source_begins_with_what_it_is_and_has_its_row_and_no_other(name: str) -> None:
    code = ladder.source(name)
    assert code.startswith((f"// {name}: ", f"static const struct rung {name} = {{"))
    assert re.findall(r'\.name = "(\w+)"', code)[0] == name
    assert re.findall(r'\.name = "(\w+)"', code)[1:] == (["naive"] if name == "copy_device" else [])


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_a_rungs_source_defines_its_kernel(name: str) -> None:
    function = code.kernel_function(name)
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


# vecadd.ladder.sass: the machine code of each rung's kernel, by NVIDIA's disassembler or as it was recorded.


ON_A_GPU = [name for name, rung in RUNGS.items() if code.launched_rung(rung)]
RECORDED = ("naive", "float4", "half2")


@pytest.fixture
def tool() -> None:
    if code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    if "sm_90" not in code.find_cubins():
        pytest.skip("the extension has no machine code for sm_90")


@pytest.fixture(scope="module")
def recording_of_three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel with these three rungs alone would carry."""
    if code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    path = tmp_path_factory.mktemp("recording") / "sm_90.json.xz"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_core, "rungs", lambda: [RUNGS[name] for name in RECORDED])
        code.write_recording(path)
    return path


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize(
    ("name", "dtype", "load"),
    [("naive", "float32", "LDG.E"), ("float4", "float32", "LDG.E.128"), ("naive", "int8", "LDG.E.U8"),
     ("half2", "float16", "LDG.E"), ("naive", "complex128", "LDG.E.64")],
)  # fmt: skip
def test_machine_code_has_the_rungs_load(name: str, dtype: str, load: str) -> None:
    listing = ladder.sass(name, dtype, arch="sm_90")
    assert load in re.findall(r"\bLDG[.\w]*", listing)
    assert listing.caption == f"{name}, {dtype}, sm_90"


def test_what_is_recorded_is_what_the_tool_says(
    tool: None, recording_of_three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {name: ladder.sass(name, arch="sm_90") for name in RECORDED}
    monkeypatch.setattr(code, "FILE", recording_of_three)
    monkeypatch.setattr(code, "find_disassembler", lambda: None)
    assert {name: ladder.sass(name) for name in RECORDED} == said


@pytest.mark.usefixtures("tool")
def test_a_listing_is_an_instruction_a_line_from_address_0_to_the_last_branch() -> None:
    kernel, *instructions = ladder.sass("naive", arch="sm_90").splitlines()
    assert kernel.startswith("// _Z9naive_addI13f32_component")
    addresses = [int(line[2:6], 16) for line in instructions]
    assert addresses == list(range(0, 16 * len(instructions), 16))
    assert instructions[-1].split()[1] == "BRA"
    assert sum("FADD" in line for line in instructions) == 1


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize("name", ON_A_GPU)
def test_each_rung_and_dtype_has_one_kernel(name: str) -> None:
    names = code.find_cubins()["sm_90"]
    for dtype in RUNGS[name]["dtypes"]:
        symbol = code.symbol_pattern(code.launched_rung(RUNGS[name]), dtype)
        assert len([each for each in names if symbol.match(each)]) == 1, dtype


@pytest.mark.usefixtures("tool")
def test_dtypes_of_one_component_share_a_kernel_and_others_do_not() -> None:
    def kernel(dtype: str) -> str:
        return ladder.sass("naive", dtype, arch="sm_90").splitlines()[0]

    assert kernel("int16") == kernel("uint16")
    assert kernel("complex64") == kernel("float32")
    one_each = ("bool", "int8", "int16", "int32", "int64", "float8_e4m3fn", "float16", "bfloat16", "float32", "float64")
    assert len({kernel(dtype) for dtype in one_each}) == len(one_each)


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize(
    ("name", "launched"),
    [("pageable", "naive"), ("streams2", "float4"), ("zero_copy", "naive"), ("staged", "tuned"), ("hybrid", "tuned")],
)
def test_a_transfer_shows_the_kernel_that_it_launches(name: str, launched: str) -> None:
    assert ladder.sass(name, arch="sm_90") == ladder.sass(launched, arch="sm_90")


# rungs()["load"]: each kernel loads by the instruction that its row names.


DEVICE_RUNGS = [name for name, rung in RUNGS.items() if rung["kind"] == "device"]
LOAD = re.compile(r"\b(?:LDG|LDGSTS|UBLKCP|UTMALDG)\b[.\w]*")


def width(load: str) -> int:
    """Bits of a load from global memory into registers or shared memory; bulk copies are any size."""
    if load.startswith("U"):
        return 1 << 20
    return next((bits for bits in (128, 64, 16, 8) if re.search(rf"\.[US]?{bits}\b", load)), 32)


@pytest.mark.slow
@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize("name", DEVICE_RUNGS)
def test_a_kernel_loads_by_the_instruction_of_its_row(name: str) -> None:
    """For float32 or, of a precision rung, float16."""
    load, found = RUNGS[name]["load"], LOAD.findall(ladder.sass(name, arch="sm_90"))
    assert found.count(load) >= RUNGS[name]["loads_in_flight"]
    widest = {each for each in found if width(each) >= width(load)}
    assert widest == {load}, "besides it a kernel has narrower loads alone: those of its tail"


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize("bytes_", [16, 8, 4])
@pytest.mark.parametrize("through_l1", [0, 1])
def test_an_asynchronous_copy_is_named_by_its_width_and_way(bytes_: int, through_l1: int) -> None:
    """Copies of less than 16 bytes have no way past the L1."""
    way = f"async_copy_addI13f32_componentLj{bytes_}ELb{int(through_l1 or bytes_ < 16)}ELj2E"
    (kernel,) = [name for name in code.find_cubins()["sm_90"] if way in name]
    loads = LOAD.findall(code.disassemble([kernel], "sm_90")[kernel])
    named = load_instruction(RUNGS["async_copy"], {"bytes": bytes_, "through_l1": through_l1})
    assert {load for load in loads if load.startswith("LDGSTS")} == {named}


@pytest.mark.parametrize("name", DEVICE_RUNGS)
def test_a_load_is_as_wide_as_the_row_says(name: str) -> None:
    load = RUNGS[name]["load"]
    if load.startswith("U"):
        assert RUNGS[name]["bytes_per_load"] == 16, "a thread's share of a bulk copy"
    else:
        assert width(load) == 8 * RUNGS[name]["bytes_per_load"]


@pytest.mark.usefixtures("tool")
def test_without_an_architecture_it_is_the_gpus_where_the_build_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_first_gpu", lambda: "sm_120")
    assert ladder.sass("tuned").caption == "tuned, float32, sm_120"
    assert ladder.sass("naive").caption == "naive, float32, sm_90"
    monkeypatch.setattr(code, "_first_gpu", lambda: None)
    assert ladder.sass("tuned").caption == "tuned, float32, sm_90"


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: ladder.source("nave"), ValueError, "no rung is called 'nave'; did you mean naive"),
        (lambda: ladder.sass("nave"), ValueError, "no rung is called 'nave'; did you mean naive"),
        (lambda: ladder.sass("half", "float32"), TypeError, "rung half takes float16, bfloat16, not float32"),
        (
            lambda: ladder.sass("threads"),
            ValueError,
            "rung threads adds on the host and has no GPU machine code; its sou",
        ),
        (lambda: ladder.diff("naive", "float4", "ptx"), ValueError, "what must be 'source' or 'sass', not 'ptx'"),  # type: ignore
    ],
)
def test_code_that_there_is_not_is_refused(ask: Callable[[], Code], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask()


@pytest.mark.usefixtures("tool")
def test_an_architecture_that_the_build_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="has machine code of naive for sm_90, not for 'sm_42'"):
        ladder.sass("naive", arch="sm_42")


# Without the tools


@pytest.mark.parametrize("recorded", [True, False])
def test_without_the_tools_it_is_said_what_to_install(
    recorded: bool, recording_of_three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "FILE", recording_of_three if recorded else recording_of_three / "none")
    monkeypatch.setattr(code, "find_disassembler", lambda: None)
    said = r"sm_90 alone; .*" if recorded else r"no machine code to read, and .*"
    with pytest.raises(FileNotFoundError, match=rf"{said}pip install nvidia-cuda-cuobjdump"):
        ladder.sass("naive", arch="sm_80")


def test_the_tools_are_found_where_cuda_home_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuobjdump", "nvdisasm"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.touch(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert code.find_disassembler() == (str(tmp_path / "bin" / "cuobjdump"), str(tmp_path / "bin" / "nvdisasm"))


# The file


def test_the_same_kernels_are_the_same_file(recording_of_three: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_core, "rungs", lambda: [RUNGS[name] for name in reversed(RECORDED)])
        code.write_recording(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == recording_of_three.read_bytes()


def test_a_build_for_other_architectures_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "find_disassembler", lambda: ("cuobjdump", "nvdisasm"))
    monkeypatch.setattr(code, "find_cubins", lambda: {"sm_120": {"_Z9naive_addI13f32_component": b""}})
    code.write_recording(tmp_path / "file")
    monkeypatch.setattr(code, "FILE", tmp_path / "file")
    assert code.read_recording() == {}


def test_a_recording_has_the_kernels_of_its_rungs_alone(
    recording_of_three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "FILE", recording_of_three)
    functions = {re.match(r"_Z\d+(\w+?)I", name)[1] for name in code.read_recording()}  # type: ignore[index]
    assert functions == {"naive_add", "float4_add", "half2_add"}


# vecadd.ladder.diff: what one rung changes against another, in its source and in its machine code.


def changed(diff: str, sign: str) -> list[str]:
    """The lines of one side alone."""
    return [line[1:].strip() for line in diff.splitlines()[2:] if line.startswith(sign)]


def test_sources_differ_in_the_load_and_not_in_the_comments_at_their_heads() -> None:
    diff = ladder.diff("naive", "float4")
    assert diff.startswith("--- cuda/lab/sharing.cu\n+++ cuda/lab/vectors.cu\n@@ ")
    assert any("reinterpret_cast<const vector *>(a)[i]" in line for line in changed(diff, "+"))
    assert any(line.startswith("naive_add(") for line in changed(diff, "-"))
    assert [line for line in (*changed(diff, "+"), *changed(diff, "-")) if line.startswith("//")] == []


def test_of_a_file_that_two_rungs_share_nothing_shows() -> None:
    diff = ladder.diff("unroll2", "unroll4")
    assert "unrolled_add" in ladder.source("unroll2")
    assert "unrolled_add" not in diff


def test_a_rung_does_not_differ_from_itself() -> None:
    assert ladder.diff("naive", "naive") == ""


@pytest.mark.usefixtures("tool")
def test_machine_code_differs_in_what_the_rung_changes_alone() -> None:
    diff = ladder.diff("naive", "restrict", "sass", arch="sm_90")
    assert [line.split()[0] for line in changed(diff, "-")] == ["LDG.E", "LDG.E"]
    assert [line.split()[0] for line in changed(diff, "+")] == ["LDG.E.CONSTANT", "LDG.E.CONSTANT"]


@pytest.mark.usefixtures("tool")
def test_machine_code_is_of_the_dtype_that_is_asked_for() -> None:
    diff = ladder.diff("naive", "float4", "sass", dtype="float64", arch="sm_90")
    assert diff.startswith("--- naive, float64, sm_90\n+++ float4, float64, sm_90\n")
    assert sum(line.startswith("DADD") for line in changed(diff, "+")) == 2


def test_addresses_do_not_count_but_other_numbers_do() -> None:
    one = Code("/*0000*/  @!P0 BRA 0x10 ;\n/*0010*/  LOP3 R1, 0xff ;\n/*0020*/  BRA 0x20 ;\n", "text", "one")
    two = Code("/*0000*/  @!P0 BRA 0x30 ;\n/*0010*/  LOP3 R1, 0xfe ;\n/*0020*/  BRA 0x40 ;\n", "text", "two")
    diff = difference(one, two)
    assert changed(diff, "-") == ["LOP3 R1, 0xff ;"]
    assert changed(diff, "+") == ["LOP3 R1, 0xfe ;"]
    assert (diff.language, diff.caption) == ("diff", "one → two")
