"""What nvidia-smi knows and the CUDA runtime does not say: link, ECC, throttling, other processes.

The tool may be absent, old, or slow on a broken driver; the answer is then empty, never an exception.
"""

import re
import shutil
import subprocess

_ANY = re.compile(".*")
_FORMS = {"index": re.compile("[0-9]+"), "pci.bus_id": re.compile("[0-9A-Fa-f]+(:[0-9A-Fa-f]+){2}[.][0-7]")}

TIMEOUT = 10.0  # seconds; a healthy driver answers in 0.1 to 2, the latter without persistence mode


def query(what: str, *fields: str) -> list[dict[str, str]]:
    """Rows of ``nvidia-smi --query-<what>=<fields>``, one dict a row; [] where they cannot be had.

    Fields that the driver does not support ("[N/A]", "[Not Supported]"), and a malformed index or PCI address, are left
    out of their row.
    """
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        result = subprocess.run(
            [tool, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [_row(line, fields) for line in result.stdout.splitlines() if line.count(",") == len(fields) - 1]


def _row(line: str, fields: tuple[str, ...]) -> dict[str, str]:
    values = (value.strip() for value in line.split(","))
    return {
        field: value
        for field, value in zip(fields, values, strict=True)
        if value and not value.startswith("[") and value != "N/A" and _FORMS.get(field, _ANY).fullmatch(value)
    }
