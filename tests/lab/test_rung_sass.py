"""vecadd.ladder.sass: the machine code of each rung's kernel, by NVIDIA's disassembler or as it was recorded."""

import re
from pathlib import Path

import pytest

from vecadd import _core, code, ladder

pytestmark = pytest.mark.no_native

RUNGS = {rung["name"]: rung for rung in _core.rungs()}
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


@pytest.fixture(params=["by the tool", "as recorded"])
def either_way(
    request: pytest.FixtureRequest, tool: None, recording_of_three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.param == "as recorded":
        monkeypatch.setattr(code, "FILE", recording_of_three)
        monkeypatch.setattr(code, "find_disassembler", lambda: None)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("name", "dtype", "load"),
    [("naive", "float32", "LDG.E"), ("float4", "float32", "LDG.E.128"), ("naive", "int8", "LDG.E.U8"),
     ("half2", "float16", "LDG.E"), ("naive", "complex128", "LDG.E.64")],
)  # fmt: skip
def test_machine_code_holds_the_rungs_load(name: str, dtype: str, load: str) -> None:
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


@pytest.mark.usefixtures("tool")
def test_without_an_architecture_it_is_the_gpus_where_the_build_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_first_gpu", lambda: "sm_120")
    assert ladder.sass("tuned").caption == "tuned, float32, sm_120"
    assert ladder.sass("naive").caption == "naive, float32, sm_90"
    monkeypatch.setattr(code, "_first_gpu", lambda: None)
    assert ladder.sass("tuned").caption == "tuned, float32, sm_90"


@pytest.mark.usefixtures("tool")
def test_an_architecture_that_the_build_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="has machine code of naive for sm_90, not for 'sm_42'"):
        ladder.sass("naive", arch="sm_42")


def test_a_rung_of_the_host_has_none() -> None:
    with pytest.raises(ValueError, match="rung threads adds on the host and has no GPU machine code; its source"):
        ladder.sass("threads")


def test_names_and_dtypes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no rung is called 'nave'; did you mean naive"):
        ladder.sass("nave")
    with pytest.raises(TypeError, match="rung half takes float16, bfloat16, not float32"):
        ladder.sass("half", "float32")


# Without the tools


def test_a_recording_serves_one_architecture(recording_of_three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "FILE", recording_of_three)
    monkeypatch.setattr(code, "find_disassembler", lambda: None)
    with pytest.raises(FileNotFoundError, match=r"sm_90 alone; .*pip install nvidia-cuda-cuobjdump"):
        ladder.sass("naive", arch="sm_80")


def test_without_a_recording_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "FILE", tmp_path / "none")
    monkeypatch.setattr(code, "find_disassembler", lambda: None)
    with pytest.raises(FileNotFoundError, match=r"no machine code to read, and .*pip install nvidia-cuda-cuobjdump"):
        ladder.sass("naive")


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


def test_a_recording_holds_the_kernels_of_its_rungs_alone(
    recording_of_three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "FILE", recording_of_three)
    functions = {re.match(r"_Z\d+(\w+?)I", name)[1] for name in code.read_recording()}  # type: ignore[index]
    assert functions == {"naive_add", "float4_add", "half2_add"}
