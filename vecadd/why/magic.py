"""`%%why`: a cell of a notebook, and the receipt of its additions below it."""

from typing import Any

from vecadd.why import noted
from vecadd.why.receipt import Receipt, stop


def register(shell: Any) -> None:
    """Gives the shell the cell magic ``%%why``; a file's name behind it gets the receipt as JSON."""

    def why(line: str, cell: str) -> Receipt:
        noted.start()
        try:
            shell.run_cell(cell)  # shows its own errors
        finally:
            receipt = stop()
        if line.strip():
            receipt.save(line.strip())
        return receipt

    shell.register_magic_function(why, "cell", "why")


def unregister(shell: Any) -> None:
    """Takes it away again."""
    shell.magics_manager.magics["cell"].pop("why", None)
