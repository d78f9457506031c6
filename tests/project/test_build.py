"""The build: what it asks for, what it compiles anew, what the extension and the wheel contain and need."""

import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import build_backend
from build_native import flags, toolkit
from vecadd import _carried, code

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]


# --- finding nvcc


def fake_toolkit(root: Path, version: str = "13.0") -> Path:
    """A folder with the parts of a CUDA toolkit that are looked at; returns its nvcc."""
    for name in ("bin/nvcc", "include/cuda_runtime_api.h", "lib64/libcudart_static.a"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    nvcc = root / "bin" / "nvcc"
    nvcc.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "release {version}, V{version}.1" || echo "#$ TOP={root}/bin/.."\n'
    )
    nvcc.chmod(0o755)
    return nvcc


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without CUDA, as toolkit.py sees it: its usual place and its Python packages are in this folder."""
    monkeypatch.setattr(toolkit, "USUAL_PLACE", tmp_path / "usual")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "variable", "value"),
    [
        ("one", "CUDACXX", "one/bin/nvcc"),
        ("one", "CUDA_HOME", "one"),
        ("one", "CUDA_PATH", "one"),
        ("one", "PATH", "one/bin"),
        ("usual", "PATH", "bin"),
        ("site-packages/nvidia/cu13", "PATH", "bin"),
    ],
    ids=["CUDACXX", "CUDA_HOME", "CUDA_PATH", "PATH", "its usual place", "a Python package"],
)
def test_nvcc_is_found_by(folder: str, variable: str, value: str, bare_machine: Path) -> None:
    nvcc = fake_toolkit(bare_machine / folder)
    found = toolkit.find({variable: str(bare_machine / value)})
    assert found.nvcc == nvcc
    assert found.version == (13, 0)
    assert found.include == bare_machine / folder / "include"
    assert found.cudart_static == bare_machine / folder / "lib64" / "libcudart_static.a"


def test_what_the_caller_names_comes_before_what_is_found(bare_machine: Path) -> None:
    for name in ("named", "home", "path", "usual"):
        fake_toolkit(bare_machine / name)
    environment = {
        "CUDACXX": f"{bare_machine}/named/bin/nvcc",
        "CUDA_HOME": f"{bare_machine}/home",
        "PATH": f"{bare_machine}/path/bin",
    }
    order = []
    for variable in ("CUDACXX", "CUDA_HOME", "PATH", "nothing more"):
        order.append(toolkit.find(environment).nvcc.parents[1].name)
        environment.pop(variable, None)
    assert order == ["named", "home", "path", "usual"]


def test_an_nvcc_that_does_not_run_is_passed_over(bare_machine: Path) -> None:
    shim = fake_toolkit(bare_machine / "shim")
    shim.write_text("#!/bin/sh\nexec /nonexistent/nvcc\n")
    nvcc = fake_toolkit(bare_machine / "usual")
    assert toolkit.find({"PATH": str(shim.parent)}).nvcc == nvcc


def test_an_nvcc_that_is_too_old_is_passed_over_and_named(bare_machine: Path) -> None:
    nvcc = fake_toolkit(bare_machine / "old", version="12.9")
    with pytest.raises(toolkit.ToolkitError, match=re.escape(f"CUDA_HOME: {nvcc} is version 12.9")):
        toolkit.find({"CUDA_HOME": f"{bare_machine}/old"})


@pytest.mark.usefixtures("bare_machine")
def test_where_no_nvcc_works_the_error_says_what_to_install_and_how_to_do_without() -> None:
    with pytest.raises(toolkit.ToolkitError) as caught:
        toolkit.find({"PATH": "/usr/bin"})
    assert "pip install 'cuda-toolkit[nvcc,cccl]==13." in str(caught.value)
    assert "VECADD_CUDA=0" in str(caught.value)


def test_the_build_asks_for_the_compiler_only_where_no_nvcc_works(bare_machine: Path) -> None:
    assert toolkit.missing_requirements({"PATH": "/usr/bin"}) == [toolkit.requirement()]
    fake_toolkit(bare_machine / "usual", version="14.0")
    assert toolkit.missing_requirements({"PATH": "/usr/bin"}) == []


@pytest.mark.usefixtures("bare_machine")
def test_a_host_only_build_asks_for_nothing() -> None:
    assert toolkit.missing_requirements({"VECADD_CUDA": "0"}) == []


def test_a_wheel_is_built_with_the_disassembler_and_an_editable_installation_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in ("wheel", "editable"):
        monkeypatch.setattr(build_backend.build_meta, f"get_requires_for_build_{kind}", lambda _: ["setuptools"])
    monkeypatch.setattr(build_backend, "missing_requirements", lambda: ["nvcc"])
    monkeypatch.setenv("VECADD_CUDA", "1")
    assert build_backend.get_requires_for_build_wheel() == ["setuptools", "nvcc", *toolkit.DISASSEMBLER]
    assert build_backend.get_requires_for_build_editable() == ["setuptools", "nvcc"]
    for without in ("VECADD_LAB", "VECADD_CUDA"):
        with monkeypatch.context() as context:
            context.setenv(without, "0")
            assert build_backend.get_requires_for_build_wheel() == ["setuptools", "nvcc"]


def test_a_build_without_the_laboratory_has_none_of_its_sources_and_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = (*flags.CORE, *flags.MODULE, *flags.KERNELS, *flags.TESTS, *flags.CONFORMANCE)
    everything = {str(source) for source in flags.sources(patterns)}
    monkeypatch.setenv("VECADD_LAB", "0")
    left_out = everything - {str(source) for source in flags.sources(patterns)}
    assert {name for name in everything if "/lab/" in name} == {
        name for name in left_out if not name.startswith("tests/")
    }
    assert "tests/c/kernels/test_device_rungs.c" in left_out, "it includes the laboratory's headers"
    assert "tests/double/conformance/programmatic.cu" in left_out, "a header beside it includes them"
    assert "tests/c/test_plan.c" not in left_out


def test_a_build_without_the_laboratory_takes_nothing_from_an_earlier_one(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="80")
    machine_code = tmp_path / "vecadd" / "x86_64.json.xz"

    def build(laboratory: str) -> tuple[int, str]:
        command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
        environment = {**os.environ, "VECADD_LAB": laboratory}
        run = subprocess.run(command, cwd=ROOT, env=environment, text=True, stderr=subprocess.PIPE, timeout=120)
        return run.returncode, run.stderr.strip().splitlines()[-1] if run.returncode else ""

    assert build("1") == (0, "")
    machine_code.touch()
    assert (tmp_path / _carried.ARCHIVE).is_file()
    assert build("0") == (0, "")
    assert not machine_code.exists()
    assert not (tmp_path / _carried.ARCHIVE).exists()
    status, said = build("no")
    assert (status, said.partition(": 1 ")[0]) == (1, "error: VECADD_LAB='no'")


def test_a_setting_that_is_neither_0_nor_1_is_refused() -> None:
    with pytest.raises(toolkit.ToolkitError, match="VECADD_CUDA='no'"):
        toolkit.wanted({"VECADD_CUDA": "no"})


@pytest.mark.parametrize(("libc", "version"), [("glibc 2.36", (13, 0)), ("glibc 2.42", (13, 2)), ("", (13, 0))])
def test_the_toolkit_goes_with_the_c_library(
    libc: str, version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _: libc)
    assert toolkit.minimum_version() == version
    assert toolkit.requirement() == f"cuda-toolkit[nvcc,cccl]=={version[0]}.{version[1]}.*"


# --- compiling what changed


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """Two C files, a header that one of them includes, and the build."""
    shutil.copytree(ROOT / "build_native", tmp_path / "build_native", ignore=shutil.ignore_patterns("__pycache__"))
    core = tmp_path / "csrc" / "base"
    core.mkdir(parents=True)
    (core / "with.c").write_text('#include "shared.h"\nint one = SHARED;\n')
    (core / "without.c").write_text("int two = 2;\n")
    (core / "shared.h").write_text("#define SHARED 1\n")
    return tmp_path


def compiled(tree: Path, **environment: str) -> set[str]:
    """Builds the tree's objects and returns the names of the files that were compiled."""
    result = build(tree, **environment)
    assert result.returncode == 0, result.stdout
    return set(re.findall(r"^\S+ csrc/base/(\S+\.c)$", result.stdout, re.MULTILINE))


def build(tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "build_native", "warnings"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": "", "VECADD_CUDA": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


def test_a_build_compiles_what_changed(small_tree: Path) -> None:
    """Not what has a new time on the same contents."""
    header = small_tree / "csrc/base/shared.h"
    assert compiled(small_tree) == {"with.c", "without.c"}
    header.touch()
    assert compiled(small_tree) == set()
    header.write_text("#define SHARED 3\n")
    assert compiled(small_tree) == {"with.c"}
    assert compiled(small_tree, CFLAGS="-DOTHER") == {"with.c", "without.c"}


def test_a_file_that_does_not_compile_is_shown_with_its_command_and_tried_again(small_tree: Path) -> None:
    compiled(small_tree)
    (small_tree / "csrc/base/without.c").write_text("int two = ;\n")
    first, second = build(small_tree), build(small_tree)
    assert first.returncode == second.returncode == 1
    assert "-c csrc/base/without.c" in first.stdout
    assert "error: expected expression" in second.stdout


def test_a_warning_is_an_error_until_its_file_is_mended(small_tree: Path) -> None:
    (small_tree / "csrc/base/without.c").write_text("static int unused;\n")
    first, second = build(small_tree), build(small_tree)
    assert first.returncode == second.returncode == 1
    assert first.stdout.count(" csrc/base/without.c\n") == 2, "when it was compiled, and in the list of warnings"
    assert second.stdout.count(" csrc/base/without.c\n") == 1, "it is not compiled again"
    assert "[-Wunused-variable]" in second.stdout
    (small_tree / "csrc/base/without.c").write_text("int used;\n")
    assert build(small_tree).returncode == 0


def test_a_host_only_build_says_so(small_tree: Path) -> None:
    assert "VECADD_CUDA=0: built for the host alone" in build(small_tree).stdout


# --- what came out


def needed(module: Path) -> set[str]:
    dynamic = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))


def symbols(module: Path, *options: str) -> set[str]:
    names = subprocess.run(["nm", "-D", *options, module], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in names.splitlines()}


@pytest.fixture
def extension() -> Path:
    module = ROOT / "vecadd" / f"_core{flags.module_suffix()}"
    if not module.is_file():
        pytest.skip("the extension is not built in the tree")
    return module


@pytest.fixture
def double_module() -> Path:
    module = ROOT / "build" / "double" / "_core.abi3.so"
    if not module.is_file():
        pytest.skip("the CUDA-runtime double is not built")
    return module


LIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux.*")


def test_the_extension_needs_libc_alone_and_exports_its_entry_alone(extension: Path) -> None:
    assert {library for library in needed(extension) if not LIBC.fullmatch(library)} == set()
    assert symbols(extension, "--defined-only") == {"PyInit__core"}
    assert {name for name in symbols(extension, "--undefined-only") if name.startswith("cu")} == set()


def test_a_debugger_and_a_profiler_find_their_way_through_the_extension(extension: Path) -> None:
    """By unwind tables, and by the index through which they are found."""
    sections = subprocess.run(["readelf", "-SW", extension], capture_output=True, text=True, check=True).stdout
    size = {name: int(size, 16) for name, size in re.findall(r"\] (\.eh_frame\w*)\s+\S+\s+\S+\s+\S+\s+(\S+)", sections)}
    functions = 1000  # ours alone; the CUDA runtime has tables of its own
    assert size[".eh_frame_hdr"] > 8 * functions
    assert size[".eh_frame"] > size[".eh_frame_hdr"]


def test_the_double_takes_no_cuda_symbol_and_exports_its_entry_and_its_control(double_module: Path) -> None:
    assert {name for name in symbols(double_module, "--undefined-only") if name.startswith("cu")} == set()
    assert {"PyInit__core", "double_reset", "double_fail"} <= symbols(double_module, "--defined-only")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the tree: VECADD_TEST_WHEEL, or one that is built with what is already compiled."""
    if given := os.environ.get("VECADD_TEST_WHEEL"):
        return Path(given)
    pytest.importorskip("setuptools", minversion="80")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q"]
    subprocess.run([*command, "-w", str(folder), str(ROOT)], check=True, timeout=600)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_is_small_has_the_package_alone_and_describes_itself_by_the_page_for_an_index(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    assert wheel.stat().st_size < 3_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (name,) = [name for name in names if name.endswith("/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    assert {"vecadd/_core.abi3.so", "vecadd/_core.pyi", "vecadd/py.typed", _carried.ARCHIVE} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"vecadd"}
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True) == (ROOT / "docs" / "pypi.md").read_bytes()


@pytest.mark.slow
def test_the_wheel_carries_what_the_notebooks_need(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extract(_carried.ARCHIVE, tmp_path)
    _carried.write_archive(tmp_path / "expected.zip")
    assert (tmp_path / _carried.ARCHIVE).read_bytes() == (tmp_path / "expected.zip").read_bytes()


@pytest.mark.slow
def test_the_wheel_carries_the_machine_code_of_every_rung(wheel: Path, tmp_path: Path) -> None:
    """For machines without a disassembler: what one says of the tree's extension, of the same kernels."""
    if code.find_disassembler() is None:
        pytest.skip(code.MISSING)
    zipfile.ZipFile(wheel).extract("vecadd/sm_90.json.xz", tmp_path)
    code.write_recording(tmp_path / "expected")
    assert (tmp_path / "vecadd/sm_90.json.xz").read_bytes() == (tmp_path / "expected").read_bytes()
