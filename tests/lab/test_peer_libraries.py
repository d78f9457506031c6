"""benchmarks.peers: each library is called as its documents say, at its fastest setting, and one that is not there is
told.

Stand-ins have the few names that are called of libraries that CI does not have. They record how they were called.
"""

import functools
import importlib
import json
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import clocks, device_peers, host_stage, libraries
from benchmarks.peers.device_peers import DevicePeer
from benchmarks.peers.libraries import Entry
from vecadd.bench.operands import HOST, Buffers

pytestmark = pytest.mark.no_native

Add = Callable[..., Any]


class Array(np.ndarray):
    """An array as JAX's or a tensor, whichever is asked."""

    def block_until_ready(self) -> "Array":
        return self

    def data_ptr(self) -> int:
        return self.ctypes.data

    def numel(self) -> int:
        return self.size

    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def split(self, most: int) -> "list[Array]":
        return [self[at : at + most] for at in range(0, self.size, most)]

    def copy_(self, source: np.ndarray) -> None:
        self[...] = source


def array(values: Sequence[float], dtype: str = "float32") -> Array:
    return np.array(values, dtype).view(Array)


def broken() -> None:
    raise RuntimeError("its driver is too old")


def test_a_library_that_is_not_there_or_does_not_work_is_unmeasured_with_the_reason() -> None:
    missing: list[str] = []
    entries = [
        Entry(
            "A", "no_such_library.part", "a-lib[cu13]", functools.partial(importlib.import_module, "no_such_library")
        ),
        Entry("B", "json", "b-lib", broken),
        Entry("C", "json", "c-lib", None),
        Entry("D", "no_such_library", "d-lib", None),
        Entry("E", "json", "e-lib", lambda: "E"),
        Entry("F", "", "f-lib", broken),
    ]
    assert list(libraries.meeting("peer-device", entries, missing)) == ["E"]
    assert missing == [
        "peer-device A: unmeasured: not installed: pip install 'a-lib[cu13]'",
        "peer-device B: unmeasured: RuntimeError: its driver is too old",
        "peer-device C: unmeasured: no addition is written for it",
        "peer-device D: unmeasured: not installed: pip install 'd-lib'; and no addition is written for it",
        "peer-device F: unmeasured: RuntimeError: its driver is too old",
    ]


def test_each_library_has_a_row_of_its_own_in_its_stages_table() -> None:
    for table in (device_peers.entries(in_a_row=True), host_stage.ENTRIES):
        names = [entry.name for entry in table]
        assert names[0] == "vecadd"
        assert len(set(names)) == len(names)
        assert all(entry.package for entry in table)


def test_the_fastest_setting_is_found_again_at_another_size() -> None:
    seconds = {"small blocks": lambda n: n * 1e-9, "large blocks": lambda n: 1e-7 + n * 1e-10}
    peer = DevicePeer("it", {name: name for name in seconds})  # type: ignore[misc]
    contestant = peer.contestant(HOST, lambda setting: lambda sets: seconds[setting](len(sets[0].out)))  # type: ignore[index]
    for n, fastest in ((10, "small blocks"), (10_000, "large blocks"), (20, "small blocks")):
        sets = [Buffers(None, None, np.empty(n), 0)]
        assert contestant.time(sets) == min(time(n) for time in seconds.values())
        assert contestant.extra_params is not None
        assert contestant.extra_params(sets[0]) == {"setting": fastest}


class NumExpr:
    """numexpr on one expression: `re_evaluate` repeats what was evaluated last, into the same out."""

    MAX_THREADS = 64

    def __init__(self, add: Add) -> None:
        self.add = add
        self.threads = 64
        self.asked: set[int] = set()

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, count: int) -> None:
        self.threads = count
        self.asked.add(count)

    def evaluate(self, expression: str, local_dict: Any, global_dict: Any, out: Any = None) -> Any:
        assert (expression, global_dict) == ("a + b", {})
        self.out = out
        return self.re_evaluate(local_dict, global_dict)

    def re_evaluate(self, local_dict: Any, global_dict: Any) -> Any:
        return self.add(local_dict["a"], local_dict["b"], out=self.out)


class Jax:
    """JAX with a CPU: a donated argument is gone, and its memory is the sum's."""

    def __init__(self, add: Add) -> None:
        self.add = add
        self.config = SimpleNamespace(update=lambda name, value: None)

    def devices(self, platform: str) -> list[str]:
        return [platform]

    def device_put(self, x: np.ndarray, device: str, may_alias: bool | None = None) -> Array:
        assert device == "cpu"
        return x.view(Array) if may_alias is None else x.copy().view(Array)

    def jit(self, function: Add, donate_argnums: int | None = None, keep_unused: bool = False) -> Add:
        def call(a: Array, b: Array, *donated: Array) -> Array:
            assert bool(donated) == keep_unused == (donate_argnums == 2)
            return self.add(a, b, out=donated[0] if donated else None).view(Array)

        return call


@pytest.fixture
def host_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """host_rows(modules): the host stage's rows of float32 by name, on a machine that has these modules."""

    def run(modules: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.setattr(libraries, "module", modules.__getitem__)
        arguments = ["--stage", "host", "--sizes", "1000", "--dtypes", "float32", "--seconds-per-cell", "0.001"]
        monkeypatch.setattr(sys, "argv", ["peers", "--json-dir", str(tmp_path), *arguments])
        monkeypatch.setattr(host_stage.os, "sched_getaffinity", lambda pid: {0, 1, 2})
        monkeypatch.setattr(clocks, "LOOK", 1e-4)  # no stand-in has a thread that spins
        monkeypatch.setattr(host_stage, "IDLE", 1e-4)
        monkeypatch.setattr(host_stage, "MOST_KEPT", 4)
        peers.main()
        return {row["rung"]: row for row in json.loads((tmp_path / "peer-host.json").read_text())["rows"]}

    return run


def modules_that_add_by(add: Add) -> dict[str, Any]:
    return {"numexpr": NumExpr(add), "numkong": numkong_that_adds_by(add), "jax": Jax(add)}


def numkong_that_adds_by(add: Add) -> SimpleNamespace:
    def from_pointer(address: int, shape: tuple[int], dtype: str, owner: np.ndarray) -> np.ndarray:
        assert (address, shape, dtype) == (owner.ctypes.data, owner.shape, str(owner.dtype))
        return owner

    return SimpleNamespace(add=lambda a, b, out=None: add(a, b, out=out), from_pointer=from_pointer)


EVERY = ("numexpr", "numkong", "jax")


def arrow(met: list[int]) -> dict[str, Any]:
    """pyarrow, whose arrays' distances from NumPy's memory join ``met``."""
    pyarrow = pytest.importorskip("pyarrow")

    def array(x: np.ndarray) -> Any:
        result = pyarrow.array(x)
        met.append(result.buffers()[1].address - x.ctypes.data)
        return result

    module = SimpleNamespace(array=array, default_memory_pool=pyarrow.default_memory_pool)
    return {"pyarrow": module, "pyarrow.compute": importlib.import_module("pyarrow.compute")}


def test_libraries_on_the_host_meet_in_every_form_that_they_have(host_rows: Callable[..., dict[str, Any]]) -> None:
    met: list[int] = []
    modules = modules_that_add_by(np.add)
    rows = host_rows(modules | arrow(met))
    assert [label for label, row in rows.items() if not (row["checked"] and row["seconds"])] == []
    forms = {f"{who} {form}" for who in ("vecadd", "numpy", *EVERY) for form in host_stage.FORMS}
    assert set(rows) == forms | {"arrow a + b", "arrow a + b, kept"}
    assert set(met) == {0}, "Arrow copied an operand"
    assert modules["numexpr"].asked == {1, 3}
    for label in ("numexpr out=", "numexpr a + b", "numkong out="):
        assert rows[label]["params"]["setting"] in ("1 thread", "3 threads")
    assert "setting" not in rows["numkong a + b"]["params"]


def test_a_library_on_the_host_that_adds_wrongly_does_not_pass(host_rows: Callable[..., dict[str, Any]]) -> None:
    rows = host_rows(modules_that_add_by(np.subtract))
    wrong = {label for label, row in rows.items() if str(row["error"]).startswith("wrong result: element ")}
    assert wrong == {f"{who} {form}" for who in EVERY for form in host_stage.FORMS}


def test_an_addition_on_several_threads_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "module", {"numkong": numkong_that_adds_by(np.add)}.__getitem__)
    monkeypatch.setattr(host_stage.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    split = host_stage.numkong().into["3 threads"]
    for n in (1, 2, 3, 7, 3000):
        a, out = np.arange(n, dtype=np.float32), np.full(n, -1, np.float32)
        split(a, a, out)()
        assert (out == 2 * a).all()


@pytest.fixture
def device_peer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, Any]], DevicePeer]:
    """device_peer(name, modules): the peer of that name on a machine that has these modules."""

    def make(name: str, modules: dict[str, Any]) -> DevicePeer:
        monkeypatch.setattr(libraries, "module", modules.__getitem__)
        entries = [entry for entry in device_peers.entries(["float32"]) if entry.name == name]
        (peer,) = libraries.meeting("peer-device", entries, [])
        return peer

    return make


def sums(peer: DevicePeer, dtype: str = "float32") -> dict[str, list[Any]]:
    """By setting, what the peer makes of [1, 2, 3] + [10, 20, 30]."""
    outs = {name: array([0, 0, 0], dtype) for name in peer.settings}
    for name, add in peer.settings.items():
        add(array([1, 2, 3], dtype), array([10, 20, 30], dtype), outs[name])
    return {name: out.tolist() for name, out in outs.items()}


def test_torch_compiles_for_each_size_in_two_modes(device_peer: Callable[..., DevicePeer]) -> None:
    config = SimpleNamespace(recompile_limit=8, accumulated_recompile_limit=256)
    asked: list[tuple[str, bool]] = []

    def compiled(function: Add, mode: str, dynamic: bool) -> Add:
        asked.append((mode, dynamic))
        return function

    pairs = lambda x: x.view(np.float32).reshape(-1, 2)  # noqa: E731
    torch = SimpleNamespace(compile=compiled, view_as_real=pairs)
    peer = device_peer("torch.compile", {"torch": torch, "torch._dynamo": SimpleNamespace(config=config)})
    assert asked == [("default", False), ("max-autotune-no-cudagraphs", False)]
    assert list(sums(peer).values()) == [[11, 22, 33]] * 2
    cells = 10 * len(device_peers.DTYPES)
    assert min(config.recompile_limit, config.accumulated_recompile_limit) > cells


def test_helion_adds_by_kernels_of_each_shape(device_peer: Callable[..., DevicePeer]) -> None:
    shapes: list[tuple[int, int]] = []

    def add(a: Any, b: Any, out: Any, block: int, warps: int) -> None:
        shapes.append((block, warps))
        np.add(a, b, out=out)

    kernels = SimpleNamespace(add_by_helion=add)
    peer = device_peer("helion", {"helion": None, "benchmarks.peers.triton_add": kernels})
    assert set(map(tuple, sums(peer).values())) == {(11, 22, 33)}
    assert [f"block {block}, {warps} warps" for block, warps in shapes] == list(peer.settings)


def test_cuda_compute_makes_one_transformation_a_dtype(device_peer: Callable[..., DevicePeer]) -> None:
    made: list[str] = []

    def make_binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: str) -> Add:
        made.append(str(d_in1.dtype))

        def transform(d_in1: Any, d_in2: Any, d_out: Any, op: str, num_items: int) -> None:
            assert (op, num_items) == ("plus", d_out.size)
            np.add(d_in1, d_in2, out=d_out)

        return transform

    compute = SimpleNamespace(make_binary_transform=make_binary_transform, OpKind=SimpleNamespace(PLUS="plus"))
    peer = device_peer("cuda.compute", {"cuda.compute": compute})
    for dtype in ("float32", "int8", "float32"):
        assert sums(peer, dtype) == {"": [11, 22, 33]}
    assert made == ["float32", "int8"]


NVCC = """#!/bin/sh
# Writes down its options and compiles a substitute for cub.cu.
printf '%s\\n' "$@" > "$(dirname "$0")/options"
while [ "$1" != -o ]; do shift; done
exec cc -shared -fPIC -x c -o "$2" - << 'END'
int cub_version(void) { return 3005002; }
int cub_add(const float *a, const float *b, float *c, long long n, void *stream)
{
    for (long long i = 0; i < n; i++)
        c[i] = a[i] + b[i];
    return 0;
}
END
"""


@pytest.mark.parametrize(
    ("header", "parts"),
    [("cub/cub.cuh", [""]), ("cub/cub/cub.cuh", ["cub", "thrust", "libcudacxx/include"])],
    ids=["an include folder", "a checkout"],
)
def test_cub_is_compiled_with_the_headers_that_are_named_and_says_which_they_are(
    header: str,
    parts: list[str],
    tmp_path: Path,
    device_peer: Callable[..., DevicePeer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvcc, headers = tmp_path / "nvcc", tmp_path / "cccl"
    nvcc.write_text(NVCC)
    nvcc.chmod(stat.S_IRWXU)
    (headers / header).parent.mkdir(parents=True)
    (headers / header).write_text("")
    monkeypatch.setattr(device_peers.toolkit, "find", lambda: SimpleNamespace(nvcc=nvcc))
    monkeypatch.setenv("VECADD_CCCL", str(headers))
    device_peers._compile_cub.cache_clear()
    try:
        peer = device_peer("CUB DeviceTransform", {})
        assert sums(peer) == {"": [11, 22, 33]}
    finally:
        device_peers._compile_cub.cache_clear()
    options = (tmp_path / "options").read_text().splitlines()
    assert [option for option in options if option.startswith("-I")] == [f"-I{headers / part}" for part in parts]
    assert peer.params == {"version": "CCCL 3.5.2"}


def test_a_folder_without_cubs_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_CCCL", str(tmp_path))
    monkeypatch.setattr(device_peers.toolkit, "find", lambda: SimpleNamespace(nvcc="nvcc"))
    with pytest.raises(FileNotFoundError, match=r"VECADD_CCCL=.* has neither cub/cub\.cuh nor cub/cub/cub\.cuh"):
        device_peers.cub(["float32"])
