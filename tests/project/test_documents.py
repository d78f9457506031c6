"""The documents: every link and anchor leads somewhere, and what they name and call is there."""

import ast
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import vecadd
from benchmarks import pictures
from vecadd import _core, cli

pytestmark = pytest.mark.no_native


ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(path for folder in (".", "docs", "benchmarks") for path in (ROOT / folder).glob("*.md"))
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
PRESENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]  # that one tells of what was, too

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)|<img src=\"([^\"]+)\"")
TABLE = re.compile(r"^<!-- table: .*?^<!-- /table -->$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("https://", "http://")


def prose(text: str) -> str:
    """Without what is in fences."""
    return FENCED.sub("", text)


def fences(path: Path, kind: str) -> list[str]:
    return [body for found, body in FENCED.findall(path.read_text()) if found == kind]


def links(text: str) -> list[str]:
    return [either for found in LINK.findall(prose(text)) for either in found if either]


def anchors(text: str) -> set[str]:
    """Of each heading, as GitHub makes them: in lower case, without punctuation, with - for spaces, numbered when the
    same one comes again."""
    met: Counter[str] = Counter()
    found = set()
    for title in re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{met[slug]}" if met[slug] else slug)
        met[slug] += 1
    return found


def broken(path: Path, text: str) -> Iterator[str]:
    """The links of a document at `path` that lead nowhere."""
    for link in links(text):
        if link.startswith(ELSEWHERE):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve()
        if place and not target.exists():
            yield link
            continue
        if anchor and anchor not in anchors(target.read_text() if place else text):
            yield link


@pytest.mark.parametrize("name", NAMES)
def test_every_link_and_anchor_leads_somewhere(name: str) -> None:
    assert list(broken(ROOT / name, (ROOT / name).read_text())) == []


def contents(text: str) -> list[tuple[str, str]]:
    """The titles and anchors of the list in front of the first section."""
    return re.findall(r"^- \[(.+)\]\(#([^)]+)\)$", text.partition("\n## ")[0], re.MULTILINE)


def sections(text: str) -> list[tuple[str, str]]:
    """The sections' titles, without links and marks, and their anchors."""
    titles = [title.replace("`", "") for title in re.findall(r"^## (.+)$", prose(text), re.MULTILINE)]
    return [(title, re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")) for title in titles]


WITH_CONTENTS = [path for path in PRESENT if contents(path.read_text())]


@pytest.mark.parametrize("path", WITH_CONTENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_list_of_contents_has_each_section_in_its_order(path: Path) -> None:
    text = path.read_text()
    assert [(title.replace("`", ""), anchor) for title, anchor in contents(text)] == sections(text)


def test_the_list_of_documents_has_them_all() -> None:
    listed = links((ROOT / "docs" / "README.md").read_text())
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= set(listed)


def test_every_status_of_a_gpu_is_explained() -> None:
    statuses = set(re.findall(r'return "([\w ]+)", ', (ROOT / "vecadd" / "_machine.py").read_text())) - {"ok"}
    assert {"no driver", "built without CUDA"} <= statuses
    explained = re.findall(r"^\| `([\w ]+)`", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert statuses <= set(explained)


def test_readme_and_architecture_stay_short() -> None:
    for name, most in (("README.md", 150), ("ARCHITECTURE.md", 185)):
        assert len((ROOT / name).read_text().splitlines()) <= most


def test_architecture_names_every_folder_of_the_native_code() -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text().partition("```\n")[2].partition("```")[0]
    lines = {line.split()[0]: line for line in tree.splitlines() if "/" in line.split()[0]}
    missing = []
    for path in sorted({file.parent for top in ("csrc", "cuda") for file in (ROOT / top).rglob("*.c*")}):
        first, *below = path.relative_to(ROOT).parts
        line = lines.get("/".join([first, *below[:1]]) + "/")
        if line is None or not all(re.search(rf"\b{part}\b", line.partition(" ")[2]) for part in below[1:]):
            missing.append(str(path))
    assert missing == []


def files_with(pattern: str) -> set[str]:
    """Files of the product's C code that contain the pattern, but for those of the laboratory."""
    sources = [path for path in (ROOT / "csrc").rglob("*.c") if "lab" not in path.parts]
    return {path.name for path in sources if re.search(pattern, path.read_text())}


def section(title: str) -> str:
    """Of ARCHITECTURE.md."""
    return (ROOT / "ARCHITECTURE.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("title", "pattern"),
    [
        ("Locks", r"\b(pthread_(mutex|rwlock)_(try|timed|rd|wr)?lock|atomic_flag_test_and_set\w*)\("),
        ("Fork and exit", r"\b(pthread_atfork|runtime_register)\("),
    ],
    ids=["locks", "forks"],
)
def test_architecture_names_every_file_that_locks_or_acts_on_a_fork(title: str, pattern: str) -> None:
    found = files_with(pattern)
    assert found
    assert {name for name in found if not re.search(rf"\b{name}\b", section(title))} == set()


def test_no_host_callback_is_registered_as_architecture_says() -> None:
    assert files_with(r"cudaLaunchHostFunc|cudaStreamAddCallback") == set()


def test_an_index_shows_no_link_that_needs_the_tree() -> None:
    assert [link for link in links((ROOT / "docs" / "pypi.md").read_text()) if not link.startswith(ELSEWHERE)] == []


# --- what they name


def there(dotted: str) -> bool:
    """Whether a module or an attribute of that name can be had."""
    first, *rest = dotted.split(".")
    found, name = import_module(first), first
    for part in rest:
        name += f".{part}"
        try:
            found = getattr(found, part) if hasattr(found, part) else import_module(name)
        except ImportError:
            return False
    return True


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_name_is_there(path: Path) -> None:
    pytest.importorskip("matplotlib")
    named = re.findall(
        r"(?<![\w./'-])(?:vecadd|benchmarks|build_native)(?:\.[A-Za-z_]\w*)+(?![\w/])", TABLE.sub("", path.read_text())
    )
    assert [name for name in sorted(set(named)) if not there(name)] == []


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_in_fences_can_be_compiled(path: Path) -> None:
    for body in fences(path, "python"):
        ast.parse(body)


@pytest.mark.skipif(not _core.CUDA_BUILD, reason="a build without CUDA has no rungs on the device to be named")
@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_fences_are_understood(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in "".join(fences(path, "")).splitlines():
        if line.startswith("vecadd "):
            cli._parsed(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_makes_targets_are_there(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)(?:\w+=\S+ )*make ([a-z][\w-]*)", path.read_text(), re.MULTILINE)
    assert set(named) <= targets


def unannounced(text: str) -> set[str]:
    """Public names and commands that no code font of the text has."""
    spans = re.findall(r"`([^`]+)`", text)
    public = [name for name in vecadd.__all__ if not any(re.search(rf"\b{name}\b", span) for span in spans)]
    named = {span.split()[1] for span in spans if re.match(r"vecadd [a-z]", span)}
    return {*public, *(command.name for command in cli.COMMANDS if command.name not in named)}


def test_the_changelog_tells_of_every_public_name_and_command() -> None:
    assert unannounced((ROOT / "CHANGELOG.md").read_text()) == set()


def test_the_changelog_begins_with_this_version_and_security_says_that_it_gets_fixes() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = re.findall(r"^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0][0] == version
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}|unreleased", headings[0][1])
    line = version.rpartition(".")[0]
    supported = (ROOT / "SECURITY.md").read_text().partition("## Supported versions")[2]
    assert headings[0][1] == "unreleased" or f"\n{line}, the latest release" in supported


# --- pictures


def test_the_pictures_are_those_that_are_drawn_and_each_is_shown() -> None:
    assert {path.stem for path in pictures.FOLDER.iterdir()} == set(pictures.PICTURES)
    shown = {Path(link).stem for path in DOCUMENTS for link in links(path.read_text()) if link.endswith(".png")}
    assert shown == set(pictures.PICTURES)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_of_a_document_has_an_alternative_text(name: str) -> None:
    text = prose((ROOT / name).read_text())
    assert re.findall(r"!\[\s*\]\(\S+\)|<img (?![^>]*alt=\"[^\"]+\")[^>]*>", text) == []


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_was_drawn_from_the_run_that_is_recorded(name: str) -> None:
    image = pytest.importorskip("PIL.Image")
    with image.open(pictures.FOLDER / f"{name}.png") as drawn:
        assert drawn.info[pictures.SOURCE] == pictures.source(pictures.PICTURES[name]), (
            "run python -m benchmarks.pictures"
        )


def test_a_picture_keeps_a_colour_of_few_pixels() -> None:
    """Rungs that are wrong on purpose, whose bars are hardly longer than nothing."""
    image = pytest.importorskip("PIL.Image")
    plot = pytest.importorskip("vecadd.bench.plot")
    wanted = [int(plot.VERMILLION[at : at + 2], 16) for at in (1, 3, 5)]
    with image.open(pictures.FOLDER / "ladder.png") as drawn:
        colours = [colour for _, colour in drawn.convert("RGB").getcolors()]
    assert min(max(abs(a - b) for a, b in zip(colour, wanted, strict=True)) for colour in colours) <= 4
