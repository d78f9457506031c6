"""The check's result for a terminal, and for other programs: JUnit's XML, Prometheus' text and a page of HTML."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from vecadd import pages
from vecadd.check.measure import SEVERITIES, Series
from vecadd.tables import Column, Style, Table, columns, prose, show_bounds, show_figure

# The rows of the acceptance test as a table.

NOTHING = "-"


def make_table(rows: Iterable[Series], rounds: int) -> Table:
    """A line a row, by kind; with more than one round the median and the drift beside the worst."""
    measured = ("median", "worst", "drift") if rounds > 1 else ("measured",)
    verdict, source = Column("verdict", right=False), prose("expected from")
    result = Table(
        "check",
        columns("row", *measured, "expected", "bound", verdict, source),
        optional_columns=("expected from", "drift", "worst", "expected"),
    )
    for _, group in groupby(rows, key=lambda row: row.kind):
        for row in group:
            figures = [show_figure(row.value, row.unit)]
            if rounds > 1:
                figures += [
                    show_figure(row.worst, row.unit),
                    NOTHING if row.drift is None else f"{100 * row.drift:+.1f} %",
                ]
            result.add(
                row.title,
                *figures,
                show_figure(row.expected.value if row.expected else None, row.unit),
                show_figure(row.bound, row.unit),
                row.severity,
                row.expected.source if row.expected else "unknown",
                style=Style.FAILED if row.severity == "critical" else Style.PLAIN,
            )
        result.add_gap()
    return result


# The check's result for other programs: JUnit's XML, Prometheus' text and a page of HTML.

Content = Mapping[str, Any]  # of the result file: schema.json


def junit(content: Content) -> str:
    """JUnit's XML: a test case a finding. What is critical has failed, what is unknown was skipped."""
    findings = content["findings"]
    suite = ElementTree.Element(
        "testsuite",
        name=f"vecadd check of {content['host']}",
        hostname=content["host"],
        timestamp=content["time"],
        tests=str(len(findings)),
        failures=str(sum(each["severity"] == "critical" for each in findings)),
        errors="0",
        skipped=str(sum(each["severity"] == "unknown" for each in findings)),
    )
    for each in findings:
        group, where, name = each["id"].split("/", 2)
        case = ElementTree.SubElement(suite, "testcase", classname=f"{where}.{group}", name=name)
        said = _printable(" ".join(filter(None, (each["meaning"], each["next"]))))
        if each["severity"] == "critical":
            ElementTree.SubElement(case, "failure", type="critical", message=_printable(each["meaning"])).text = said
        elif each["severity"] == "unknown":
            ElementTree.SubElement(case, "skipped", message=_printable(each["meaning"]))
        ElementTree.SubElement(case, "system-out").text = f"{each['severity']}: {show_value(each)}. {said}"
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


def prometheus(content: Content) -> str:
    """Prometheus' text format, for node_exporter's textfile collector."""
    return "".join(line + "\n" for line in _prometheus(content))


def _prometheus(content: Content) -> Iterator[str]:
    host = {"machine_type": content["machine_type"], "version": content["vecadd"]["version"]}
    yield from _head("vecadd_check_info", "What was checked and by which vecadd; always 1.")
    yield _sample("vecadd_check_info", host, 1)
    yield from _head("vecadd_check_status", "1 at the check's status, 0 at the others.")
    for status in ("passed", "failed", "unknown"):
        yield _sample("vecadd_check_status", {"status": status}, int(content["status"] == status))
    yield from _head("vecadd_check_findings", "How many findings have this severity.")
    for severity in SEVERITIES:
        count = sum(each["severity"] == severity for each in content["findings"])
        yield _sample("vecadd_check_findings", {"severity": severity}, count)
    yield from _head("vecadd_check_finding", "One finding and its severity; always 1.")
    for each in content["findings"]:
        yield _sample("vecadd_check_finding", {**_labels(each), "severity": each["severity"]}, 1)
    for name, what in (
        ("vecadd_check_bytes_per_second", "A rate, the median of all rounds."),
        ("vecadd_check_seconds", "A time, the median of all rounds."),
        (_OTHERS, "Any other value, in the unit of its label."),
    ):
        found = [each for each in content["findings"] if each["value"] is not None and _metric(each)[0] == name]
        yield from _head(name, what) if found else ()
        for each in found:
            labels = _labels(each) | ({"unit": each["unit"]} if name == _OTHERS else {})
            yield _sample(name, labels, each["value"] * _metric(each)[1])


def _metric(finding: Mapping[str, Any]) -> tuple[str, float]:
    return _METRICS.get(finding["unit"], (_OTHERS, 1.0))


def _labels(finding: Mapping[str, Any]) -> dict[str, str]:
    return {"id": finding["id"], "measurement": finding["measurement"], "where": finding["where"]}


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


def page(content: Content) -> str:
    """One page of HTML that needs nothing else; it is made by Jinja2."""
    worst_first = [*reversed(SEVERITIES[1:4]), "unknown", "pass"]
    by_severity = {name: [each for each in content["findings"] if each["severity"] == name] for name in worst_first}
    groups = {name: listed for name, listed in by_severity.items() if listed}
    kind, says = _VERDICTS[content["status"]]
    counts = ", ".join(f"{len(listed)} {severity}" for severity, listed in groups.items())
    sections = [pages.Section("", "", [(kind, f"{says} {counts}.")])]
    for severity, listed in groups.items():
        shown = pages.table_of_cells(f"{len(listed)} {severity}", _COLUMNS, [_line(each) for each in listed])
        sections.append(pages.Section(severity, severity.capitalize(), [shown]))
    return pages.render(
        f"{content['host']}: {content['status']}",
        f"{content['machine_type']}. Checked {content['time']}.",
        sections,
        list(filter(None, [content["machine"].get("method")])),
        content["vecadd"]["version"],
    )


def _line(finding: Mapping[str, Any]) -> tuple[str, list[str | pages.Cell]]:
    series = [(point["at"], point["GB/s"]) for point in finding.get("series") or ()]
    return finding["id"].replace(" ", "-"), [
        finding["measurement"],
        finding["where"],
        pages.Cell(show_value(finding), small=show_interval(finding)),
        pages.Cell(show_expected(finding), small=finding["source"] or ""),
        pages.Cell(
            finding["meaning"] or "",
            next=finding["next"] or "",
            question="Is this number normal?",
            facts=finding.get("normal") or {},
            curve=pages.curve(series, "GB/s") if len(series) > 1 else None,
        ),
    ]


def show_value(finding: Mapping[str, Any]) -> str:
    """A finding's value and unit: "55.3 GB/s"."""
    return show_figure(finding["value"], finding["unit"])


def show_interval(finding: Mapping[str, Any]) -> str:
    """Its lowest and highest round: "54.1 GB/s to 55.6 GB/s"; empty where there is one."""
    return " to ".join(show_figure(value, finding["unit"]) for value in finding["interval"] or ())


def show_expected(finding: Mapping[str, Any]) -> str:
    """What is expected of it: "at least 45 GB/s"."""
    low, high = finding["expected"] or (None, None)
    return show_bounds(low, high, finding["unit"])
