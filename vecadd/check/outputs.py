"""The check's result: its status, the result file that schema.json describes, a table for a terminal, and for other
programs JUnit's XML, Prometheus' text and a page of HTML."""

import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import groupby
from math import inf, isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from vecadd import pages
from vecadd._command import package_version
from vecadd._machine import Info
from vecadd.bench.machine import commit
from vecadd.check.measure import GROUPS, find_bound, find_drift, find_worst, show_title
from vecadd.figures import SEVERITIES, STATUSES, Check, Figure, content_of_check, json_text
from vecadd.tables import Column, Style, Table, columns, prose, show_bounds, show_figure

_CPUS = Path("/sys/devices/system/cpu")


def make_check(
    meta: Mapping[str, Any], machine_type: str, figures: Sequence[Figure], conditions: Mapping[str, Any]
) -> Check:
    """The check that ends now. ``meta`` as `machine.meta` of the bench gives it."""
    return Check(
        meta={name: value for name, value in meta.items() if name != "contamination"},
        figures=figures,
        host=platform.node() or "unknown",
        time=datetime.now(UTC),
        status=status_of(figures),
        machine_type=machine_type,
        vecadd={"version": package_version(), "commit": commit()},
        conditions=conditions,
    )


def read_schema() -> str:
    """The text of the published schema (JSON Schema 2020-12)."""
    return (files("vecadd.check") / "schema.json").read_text(encoding="utf-8")


def status_of(figures: Sequence[Figure]) -> str:
    """ "unknown" where something that was to be measured could not be: no GPU passes because others fill it."""
    if any(each.fails for each in figures):
        return "failed"
    measured = [each for each in figures if _is_measured(each)]
    return "unknown" if not measured or any(each.severity == "unknown" for each in measured) else "passed"


def _is_measured(figure: Figure) -> bool:
    """Whether it was measured, rather than read from what the system says of itself."""
    group, _, rest = figure.name.partition("/")
    return group in (*GROUPS.values(), "soak") and not rest.endswith(("/generation", "/width", "/peer access"))


def describe_machine_type(found: Info) -> str:
    """What machines of one kind share: "2 × NVIDIA H200, 2 × Intel Xeon Platinum 8480C"."""
    gpus = Counter(gpu.name for gpu in found.gpus)
    cpu = found.cpu.model or platform.machine() or "unknown processor"
    cpu = re.sub(r"\((R|TM|tm)\)|\bCPU\b|\bProcessor\b|@.*|\d+-Core", " ", cpu)
    sockets = f"{_count_sockets()} × {' '.join(cpu.split())}"
    return ", ".join([*(f"{count} × {name}" for name, count in sorted(gpus.items())), sockets])


def _count_sockets() -> int:
    """1 where the system does not say."""
    packages = set()
    for path in _CPUS.glob("cpu[0-9]*/topology/physical_package_id"):
        try:
            packages.add(path.read_text(encoding="utf-8").strip())
        except OSError:
            return 1
    return len(packages) or 1


# The measured figures as a table.

NOTHING = "-"


def make_table(figures: Iterable[Figure], rounds: int) -> Table:
    """A line a figure, by kind; with more than one round the median and the drift beside the worst."""
    measured = ("median", "worst", "drift") if rounds > 1 else ("measured",)
    verdict, source = Column("verdict", right=False), prose("expected from")
    result = Table(
        "check",
        columns("row", *measured, "expected", "bound", verdict, source),
        optional_columns=("expected from", "drift", "worst", "expected"),
    )
    for _, group in groupby(figures, key=lambda figure: figure.sweep):
        for figure in group:
            values = [show_figure(figure.value, figure.unit)]
            if rounds > 1:
                drift = find_drift(figure)
                values += [
                    show_figure(find_worst(figure), figure.unit),
                    NOTHING if drift is None else f"{100 * drift:+.1f} %",
                ]
            result.add(
                show_title(figure),
                *values,
                show_figure(figure.reference, figure.unit),
                show_figure(find_bound(figure), figure.unit),
                figure.severity,
                figure.source or "unknown",
                style=Style.FAILED if figure.fails else Style.PLAIN,
            )
        result.add_gap()
    return result


# The check for other programs.


def as_json(check: Check) -> str:
    """The result file."""
    return json_text(content_of_check(check))


def junit(check: Check) -> str:
    """JUnit's XML: a test case a finding. What is critical has failed, what is unknown was skipped."""
    by = Counter(each.severity for each in check.figures)
    suite = ElementTree.Element(
        "testsuite",
        name=f"vecadd check of {check.host}",
        hostname=check.host,
        timestamp=check.time.isoformat(timespec="seconds"),
        tests=str(len(check.figures)),
        failures=str(by["critical"]),
        errors="0",
        skipped=str(by["unknown"]),
    )
    for each in check.figures:
        group, where, name = each.name.split("/", 2)
        case = ElementTree.SubElement(suite, "testcase", classname=f"{where}.{group}", name=name)
        value = show_figure(each.value, each.unit)
        said = _printable(" ".join(filter(None, (each.meaning, each.next))))
        if each.severity == "critical":
            ElementTree.SubElement(case, "failure", type="critical", message=_printable(each.meaning)).text = said
        elif each.severity == "unknown":
            ElementTree.SubElement(case, "skipped", message=_printable(each.meaning))
        ElementTree.SubElement(case, "system-out").text = f"{each.severity}: {value}. {said}"
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    ElementTree.indent(whole)
    # Other letters as references: right in a UTF-8 file and in a stdout of another locale.
    text: bytes = ElementTree.tostring(whole, "us-ascii", xml_declaration=True)
    return text.decode() + "\n"


def _printable(text: str) -> str:
    """Without the control characters that XML has no place for."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


# Of units that have a base unit: the metric's name and how many of it one is. All others keep their unit as a label.
_METRICS = {"GB/s": ("vecadd_check_bytes_per_second", 1e9), "s": ("vecadd_check_seconds", 1.0)}
_OTHERS = "vecadd_check_value"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})  # in a label's value


def prometheus(check: Check) -> str:
    """Prometheus' text format, for node_exporter's textfile collector."""
    return "".join(line + "\n" for line in _prometheus(check))


def _prometheus(check: Check) -> Iterator[str]:
    host = {"machine_type": check.machine_type, "version": check.vecadd["version"]}
    yield from _head("vecadd_check_info", "What was checked and by which vecadd; always 1.")
    yield _sample("vecadd_check_info", host, 1)
    yield from _head("vecadd_check_status", "1 at the check's status, 0 at the others.")
    for status in STATUSES:
        yield _sample("vecadd_check_status", {"status": status}, int(check.status == status))
    yield from _head("vecadd_check_findings", "How many findings have this severity.")
    for severity in SEVERITIES:
        count = sum(each.severity == severity for each in check.figures)
        yield _sample("vecadd_check_findings", {"severity": severity}, count)
    yield from _head("vecadd_check_finding", "One finding and its severity; always 1.")
    for each in check.figures:
        yield _sample("vecadd_check_finding", {**_labels(each), "severity": each.severity}, 1)
    for name, what in (
        ("vecadd_check_bytes_per_second", "A rate, the median of all rounds."),
        ("vecadd_check_seconds", "A time, the median of all rounds."),
        (_OTHERS, "Any other value, in the unit of its label."),
    ):
        found = [(each, each.value) for each in check.figures if each.value is not None and _metric(each)[0] == name]
        yield from _head(name, what) if found else ()
        for each, value in found:
            labels = _labels(each) | ({"unit": each.unit} if name == _OTHERS else {})
            yield _sample(name, labels, value * _metric(each)[1])


def _metric(figure: Figure) -> tuple[str, float]:
    return _METRICS.get(figure.unit, (_OTHERS, 1.0))


def _labels(figure: Figure) -> dict[str, str]:
    return {"id": figure.name, "measurement": figure.measurement, "where": figure.where}


def _head(name: str, what: str) -> Iterator[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} gauge"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {float(value)!r}"


_VERDICTS = {
    "failed": ("verdict bad", "This machine fails: what is critical below has to be mended before it is used."),
    "passed": ("verdict good", "This machine does what is expected of it."),
    "unknown": ("verdict", "What was to be measured of this machine could not be, or not all of it."),
}
_COLUMNS = (
    ("What", "left"),
    ("Where", "left"),
    ("Measured", "right"),
    ("Expected", "left"),
    ("What it means", "prose"),
)


def page(check: Check) -> str:
    """One page of HTML that needs nothing else; it is made by Jinja2."""
    worst_first = [*reversed(SEVERITIES[1:4]), "unknown", "pass"]
    by_severity = {name: [each for each in check.figures if each.severity == name] for name in worst_first}
    groups = {name: listed for name, listed in by_severity.items() if listed}
    kind, says = _VERDICTS[check.status]
    counts = ", ".join(f"{len(listed)} {severity}" for severity, listed in groups.items())
    sections: dict[str, list[pages.Part]] = {"": [(kind, f"{says} {counts}.")]}
    for severity, listed in groups.items():
        shown = pages.table_of_cells(f"{len(listed)} {severity}", _COLUMNS, [_line(each) for each in listed])
        sections[severity.capitalize()] = [shown]
    return pages.render(
        f"{check.host}: {check.status}",
        f"{check.machine_type}. Checked {check.time.isoformat(timespec='seconds')}.",
        sections,
        list(filter(None, [check.meta.get("method")])),
        check.vecadd["version"],
    )


def _line(figure: Figure) -> tuple[str, list[str | pages.Cell]]:
    series = [(point["at"], point["GB/s"]) for point in figure.more.get("series", ())]
    return figure.name.replace(" ", "-"), [
        figure.measurement,
        figure.where,
        pages.Cell(
            show_figure(figure.value, figure.unit),
            small=" to ".join(show_figure(value, figure.unit) for value in figure.interval or ()),
        ),
        pages.Cell(show_expected(figure), small=figure.source),
        pages.Cell(
            figure.meaning,
            next=figure.next,
            question="Is this number normal?",
            facts=figure.more.get("normal", {}),
            curve=pages.curve(series, "GB/s") if len(series) > 1 else None,
        ),
    ]


def show_expected(figure: Figure) -> str:
    """What is expected of it: "at least 45 GB/s"."""
    low, high = (end if isfinite(end) else None for end in figure.expected or (-inf, inf))
    return show_bounds(low, high, figure.unit)
