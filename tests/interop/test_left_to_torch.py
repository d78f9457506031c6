"""What only PyTorch can add, it adds: tensors that need their gradient, that are traced, or of a type with its rules.

The stand-in of test_exchange_table.py takes PyTorch's place; test_torch_rules.py has the real one.
"""

import contextlib
import sys
from types import SimpleNamespace

import inference_tensors
import pytest
import test_exchange_table as table
from test_exchange_table import A, B

import vecadd

torch, tensor, made = table.torch, table.tensor, table.made


def test_a_tensor_that_needs_its_gradient_is_torchs_to_add(tensor, torch):
    a, b = tensor(A), tensor(B)
    a.requires_grad = True
    torch.add = lambda *operands, out: (*operands, out)
    assert vecadd.add(b, a) == (b, a, None)
    assert vecadd.add(a, 2, b) == (a, 2, b)
    a.device, x = SimpleNamespace(index=0), vecadd.to_device(A)
    assert vecadd.add_many([x, a], [x, b])[1] == (a, b, None)
    assert vecadd.add_many([a], [b], stream=0) == [(a, b, None)]
    assert "gradient" in vecadd.explain(a, b).why
    with pytest.raises(TypeError, match="where= is numpy"):
        vecadd.add(a, b, where=True)
    with pytest.raises(RuntimeError, match=r"detach\(\).*no_grad\(\)"):
        vecadd.plan(a, b, b)
    with pytest.raises(RuntimeError, match=r"^pair 1: .*detach\(\)"):
        vecadd.plan([b, b], [b, a], [b, b])


def test_torchs_own_sum_on_another_stream_is_ordered_after_and_before_the_current_one(tensor, torch, driver):
    """PyTorch adds on the stream that is current for it. Its allocator is told that the one which was current reads the
    operands, and not the other: that may be destroyed before their memory goes."""
    events, side = [], driver.stream()

    class Stream(contextlib.nullcontext):
        def __init__(self, handle, device):
            super().__init__()
            self.handle = handle

        def wait_stream(self, other):
            events.append((self.handle, "waits for", other.handle))

    torch.cuda = SimpleNamespace(
        ExternalStream=Stream,
        current_stream=lambda device: Stream("current", device),
        stream=lambda stream: events.append(("on", stream.handle)) or stream,
    )
    torch.add = lambda a, b, out: events.append("adds")
    a, b = tensor(A), tensor(B)
    a.requires_grad = True
    for x in (a, b):
        x.device = SimpleNamespace(index=0)
        x.record_stream = lambda stream: events.append(("read on", stream.handle))
    vecadd.add(a, b, stream=side)
    assert events == [
        (side, "waits for", "current"), ("on", side), "adds", ("current", "waits for", side),
        ("read on", "current"), ("read on", "current"),
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["_len_torch_dispatch_stack", "_is_tracing", "forward mode"])
def test_what_torch_records_or_traces_is_torchs_to_add(made, torch, foreign, monkeypatch, what):
    """Its modes and tracers see no kernel of ours: of tensors that are read through the table neither."""
    _, met = made
    state = SimpleNamespace(_current_level=-1)
    monkeypatch.setattr(torch._C, what, lambda: int(state._current_level >= 0), raising=False)
    torch.autograd = SimpleNamespace(forward_ad=state if what == "forward mode" else None)
    torch.add = lambda a, b, out: "torch's own sum"
    kind = type("Tensor", (met,), {"__module__": "torch"})  # what is asked for a type is learnt once
    a, out = kind(foreign(A), A), kind(foreign(A), A)
    vecadd.add(a, a, out)
    reads = kind.reads = 0
    vecadd.add(a, a, out)
    assert kind.reads > reads
    state._current_level = 0
    assert vecadd.add(a, a, out) == "torch's own sum"
    state._current_level = -1
    assert vecadd.add(a, a, out) is out


def test_a_mode_that_takes_torchs_functions_over_gets_the_sum_but_not_torch_device(made, torch, foreign, monkeypatch):
    """torch.set_default_device() is such a mode, which only places new tensors."""
    _, met = made
    kind = type("Tensor", (met,), {"__module__": "torch"})
    Context = type("DeviceContext", (), {})
    modes = []
    torch._C._is_torch_function_mode_enabled = lambda: bool(modes)
    torch._C._len_torch_function_stack = lambda: len(modes)
    torch._C._get_function_stack_at = modes.__getitem__
    torch._C.DisableTorchFunction = contextlib.nullcontext
    monkeypatch.setitem(sys.modules, "torch.utils._device", SimpleNamespace(DeviceContext=Context))
    torch.add = lambda a, b, out: "the mode's own sum"
    a, out = kind(foreign(A), A), kind(foreign(A), A)
    assert vecadd.add(a, a, out) is vecadd.add(a, a, out) is out
    for modes[:], sum_ in (([Context()], out), ([Context(), object()], "the mode's own sum"), ([], out)):
        assert vecadd.add(a, a, out) is sum_
        assert vecadd.add_many([a], [a], [out])[0] is out
        assert ("mode" in vecadd.explain(a, a, out).why) == (sum_ is not out)


def test_a_tensor_with_names_is_torchs_to_add(made, torch, foreign):
    """As PyTorch had them once: their sum has names."""
    _, met = made
    kind = type("Tensor", (met,), {"__module__": "torch", "named": False, "has_names": lambda self: self.named})
    torch.add = lambda a, b, out: "a sum with names"
    a, b = kind(foreign(A), A), kind(foreign(A), A)
    assert vecadd.add(a, b, a) is vecadd.add(a, b, a) is a
    b.named = True
    assert vecadd.add(a, b, a) == "a sum with names"
    assert "names" in vecadd.explain(a, b, a).why


@pytest.mark.parametrize("what", ["is_nested", "is_quantized"])
def test_a_tensor_without_plain_elements_is_torchs_to_add(tensor, torch, what):
    torch.add = lambda a, b, out: "torch's own sum"
    a = tensor(A)
    a.breaks = True
    vecadd.add(a, a, a)
    setattr(a, what, True)
    assert vecadd.add(a, tensor(B)) == "torch's own sum"
    with pytest.raises(RuntimeError, match="no memory that can be read"):
        vecadd.plan(a, a, tensor(B))


def test_an_inference_tensor_is_torchs_to_refuse_outside_of_its_mode(made, torch, foreign):
    _, met = made
    state = SimpleNamespace(inside=True)

    Inference = inference_tensors.kind(met)
    torch.is_inference_mode_enabled = lambda: state.inside
    torch.add = lambda a, b, out: "torch's own error"
    a = Inference(foreign(A), A)
    a.inference = True
    assert vecadd.add(a, a, a) is vecadd.add(a, a, a) is a
    state.inside = False
    assert vecadd.add(a, a, a) == "torch's own error"
    assert type(vecadd.add(a, a, vecadd.to_device(A))) is vecadd.DeviceArray
    a.inference = False
    assert vecadd.add(a, a, a) is a


def test_a_type_with_rules_of_its_own_is_torchs_to_add(tensor, torch):
    class Own(table.Tensor):
        @classmethod
        def __torch_function__(cls, *arguments):
            raise NotImplementedError

    torch.add = lambda a, b, out: "the type's own sum"
    a = Own(tensor(A).memory, A)
    assert vecadd.add(a, tensor(B)) == vecadd.add(tensor(B), a) == "the type's own sum"


@pytest.mark.parametrize("pointer", [0, None], ids=["null", "none"])
def test_a_tensor_without_memory_is_torchs_to_add(tensor, torch, pointer):
    def data_ptr():
        if pointer is None:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return pointer

    torch.add = lambda a, b, out: "torch's own sum"
    a = tensor(A, data=None)
    a.breaks, a.data_ptr, a.numel = pointer is None, data_ptr, lambda: A.size
    assert vecadd.add(a, tensor(B)) == "torch's own sum"
