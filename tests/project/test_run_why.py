"""`vecadd run --why`: a program runs as Python runs it, and a receipt of its additions follows."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_run_command import vecadd_run

pytestmark = pytest.mark.no_native

PROGRAM = """\
import sys
import numpy as np
a, b = np.ones((2, 100_000))
for _ in range(5):
    c = a + b
c += a
print(c[0], sys.argv[1:], np.ones(10) + 1 is None)
"""


@pytest.fixture
def receipt(tmp_path: Path) -> Any:
    """receipt(code, *options): the finished process and the receipt's rows by line."""

    def run(code: str, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[int, Any]]:
        (tmp_path / "program.py").write_text(code)
        file = tmp_path / "receipt.json"
        result = vecadd_run("--why", *options, "--json", "receipt.json", "program.py", "--more", cwd=tmp_path)
        rows = json.loads(file.read_text())["lines"]
        assert {row["file"] for row in rows} <= {str(tmp_path / "program.py")}
        return result, {row["line"]: row for row in rows}

    return run


def test_the_program_runs_as_it_is_and_its_lines_are_told(receipt: Any) -> None:
    result, rows = receipt(PROGRAM)
    assert (result.returncode, result.stdout) == (0, "3.0 ['--more'] False\n")
    assert {line: (row["calls"], row["bytes"]) for line, row in rows.items()} == {
        5: (5, 5 * 2_400_000),
        6: (1, 2_400_000),
    }
    assert rows[5]["operands"] == ["float64 (100000,)", "float64 (100000,)", "a new float64 (100000,)"]
    assert rows[6]["operands"][2] == "float64 (100000,)"
    assert rows[5]["limit_seconds"] > 0
    assert "why: 6 additions above 64 KiB took " in result.stderr
    assert "program.py:5 " in result.stderr


def test_numpy_adds_unless_install_is_asked_for(receipt: Any) -> None:
    code = "import numpy as np, vecadd\na = np.ones(3_000_000)\na + a\nprint(vecadd._core.loop_counts()['installed'])\n"
    assert receipt(code)[0].stdout == "False\n"
    result, rows = receipt(code, "--install", "--count")
    assert result.stdout == "True\n"
    assert "3000000 elements added in 1 calls" in result.stderr
    assert (rows[3]["calls"], rows[3]["loops"], rows[3]["loop_elements"]) == (1, 1, 3_000_000)


@pytest.mark.parametrize(("end", "status"), [("raise ValueError('no')", 1), ("sys.exit(7)", 7)])
def test_the_exit_status_is_the_programs_and_the_receipt_comes(end: str, status: int, receipt: Any) -> None:
    result, rows = receipt(PROGRAM + end)
    assert result.returncode == status
    assert set(rows) == {5, 6}


def test_a_program_without_large_additions_has_an_empty_receipt(receipt: Any) -> None:
    result, rows = receipt("import numpy as np\nnp.ones(10) + 1\n")
    assert result.stderr == "why: no addition above 64 KiB was made; smaller ones, not timed: 1\n"
    assert rows == {}


def test_a_forked_child_prints_none(receipt: Any) -> None:
    code = "import os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()\n" + PROGRAM
    result, _ = receipt(code)
    assert result.stderr.count("why: ") == 1


def test_threads_and_exit_handlers_of_the_program_are_in_it(receipt: Any) -> None:
    code = (
        "import atexit, threading\nimport numpy as np\na = np.ones(100_000)\n"
        "atexit.register(lambda: a + a)\n"
        "def late():\n    threading.main_thread().join()\n    a + a\n"
        "threading.Thread(target=late).start()\n"
    )
    assert set(receipt(code)[1]) == {4, 7}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--install", "program.py"], "--install and --json are for --why"),
        (["--json", "x.json", "program.py"], "--install and --json are for --why"),
        (["--why", "--count", "program.py"], "--allocator and --count are for vecadd in NumPy's addition"),
        (["--why", "--allocator", "program.py"], "give --install too"),
        (["--why"], "name a script"),
    ],
)
def test_what_cannot_be_asked(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemExit('it has run')")
    result = vecadd_run(*words, cwd=tmp_path)
    assert result.returncode == 2
    assert said in result.stderr
    assert "it has run" not in result.stderr


def test_the_receipt_may_go_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import numpy as np\nnp.ones(100_000) + 1\n")
    result = vecadd_run("--why", "--json", "-", "program.py", cwd=tmp_path)
    assert [row["line"] for row in json.loads(result.stdout)["lines"]] == [2]


def test_a_receipt_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "program.py").write_text("import os\nos.rmdir('folder')\n")
    result = vecadd_run("--why", "--json", "folder/receipt.json", "program.py", cwd=tmp_path)
    assert result.stderr.splitlines() == [
        "why: no addition above 64 KiB was made",
        "vecadd run: folder/receipt.json: the receipt is not written: No such file or directory",
    ]


def test_the_receipt_is_written_where_its_name_was_given(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "program.py").write_text("import os\nos.chdir('folder')\n")
    assert vecadd_run("--why", "--json", "receipt.json", "program.py", cwd=tmp_path).returncode == 0
    assert (tmp_path / "receipt.json").exists()
    assert not (tmp_path / "folder" / "receipt.json").exists()


def test_a_program_may_remove_its_working_directory(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, numpy as np\nos.mkdir('x')\nos.chdir('x')\nos.rmdir('../x')\nnp.ones(100_000) + 1\n")
    result = vecadd_run("--why", str(program), cwd=tmp_path)
    assert f"{program}:5" in result.stderr
    assert "Traceback" not in result.stderr


def test_standard_output_may_be_closed_before_the_receipt_comes(tmp_path: Path) -> None:
    result = vecadd_run("--why", "--json", "-", "-c", "import sys; sys.stdout.close()", cwd=tmp_path)
    assert result.stderr.splitlines()[-1].startswith("vecadd run: -: the receipt is not written: ")


WITHOUT_ISATTY = """
class Tee:
    def write(self, text): pass
    def flush(self): pass
sys.stderr = Tee()
"""
FULL = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 2)"
UNREAD = "import os; ends = os.pipe(); os.close(ends[0]); os.dup2(ends[1], 2)"


@pytest.mark.parametrize(
    "end",
    [WITHOUT_ISATTY, FULL, UNREAD, "sys.stderr.close()", "sys.stderr = None"],
    ids=["Tee", "full", "unread", "closed", "None"],
)
def test_the_receipt_is_written_where_stderr_takes_nothing(end: str, receipt: Any) -> None:
    result, rows = receipt(PROGRAM + end)
    assert (result.returncode, result.stdout, result.stderr) == (0, "3.0 ['--more'] False\n", "")
    assert set(rows) == {5, 6}


def test_a_program_that_ends_the_recording_itself_has_no_receipt(tmp_path: Path) -> None:
    code = "import numpy as np; from vecadd import why; np.ones(100_000) + 1; why.stop()"
    result = vecadd_run("--why", "-c", code, cwd=tmp_path)
    assert result.stderr.splitlines() == ["vecadd run: there is no receipt: no additions are being recorded"]


def test_a_count_stays_out_of_standard_output(tmp_path: Path) -> None:
    result = vecadd_run("--count", "-c", "import sys; sys.stderr = None", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_where_nothing_can_be_recorded_the_program_does_not_run(child: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('runs')\n")
    result = child(
        "from vecadd import _core\n"
        "from vecadd.cli import main\n"
        "def refuse(*names):\n"
        "    raise RuntimeError('this Python has no GIL')\n"
        "_core.receipt_start = refuse\n"
        f"raise SystemExit(main(['run', '--why', {str(tmp_path / 'program.py')!r}]))\n",
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == "vecadd run: this Python has no GIL"
