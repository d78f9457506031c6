"""PyTorch's tensors: added where they are, on PyTorch's own stream, the sum a tensor."""

import math

import numpy as np
import pytest
from arrays import numpys_sum, values
from foreign import Lent

import vecadd
from vecadd import _core

torch = pytest.importorskip("torch")

DTYPES = [torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64, torch.complex128]  # fmt: skip


@pytest.fixture
def cuda(runtime):
    """PyTorch's name of the GPU."""
    if runtime != "gpu" or not torch.cuda.is_available():
        pytest.skip("needs a GPU and a PyTorch that can use it")
    return "cuda"


def small(dtype, n, where):
    return torch.arange(n, device=where).remainder(50).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 3, 17, 1000, 100_003, 300_000])
def test_sum_is_torchs_and_a_tensor(place, n, dtype):
    a, b = small(dtype, n, place), small(dtype, n, place).flip(0)
    got = vecadd.add(a, b)
    assert type(got) is torch.Tensor
    assert (got.dtype, got.device, got.shape) == (a.dtype, a.device, a.shape)
    assert torch.equal(got, a + b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "complex64"])
def test_values_are_numpys(cuda, dtype):
    a, b = values(np.dtype(dtype), 10_000, 1), values(np.dtype(dtype), 10_000, 2)
    got = vecadd.add(torch.from_numpy(a).to(cuda), torch.from_numpy(b).to(cuda)).cpu().numpy()
    np.testing.assert_array_equal(got, numpys_sum(a, b))


@pytest.mark.gpu
@pytest.mark.parametrize("start", range(9))
def test_views_at_every_alignment(cuda, start):
    whole = torch.arange(1000, device=cuda, dtype=torch.int16)
    a, out = whole[start : start + 500], torch.zeros(600, device=cuda, dtype=torch.int16)
    assert torch.equal(vecadd.add(a, a, out[start * 3 : start * 3 + 500]), 2 * a)
    assert not out[: start * 3].any()
    assert not out[start * 3 + 500 :].any()


def test_out_and_in_place(place):
    a, b = torch.arange(1000.0, device=place), torch.ones(1000, device=place)
    out = torch.zeros(1000, device=place)
    pointer = out.data_ptr()
    assert vecadd.add(a, b, out) is out
    assert out.data_ptr() == pointer
    assert torch.equal(out, a + b)
    want = a + b
    assert vecadd.add(a, b, a) is a
    assert torch.equal(a, want)


WRITES = {
    "add": lambda a, out: vecadd.add(a, a, out),
    "in place": lambda a, out: vecadd.add(out, a, out),
    "number": lambda a, out: vecadd.add(a, 1, out),
    "add_many": lambda a, out: vecadd.add_many([a, a], [a, a], [torch.empty_like(a), out]),
    "plan": lambda a, out: vecadd.plan(a, a, out)(),
    "plan of a list": lambda a, out: vecadd.plan([a], [a], [out])(),
    "torch": lambda a, out: torch.add(a, a, out=out),
}


def backward_after(write, where):
    """Writes over a tensor that was saved for backward, and calls it."""
    weight = torch.ones(1000, device=where, requires_grad=True)
    a, saved = torch.arange(1000.0, device=where), torch.ones(1000, device=where)
    total = (weight * saved).sum()
    with torch.no_grad():
        write(a, saved)
    total.backward()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_backward_knows_that_a_saved_tensor_was_written(place, write):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        backward_after(write, place)
    backward_after(lambda a, out: vecadd.add(out, a), place)


@pytest.mark.gpu
def test_a_view_counts_writes_with_its_base(cuda):
    base = torch.zeros(1000, device=cuda)
    before = base._version
    vecadd.add(base[500:], 1, base[500:])
    assert base._version == before + 1


@pytest.mark.gpu
def test_sum_runs_on_the_current_stream(cuda):
    side = torch.cuda.Stream()
    a = torch.zeros(1_000_000, device=cuda)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        a += 1
        got = vecadd.add(a, a)
        want = got.clone()
    torch.cuda.synchronize()
    assert (want == 2).all()


@pytest.mark.gpu
@pytest.mark.parametrize("spelled", [lambda s: s, lambda s: s.cuda_stream], ids=["object", "handle"])
def test_sum_on_a_given_stream_comes_after_the_current_one(cuda, spelled):
    side = torch.cuda.Stream()
    a = torch.zeros(1_000_000, device=cuda)
    torch.cuda.synchronize()
    torch.cuda._sleep(50_000_000)
    a += 1
    got = vecadd.add(a, a, stream=spelled(side))
    del a
    other = torch.full((1_000_000,), 7.0, device=cuda)
    torch.cuda.synchronize()
    assert (got == 2).all()
    assert (other == 7).all()


@pytest.mark.gpu
def test_sum_of_its_own_is_a_tensor_like_any(cuda):
    a = torch.arange(1000.0, device=cuda)
    got = vecadd.add(a, a)
    assert type(got) is torch.Tensor
    assert not got.requires_grad
    assert got._base is None
    assert torch.equal(got, a + a)
    got.untyped_storage().resize_(8000)  # only memory of torch's own can be


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1000,), (), (3, 1, 5), (1, 7)], ids=str)
def test_sums_of_their_own_are_contiguous_and_of_the_broadcast_shape(cuda, shape):
    a, row = (
        torch.arange(math.prod(shape), device=cuda).reshape(shape),
        torch.arange(shape[-1] if shape else 1, device=cuda),
    )
    for b in (a, row):
        got = vecadd.add(a, b)
        assert got.shape == (a + b).shape
        assert got.is_contiguous()
        assert torch.equal(got, a + b)


@pytest.mark.gpu
def test_plans_of_tensors_add_at_each_call_and_in_captures(cuda):
    a, one, out = torch.zeros(1000, device=cuda), torch.ones(1000, device=cuda), torch.zeros(1000, device=cuda)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        plan = vecadd.plan(a, one, a)
        for _ in range(2000):
            plan()
    side.synchronize()
    assert (a == 2000).all()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vecadd.plan(a, one, out)()
    out.zero_()
    graph.replay()
    assert (out == 2001).all()


@pytest.mark.gpu
def test_a_conjugated_view_cannot_be_planned(cuda):
    a, out = torch.ones(10, dtype=torch.complex64, device=cuda), torch.zeros(10, dtype=torch.complex64, device=cuda)
    with pytest.raises(ValueError, match="resolve_conj"):
        vecadd.plan(a.conj(), a, out)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("make", "exception"),
    [
        (lambda a: (a, a.cpu()), TypeError),
        (lambda a: (a, a[:-1]), ValueError),
        (lambda a: (a, a.numpy(force=True)), TypeError),
        (lambda a: (a, a, a.cpu()), TypeError),
    ],
)
def test_what_cannot_be_added_is_refused(cuda, make, exception):
    with pytest.raises(exception):
        vecadd.add(*make(torch.arange(10.0, device=cuda)))


@pytest.mark.gpu
def test_conjugated_and_negated_views_are_what_they_mean(cuda):
    a = torch.tensor([1 + 2j, 3 - 4j], device=cuda)
    assert torch.equal(vecadd.add(a.conj(), a), a.conj() + a)
    for x in (a.conj().imag, a.conj().imag[1:], a.conj().imag[:1], a.conj().imag[1], a.conj().imag.expand(3, 2)):
        assert x.is_neg()
        assert torch.equal(vecadd.add(x.clone(), x), x + x)
        assert torch.equal(vecadd.add_many([x], [x])[0], x + x)


@pytest.mark.gpu
def test_device_arrays_and_tensors_mix(cuda):
    a = np.arange(100.0)
    x, t = vecadd.to_device(a), torch.from_numpy(a).to(cuda)
    assert type(vecadd.add(t, x)) is torch.Tensor
    assert type(vecadd.add(x, t)) is vecadd.DeviceArray
    np.testing.assert_array_equal(vecadd.add(t, x).cpu().numpy(), a + a)


@pytest.mark.gpu
def test_torch_reads_device_arrays(cuda):
    a = np.arange(100.0)
    t = torch.as_tensor(vecadd.to_device(a), device=cuda)
    np.testing.assert_array_equal(t.cpu().numpy(), a)


@pytest.mark.gpu
def test_another_process_gets_sums_of_tensors_and_no_adopted_array(cuda):
    """PyTorch shares what its own allocator made; it refuses what it adopted, of whichever library."""
    reduce_tensor = pytest.importorskip("torch.multiprocessing.reductions").reduce_tensor
    t = torch.ones(1000, device=cuda)
    adopted = torch.from_dlpack(vecadd.to_device(np.ones(1000, np.float32)))
    reduce_tensor(vecadd.add(t, t))
    reduce_tensor(adopted.clone())
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        reduce_tensor(adopted)


@pytest.mark.gpu
def test_tensors_of_a_third_stream_outlive_a_sum_on_a_given_stream(cuda):
    made_on, run_on, n = torch.cuda.Stream(), torch.cuda.Stream(), 4_000_000
    for i in range(20):
        with torch.cuda.stream(made_on):
            a = torch.full((n,), i, device=cuda, dtype=torch.int32)
        torch.cuda.current_stream().wait_stream(made_on)
        with torch.cuda.stream(run_on):
            torch.cuda._sleep(2_000_000)
        total = vecadd.add(a, a, stream=run_on)
        del a
        with torch.cuda.stream(made_on):  # takes a's memory, unless torch knows that run_on still reads it
            torch.full((n,), -7, device=cuda, dtype=torch.int32)
        torch.cuda.synchronize()
        assert bool((total == 2 * i).all())


@pytest.mark.gpu
def test_capture_is_replayed_with_the_values_of_then(cuda):
    a, b, out = (torch.zeros(100_000, device=cuda) for _ in range(3))
    vecadd.add(a, b, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = vecadd.add(a, b)
        vecadd.add(total, total, out)
    for i in range(3):
        a.fill_(i)
        b.fill_(10 * i)
        graph.replay()
        assert torch.equal(total, a + b)
        assert torch.equal(out, 2 * (a + b))


@pytest.mark.gpu
@pytest.mark.parametrize("given", [False, True], ids=["no stream=", "stream="])
def test_a_tensor_that_has_dlpack_alone_is_read_in_a_capture(cuda, given):
    """None would have torch make its default stream wait for the one that captures, which ends the capture."""
    a, out = torch.ones(1000, device=cuda), torch.zeros(1000, device=cuda)
    vecadd.add(Lent(a), a, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = a + 1
        vecadd.add(Lent(inside), a, out, stream=torch.cuda.current_stream() if given else None)
    a.fill_(5)
    graph.replay()
    assert bool((out == 11).all())


@pytest.mark.gpu
def test_a_tensor_may_be_dropped_after_another_librarys_stream_has_gone(cuda):
    """torch records an event on each stream that it was told of, when the memory goes."""
    runtime = pytest.importorskip("cupy").cuda.runtime
    with torch.cuda.stream(torch.cuda.Stream()):
        made_on_another = torch.ones(1000, device=cuda)
    for a in (torch.ones(1000, device=cuda), made_on_another):
        torch.cuda.synchronize()
        handle = runtime.streamCreateWithFlags(runtime.streamNonBlocking)
        total, many = vecadd.add(a, a, stream=handle), vecadd.add_many([a], [a], stream=handle)
        runtime.streamSynchronize(handle)
        runtime.streamDestroy(handle)
        assert bool((total == 2).all())
        assert bool((many[0] == 2).all())
        del a, total, many
    del made_on_another
    torch.cuda.synchronize()


@pytest.mark.gpu
def test_a_loan_outlives_an_external_stream_that_was_current(cuda):
    """torch's own streams stay; one of another library's that is torch's current one does not."""
    runtime = pytest.importorskip("cupy").cuda.runtime
    for k in range(5):
        x, handle = vecadd.to_device(np.full(1_000_000, k)), runtime.streamCreateWithFlags(runtime.streamNonBlocking)
        with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
            y = torch.from_dlpack(x)
            total = vecadd.add(x, 1, stream=torch.cuda.current_stream())
            twice = y + y
        runtime.streamSynchronize(handle)
        runtime.streamDestroy(handle)
        del x, y
        assert (total.numpy() == k + 1).all()
        assert bool((twice == 2 * k).all())
        del total
    vecadd.release()


@pytest.mark.gpu
def test_torch_takes_device_arrays_by_dlpack_both_ways(cuda):
    a = np.arange(1000.0)
    x = vecadd.to_device(a)
    t = torch.from_dlpack(x + x)
    assert t.device.type == "cuda"
    np.testing.assert_array_equal(vecadd.add(t, t).cpu().numpy(), a * 4)


# On the host.


def test_addition_on_the_host_is_vecadds_own():
    a = torch.ones(30, 40)
    assert _core.explain_route(a, a)["route"] == "host"


@pytest.mark.parametrize(
    "call",
    [lambda add, x: add(x, 1.5), lambda add, x: add(x, x[:1]), lambda add, x: add(x, x.to(torch.int64)),
     lambda add, x: add(x[0], x[1])],
    ids=["number", "broadcast", "two dtypes", "no dimension"],
)  # fmt: skip
def test_what_is_broadcast_or_cast_is_torchs_own_sum(call):
    x = torch.arange(3, dtype=torch.float32)
    got, want = call(vecadd.add, x), call(torch.add, x)
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.parametrize("view", [lambda t: t[::2], lambda t: t.flip(0), lambda t: t.reshape(10, 100).T], ids=range(3))
def test_views_on_the_host(view):
    a = torch.arange(1000.0)
    assert torch.equal(vecadd.add(view(a), view(a)), view(a) * 2)


VIEWS = [
    lambda x: x,
    lambda x: x[1:, ::3],
    lambda x: x.T,
    lambda x: x.reshape(-1),
    lambda x: x.reshape(2, 3, 4, 1),
    lambda x: x.unfold(1, 3, 1),
    lambda x: x.diagonal(),
    lambda x: x.expand(5, *x.shape),
    lambda x: x[:, None].squeeze(),
    lambda x: x.unflatten(1, (2, 2)),
    lambda x: x.narrow(1, 1, 2).movedim(0, 1),
    lambda x: x.split(2)[1],
    lambda x: x.detach().requires_grad_().detach(),
    lambda x: x.view_as(x),
    lambda x: x.swapaxes(0, 1)[2],
]


@pytest.mark.parametrize("base", [lambda z: z.conj(), lambda z: z.conj()[:, 1:].T, lambda z: z.T.conj()[::2]])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_elements_of_negated_views_are_an_even_number_apart(dtype, base):
    """By which operand_torch.c knows most tensors for none without asking."""
    x = base(torch.zeros(6, 4, dtype=dtype)).imag
    asked = 0
    for view in VIEWS:
        try:
            y = view(x)
        except (IndexError, RuntimeError):  # a shape that is not this base's
            continue
        asked += y.is_neg()
        assert not y.is_neg() or all(
            stride % 2 == 0 for stride, extent in zip(y.stride(), y.shape, strict=True) if extent > 1
        )
    assert asked > 8


def test_conjugated_and_negated_views_on_the_host_are_what_they_mean():
    a = torch.tensor([1 + 2j, 3 - 4j])
    assert torch.equal(vecadd.add(a.conj(), a), a.conj() + a)
    assert torch.equal(vecadd.add(a.conj().imag, a.imag), a.conj().imag + a.imag)


@pytest.mark.parametrize("other", [1.5, torch.tensor(2), torch.arange(3), torch.arange(3.0)], ids=str)
def test_operands_are_broadcast_into_an_out_on_the_host(other):
    a, out = torch.arange(3.0), torch.full((2, 3), -1.0)
    pointer = out.data_ptr()
    assert vecadd.add(a, other, out) is out
    assert (out.shape, out.data_ptr()) == ((2, 3), pointer)
    assert torch.equal(out, torch.add(a, other).expand(2, 3))


@pytest.mark.parametrize("write", [
    lambda a, out: vecadd.add(a, a, out),
    lambda a, out: vecadd.add_many([a, a], [a, 1.5], [torch.zeros(3), out]),
    lambda a, out: vecadd.plan([a, a], [a, a], [torch.zeros(3), out])(),
], ids=["add", "add_many", "plan"])  # fmt: skip
@pytest.mark.parametrize("shape", [(0,), (2,), (3, 2)], ids=str)
def test_an_out_on_the_host_into_which_the_sum_is_not_broadcast_is_a_value_error(write, shape):
    out = torch.full(shape, -1.0)
    with pytest.raises(ValueError, match="out has shape"):
        write(torch.arange(3.0), out)
    assert out.shape == shape
    assert bool((out == -1).all())


@pytest.mark.parametrize("bad", [torch.zeros(3, dtype=torch.int32), torch.zeros(5)], ids=["dtype", "shape"])
def test_no_pair_of_a_list_on_the_host_is_written_before_an_error(bad):
    a, first = torch.arange(3.0), torch.zeros(3)
    with pytest.raises((RuntimeError, ValueError), match=r"^pair 1: "):
        vecadd.add_many([a, a], [a, a], [first, bad])
    assert not first.any()


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")  # torch's own, as numpy.add has it
def test_tensors_and_numpy_on_the_host_give_what_numpy_gives():
    a = torch.ones(3)
    np.testing.assert_array_equal(np.asarray(vecadd.add(np.ones(3), a)), np.full(3, 2.0))


def test_stream_with_tensors_on_the_host_is_a_type_error():
    with pytest.raises(TypeError, match="stream"):
        vecadd.add(torch.ones(3), torch.ones(3), stream=0)
