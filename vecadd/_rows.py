"""Names and their values, for a terminal and for a notebook."""

from collections.abc import Sequence
from html import escape

Row = tuple[str, Sequence[str]]  # a name, and a value a line


def as_text(rows: Sequence[Row]) -> str:
    """One line a value, the names in a column."""
    width = max(len(name) for name, _ in rows)
    lines = []
    for name, values in rows:
        heads = [name] + [""] * (len(values) - 1)
        lines += [f"{head:<{width}}  {value}" for head, value in zip(heads, values, strict=True)]
    return "\n".join(lines)


def as_html(rows: Sequence[Row]) -> str:
    """A table whose text is escaped."""
    cells = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
        f"<td style='text-align:left'>{'<br>'.join(map(escape, values))}</td></tr>"
        for name, values in rows
    )
    return f"<table>{cells}</table>"


def bytes_text(count: int | None) -> str:
    """Bytes in the largest binary unit that gives at least 1; "unknown" for None."""
    if count is None:
        return "unknown"
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"
