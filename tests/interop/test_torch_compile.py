"""torch.compile and torch.export, with the real PyTorch: a graph has torch.add where a function calls vecadd.add."""

import contextlib

import numpy as np
import pytest

import vecadd

torch = pytest.importorskip("torch")
# PyTorch's own, of its parts that others replace.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture
def compiled():
    """compiled(f): f by torch.compile as one graph, without code for this machine."""
    torch._dynamo.reset()
    with contextlib.ExitStack() as stack:
        yield lambda f, **how: torch.compile(f, **{"fullgraph": True, "backend": "aot_eager", **how})
        stack.callback(torch._dynamo.reset)


COMPILED = {
    "two tensors": lambda x, y: vecadd.add(x * 2, y) + 1,
    "a number": lambda x, y: vecadd.add(2, vecadd.add(x, 1.5)),
    "out": lambda x, y: vecadd.add(x, y, torch.empty_like(x)),
    "out=": lambda x, y: vecadd.add(x, y, out=torch.empty_like(x)),
    "in place": lambda x, y: vecadd.add(z := x * 2, y, out=z),
    "device=None": lambda x, y: vecadd.add(x, y, device=None, stream=None),
    "a broadcast row": lambda x, y: vecadd.add(x, y[0]),
}


@pytest.mark.parametrize("function", COMPILED.values(), ids=COMPILED)
def test_compiled_functions_are_one_graph(place, compiled, function):
    x, y = torch.arange(6.0, device=place).reshape(2, 3), torch.ones(2, 3, device=place)
    assert torch.equal(compiled(function)(x, y), function(x, y))


def test_compiled_functions_keep_gradients(place, compiled):
    x = torch.arange(3.0, device=place, requires_grad=True)
    compiled(lambda x: vecadd.add(x, x * x).sum())(x).backward()
    assert torch.equal(x.grad, 1 + 2 * x.detach())


def test_a_compiled_function_of_numpy_arrays_gives_one(compiled):
    got = compiled(lambda x: vecadd.add(x, x[0]) * 2)(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(got, 2 * (np.arange(6.0).reshape(2, 3) + np.arange(3.0)))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_graph_cannot_contain_is_called_between_graphs(compiled):
    x = np.arange(3.0)
    calls = {
        "where=": lambda x: vecadd.add(x, x, where=[True, False, True], out=np.zeros(3)) * 2,
        "device=": lambda x: vecadd.add(x, x, device="cpu") * 2,
        "a list": lambda x: vecadd.add([1, 2, 3], [1, 2, 3]) * x,
    }
    for name, call in calls.items():
        np.testing.assert_array_equal(compiled(call, fullgraph=False)(x), call(x), name)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="no graph takes"):
        compiled(calls["device="])(x)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_have_torchs_sum(place, strict):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("constant", torch.ones(3))

        def forward(self, x):
            return vecadd.add(vecadd.add(x, self.weight), vecadd.add(self.constant, self.constant))

    x, model = torch.arange(6.0, device=place).reshape(2, 3), Model().to(place)
    program = torch.export.export(model, (x,), strict=strict)
    assert [str(node.target) for node in program.graph.nodes].count("aten.add.Tensor") == 3
    assert torch.equal(program.module()(x), x + 3)
