"""vecadd check --scheduler: the check of every machine of a Dask cluster, each in a process of its own.

Dask only carries the orders and the results. A machine is checked by one process at a time, however many workers it
has: two at once would measure each other.
"""

import asyncio
import os
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vecadd._command import UnaskableError
from vecadd.check import document
from vecadd.check.findings import unknown

# The kernel ends the check with its worker: PR_SET_PDEATHSIG. A soak would hold the memory for hours otherwise.
PROGRAM = """
import ctypes, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
from vecadd import cli
sys.exit(cli.main(["check", *sys.argv[1:]]))
"""
MOST_A_PROCESSOR = 4  # workers of "local:N" for each processor: more are taken for a slip
BOOT = Path("/proc/sys/kernel/random/boot_id")  # differs from machine to machine, and is the same in its containers


def check_all(
    scheduler: str, options: Sequence[str], expected: Sequence[tuple[str, str]], tell: Callable[[str], object]
) -> list[dict[str, Any]]:
    """The results of all machines, as schema.json describes them, by their names; ``options`` are those of the check,
    ``expected`` the name and the text of each of its --expect files, of which several may have one name.

    ``scheduler`` is an address, or "local" with ":N" for N workers on this machine. Raises UnaskableError where there
    is no such cluster, or no worker in it.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UnaskableError("--scheduler needs Dask's distributed: pip install 'vecadd[fleet]'") from error
    workers = _local_workers(scheduler)
    try:
        where = (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            if workers
            else None
        )
        with distributed.Client(where or scheduler, timeout=10) as client:
            try:
                return _check_each(client, list(options), list(expected), tell)
            finally:
                if where is not None:
                    where.close()
    except (OSError, ValueError) as error:
        raise UnaskableError(f"there is no Dask scheduler at {scheduler}: {error}") from error


def _local_workers(scheduler: str) -> int | None:
    """How many of this machine "local" asks for; None where the scheduler is an address."""
    local = re.fullmatch(r"local(?::(\d+))?", scheduler)
    if local is None:
        return None
    workers, most = int(local[1] or 1), MOST_A_PROCESSOR * len(os.sched_getaffinity(0))
    if not 0 < workers <= most:
        raise UnaskableError(f"{scheduler} asks for {workers} workers; there may be 1 to {most} on this machine")
    return workers


def _check_each(
    client: Any, options: list[str], expected: list[tuple[str, str]], tell: Callable[[str], object]
) -> list[dict[str, Any]]:
    results = []
    machines: dict[str, dict[str, str]] = defaultdict(dict)  # by boot: the first worker of each host name
    for address, found in sorted(client.run(_identity, on_error="return").items()):
        if isinstance(found, BaseException):
            results.append(_lost(address, found))
        else:
            machines[found[0]].setdefault(found[1], address)
    if not machines and not results:
        raise UnaskableError("the scheduler has no workers")
    turns = [sorted(hosts.items()) for hosts in machines.values()]
    while turns:
        names = {hosts[0][1]: hosts[0][0] for hosts in turns}
        tell(f"{len(names)} machines at once, {len(results)} done")
        found = client.run(_check_here, options, expected, workers=list(names), on_error="return")
        for address, name in names.items():
            result = found.get(address, ConnectionError("the worker has left the cluster"))
            results.append(_lost(name, result) if isinstance(result, BaseException) else result)
        turns = [hosts[1:] for hosts in turns if len(hosts) > 1]
    return sorted(results, key=lambda result: str(result["host"]))


def _identity() -> tuple[str, str]:
    """Runs on a worker: which machine it is on, and what that is called."""
    name = platform.node() or "unknown"
    try:
        return BOOT.read_text(encoding="utf-8").strip(), name
    except OSError:
        return name, name


async def _check_here(options: list[str], expected: list[tuple[str, str]]) -> dict[str, Any]:
    """Runs on a worker, beside its event loop: the result of a check in a process of its own."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "check.json")
        for number, (name, text) in enumerate(expected):
            known = Path(folder, str(number), name)
            known.parent.mkdir()
            known.write_text(text, encoding="utf-8")
            options = [*options, "--expect", str(known)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", PROGRAM, *options, "--json", str(file)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:  # the client that asked has gone
            process.terminate()
            raise
        if file.exists() and (content := document.read(file)) is not None:
            return content
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        return _lost(platform.node(), RuntimeError(last or f"exit status {process.returncode}"))


def _lost(host: str, why: BaseException) -> dict[str, Any]:
    """The result of a machine whose check could not run."""
    finding = unknown(
        "machine/host/check",
        "the check itself",
        "1",
        f"it could not run there: {why or type(why).__name__}",
        "See that the worker runs, and that its Python has this vecadd.",
    )
    return {**document.of({}, "", [finding], {}), "host": host or "unknown"}


def file_names(results: Sequence[dict[str, Any]]) -> list[str]:
    """A file name for each result: its host's, and a number where several have one name."""
    names: list[str] = []
    for result in results:
        stem = re.sub(r"[^\w.-]+", "-", str(result["host"])).strip(".-") or "unknown"
        number = sum(
            name == f"{stem}.json" or re.fullmatch(rf"{re.escape(stem)}-\d+\.json", name) is not None for name in names
        )
        names.append(f"{stem}-{number + 1}.json" if number else f"{stem}.json")
    return names
