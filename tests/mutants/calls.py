"""Lines between Python's objects and the additions (csrc/py)."""

from dataclasses import replace

from tests.mutants.mutant import Mutant

ORDER = "tests/device/test_stream_order.py"
EXTREMES = "tests/add/test_extremes.py"

RECORD = Mutant(
    "record_stream",
    "csrc/py/calls/deferred_release.c",
    "interop_record_stream(operand->library, operand->exported, call->plan.stream) < 0",
    "false",
    ORDER,
    "third_stream",
)
LENT = Mutant(
    "lent operands",
    "csrc/py/calls/deferred_release.c",
    "keep(call, call->plan.stream, true, owners);",
    "(void)owners;",
    "tests/interop/test_dlpack.py",
    "held_until",
)

CALLS = (
    Mutant(
        "numpy.add's errors in a plan",
        "csrc/py/calls/plan_object.c",
        "self->call.kind != CALL_NUMPY || ",
        "true || ",
        "tests/add/test_explain.py",
        "without_a_driver",
    ),
    Mutant(
        "a consumer by DLPack",
        "csrc/py/array/export.c",
        "failed = stream_join(array->device, array->stream, stream, &status);",
        "failed = 0;",
        ORDER,
        "consumer_by_dlpack",
    ),
    Mutant(
        "producers in lists",
        "csrc/py/calls/batch.c",
        "survey->reader.defers = !survey->stream;",
        "survey->reader.defers = false;",
        "tests/device/test_captures.py",
        "told_no_stream",
    ),
    RECORD,
    Mutant(
        "record_stream of lists",
        "csrc/py/calls/deferred_release.c",
        "interop_record_stream(library, object, stream)",
        "0",
        ORDER,
        "third_stream",
    ),
    LENT,
    Mutant(
        "a slow stream",
        "csrc/py/calls/deferred_release.c",
        "if (slow->stream[i] == stream)",
        "if (slow->stream[i] == stream || true)",
        "tests/interop/test_dlpack.py",
        "slow_stream",
    ),
    Mutant(
        "a consumer on the per-thread stream",
        "csrc/py/array/export.c",
        ".stream = stream_of_all_threads(stream)}",
        ".stream = stream}",
        "tests/device/test_streams.py",
        "drop_its_capsule",
    ),
    Mutant(
        "a deleter that waits",
        "csrc/py/array/export.c",
        "if (!device_buffer_drop_later(&export->drop))",
        "device_buffer_drop_after(&export->drop);\n    if (false)",
        "tests/device/test_full_queues.py",
        "consumed",
    ),
    replace(RECORD, name="record_stream, on a GPU", libraries=("Torch",)),
    replace(
        LENT, name="lent, on a GPU", test="tests/interop/test_jax.py", only="dropped_at_once", libraries=("test_jax",)
    ),
    Mutant(
        "an error of __index__",
        "csrc/py/array/export.c",
        "number == -1 && PyErr_Occurred() ? -1 : number >= DLPACK_MAJOR",
        "number >= DLPACK_MAJOR",
        "tests/add/test_bad_input.py",
        "raises",
    ),
    Mutant(
        "a tensor without a shape",
        "csrc/py/operands/host_view.c",
        " || (tensor->ndim > 0 && !tensor->shape)",
        "",
        "tests/add/test_bad_input.py",
        "on_the_host",
    ),
    Mutant(
        "the ring in release",
        "csrc/py/calls/memory_stats.c",
        " + transfer_release()",
        "",
        "tests/device/test_transfer.py",
        "given_back",
    ),
    Mutant(
        "the kind of a sum with a number first",
        "csrc/py/calls/add.c",
        "&& call->operands[call->sum.like].library)",
        "&& call->sum.like == ROLE_A && call->operands[ROLE_A].library)",
        "tests/device/test_result_kinds.py",
        "number_on_either_side",
    ),
    Mutant(
        "adopted sums of lists",
        "csrc/py/calls/batch_run.c",
        "call->place == PLACE_DEVICE && adopt_sums(state, call) < 0",
        "false && adopt_sums(state, call) < 0",
        "tests/device/test_result_kinds.py",
        "own_pairs_kind",
    ),
    Mutant(
        "lists looked at again",
        "csrc/py/calls/batch_run.c",
        "if (!is_as_looked_at(state, call, i))",
        "if (i > call->add_count)",
        "tests/add/test_add_many.py",
        "later_pair",
    ),
    Mutant(
        "one kind for good",
        "csrc/py/operands/cupy.c",
        "if (atomic_compare_exchange_strong(&state->cupy_owner, &nothing, capsule)) {",
        "if (atomic_exchange(&state->cupy_owner, capsule) != capsule || nothing) {",
        "tests/interop/test_cupy_attributes.py",
        "two_threads",
    ),
    Mutant(
        "a write that torch counts",
        "csrc/py/calls/add.c",
        "call->plan.route == ROUTE_DEVICE && count_write(call, out) < 0",
        "false && count_write(call, out) < 0",
        "tests/interop/test_exchange_table.py",
        "counted",
    ),
    Mutant(
        "writes of a list that torch counts",
        "csrc/py/calls/batch_run.c",
        "call->written && interop_written(call->count_writes, call->written) < 0",
        "false && interop_written(call->count_writes, call->written) < 0",
        "tests/interop/test_exchange_table.py",
        "counted",
    ),
    Mutant(
        "writes of a plan that torch counts",
        "csrc/py/calls/plan_object.c",
        "counted = count_write(&self->call, out)",
        "counted = 0",
        "tests/interop/test_exchange_table.py",
        "counts_its_outs",
    ),
    Mutant(
        "the least integer of a dtype",
        "csrc/py/operands/promotion.c",
        "value >= INT64_MIN >> shift",
        "value > INT64_MIN >> shift",
        EXTREMES,
        "pythons_integers",
    ),
    Mutant(
        "the greatest unsigned integer of a dtype",
        "csrc/py/operands/promotion.c",
        "*bits <= UINT64_MAX >> shift",
        "*bits < UINT64_MAX >> shift",
        EXTREMES,
        "pythons_integers",
    ),
    Mutant(
        "negated views",
        "csrc/py/operands/torch.c",
        "return has_odd_stride(result) || denies",
        "return true || denies",
        "tests/interop/test_exchange_table.py",
        "negated_view",
    ),
)
