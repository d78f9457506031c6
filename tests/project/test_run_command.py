"""`vecadd run`: a program runs as Python runs it, and vecadd adds in NumPy's place."""

import py_compile
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import child_environment

pytestmark = pytest.mark.no_native

ADDS = "import numpy as np\na = np.ones(3_000_000)\nprint((a + a).sum())\n"


def vecadd_run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """On two threads, where there is one processor too: alone vecadd leaves short runs of elements to NumPy."""
    return subprocess.run(
        [sys.executable, "-m", "vecadd", "run", *words],
        cwd=cwd,
        env=child_environment(VECADD_NUM_THREADS="2"),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_script_adds_by_vecadd(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text(ADDS)
    result = vecadd_run("--count", "adds.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "6000000.0\n")
    assert result.stderr == "vecadd run: 3000000 elements added in 1 calls of NumPy's loops\n"


def test_a_module_adds_by_vecadd(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(ADDS)
    result = vecadd_run("--count", "-m", "package", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "6000000.0\n")
    assert "3000000 elements" in result.stderr


@pytest.mark.parametrize("options", [(), ("--count",)], ids=["alone", "after an option"])
def test_two_dashes_end_the_options(options: tuple[str, ...], tmp_path: Path) -> None:
    """The program's own, too, are the program's."""
    (tmp_path / "adds.py").write_text("import sys\nprint(sys.argv)\n")
    result = vecadd_run(*options, "--", "adds.py", "--", "-x", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "['adds.py', '--', '-x']\n")


def test_the_allocator_is_installed_on_request(tmp_path: Path) -> None:
    code = "import numpy, vecadd; a = numpy.ones(1 << 20); print(vecadd.memory_stats()['output_used_bytes'] > 0)"
    (tmp_path / "memory.py").write_text(code)
    assert vecadd_run("memory.py", cwd=tmp_path).stdout == "False\n"
    assert vecadd_run("--allocator", "memory.py", cwd=tmp_path).stdout == "True\n"


SHOWS = (
    "import sys, helper\n"
    "main = sys.modules['__main__']\n"
    "print(__name__, sys.argv, main.__dict__ is globals(), sorted(globals()), sys.path)\n"
    "print(globals().get('__file__'), __spec__ and __spec__.name, repr(__package__), type(__loader__), __builtins__)\n"
)
AFTER_MAIN = (
    "import atexit, pickle, sys, threading\n"
    "class Kept: pass\n"
    "def use(): print(type(pickle.loads(pickle.dumps(Kept()))) is Kept, sys.argv, flush=True)\n"
    "def wait(): threading.main_thread().join(); use()\n"
    "atexit.register(use)\n"
    "threading.Thread(target=wait).start()\n"
)
SPAWNS = (
    "import multiprocessing\n"
    "class Sent:\n"
    "    def __init__(self, number): self.number = number\n"
    "def more(sent): return Sent(sent.number + 1)\n"
    "if __name__ == '__main__':\n"
    "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.apply(more, [Sent(1)]).number)\n"
)
FAILS = (
    "def inner():\n"
    "    raise ValueError('no')\n"
    "try:\n"
    "    inner()\n"
    "except ValueError as error:\n"
    "    raise KeyError(1) from error\n"
)
PROGRAMS = {
    "shows.py": SHOWS,
    "folder/__main__.py": SHOWS,
    "folder/helper.py": "",
    "helper.py": "",
    "package/__init__.py": "import sys; print(sys.argv)",
    "package/__main__.py": SHOWS,
    "package/inner.py": SHOWS,
    "after_main.py": AFTER_MAIN,
    "spawns.py": SPAWNS,
    "fails.py": FAILS,
    "syntax.py": "x = = 3\n",
    "group.py": "raise ExceptionGroup('two', [ValueError(1), KeyError(2)])\n",
    "hook.py": "import sys\nsys.excepthook = lambda *given: print('hooked', given[1])\nraise ValueError('no')\n",
    "bad_hook.py": "import sys\nsys.excepthook = lambda *given: sys.exc_info()[7]\nraise ValueError('no')\n",
    "no_hook.py": "import sys\nsys.excepthook = None\nraise ValueError('no')\n",
    "pipe.py": "raise BrokenPipeError('not ours')\n",
    "warns.py": "import warnings\nwarnings.warn('old', DeprecationWarning)\n",
    "closes.py": "import sys\nsys.stdout.close()\n",
    "why.py": "import sys\nsys.exit('why')\n",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, code in PROGRAMS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
    (folder / "empty").mkdir()
    (folder / "link.py").symlink_to("folder/__main__.py")
    py_compile.compile(str(folder / "shows.py"), cfile=str(folder / "compiled.pyc"))
    with zipfile.ZipFile(folder / "app.zip", "w") as app:
        app.writestr("__main__.py", SHOWS)
        app.writestr("helper.py", "")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "shows.py --count -m x -- -h",
        "-P | shows.py",
        "-P | -m shows",
        "-P | folder",
        "-W error | warns.py",
        "link.py",
        "compiled.pyc",
        "-m shows --count -h",
        "-mshows a",
        "-m package a",
        "-m package.inner",
        "-m missing",
        "-m missing.inner",
        "-m xml",
        "folder a",
        "app.zip a",
        "empty",
        "- a -b",
        "-c print(__name__,sorted(globals()),__loader__,repr(__package__),__import__('sys').argv) a -b",
        "-cprint(__import__('sys').path)",
        "-c raise(SystemExit(3))",
        "after_main.py a",
        "-m after_main a",
        "spawns.py",
        "-m spawns",
        "fails.py",
        "-m fails",
        "syntax.py",
        "group.py",
        "hook.py",
        "bad_hook.py",
        "no_hook.py",
        "pipe.py",
        "warns.py",
        "closes.py",
        "why.py",
    ],
)
def test_a_program_does_what_it_does_under_python(words: str, programs: Path) -> None:
    """Its output, tracebacks and status; its name, arguments and modules; what it leaves to threads and to the exit."""

    options, _, program = words.rpartition(" | ")

    def outcome(*before: str) -> tuple[int, str, str]:
        command = [sys.executable, *options.split(), *before, *program.split()]
        result = subprocess.run(
            command, cwd=programs, env=child_environment(), input=SHOWS, capture_output=True, text=True, timeout=120
        )
        return result.returncode, result.stdout, result.stderr

    assert outcome("-m", "vecadd", "run") == outcome()


def test_count_counts_what_threads_and_exit_handlers_add(tmp_path: Path) -> None:
    code = "import atexit, numpy as np\na = np.ones(3_000_000)\natexit.register(lambda: a + a)\n"
    (tmp_path / "late.py").write_text(code)
    assert "3000000 elements added in 1 calls" in vecadd_run("--count", "late.py", cwd=tmp_path).stderr


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    result = vecadd_run("waits.py", cwd=tmp_path)
    assert result.returncode == 128 + signal.SIGINT
    assert result.stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a script, a module after -m, or code after -c"),
        (["-m"], "name a script, a module after -m, or code after -c"),
        (["-c"], "name a script, a module after -m, or code after -c"),
        (["nowhere.py"], "there is no file 'nowhere.py'"),
    ],
)
def test_what_cannot_be_run_is_said(words: list[str], said: str, tmp_path: Path) -> None:
    result = vecadd_run(*words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, f"vecadd run: {said}\n")


def test_a_program_from_a_standard_input_that_is_closed_is_said(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m vecadd run - <&-"
    result = subprocess.run(command, shell=True, cwd=tmp_path, env=child_environment(), capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (
        2, "vecadd run: standard input is closed: there is no program to read from it\n"
    )  # fmt: skip


def test_an_options_value_is_no_program(tmp_path: Path) -> None:
    """Names of options are not cut short: --js would make its file's name the script's."""
    (tmp_path / "adds.py").write_text(ADDS)
    result = vecadd_run("--why", "--js", "receipt.json", "adds.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean --json?" in result.stderr


def test_a_wrong_option_is_said_before_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "adds.py").write_text(ADDS)
    result = vecadd_run("--conut", "adds.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean --count?" in result.stderr
