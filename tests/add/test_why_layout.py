"""vecadd.why.layout: arrays of a receipt's rehearsal lie as those of the program did."""

import errno
import mmap
from typing import Any

import numpy as np
import pytest

from vecadd.why import layout
from vecadd.why.layout import Layout


@pytest.mark.parametrize(
    "take",
    [
        lambda x: (x, x),
        lambda x: (x[1:], x[:-1]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x[::-1], x),
        lambda x: (x.reshape(10, -1).T, x[:50]),
        lambda x: (x, np.ones(7)),
    ],
    ids=["same", "shifted", "interleaved", "reversed", "transposed", "apart"],
)
def test_layouts_are_made_anew(take: Any) -> None:
    given = take(np.arange(1000.0))
    layouts = [Layout(x.dtype, x.shape, x.strides, x.ctypes.data) for x in given]
    remade = layout.made(layouts)
    for x, y in zip(given, remade, strict=True):
        assert (x.dtype, x.shape, x.strides) == (y.dtype, y.shape, y.strides)
        assert x.ctypes.data % mmap.PAGESIZE == y.ctypes.data % mmap.PAGESIZE
        assert not y.any()
    assert np.shares_memory(*given) == np.shares_memory(*remade)
    if np.may_share_memory(*given):
        assert given[0].ctypes.data - given[1].ctypes.data == remade[0].ctypes.data - remade[1].ctypes.data


@pytest.mark.parametrize("number", range(5))
def test_layouts_are_made_in_each_place_of_a_cache_line(number: int) -> None:
    x = np.ones(1000)
    lies = Layout(x.dtype, x.shape, x.strides, 0x1000 + 24, starts=(32, 0, 48, 16))
    behind = Layout(x.dtype, x.shape, x.strides, 0x1000 + 24 + 80)  # shares memory with it
    one, same, other = layout.made((lies, lies, behind), number)
    assert one.ctypes.data == same.ctypes.data
    assert one.ctypes.data % 64 == (32, 0, 48, 16, 32)[number] + 8
    assert other.ctypes.data - one.ctypes.data == 80
    assert layout.elsewhere(lies, 1).starts == ()


class WithoutHugePages(mmap.mmap):
    """Memory of a kernel that was built without huge pages."""

    def madvise(self, *advice: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")


def test_a_kernel_without_huge_pages_has_arrays_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_mapped", lambda nbytes: WithoutHugePages(-1, nbytes, flags=mmap.MAP_PRIVATE))
    lies = Layout(np.dtype("f8"), (layout.HUGE_FROM // 8,), (8,), 0x1000)
    for array in (layout.fresh(lies, huge=True), layout.fresh(lies, huge=False), *layout.made([lies])):
        array += 1
        assert array.shape == lies.shape
