"""`vecadd info`."""

import argparse
import json
import sys

from vecadd._command import epilog
from vecadd._terminal import writable
from vecadd.info import info


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `vecadd info`."""
    parser.add_argument("--json", action="store_true", help="as JSON, sizes in bytes")
    parser.epilog = epilog({"vecadd info --json | jq .gpus": "what a script needs to know of the GPUs"})


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    found = info()
    print(json.dumps(found.as_dict(), indent=1) if arguments.json else writable(str(found), sys.stdout))
    return 0
