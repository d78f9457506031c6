"""`%%why` in a notebook: the cell runs as it is, and a receipt of its additions follows."""

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


def test_a_cell_that_fails_shows_its_error_and_its_receipt(shell: Callable[[str], str]) -> None:
    output = shell('cell("%%why\\na + a\\nraise ValueError(7)")\ncell("%%why\\na + a; a + 1")\n')
    assert output.index("ValueError") < output.index("why: 1 addition above 64 KiB took ")
    assert "why: 2 additions above 64 KiB took " in output


def test_the_receipt_goes_to_a_file(shell: Callable[[str], str], tmp_path: Path) -> None:
    shell('cell("%%why receipt.json\\na + a")')
    assert '"lines"' in (tmp_path / "receipt.json").read_text()


def test_an_extension_that_is_taken_out_has_no_magic(shell: Callable[[str], str]) -> None:
    code = 'cell("%unload_ext vecadd")\nprint("why" in shell.magics_manager.magics["cell"])\n'
    code += "import vecadd\nprint(vecadd._core.loop_counts()['installed'])\n"
    assert shell(code).splitlines()[-2:] == ["False", "False"]
