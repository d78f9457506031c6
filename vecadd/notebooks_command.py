"""`vecadd notebooks`: the notebooks, in a folder of the caller's."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from vecadd._carried import notebooks
from vecadd._command import epilog, folder, writable
from vecadd.figures import replace_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("into", metavar="DIR", type=folder, help="the folder to write them to; it is made if needed")
    parser.add_argument("--force", action="store_true", help="overwrite existing notebooks that differ")
    parser.epilog = epilog(
        {"vecadd notebooks my-notebooks": "writes them there, and prints the command that opens them"}
    )


def run(arguments: argparse.Namespace) -> int:
    """Writes the notebooks, and prints the command that opens them."""
    into: Path = arguments.into
    content = {into / file.name: file.read_bytes() for file in notebooks()}
    if odd := [path.name for path in content if path.exists() and not path.is_file()]:
        raise FileExistsError(f"{into} has {', '.join(odd)}, which no notebook can replace: name another folder")
    # One that is as it would be written counts for nothing: so a call goes on where an earlier one failed.
    there = [path.name for path, written in content.items() if path.exists() and path.read_bytes() != written]
    if there and not arguments.force:
        raise FileExistsError(f"{into} has {', '.join(there)}: name another folder, or overwrite them with --force")
    into.mkdir(parents=True, exist_ok=True)
    for path, written in content.items():
        replace_file(path, written)
        print(writable(str(path), sys.stdout))
    print("\nThey measure this machine; where it has no GPU they show what was recorded on one. To open them:\n")
    if find_spec("jupyterlab") is None:
        print("    pip install 'vecadd[notebook]'")
    print(writable(f"    jupyter lab {quote(str(into))}", sys.stdout))
    return 0
