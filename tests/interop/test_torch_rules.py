"""PyTorch's rules, with the real PyTorch: gradients, modes, versions, traces and types with rules of their own."""

import numpy as np
import pytest

import vecadd

torch = pytest.importorskip("torch")
# PyTorch's own, of its parts that others replace.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def needing(place, *shape, dtype=torch.float32):
    return torch.arange(1, 1 + int(np.prod(shape)), device=place).to(dtype).reshape(shape).requires_grad_()


FORMS = {
    "two tensors": lambda add, x, y: add(x, y),
    "itself": lambda add, x, y: add(x, x),
    "a number": lambda add, x, y: add(x, 1.5),
    "a number first": lambda add, x, y: add(2, x),
    "NumPy's number": lambda add, x, y: add(x, np.float32(2)),
    "a broadcast row": lambda add, x, y: add(x, y[0]),
    "a broadcast scalar": lambda add, x, y: add(x, y[0, 0]),
    "two dtypes": lambda add, x, y: add(x, y.to(torch.float64)),
    "an integer tensor": lambda add, x, y: add(x, torch.arange(4, device=x.device)),
    "a view": lambda add, x, y: add(x[:, ::2], y.T[:2].T),
    "no gradient on the other side": lambda add, x, y: add(y.detach(), x),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64], ids=str
)
def test_gradients_are_torchs(place, form, dtype):
    """Summed over broadcast axes, and of the operand's own dtype."""
    if dtype.is_complex and form is FORMS["two dtypes"]:
        pytest.skip("float64 cannot represent a complex number")
    found = []
    for add in (vecadd.add, torch.add):
        x, y = needing(place, 3, 4, dtype=dtype), needing(place, 3, 4, dtype=dtype)
        total = form(add, x, y)
        weights = torch.arange(total.numel(), device=place).reshape(total.shape)
        (total * weights).sum().abs().backward()
        found.append((total.detach(), x.grad, y.grad))
    for got, want in zip(*found, strict=True):
        assert (got is None) == (want is None)
        assert got is None or (got.dtype == want.dtype and torch.equal(got, want))


def test_gradients_of_gradients_are_torchs(place):
    x = needing(place, 3)
    total = vecadd.add(x * x, x).sum()
    (first,) = torch.autograd.grad(total, x, create_graph=True)
    (second,) = torch.autograd.grad(vecadd.add(first, x).sum(), x)
    assert torch.equal(first, 2 * x + 1)
    assert torch.equal(second, torch.full_like(x, 3))


def test_a_module_learns_through_it(place):
    model = torch.nn.Linear(3, 3).to(place)
    x = torch.ones(2, 3, device=place)
    vecadd.add(model(x), model.bias).sum().backward()
    assert torch.equal(model.bias.grad, torch.full((3,), 4.0, device=place))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_no_gradient_is_kept_where_torch_keeps_none(place, mode):
    x = needing(place, 1000)
    with mode():
        total = vecadd.add(x, x)
        assert vecadd.explain(x, x).route in ("host", "device")
        assert vecadd.add(x, 1, out=total) is total
    assert not total.requires_grad
    assert torch.equal(total, x.detach() + 1)


def outcome(call):
    try:
        return call()
    except RuntimeError as error:
        return str(error)


OUTS = {
    "an operand that needs its gradient": lambda add, x, a: add(x, a, out=a.clone()),
    "a leaf as out": lambda add, x, a: add(a, a, out=x),
    "a leaf in place": lambda add, x, a: add(x, a, out=x),
    "no leaf in place": lambda add, x, a: add(y := x * 2, a, out=y),
}


@pytest.mark.parametrize("form", OUTS.values(), ids=OUTS)
def test_out_with_a_gradient_is_refused_as_torch_refuses_it(place, form):
    x, a = needing(place, 1000), torch.ones(1000, device=place)
    got, want = (outcome(lambda add=add: form(add, x, a)) for add in (vecadd.add, torch.add))
    assert got == want
    assert "don't support automatic differentiation" in got
    assert torch.equal(x.detach(), torch.arange(1.0, 1001, device=place))


def test_a_leaf_may_be_written_without_gradients_and_counts_it(place):
    x = needing(place, 1000)
    before = x._version
    with torch.no_grad():
        assert vecadd.add(x, 1, out=x) is x
        assert vecadd.add(x, x, out=x) is x
    assert x._version == before + 2
    assert x.requires_grad


def test_inference_tensors_are_written_in_their_mode_alone(place):
    a = torch.ones(1000, device=place)
    for _ in range(2):  # the second call reads tensors by what the first has learnt of their type
        with torch.inference_mode():
            out = torch.zeros(1000, device=place)
            assert vecadd.add(a, a, out=out) is out
            before = a._version
            vecadd.add(a, 0, out=a)
            assert a._version == before + 1
        assert torch.equal(vecadd.add(out, a), 3 * a)
        with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
            vecadd.add(a, a, out=out)
        assert torch.equal(out, 2 * a)
    x = needing(place, 1000)
    vecadd.add(out, x).sum().backward()
    assert torch.equal(x.grad, a)


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # as for torch.add on two streams
def test_gradients_go_through_the_streams_that_are_given(place):
    if place == "cpu":
        with pytest.raises(TypeError, match="stream"):
            vecadd.add(needing(place, 3), needing(place, 3), stream=0)
        return
    side, x = torch.cuda.Stream(), needing(place, 1_000_000)
    torch.cuda._sleep(20_000_000)
    y = x * 2
    total = vecadd.add(y, x, stream=side)
    total.sum().backward()
    assert torch.equal(total.detach(), 3 * x.detach())
    assert torch.equal(x.grad, torch.full_like(x, 3))


def test_lists_keep_gradients_pair_by_pair_and_plans_refuse_them(place):
    x, a = needing(place, 1000), torch.ones(1000, device=place)
    kept, plain = vecadd.add_many([x, a], [a, a])
    assert kept.requires_grad
    assert not plain.requires_grad
    kept.sum().backward()
    assert torch.equal(x.grad, a)
    with pytest.raises(RuntimeError, match=r"detach\(\)|automatic differentiation"):
        vecadd.plan(x, a, a)()


def test_explain_says_that_torch_adds(place):
    found = vecadd.explain(needing(place, 3), needing(place, 3))
    assert found.route == "library"
    assert "gradient" in found.why


def test_other_libraries_arrays_do_not_take_a_gradient_with_them():
    with pytest.raises(RuntimeError, match="requires grad"):
        vecadd.add(np.ones(3), needing("cpu", 3))


# What PyTorch transforms, traces or records.


def two(add, x):
    return add(add(x, x), 1)


TRANSFORMS = {
    "vmap": lambda f: torch.vmap(f),
    "vmap of vmap": lambda f: torch.vmap(torch.vmap(f)),
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "vmap of grad": lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
    "jacobian": lambda f: torch.func.jacrev(f),
    "functionalize": lambda f: torch.func.functionalize(f),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_of_torch_are_those_of_its_own_sum(place, transform):
    x = torch.arange(6.0, device=place).reshape(2, 3)
    got, want = (transform(lambda x, add=add: two(add, x))(x) for add in (vecadd.add, torch.add))
    got, want = (result if isinstance(result, tuple) else (result,) for result in (got, want))
    assert all(map(torch.equal, got, want))


def test_vmap_takes_what_is_not_mapped(place):
    x, row = torch.arange(6.0, device=place).reshape(2, 3), torch.ones(3, device=place)
    assert torch.equal(torch.vmap(lambda x: vecadd.add(row, x))(x), x + 1)
    assert torch.equal(torch.vmap(vecadd.add, in_dims=(0, None))(x, row), x + 1)
    assert torch.equal(torch.vmap(lambda x: x * vecadd.add(row, row))(x), x * 2)


def test_forward_mode_derivatives_are_kept(place):
    forward = torch.autograd.forward_ad
    x = torch.arange(1000.0, device=place)
    for _ in range(2):
        with forward.dual_level():
            total = vecadd.add(forward.make_dual(x, 2 * x), x)
            assert torch.equal(forward.unpack_dual(total).tangent, 2 * x)
        assert torch.equal(vecadd.add(x, x), 2 * x)


def test_graphs_of_fx_have_torchs_sum(place):
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.ones(3, device=place)
    traced = torch.fx.symbolic_trace(lambda x: vecadd.add(x, 1))
    assert torch.equal(traced(x + 1), x + 2)
    for how in ({"tracing_mode": "real"}, {"tracing_mode": "fake"}, {"pre_dispatch": True}):
        graph = make_fx(lambda x: vecadd.add(x, x), **how)(x)
        assert torch.equal(graph(x + 1), x + 3)


def test_modes_see_the_sum(place):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    x = torch.ones(1000, device=place)
    for _ in range(2):
        with Mode():
            vecadd.add(x, x)
        assert seen == ["aten.add.Tensor"]
        seen.clear()
        vecadd.add(x, x)


def test_types_with_rules_of_their_own_keep_them(place):
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                return f"{function.__name__} by its own rules"

    class Plain(torch.Tensor):
        pass

    x = torch.ones(3, device=place)
    assert vecadd.add(x.as_subclass(Named), x) == vecadd.add(x, x.as_subclass(Named)) == "add by its own rules"
    assert torch.equal(vecadd.add(x.as_subclass(Plain), x).as_subclass(torch.Tensor), x + 1)


STATES = {
    "sparse": lambda x: x.to_sparse(),
    "sparse rows": lambda x: torch.diag(x).to_sparse_csr(),
    "meta": lambda x: x.to("meta"),
    "nested": lambda x: torch.nested.nested_tensor([x, x[1:]]),
    "nested, jagged": lambda x: torch.nested.nested_tensor([x, x[1:]], layout=torch.jagged),
    "without elements of its own": lambda x: torch._efficientzerotensor(3, device=x.device),
    "functional": lambda x: torch._to_functional_tensor(x),
    "quantized": lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.quint8),
    "without a shape": lambda x: torch.nn.UninitializedParameter(device=x.device),
    "a buffer without a shape": lambda x: torch.nn.UninitializedBuffer(device=x.device),
    "named": lambda x: torch.ones(3, names=("N",), device=x.device),
    "mkldnn": lambda x: x.to_mkldnn(),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # nested and sparse tensors are prototypes
@pytest.mark.parametrize("make", STATES.values(), ids=STATES)
def test_tensors_that_are_more_than_strided_memory_are_torchs(place, make):
    try:
        x = make(torch.arange(3.0, device=place))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        pytest.skip("PyTorch has no such tensors here")

    def answer(add):
        try:
            total = add(x, x)
        except Exception as error:
            return type(error), str(error).partition("\n")[0]
        return type(total), total.layout, total.device, str(total)

    assert answer(vecadd.add) == answer(torch.add)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.complex64, torch.int8], ids=str)
def test_negated_views_of_any_tensor_are_what_they_mean(place, dtype, mode):
    with mode():
        whole, y = torch.arange(1, 101, device=place).to(dtype), torch.full((50,), 7, device=place).to(dtype)
        for _ in range(2):  # the second time the type is known
            for x in (torch._neg_view(whole)[3:53], torch._neg_view(whole[3:53]), torch._neg_view(whole)[::2]):
                assert x.is_neg()
                for got in (vecadd.add(x, y), *vecadd.add_many([x], [y]), vecadd.add(x, y, torch.empty_like(y))):
                    assert torch.equal(got, torch.add(x, y))
                assert torch.equal(vecadd.add(y, x), torch.add(y, x))
                assert torch.equal(vecadd.add(x, 1), torch.add(x, 1))


def test_function_modes_see_the_sum_and_nothing_else(place):
    from torch.overrides import TorchFunctionMode

    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    x, out = torch.ones(1000, device=place), torch.ones(1000, device=place)
    for _ in range(2):
        with Mode():
            vecadd.add(x, x)
            vecadd.add(x, 1, out)
            vecadd.add_many([x], [x], [out])
        assert seen == [torch.add] * 3
        with Mode():
            assert vecadd.explain(x, x).route == "library"
        seen.clear()
        vecadd.add(x, x)
        with torch.device("meta"):
            assert vecadd.explain(x, x).route in ("host", "device")
            assert torch.equal(vecadd.add(x, x), x * 2)
        assert not seen
