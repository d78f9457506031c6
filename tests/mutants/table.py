"""Each mutant: a text that stands once in a file, what takes its place, and the test that must fail then."""

from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """``test`` is a Python test file, run on the double with ``only`` as its -k, or the name of a C test's program.

    With ``libraries`` it is run on the GPU, and a test of each of them has to fail."""

    name: str
    path: str
    old: str
    new: str
    test: str
    only: str = ""
    libraries: tuple[str, ...] = ()

    def applied_to(self, root: Path) -> str:
        """The file's text with the mutation. Raises ValueError where the old text does not stand there exactly once:
        the code has changed, and the mutant has to follow it."""
        text = (root / self.path).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands {text.count(self.old)} times in {self.path}, not once")
        return text.replace(self.old, self.new)


ORDER = "tests/test_stream_order.py"

AFTER = Mutant(
    "after its producers",
    "csrc/core/device_queue.c",
    "stream_come_after(scope->device, plan->stream, plan->join[i], in_capture, status) < 0",
    "false",
    ORDER,
    "on_another_stream",
)
BEFORE = Mutant(
    "before its readers",
    "csrc/core/device_queue.c",
    "stream_come_before(scope->device, plan->stream, plan->join[i], in_capture, status) < 0",
    "false",
    ORDER,
    "read_it_at_once",
)
RECORD = Mutant(
    "record_stream",
    "csrc/py/keep.c",
    "foreign_record_stream(operand->library, operand->exported, call->plan.stream) < 0",
    "false",
    ORDER,
    "third_stream",
)
LENT = Mutant(
    "lent operands",
    "csrc/py/keep.c",
    "keep(call, call->plan.stream, true, owners);",
    "(void)owners;",
    "tests/test_dlpack.py",
    "held_until",
)

MUTANTS = (
    Mutant("programmatic wait", "cuda/add.cu", "    wait_for_prerequisites();\n", "", "tests/test_streams.py"),
    Mutant(
        "stream join",
        "csrc/core/stream.c",
        "error = cudaStreamWaitEvent(after, event, cudaEventWaitDefault);",
        "(void)after;",
        "tests/test_streams.py",
        "producers",
    ),
    Mutant(
        "demotion",
        "cuda/add.cu",
        "if (thread >= split.demote_from) {",
        "if (false) {",
        "tests/test_l2.py",
        "gives_their_end_back",
    ),
    Mutant(
        "tail",
        "cuda/add.cu",
        "} else if (thread - split.vectors < split.edges) {",
        "} else if (false) {",
        "tests/test_add_device.py",
    ),
    Mutant(
        "fork handler",
        "csrc/core/runtime.c",
        "pthread_atfork(NULL, NULL, in_forked_child);",
        "(void)in_forked_child;",
        "test_threads",
    ),
    Mutant(
        "floating-point control of the workers",
        "csrc/core/threads.c",
        "        fpenv_set(job->control);\n",
        "",
        "test_threads",
    ),
    Mutant(
        "the first operand's stream",
        "csrc/core/plan.c",
        "leader ? leader->stream : NULL",
        "NULL",
        "tests/test_streams.py",
        "runs_on_the_first_operands_stream",
    ),
    AFTER,
    BEFORE,
    Mutant(
        "lists after their producers",
        "csrc/core/batch.c",
        "stream_come_after(device, batch->stream, batch->join[i], in_capture, status) < 0",
        "false",
        ORDER,
        "sums_of_lists",
    ),
    Mutant(
        "a consumer by DLPack",
        "csrc/py/device_array_export.c",
        "failed = stream_join(array->device, array->stream, stream, &status);",
        "failed = 0;",
        ORDER,
        "consumer_by_dlpack",
    ),
    Mutant(
        "streams outside of a capture",
        "csrc/core/stream.c",
        "if (in_capture && stream_captures(other, &takes_part, status) < 0)",
        "if (false)",
        "tests/test_captures.py",
        "left_out",
    ),
    Mutant(
        "producers in lists",
        "csrc/py/many.c",
        "survey->reader.defers = !survey->stream;",
        "survey->reader.defers = false;",
        "tests/test_captures.py",
        "told_no_stream",
    ),
    RECORD,
    Mutant(
        "record_stream of lists",
        "csrc/py/keep.c",
        "foreign_record_stream(library, object, stream)",
        "0",
        ORDER,
        "third_stream",
    ),
    LENT,
    Mutant(
        "errors told are not left",
        "csrc/core/device_errors.c",
        "    cudaGetLastError(); /* it is reported here; torch and others must not find it as theirs */\n",
        "",
        "tests/test_failures.py",
        "left_for_the_next",
    ),
    Mutant(
        "errors of releases are not left",
        "csrc/core/device_errors.c",
        "if (cuda_error != cudaSuccess)",
        "if (false)",
        "tests/test_failures.py",
        "left_for_the_next",
    ),
    Mutant(
        "an event for each join",
        "csrc/core/events.c",
        "*event && (*event = atomic_exchange(&state->spare[i], NULL))",
        "*event",
        "test_device_add",
    ),
    Mutant(
        "one thread launches a graph",
        "csrc/core/graph.c",
        "return pthread_mutex_trylock(&graph->lock) == 0;",
        "return pthread_mutex_trylock(&graph->lock) >= 0;",
        "test_graph",
    ),
    Mutant(
        "lists that failed are waited for",
        "csrc/core/batch.c",
        "stream_wait(batch->stream);",
        ";",
        "test_batch",
    ),
    Mutant(
        "a full device is waited for",
        "csrc/core/memory.c",
        "cudaStreamSynchronize(stream); /* what was released",
        "/* what was released",
        "test_memory",
    ),
    Mutant(
        "errors of waits are not left",
        "csrc/core/stream.c",
        "cudaGetLastError(); /* the caller has it by value */",
        ";",
        "test_batch",
    ),
    Mutant(
        "a query in relaxed mode",
        "csrc/core/capture_mode.c",
        "enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;",
        "enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;",
        "tests/test_captures.py",
        "another_thread",
    ),
    Mutant(
        "an error is no answer",
        "csrc/core/stream.c",
        "if (error != cudaSuccess && !device_is_lost(error))",
        "if (error == cudaErrorNotReady)",
        "tests/test_dlpack.py",
        "question",
    ),
    Mutant(
        "a slow stream",
        "csrc/py/keep.c",
        "if (slow->stream[i] == stream)",
        "if (slow->stream[i] == stream || true)",
        "tests/test_dlpack.py",
        "slow_stream",
    ),
    Mutant(
        "a home for the per-thread stream's sums",
        "csrc/core/stream.c",
        "if (stream != STREAM_PER_THREAD)",
        "if (true)",
        "tests/test_streams.py",
        "in_any_thread",
    ),
    Mutant(
        "a consumer on the per-thread stream",
        "csrc/py/device_array_export.c",
        ".stream = stream_of_all_threads(stream)}",
        ".stream = stream}",
        "tests/test_streams.py",
        "drop_its_capsule",
    ),
    Mutant(
        "a drop without its join",
        "csrc/core/stream.c",
        "    return !later;\n",
        "    return true || later;\n",
        "tests/test_streams.py",
        "drop_its_capsule",
    ),
    Mutant(
        "a deleter that waits",
        "csrc/py/device_array_export.c",
        "if (!device_block_drop_later(&export->drop))",
        "device_block_drop_after(&export->drop);\n    if (false)",
        "tests/test_full_queues.py",
        "consumed",
    ),
    Mutant(
        "a plan that waits for another thread's launch",
        "csrc/core/graph.c",
        "if (graph->stream == STREAM_PER_THREAD)",
        "if (true)",
        "tests/test_full_queues.py",
        "share_a_plan",
    ),
    Mutant(
        "no room in a capture",
        "csrc/core/memory.c",
        "if (!stream_is_busy(stream)) {",
        "if (true) {",
        "tests/test_captures.py",
        "no_room",
    ),
    Mutant(
        "a capture turns the route off",
        "csrc/core/routes.c",
        "if (status->code == STATUS_MEMORY || status->code == STATUS_CAPTURE)",
        "if (status->code == STATUS_MEMORY)",
        "tests/test_route_choice.py",
        "in_the_way",
    ),
    # The same on a GPU, with each library's own streams and allocator.
    replace(AFTER, name="after, on a GPU", libraries=("Torch", "CuPy", "Numba")),
    replace(BEFORE, name="before, on a GPU", libraries=("Torch", "CuPy")),
    replace(RECORD, name="record_stream, on a GPU", libraries=("Torch",)),
    replace(LENT, name="lent, on a GPU", test="tests/test_jax.py", only="dropped_at_once", libraries=("test_jax",)),
    Mutant("cut along the next axis", "cuda/strided.cu", "if (extent == 1)", "if (false)", "test_strided"),
    Mutant(
        "an error of __index__",
        "csrc/py/device_array_export.c",
        "number == -1 && PyErr_Occurred() ? -1 : number >= DLPACK_MAJOR",
        "number >= DLPACK_MAJOR",
        "tests/test_bad_input.py",
        "raises",
    ),
    Mutant(
        "a tensor without a shape",
        "csrc/py/host_view.c",
        " || (tensor->ndim > 0 && !tensor->shape)",
        "",
        "tests/test_bad_input.py",
        "on_the_host",
    ),
    Mutant(
        "a release beside a transfer",
        "csrc/core/transfer.c",
        "pthread_mutex_trylock(&transferring) != 0",
        "pthread_mutex_lock(&transferring) != 0",
        "test_transfer",
    ),
    Mutant(
        "the ring in release",
        "csrc/py/memory_stats.c",
        " + transfer_release()",
        "",
        "tests/test_transfer.py",
        "given_back",
    ),
    Mutant(
        "a plan's rounding at its call",
        "csrc/core/plan.c",
        "plan->chosen && !may_leave_host(plan)",
        "false",
        "tests/test_route_choice.py",
        "rounds_and_flushes",
    ),
    Mutant(
        "the kind of a sum with a number first",
        "csrc/py/add.c",
        "&& call->devices[call->sum.like].library)",
        "&& call->sum.like == ROLE_A && call->devices[ROLE_A].library)",
        "tests/test_result_kinds.py",
        "number_on_either_side",
    ),
    Mutant(
        "adopted sums of lists",
        "csrc/py/many_run.c",
        "call->place == PLACE_DEVICE && adopt_sums(state, call) < 0",
        "false && adopt_sums(state, call) < 0",
        "tests/test_result_kinds.py",
        "own_pairs_kind",
    ),
    Mutant(
        "the end of a test that hangs",
        "pyproject.toml",
        "faulthandler_exit_on_timeout = true\n",
        "",
        "tests/test_hangs.py",
        "fails_the_run",
        "lists looked at again",
        "csrc/py/many_run.c",
        "if (!is_as_looked_at(state, call, i))",
        "if (i > call->add_count)",
        "tests/test_add_many.py",
        "later_pair",
    ),
    Mutant(
        "one kind for good",
        "csrc/py/operand_cupy.c",
        "if (atomic_compare_exchange_strong(&state->cupy_owner, &nothing, capsule)) {",
        "if (atomic_exchange(&state->cupy_owner, capsule) != capsule || nothing) {",
        "tests/test_cupy_attributes.py",
        "two_threads",
        "a write that torch counts",
        "csrc/py/add.c",
        "call->plan.route == ROUTE_DEVICE && count_write(call, out) < 0",
        "false && count_write(call, out) < 0",
        "tests/test_exchange_table.py",
        "counted",
    ),
    Mutant(
        "writes of a list that torch counts",
        "csrc/py/many_run.c",
        "call->written && foreign_written(call->count_writes, call->written) < 0",
        "false && foreign_written(call->count_writes, call->written) < 0",
        "tests/test_exchange_table.py",
        "counted",
    ),
    Mutant(
        "writes of a plan that torch counts",
        "csrc/py/plan_object.c",
        "count_write(&self->call, self->objects[ROLE_OUT]) < 0",
        "false && count_write(&self->call, self->objects[ROLE_OUT]) < 0",
        "tests/test_exchange_table.py",
        "counts_its_outs",
    ),
    Mutant(
        "writes on the host that torch counts",
        "vecadd/_tensors.py",
        "    if out is not None and library.count_writes is not None:\n",
        "    if False:\n",
        "tests/test_tensors.py",
        "counts",
    ),
    Mutant(
        "files that their own thread closes",
        "vecadd/files.py",
        "    run_uninterrupted(work, progress)\n",
        "    work(lambda: None, progress)\n",
        "tests/test_files.py",
        "spoil_no_file",
    ),
    Mutant(
        "interrupts in the middle of work",
        "vecadd/_uninterrupted.py",
        "                raised = raised or error  # and",
        "                raise  # and",
        "tests/test_files.py",
        "several_interrupts",
    ),
)
