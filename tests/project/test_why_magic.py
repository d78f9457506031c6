"""`%%why` in a notebook: the cell runs as it is, and a receipt of its additions follows."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_native

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
cell = shell.run_cell
cell("import numpy as np; a = np.ones(100_000)")
cell("%load_ext vecadd")
"""

Child = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shell(child: Child, tmp_path: Path) -> Callable[[str], str]:
    """shell(code): what the code prints, which may call cell()."""
    pytest.importorskip("IPython")
    before = f"import os; os.chdir({str(tmp_path)!r}); os.environ['IPYTHONDIR'] = {str(tmp_path)!r}\n"
    return lambda code: child(before + SHELL + code).stdout


def test_a_cell_gives_its_receipt(shell: Callable[[str], str]) -> None:
    code = 'receipt = shell.run_cell_magic("why", "", "b = a + a\\n\\nc = [b + a for _ in range(3)]")\n'
    code += "print([(line.where, line.calls) for line in sorted(receipt.lines, key=lambda line: line.where)])\n"
    code += "print(shell.user_ns['b'].sum(), '<td' in receipt._repr_html_(), 'why: 4 additions' in repr(receipt))\n"
    lines = shell(code).splitlines()
    assert lines[-2:] == ["[('cell:1', 1), ('cell:3', 3)]", "200000.0 True True"]


FAILS = {
    "raises": ("raise ValueError(7)", "ValueError: 7"),
    "is no Python": ("b = = 3", "SyntaxError: invalid syntax"),
    "is indented wrongly": (
        "if a is None:\npass",
        "IndentationError: expected an indented block after 'if' statement on line 1",
    ),
    "is interrupted": ("raise KeyboardInterrupt", "KeyboardInterrupt:"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3"),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_cell_that_fails_as_a_plain_one_shows_its_receipt_and_then_its_error_once(
    name: str, shell: Callable[[str], str]
) -> None:
    body, error = FAILS[name]
    code = f"""
import warnings
warnings.simplefilter("ignore")
shell.colors = "nocolor"
plain = cell({body!r})
print("-----")
ran = cell("%%why\\n" + {body!r})
print("-----")
kinds = [type(each.error_before_exec or each.error_in_exec) for each in (plain, ran)]
print(kinds[0] is kinds[1], ran.success)
cell("a + undefined")
"""
    _, shown, after = shell(code).split("\n-----\n")
    errors = [at for at, text in enumerate(shown.splitlines()) if re.match(rf"{re.escape(error)} *$", text)]
    assert len(errors) == 1
    assert shown.splitlines().index("why: no addition above 64 KiB was made") < errors[0]
    assert after.startswith("True False\n")
    assert "NameError: name 'undefined' is not defined" in after  # the shell shows the errors of other cells again


def test_what_a_cell_added_before_its_error_is_in_its_receipt(shell: Callable[[str], str], tmp_path: Path) -> None:
    code = (
        'cell("%%why\\na + a\\nraise ValueError(7)")\ncell("%%why\\na + a; a + 1")\ncell("_.save(\'receipt.json\')")\n'
    )
    output = shell(code)
    assert output.index("why: 1 addition above 64 KiB took ") < output.index("ValueError")
    assert "why: 2 additions above 64 KiB took " in output
    assert '"lines"' in (tmp_path / "receipt.json").read_text()


def test_a_notebook_that_is_executed_stops_at_the_cell(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = ["%load_ext vecadd", "%%why\nraise ValueError(7)", "open('ran', 'w')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    with pytest.raises(nbclient.exceptions.CellExecutionError) as stopped:
        client.execute()
    assert (stopped.value.ename, stopped.value.evalue) == ("ValueError", "7")
    assert [each["output_type"] for each in notebook.cells[1].outputs] == ["display_data", "error"]
    assert not (tmp_path / "ran").exists()


def test_an_error_after_which_a_cell_goes_on_is_shown_too(shell: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise ValueError(7)\n")
    (tmp_path / "wrong.py").write_text("b = = 3\n")
    output = shell("""shell.colors = "nocolor"\ncell("%%why\\n%run fails.py\\n%run wrong.py\\na + a")\n""")
    assert [output.count(error) for error in ("\nValueError: 7\n", "\nSyntaxError: invalid syntax")] == [1, 1]
    assert "why: 1 addition above 64 KiB took " in output


@pytest.mark.parametrize("end", ["a + a", "raise ValueError(7)"])
def test_a_cell_that_ends_its_receipt_itself_has_none_and_shows_its_own_error(
    end: str, shell: Callable[[str], str]
) -> None:
    body = f"import vecadd.why; vecadd.why.stop()\n{end}"
    output = shell(f"sys.stderr = sys.stdout\nshell.colors = 'nocolor'\ncell({'%%why' + chr(10) + body!r})\n")
    assert output.count("%%why: there is no receipt: no additions are being recorded") == 1
    assert output.count("\nValueError: 7\n") == (end != "a + a")


def test_an_errors_handler_is_called_once(shell: Callable[[str], str]) -> None:
    code = "shell.set_custom_exc((ValueError,), lambda shell, *error, tb_offset=None: print('handled'))\n"
    assert shell(code + 'cell("%%why\\nraise ValueError(7)")\n').count("handled") == 1


def test_what_is_written_after_it_is_an_error_before_the_cell_runs(shell: Callable[[str], str]) -> None:
    output = shell("sys.stderr = sys.stdout\ncell('%%why one.json\\nprint(3 * 41)')\n")
    assert "UsageError: %%why takes nothing after it, not one.json; its receipt has save(file)" in output
    assert "123" not in output


def test_an_extension_that_is_taken_out_has_no_magic(shell: Callable[[str], str]) -> None:
    code = 'cell("%unload_ext vecadd")\nprint("why" in shell.magics_manager.magics["cell"])\n'
    code += "import vecadd\nprint(vecadd._core.loop_counts()['installed'])\n"
    assert shell(code).splitlines()[-2:] == ["False", "False"]
