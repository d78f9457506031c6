"""Plans in any order of calls: no later call is changed by earlier calls, other plans or errors."""

import gc
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import hypothesis
import numpy as np
import pytest
from arrays import assert_same_values
from conftest import ON_DOUBLE
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import vecadd

N = 1000
PLACES = st.integers(0, 3)
UNKNOWN = 999


def numbers(seed):
    return np.random.default_rng(seed).integers(-100, 100, N).astype(np.int32)


@dataclass(eq=False)
class Array:
    """An array beside its values; `stream` is where its library changes it."""

    array: Any
    values: np.ndarray
    stream: int | None = None

    def numpy(self):
        return self.array if isinstance(self.array, np.ndarray) else self.array.numpy()


@dataclass(eq=False)
class Planned:
    plan: Any
    a: list[Array]
    b: list[Array]
    out: list[Array]

    def call(self):
        """Calls the plan, and adds by NumPy."""
        for a, b, out in zip(self.a, self.b, self.out, strict=True):
            out.values = a.values + b.values
        return self.plan()


class Plans(RuleBasedStateMachine):
    """Arrays of three kinds, four of each: NumPy's, DeviceArrays, and another library's, each on one of its streams."""

    def __init__(self, driver, streams, memory, source, double):
        super().__init__()
        self.driver, self.streams, self.source, self.double = driver, streams, source, double
        for seed, x in enumerate(memory):
            driver.write(x.pointer, numbers(seed))
        self.arrays = {
            "host": [Array(numbers(seed), numbers(seed)) for seed in range(4)],
            "device": [Array(vecadd.to_device(numbers(seed)), numbers(seed)) for seed in range(4)],
            "foreign": [Array(x, numbers(seed), x.__cuda_array_interface__["stream"]) for seed, x in enumerate(memory)],
        }
        self.plans: list[Planned] = []

    @rule(
        kind=st.sampled_from(["host", "device", "foreign", "foreign"]),
        pairs=st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=2),
        out=PLACES,
        captures=st.sampled_from([None, 0, 1]),
        lists=st.booleans(),
    )
    def make(self, kind, pairs, out, captures, lists):
        """One plan more; of another library's arrays perhaps while one of its streams captures."""
        arrays = self.arrays[kind]
        outs = [arrays[(out + at) % 4] for at in range(len(pairs))]
        a, b = ([arrays[pair[side]] for pair in pairs] for side in (0, 1))
        if not lists or any(x is not own and x in outs for at, own in enumerate(outs) for x in (a[at], b[at])):
            lists, a, b, outs = False, a[:1], b[:1], outs[:1]
        given = [[each.array for each in some] for some in (a, b, outs)]
        if kind == "foreign" and captures is not None:
            with self.driver.capture(self.streams[captures]):
                plan = vecadd.plan(*(given if lists else (some[0] for some in given)))
        else:
            plan = vecadd.plan(*(given if lists else (some[0] for some in given)))
        self.plans.append(Planned(plan, a, b, outs))

    @rule(at=st.integers(0, 4), late=st.sampled_from(["", "a", "b", "out"]))
    def call(self, at, late):
        """Perhaps right after a change by an operand's owner, which no call has waited for."""
        for planned in self.plans[at : at + 1]:
            if late:
                self.change(getattr(planned, late)[0])
            result = planned.call()
            assert (result[0] if isinstance(result, list) else result) is planned.out[0].array

    @rule(at=st.integers(0, 4))
    def call_from_two_threads(self, at):
        """The device's stream orders the two calls; of NumPy's arrays they may not add into an operand."""
        for planned in self.plans[at : at + 1]:
            if planned.plan.route != "device" and any(x in planned.out for x in planned.a + planned.b):
                continue
            threads = [threading.Thread(target=planned.call) for _ in range(2)]
            for thread in threads:
                thread.start()
                if planned.plan.route == "device":
                    thread.join()
            for thread in threads:
                thread.join()

    def change(self, x):
        """Another library's array late, on its own stream."""
        if x.stream is not None:
            self.driver.copy_late(x.stream, x.array.pointer, self.source.pointer, x.values.nbytes)
            x.values = numbers(0)
        else:
            x.array += 3
            x.values = x.values + 3

    @rule(kind=st.sampled_from(["host", "device", "foreign"]), at=PLACES)
    def change_one(self, kind, at):
        self.change(self.arrays[kind][at])

    @rule(at=st.integers(0, 4), call=st.sampled_from(["cudaGraphLaunch", "cudaStreamIsCapturing", "cudaEventRecord"]))
    def fail(self, at, call):
        """A call that raises leaves out as it was, and the plan as good."""
        for planned in self.plans[at : at + 1]:
            host = planned.plan.route != "device"
            if host:
                planned.out[0].array.flags.writeable = False
            elif self.double:
                self.double.fail(call, 1, UNKNOWN)
            else:
                continue
            before = [out.values for out in planned.out]
            try:
                planned.call()
            except (RuntimeError, ValueError):
                for out, values in zip(planned.out, before, strict=True):
                    out.values = values
            else:
                assert not host
            if host:
                planned.out[0].array.flags.writeable = True
            else:
                assert self.double.faults() == 0
                self.double.reset(at)

    @rule(kind=st.sampled_from(["host", "device"]), at=PLACES)
    def replace(self, kind, at):
        """The plans keep the array that they were made with."""
        make = vecadd.to_device if kind == "device" else np.copy
        self.arrays[kind][at] = Array(make(numbers(at)), numbers(at))

    @rule(at=st.integers(0, 4))
    def drop(self, at):
        del self.plans[at : at + 1]

    @rule()
    def look(self):
        for arrays in [*self.arrays.values(), *(planned.out for planned in self.plans)]:
            for x in arrays:
                assert_same_values(x.numpy(), x.values)

    def teardown(self):
        self.look()
        self.plans.clear()
        self.arrays.clear()


def test_plans_in_any_order_add_what_numpy_adds(device, driver, foreign, request):
    double = request.getfixturevalue("double") if ON_DOUBLE else None
    streams, source = [driver.stream(), driver.stream()], foreign(numbers(0))
    memory = [foreign(numbers(0), stream=stream) for stream in (*streams, streams[0], 1)]
    phases = [hypothesis.Phase.generate]  # shrinking what fails would take minutes
    settings = hypothesis.settings(stateful_step_count=30, phases=phases)
    run_state_machine_as_test(lambda: Plans(driver, streams, memory, source, double), settings=settings)


@pytest.mark.parametrize("role", range(3), ids=["a", "b", "out"])
@pytest.mark.parametrize("lists", [False, True], ids=["arrays", "lists"])
def test_a_plan_in_a_cycle_through_its_operand_goes(device, foreign, role, lists):
    operands = [foreign(numbers(seed)) for seed in range(3)]
    operands[role].plan = vecadd.plan(*([[each] for each in operands] if lists else operands))
    operands[role].plan()
    gone = weakref.ref(operands[role])
    operands.clear()
    gc.collect()
    assert gone() is None
