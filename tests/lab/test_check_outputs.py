"""What vecadd check writes for other programs: its JSON by its schema, JUnit's XML, Prometheus' text, a page."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import simulated_fleet as simulated
from checks import EASY, H200, NASTY, Check, earlier, graded, hide_gpus, make_quick, this_machine

from vecadd import cli
from vecadd.check import outputs
from vecadd.figures import CHECK, SEVERITIES
from vecadd.figures import Check as CheckRun
from vecadd.tables import show_bounds, show_figure

jsonschema = pytest.importorskip("jsonschema")

pytestmark = pytest.mark.no_native


@pytest.fixture(scope="module")
def made() -> CheckRun:
    return graded()


@pytest.fixture(scope="module")
def content(made: CheckRun) -> dict[str, Any]:
    return json.loads(outputs.as_json(made))  # type: ignore[no-any-return]


# JSON


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(outputs.read_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_file_is_as_its_schema_says(content: dict[str, Any], validator: Any) -> None:
    validator.validate(content)
    assert {each["severity"] for each in content["findings"]} == set(SEVERITIES)
    ids = [each["id"] for each in content["findings"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 1}, {"status": "fine"}, {"findings": [{}]}, {"machine_type": None}, {"time": 3},
        {"findings": [{"id": "x"}]},
    ],
)  # fmt: skip
def test_the_schema_refuses_another_file(content: dict[str, Any], validator: Any, change: dict[str, Any]) -> None:
    assert not validator.is_valid({**content, **change})
    assert not validator.is_valid({name: value for name, value in content.items() if name not in change})


def test_the_schema_can_be_printed(capsys: Any) -> None:
    assert cli.main(["check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["schema"] == {"const": CHECK}


def test_a_whole_run_writes_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validator: Any, capsys: Any
) -> None:
    pytest.importorskip("jinja2")
    make_quick(monkeypatch)
    hide_gpus(monkeypatch)
    paths = {name: tmp_path / f"x.{name}" for name in ("junit", "prometheus", "html")}
    options = [f"--{name}={path}" for name, path in paths.items()]
    status, content = Check(tmp_path)(*options, "--explain")
    validator.validate(content)
    assert status == {"passed": 0, "failed": 1, "unknown": 2}[content["status"]]
    for name, begins in (("junit", "<?xml"), ("prometheus", "# HELP"), ("html", "<!doctype html>")):
        assert paths[name].read_text().startswith(begins)
    assert "\n  STREAM add: with ordinary stores about " in capsys.readouterr().out


# The machine's type


OTHER = replace(H200, name="NVIDIA A100")


@pytest.mark.parametrize(
    ("model", "gpus", "sockets", "expected"),
    [
        ("Intel(R) Xeon(R) Platinum 8480C", [H200, H200], "0011", "2 × NVIDIA H200, 2 × Intel Xeon Platinum 8480C"),
        ("AMD EPYC 9654 96-Core Processor", [], "0011", "2 × AMD EPYC 9654"),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", [H200], "00", "1 × NVIDIA H200, 1 × Intel Core i7-8700"),
        # In whatever order the GPUs are; of sockets that the system does not tell, one counts.
        ("made up", [H200, OTHER, H200], "01?", "1 × NVIDIA A100, 2 × NVIDIA H200, 1 × made up"),
        ("made up", [OTHER, H200, H200], "01?", "1 × NVIDIA A100, 2 × NVIDIA H200, 1 × made up"),
    ],
)
def test_equal_machines_are_of_one_type(
    model: str, gpus: list[Any], sockets: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cpu, package in enumerate(sockets):
        file = tmp_path / f"cpu{cpu}" / "topology" / "physical_package_id"
        file.parent.mkdir(parents=True)
        if package == "?":
            file.mkdir()
        else:
            file.write_text(f"{package}\n")
    monkeypatch.setattr(outputs, "_CPUS", tmp_path)
    here = this_machine()
    found = replace(here, cpu=replace(here.cpu, model=model), gpus=tuple(gpus))
    assert outputs.describe_machine_type(found) == expected


# JUnit


def test_junit_has_a_case_a_finding(made: CheckRun) -> None:
    suite = ElementTree.fromstring(outputs.junit(made))[0]
    cases = suite.findall("testcase")
    assert [f"{case.get('classname')} {case.get('name')}" for case in cases] == [
        f"{where}.{group} {name}" for group, where, name in (each.name.split("/", 2) for each in made.figures)
    ]
    by = {name: [each for each in made.figures if each.severity == name] for name in ("critical", "unknown")}
    assert [int(suite.get(name, "-1")) for name in ("tests", "failures", "skipped", "errors")] == [
        len(cases), len(by["critical"]), len(by["unknown"]), 0,
    ]  # fmt: skip
    failures = [case.find("failure") for case in cases]
    assert [each.get("message") for each in failures if each is not None] == [each.meaning for each in by["critical"]]
    assert sum(case.find("skipped") is not None for case in cases) == len(by["unknown"])


def test_letters_that_xml_has_no_place_for_are_replaced_and_others_are_ascii_in_every_locale(made: CheckRun) -> None:
    bad = replace(made.figures[0], severity="critical", meaning="a\x00b\x1bc\ud800")
    text = outputs.junit(replace(made, host="n\u0153ud", figures=[bad]))
    assert text.isascii()
    suite = ElementTree.fromstring(text.encode())[0]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert (failure.get("message"), suite.get("hostname")) == ("a?b?c?", "n\u0153ud")


# Prometheus


def test_prometheus_reads_every_value(made: CheckRun) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    families = {family.name: family for family in parser.text_string_to_metric_families(outputs.prometheus(made))}
    assert all(family.type == "gauge" and family.documentation for family in families.values())
    status = {sample.labels["status"]: sample.value for sample in families["vecadd_check_status"].samples}
    assert status == {"passed": 0, "failed": 1, "unknown": 0}
    severities = {s.labels["id"]: s.labels["severity"] for s in families["vecadd_check_finding"].samples}
    assert severities == {each.name: each.severity for each in made.figures}
    values = {
        sample.labels["id"]: sample.value / (1e9 if name.endswith("bytes_per_second") else 1)
        for name in ("vecadd_check_bytes_per_second", "vecadd_check_seconds", "vecadd_check_value")
        for sample in families[name].samples
    }
    assert values == {each.name: each.value for each in made.figures if each.value is not None}


def test_prometheus_lines_are_of_its_grammar(made: CheckRun) -> None:
    label = r'[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"'
    sample = re.compile(rf"vecadd_check_[a-z_]+\{{{label}(?:,{label})*\}} (?:[-+0-9.e]+|[+-]?Inf|NaN)")
    lines = outputs.prometheus(replace(made, machine_type=NASTY)).splitlines()
    assert all(line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line) for line in lines)
    described = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(described) == len(set(described))


# The page

WORST_FIRST = ("critical", "warning", "info", "unknown", "pass")


class Tags(HTMLParser):
    """What a page refers to, and whether its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(made: CheckRun) -> None:
    pytest.importorskip("jinja2")
    page = outputs.page(made)
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.targets == ["#content", *(f"#{name}" for name in (*WORST_FIRST, "method"))]
    assert "<b>" not in page
    assert "&lt;b&gt;path&lt;/b&gt;" in page
    for each in made.figures:
        assert f'<tr id="{each.name.replace(" ", "-")}">' in page
    assert re.findall(r'<h2 id="(\w+)">', page) == [*WORST_FIRST, "method"]
    assert page.count("<polyline") == 2
    assert "Is this number normal?" in page


@pytest.mark.parametrize("command", [["check"], ["fleet", "."], ["compare", ".", "."]], ids=lambda words: words[0])
def test_without_jinja_the_page_names_the_extra_before_anything_is_measured_or_read(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert cli.main([*command, "--html", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err == f"vecadd {command[0]}: a page needs jinja2: pip install 'vecadd[fleet]'\n"
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "GB/s", "-"), (4470.123, "GB/s", "4470 GB/s"), (2.9e-6, "s", "2.9 us"), (1.5, "s", "1.5 s"),
        (3e-10, "s", "0.3 ns"), (0.0, "s", "0 s"), (0.05, "s", "50 ms"), (65536000.0, "bytes", "65,536,000 bytes"),
        (0.123, "1", "0.123"), (5.0, "generation", "PCIe 5"), (16.0, "lanes", "x16"), (735.0, "µs", "735 us"),
        (38.64, "GB/s", "38.6 GB/s"), (12.0, "", "12"),
    ],
)  # fmt: skip
def test_figures_are_shown_in_their_unit(value: float | None, unit: str, shown: str) -> None:
    assert show_figure(value, unit) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (None, None, "-"),
        (45.0, None, "at least 45 GB/s"),
        (None, 9.0, "at most 9 GB/s"),
        (1.0, 2.0, "at least 1 GB/s, at most 2 GB/s"),
    ],
)
def test_what_is_expected_is_said_by_its_ends(low: float | None, high: float | None, shown: str) -> None:
    assert show_bounds(low, high, "GB/s") == shown


# The files of the commands that compare


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """By its name: a command with what it reads, checks of nine machines that are alike and a slow one."""
    pytest.importorskip("jinja2")
    make_quick(monkeypatch)
    hide_gpus(monkeypatch)
    for at, value in enumerate([100.0] * 9 + [80.0]):
        found = simulated.finding("memory/host/add", value)
        (tmp_path / f"{at}.json").write_text(json.dumps(simulated.content(f"node{at}", [found])))
    return {
        "check": ["check", "--expect", str(earlier(tmp_path / "old", **EASY))],
        "fleet": ["fleet", str(tmp_path)],
        "compare": ["compare", str(tmp_path / "0.json"), str(tmp_path / "9.json")],
    }


BEGINS = {"json": "{", "exclude": "node9\n", "html": "<!doctype html>"}
SAID = {"check": "\npassed\n", "fleet": "to leave out: node9\n", "compare": ", 0 undecided\n"}
WRITES = [("fleet", "exclude"), *((command, option) for command in SAID for option in ("json", "html"))]


@pytest.mark.parametrize(("command", "option"), WRITES)
def test_a_file_to_stdout_moves_the_tables_to_stderr(
    command: str, option: str, commands: dict[str, list[str]], capsys: Any
) -> None:
    cli.main([*commands[command], f"--{option}", "-"])
    printed = capsys.readouterr()
    assert printed.out.startswith(BEGINS[option])
    assert SAID[command] in printed.err
    assert SAID[command] not in printed.out


@pytest.mark.parametrize(("command", "option"), [each for each in WRITES if each[0] != "check"])
def test_no_file_that_is_read_is_written(
    command: str, option: str, commands: dict[str, list[str]], tmp_path: Path, capsys: Any
) -> None:
    for file in (tmp_path / "0.json", tmp_path / "9.json"):
        before = file.read_bytes()
        assert cli.main([*commands[command], f"--{option}", str(file)]) == 2
        assert f"--{option} {file} is one of the files that are read: name another" in capsys.readouterr().err
        assert file.read_bytes() == before


@pytest.mark.parametrize("command", SAID)
def test_a_full_disk_keeps_no_other_file_from_being_written(
    command: str, commands: dict[str, list[str]], tmp_path: Path, capsys: Any
) -> None:
    page = tmp_path / "page"
    assert cli.main([*commands[command], "--json", "/dev/full", "--html", str(page)]) == 2
    assert capsys.readouterr().err == f"vecadd {command}: /dev/full: No space left on device\n"
    assert page.read_text().startswith(BEGINS["html"])
