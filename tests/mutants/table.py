"""Each mutant: a text that stands once in a file, what takes its place, and the test that must fail then."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """``test`` is a Python test file, run on the double with ``only`` as its -k, or the name of a C test's program."""

    name: str
    path: str
    old: str
    new: str
    test: str
    only: str = ""

    def applied_to(self, root: Path) -> str:
        """The file's text with the mutation. Raises ValueError where the old text does not stand there exactly once:
        the code has changed, and the mutant has to follow it."""
        text = (root / self.path).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands {text.count(self.old)} times in {self.path}, not once")
        return text.replace(self.old, self.new)


MUTANTS = (
    Mutant("programmatic wait", "cuda/add.cu", "    wait_for_prerequisites();\n", "", "tests/test_streams.py"),
    Mutant(
        "stream join",
        "csrc/core/stream.c",
        "error = cudaStreamWaitEvent(after, scope.state->join, cudaEventWaitDefault);",
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
    # PyTorch's own allocator is the one that minds: on a machine without a GPU the test is skipped, which is said.
    Mutant(
        "record_stream",
        "csrc/py/keep.c",
        "foreign_record_stream(operand->library, operand->exported, call->plan.stream) < 0",
        "false",
        "tests/test_torch.py",
        "outlive_a_sum",
    ),
)
