"""What differs between two rungs, as a unified diff."""

import re
from difflib import unified_diff

from vecadd.code.text import Code

# Of machine code: an instruction's address; an instruction that names another's address, last.
ADDRESS = re.compile(r"^/\*[0-9a-f]+\*/\s*")
BRANCH, TARGET = re.compile(r"(?:@!?U?P\w+ )?(?:BRA|BSSY|CALL)\b"), re.compile(r"\b0x[0-9a-f]+ ;$")


def difference(a: Code, b: Code) -> Code:
    """A unified diff, empty where nothing differs: of sources without the comments at their heads, of machine code
    without addresses."""
    clean = _instructions if a.language == "text" else _below_the_header
    lines = unified_diff(clean(a), clean(b), a.caption, b.caption, lineterm="")
    return Code("".join(f"{line}\n" for line in lines), "diff", f"{a.caption} → {b.caption}")


def _below_the_header(source: str) -> list[str]:
    lines = source.splitlines()
    return lines[next((at for at, line in enumerate(lines) if not line.startswith("//")), 0) :]


def _instructions(listing: str) -> list[str]:
    """The instructions alone, without their addresses."""
    lines = (ADDRESS.sub("", line) for line in listing.splitlines() if ADDRESS.match(line))
    return [TARGET.sub("... ;", line) if BRANCH.match(line) else line for line in lines]
