"""Adding Zarr arrays where the process, or a worker, is killed: the target is the old array or the sum.

VECADD_TEST_MOMENTS says at how many moments, 1 without it.
"""

import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import child_environment
from distributed import LocalCluster
from zarr_arrays import fill_folder, make, names, read

import vecadd
from vecadd import _zarr

pytestmark = [
    pytest.mark.no_native,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Couldn't detect a suitable IP address"),
]

MOMENTS = range(int(os.environ.get("VECADD_TEST_MOMENTS", "1")))
SIZE, CHUNK = 1 << 17, 1 << 13


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_zarr, "ENOUGH", 1)  # a box for each of sixteen chunks
    fill_folder(tmp_path)
    make(tmp_path / "a.zarr", np.arange(SIZE, dtype="f8"), (CHUNK,), overwrite=True)
    make(tmp_path / "b.zarr", np.ones(SIZE), (CHUNK // 2,), overwrite=True)
    return tmp_path


KILLED = """
    import os, time
    import vecadd
    from vecadd import _zarr
    def say_before(name):
        done = getattr(_zarr, name)
        def slowly(*arguments):
            os.write(1, b".")
            time.sleep(0.01)
            return done(*arguments)
        setattr(_zarr, name, slowly)
    for name in ("_read", "exchange", "_sync", "write_key"):
        say_before(name)
    _zarr.ENOUGH = 1
    vecadd.add_zarr("a.zarr", "b.zarr", "c.zarr")
    os.write(1, b"!")
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_that_is_killed_at_any_moment_leaves_the_old_array_or_the_sum(moment: int, folder: Path) -> None:
    """Beside it may be a hidden folder, which nothing minds and no later addition touches."""
    moments = random.Random(moment)
    command = [sys.executable, "-c", textwrap.dedent(KILLED)]
    with subprocess.Popen(command, cwd=folder, env=child_environment(), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(moments.randint(1, 88))  # all that it says
        time.sleep(moments.uniform(0, 0.02))
        child.kill()
    found = read(folder / "c.zarr")
    np.testing.assert_array_equal(found, np.arange(SIZE) + 1.0 if found.size == SIZE else [7, 7, 7])
    left = [name for name in names(folder) if name not in ("a.zarr", "b.zarr", "c.zarr")]
    assert all(re.fullmatch(r"\.c\.zarr\.[0-9a-f]{8}\.tmp", name) for name in left)
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr")
    np.testing.assert_array_equal(read(folder / "c.zarr"), np.arange(SIZE) + 1.0)
    assert names(folder) == sorted([*left, "a.zarr", "b.zarr", "c.zarr"])


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_that_is_killed_at_any_moment_leaves_the_sum_right(moment: int, folder: Path) -> None:
    """Dask gives its tasks to the other one, or to the one that its nanny starts."""
    moments = random.Random(moment)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        cluster.get_client() as client,
    ):
        client.wait_for_workers(2)
        client.run(_slow_down)
        pids = list(client.run(os.getpid).values())
        killer = threading.Timer(moments.uniform(0, 0.4), os.kill, (moments.choice(pids), signal.SIGKILL))
        killer.start()
        vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr")
        killer.join()
    np.testing.assert_array_equal(read(folder / "c.zarr"), np.arange(SIZE) + 1.0)
    assert sum(path.suffix == ".partial" for path in folder.rglob("*")) == 0


def _slow_down() -> None:
    """On a worker: each box takes a while."""
    done = _zarr._read

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.01)
        return done(*arguments)

    _zarr._read = slowly
