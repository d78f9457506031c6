"""Text in files is UTF-8 in every locale: the package and its build name the encoding of what they read and write."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import child_environment

import vecadd

pytestmark = pytest.mark.no_native

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((*ROOT.glob("*.py"), *(ROOT / "build_native").glob("*.py"), *(ROOT / "vecadd").rglob("*.py")))
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def of_the_locale(source: str) -> list[int]:
    """The lines of calls that open, read or write text and name no encoding."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _is_text(call) and "encoding" not in {each.arg for each in call.keywords}]


def _is_text(call: ast.Call) -> bool:
    words = ast.unparse(call.func).split(".")
    if words[-1] in ("read_text", "write_text"):
        return True
    if words[-1] not in ("open", "fdopen") or words == ["os", "open"]:
        return False
    if words[-1] == "open" and words[1:] and call.args and not isinstance(call.args[0], ast.Constant):
        return False  # that of another object: a path's open has its mode there
    modes = [*call.args, *(each.value for each in call.keywords if each.arg == "mode")]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
    return not any("b" in mode for mode in texts)


def test_no_text_is_read_or_written_without_an_encoding() -> None:
    assert {"setup.py", "build_backend.py", "_command.py"} <= {path.name for path in FILES}
    found = {str(path.relative_to(ROOT)): of_the_locale(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_command_line_runs_in_an_ascii_locale(tmp_path: Path) -> None:
    """In a source tree, whose pyproject.toml has letters beyond ASCII."""
    done = subprocess.run(
        [sys.executable, "-m", "vecadd", "--version"], env=child_environment(**ASCII), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"vecadd {vecadd.__version__}\n", "")
