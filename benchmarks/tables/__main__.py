"""Fills the tables of the documents: python -m benchmarks.tables [--check]"""

import argparse
import sys

from benchmarks.tables.documents import DOCUMENTS, ROOT, fill


def main() -> int:
    """Fills the tables, or with --check says which differ; exit status 1 where some do."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables",
        description="fills the tables of docs/*.md and benchmarks/README.md",
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 where it would change")
    check = parser.parse_args().check
    differ = False
    for document, method_at in DOCUMENTS.items():
        old = document.read_text()
        new = fill(old, method_at=method_at)
        if new == old:
            continue
        differ = True
        if check:
            name = document.relative_to(ROOT)
            print(f"{name} differs from the recorded results: run python -m benchmarks.tables", file=sys.stderr)
        else:
            document.write_text(new)
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
