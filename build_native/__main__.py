"""Brings compiled things up to date: python -m build_native [--variant VARIANT] [--run] [--only NAMES] TARGET ...

objects          what the extension is linked from
extension        vecadd/_core.*.so in the tree, with the CUDA runtime inside (release only; other variants: in build/)
double           build/double/_core.abi3.so, the module on the CUDA-runtime double
ctests           build/tests/*, the programs of tests/c on the double
conformance      build/conformance/*, the double's rules, run on the double
conformance-gpu  build/conformance-gpu/*, these rules, run on the CUDA runtime, and the rungs' tests: on a GPU
warnings         everything compiled, nothing linked; an error where a compiler warned, now or when it last ran
requirements     prints what to install before building without isolation

The variants are release, asan (AddressSanitizer and UndefinedBehaviorSanitizer), tsan (ThreadSanitizer) and
aarch64 (the host's C tests by a cross compiler, run by qemu-aarch64); all but release are in build/VARIANT. --run runs
the programs that were built; they pass by exit status 0. --only "threads plan": of the C tests, those of the
folder tests/c/threads and test_plan.c alone.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build_native import toolkit
from build_native.flags import VARIANTS, module_suffix
from build_native.incremental import ROOT, BuildError, processors
from build_native.targets import Build, install

# Longer means a hang: of one test, which its program then names (tests/c/check.h), or of a whole program. Under TSan
# the slowest test takes more than two minutes.
TEST_SECONDS, PROGRAM_SECONDS = 600, 1200


def _extension(variant: str) -> list[Path]:
    built = Build(variant).extension()
    if variant == "release":
        install(built, ROOT / "vecadd" / f"_core{module_suffix()}")
    return []


def _objects(variant: str) -> list[Path]:
    Build(variant).objects()
    return []


def _double(variant: str) -> list[Path]:
    Build(variant).double()
    return []


def _ctests(variant: str, only: Sequence[str] = ()) -> list[Path]:
    return Build(variant).ctests(only)


def _warnings(variant: str) -> list[Path]:
    if said := Build(variant).warnings():
        raise BuildError("\n".join([*said, f"warnings: {len(said)} files"]))
    return []


def _requirements(_variant: str) -> list[Path]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    print(*project["build-system"]["requires"], *toolkit.missing_requirements(), sep="\n")
    return []


# Each takes a variant and gives the programs that --run runs.
TARGETS: dict[str, Callable[[str], list[Path]]] = {
    "objects": _objects,
    "extension": _extension,
    "double": _double,
    "ctests": _ctests,
    "conformance": lambda variant: Build(variant).conformance(),
    "conformance-gpu": lambda variant: Build(variant).conformance_gpu(),
    "requirements": _requirements,
    "warnings": _warnings,
}


def main() -> int:
    """Builds what is named, and with --run runs it; exit status 1 where a build or a program fails."""
    parser = argparse.ArgumentParser(
        prog="python -m build_native", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="+", metavar="TARGET", choices=sorted(TARGETS))
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="release")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--only", type=str.split, metavar="NAMES")
    arguments = parser.parse_args()
    if arguments.only and arguments.targets != ["ctests"]:
        parser.error("--only is for ctests alone")
    try:
        if arguments.only:
            programs = _ctests(arguments.variant, arguments.only)
        else:
            programs = [path for target in arguments.targets for path in TARGETS[target](arguments.variant)]
    except (BuildError, toolkit.ToolkitError) as error:
        print(error, file=sys.stderr)
        return 1
    if not arguments.run:
        return 0
    # On a GPU one after the other: other programs would disturb the tests of concurrent kernels.
    at_once = 1 if "conformance-gpu" in arguments.targets else processors()
    return _run(programs, VARIANTS[arguments.variant].emulator, at_once)


def _run(programs: list[Path], emulator: tuple[str, ...], at_once: int) -> int:
    """Runs the programs, ``at_once`` at a time; prints each one's verdict when it ends."""

    def run(program: Path) -> bool:
        started = time.monotonic()
        verdict, output = _verdict((*emulator, str(program)))
        line = f"{program.relative_to(ROOT)}: {verdict} ({time.monotonic() - started:.2f} s)\n"
        sys.stdout.write(line if verdict == "passed" else f"{line}{output}\n")
        sys.stdout.flush()
        return verdict == "passed"

    with ThreadPoolExecutor(at_once) as pool:
        return 0 if all(list(pool.map(run, programs))) else 1


def _verdict(command: tuple[str, ...]) -> tuple[str, str]:
    """A program's verdict. Kills a program that hangs with all of its child processes: each test is one."""
    environment = {**os.environ, "VECADD_CHECK_SECONDS": str(TEST_SECONDS)}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            output, _ = program.communicate(timeout=PROGRAM_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return f"FAILED, still running after {PROGRAM_SECONDS} s", program.communicate()[0]
    return f"FAILED, status {program.returncode}" if program.returncode else "passed", output


if __name__ == "__main__":
    sys.exit(main())
