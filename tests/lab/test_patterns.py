"""Memory tests: the patterns that are written and looked for, in the host's memory and in a device's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd import _core

WORDS = 5003
PATTERNS = ["address", "inverse", "walking one", "walking zero", "random"]
MASK = (1 << 64) - 1


def place_of(x: Any) -> int:
    """The place of the first word: its address, in words."""
    address = x.ctypes.data if isinstance(x, np.ndarray) else x.__cuda_array_interface__["data"][0]
    return int(address) // 8


def word(pattern: str, place: int, seed: int) -> int:
    if pattern == "address":
        return place
    if pattern == "inverse":
        return ~place & MASK
    if pattern == "walking one":
        return 1 << (place + seed) % 64
    if pattern == "walking zero":
        return ~(1 << (place + seed) % 64) & MASK
    mixed = (place + (seed + 1) * 0x9E3779B97F4A7C15) & MASK  # splitmix64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
    return mixed ^ mixed >> 31


@pytest.fixture(params=["host", "device"])
def made(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """made(): memory of WORDS words, of the host or of a device."""
    if request.param == "host":
        return lambda: np.zeros(WORDS, np.uint64)
    device = request.getfixturevalue("device")
    return lambda: vecadd.to_device(np.zeros(WORDS, np.uint64), device=device)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_word_is_its_patterns(made: Callable[[], Any], pattern: str) -> None:
    memory = made()
    for seed in (0, 1, 77):
        assert _core.pattern_write(memory, pattern, seed) >= 0
        written = memory if isinstance(memory, np.ndarray) else memory.numpy()
        place = place_of(memory)
        assert written.tolist() == [word(pattern, place + i, seed) for i in range(WORDS)]
        assert _core.pattern_check(memory, pattern, seed)[1:] == (0, 8 * place, [])


def test_a_flipped_bit_is_found_where_it_is(made: Callable[[], Any], request: pytest.FixtureRequest) -> None:
    memory = made()
    _core.pattern_write(memory, "random", 3)
    place = place_of(memory)
    right = word("random", place + 4711, 3)
    if isinstance(memory, np.ndarray):
        memory[4711] ^= np.uint64(1 << 17)
    else:
        flipped = (right ^ 1 << 17).to_bytes(8, "little")
        request.getfixturevalue("double").device_write(8 * (place + 4711), flipped)
    _, wrong, address, words = _core.pattern_check(memory, "random", 3)
    assert (wrong, address, words) == (1, 8 * place, [(4711, right, right ^ 1 << 17)])


def test_all_wrong_words_are_counted_and_some_are_told(made: Callable[[], Any]) -> None:
    memory = made()
    _core.pattern_write(memory, "walking one", 0)
    _, wrong, _, words = _core.pattern_check(memory, "walking one", 1)
    assert (wrong, len(words)) == (WORDS, 64)
    assert words == sorted(set(words))


@pytest.mark.parametrize(
    ("x", "pattern", "error", "message"),
    [
        (np.zeros(3, np.float32), "address", ValueError, "x has 12 bytes; a pattern takes whole words of 8 bytes"),
        (np.zeros(0, np.uint64), "address", ValueError, "x has 0 bytes"),
        (np.zeros(8, np.uint64), "stripes", ValueError, "unknown pattern 'stripes': it is 'address', 'inverse'"),
        (np.zeros((4, 4), np.uint64)[:, ::2], "address", TypeError, "contiguous"),
        ([1, 2], "address", TypeError, "contiguous"),
    ],
)
def test_what_has_no_words_is_refused(x: Any, pattern: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _core.pattern_write(x, pattern, 0)
    with pytest.raises(error, match=message):
        _core.pattern_check(x, pattern, 0)


def test_memory_that_may_not_be_written_is_only_looked_through() -> None:
    x = np.zeros(8, np.uint64)
    _core.pattern_write(x, "address", 0)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="x is read-only"):
        _core.pattern_write(x, "address", 0)
    assert _core.pattern_check(x, "address", 0)[1] == 0


@pytest.mark.parametrize("call", ["cudaEventCreate", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync"])
def test_a_call_that_fails_is_an_error_and_leaves_nothing(device: int, double: Any, call: str) -> None:
    x = vecadd.to_device(np.zeros(64, np.uint64), device=0)
    _core.pattern_check(x, "address", 0)  # what a device's first use makes stays
    before = double.live()
    double.fail(call, status=1)
    with pytest.raises(RuntimeError, match=f"a value was not accepted \\({call}"):
        _core.pattern_check(x, "address", 0)
    assert double.live() == before


def test_what_the_driver_has_left_of_a_devices_memory(device: int, double: Any) -> None:
    _core.release()
    left, whole = _core.device_memory(0)
    x = vecadd.to_device(np.zeros(1 << 20, np.uint8), device=0)
    assert _core.device_memory(0) == (left - x.nbytes, whole)
    with pytest.raises(ValueError, match="device"):
        _core.device_memory(99)


# From one GPU to another

NBYTES = 1 << 16


def ways(found: dict[str, Any]) -> dict[str, int]:
    return {name: way["wrong"] for name, way in found["ways"].items()}


def test_every_bit_arrives_by_every_way(second_device: int) -> None:
    for source, target in ((0, second_device), (second_device, 0)):
        found = _core.peer_limits(source, target, NBYTES, 2)
        assert ways(found) == dict.fromkeys(("copy", "read", "write") if found["access"] else ("copy",), 0)
        assert all(way["rate"] > 0 and way["words"] == [] for way in found["ways"].values())


def test_a_copy_that_goes_wrong_without_an_error_is_found(second_device: int, double: Any) -> None:
    double.flip_copies(1)
    found = _core.peer_limits(0, 1, NBYTES, 2)
    assert ways(found) == {"copy": 1, "read": 0, "write": 0}
    middle = NBYTES // 2 // 8
    assert found["ways"]["copy"]["words"] == [(middle, middle, middle ^ 4)]


def test_without_access_there_is_the_copy_alone(second_device: int, double: Any) -> None:
    double.peer_access(False)
    found = _core.peer_limits(0, 1, NBYTES, 2)
    assert (found["access"], ways(found)) == (False, {"copy": 0})
    assert double.calls("cudaDeviceEnablePeerAccess") == 0


def test_access_is_given_back(second_device: int, double: Any) -> None:
    before = double.live()
    _core.peer_limits(0, 1, NBYTES, 1)
    assert double.calls("cudaDeviceEnablePeerAccess") == double.calls("cudaDeviceDisablePeerAccess") == 2
    assert double.live() == before


@pytest.mark.parametrize(
    "call",
    ["cudaDeviceCanAccessPeer", "cudaDeviceGetP2PAttribute", "cudaMalloc", "cudaDeviceEnablePeerAccess",
     "cudaMemcpyPeerAsync"],
)  # fmt: skip
@pytest.mark.parametrize("nth", [1, 2])
def test_a_pairs_call_that_fails_is_an_error_and_leaves_nothing(
    second_device: int, double: Any, call: str, nth: int
) -> None:
    _core.peer_limits(0, 1, NBYTES, 1)  # what a device's first use makes stays
    before = double.live()
    double.fail(call, nth, status=1)
    with pytest.raises(RuntimeError, match="a value was not accepted"):
        _core.peer_limits(0, 1, NBYTES, 1)
    assert double.live() == before
    assert double.calls("cudaDeviceDisablePeerAccess") == double.calls("cudaDeviceEnablePeerAccess") - (
        call == "cudaDeviceEnablePeerAccess"
    )


@pytest.mark.parametrize(("source", "target", "nbytes"), [(0, 0, 16), (-1, 0, 16), (0, 1, 8), (0, 1, 24)])
def test_no_pair_is_refused(source: int, target: int, nbytes: int) -> None:
    with pytest.raises(ValueError, match="must be two devices, nbytes"):
        _core.peer_limits(source, target, nbytes, 1)


def test_a_device_that_is_not_there_is_named(device: int) -> None:
    with pytest.raises(ValueError, match="device"):
        _core.peer_limits(0, 99, 16, 1)
