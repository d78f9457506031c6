"""vecadd.plan of lists: add_many, checked once; on a GPU its launches are one graph."""

import gc

import numpy as np
import pytest
from arrays import assert_same_values, tame_values

import vecadd
from vecadd import _core

PAIRS = 5


def host_lists(n=100):
    return [[tame_values(np.dtype("float32"), n + i, seed) for i in range(PAIRS)] for seed in (1, 2, 3)]


def test_each_call_adds_every_pair_of_the_host():
    xs, ys, outs = host_lists()
    plan = vecadd.plan(xs, ys, outs)
    assert (plan.route, repr(plan)) == ("host", "<vecadd.Plan route=host pairs=5>")
    for _ in range(2):
        assert plan() is outs
        for x, y, out in zip(xs, ys, outs, strict=True):
            assert_same_values(out, x + y)
            x += 1
    outs[2].flags.writeable = False
    with pytest.raises(ValueError, match="pair 2: "):
        plan()


@pytest.mark.parametrize("pairs", [1, 2])
def test_outs_may_be_a_tuple_by_keyword(pairs):
    """numpy.add takes out=(c,) as out=c; beside lists it is a list of one pair."""
    xs, ys, outs = (tuple(arrays[:pairs]) for arrays in host_lists())
    vecadd.plan(xs, ys, out=outs)()
    for x, y, out in zip(xs, ys, outs, strict=True):
        assert_same_values(out, x + y)


def test_each_call_launches_one_graph(double, device):
    lists = [[vecadd.to_device(x) for x in xs] for xs in host_lists()]
    plan = vecadd.plan(*lists)
    assert plan.route == "device"
    launches = double.calls("cudaLaunchKernel")
    for _ in range(3):
        assert plan() is lists[2]
    assert double.calls("cudaGraphLaunch") == 3
    assert double.calls("cudaLaunchKernel") == launches


@pytest.mark.parametrize("count", [1, 200, 1100])
def test_sums_of_a_planned_list_are_numpys_each_time(device, foreign, count):
    x, y = (tame_values(np.dtype("int32"), 3 * count, seed) for seed in (1, 2))
    total = foreign(x)
    windows = [total.window(3 * i, 3) for i in range(count)]
    added = foreign(y)
    plan = vecadd.plan(windows, [added.window(3 * i, 3) for i in range(count)], windows)
    for _ in range(3):
        plan()
    assert_same_values(total.numpy(), x + 3 * y)


def test_pairs_that_add_has_to_make_are_made_in_each_call(device, foreign):
    x = tame_values(np.dtype("float32"), 100, 1)
    whole, other = foreign(x), foreign(x)
    plan = vecadd.plan([whole.window(0, 90), other], [whole.window(0, 90), other], [whole.window(10, 90), other])
    plan()
    assert_same_values(whole.window(10, 90).numpy(), 2 * x[:90])
    assert_same_values(other.numpy(), 2 * x)


def test_an_empty_plan_adds_nothing():
    assert vecadd.plan([], [], [])() == []


def test_what_is_wrong_is_found_when_it_is_planned():
    x = np.ones(3)
    with pytest.raises(TypeError, match="pair 1: plan\\(\\) needs an out"):
        vecadd.plan([x, x], [x, x], [np.ones(3), None])
    with pytest.raises(ValueError, match="ys has 1 arrays and xs has 2"):
        vecadd.plan([x, x], [x], [x, x])
    with pytest.raises(ValueError, match="pair 0: its out overlaps an array of pair 1"):
        vecadd.plan([x, x], [x, np.ones(3)], [x, np.ones(3)])


@pytest.mark.parametrize(
    "call", ["cudaGraphInstantiate", "cudaStreamBeginCapture", "cudaLaunchKernel", "cudaGraphLaunch"]
)
def test_a_failing_cuda_call_leaks_nothing(double, device, call):
    lists = [[vecadd.to_device(x) for x in xs] for xs in host_lists()]
    vecadd.plan(*lists)()
    gc.collect()
    live = double.live()
    double.fail(call, 1, 999)
    with pytest.raises(RuntimeError):
        vecadd.plan(*lists)()
    gc.collect()
    assert double.live() == live
    vecadd.plan(*lists)()


def test_a_plan_keeps_its_arrays_and_releases_them(device):
    before = _core.memory_counts()
    lists = [[vecadd.to_device(x) for x in xs] for xs in host_lists()]
    counts = _core.memory_counts()
    plan = vecadd.plan(*lists)
    outs = lists[2]
    del lists
    assert _core.memory_counts() == counts
    plan()
    outs[0].numpy()
    outs.append(plan)  # a cycle through the list that a call gives back
    del plan, outs
    gc.collect()
    assert _core.memory_counts() == before


@pytest.mark.gpu
def test_a_planned_torch_list_is_captured(runtime):
    torch = pytest.importorskip("torch")
    if runtime != "gpu" or not torch.cuda.is_available():
        pytest.skip("needs a GPU and a PyTorch that can use it")
    xs = [torch.ones(1000 + i, device="cuda") for i in range(200)]
    outs = [torch.zeros_like(x) for x in xs]
    stream = torch.cuda.Stream()
    plan = vecadd.plan(xs, xs, outs, stream=stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan()
    for x in xs:
        x += 1
    graph.replay()
    assert all(torch.equal(out, 2 * x) for out, x in zip(outs, xs, strict=True))
