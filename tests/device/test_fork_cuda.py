"""Forks of a process that used CUDA: the host adds, device calls say what to do, no CUDA call on the way out."""

import pytest

IN_A_FORK = """
import gc, os, sys, traceback, warnings
import numpy as np, vecadd
warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about forks of processes with threads
a = np.arange(100_000, dtype=np.float32)
{before}
pid = os.fork()
if pid == 0:
    try:
        {inside}
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    {leave}
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 0, status
{after}
"""

USE_CUDA = "x = vecadd.to_device(a); p = vecadd.empty_pinned(10, 'f4'); vecadd.add(a, a, device='cuda')"
WORKS = "assert ((x + x).numpy() == a + a).all(); assert (vecadd.add(a, a, device='cuda') == a + a).all()"


def refused(call):
    return f"""
        try:
            {call}
        except RuntimeError as error:
            assert "spawn" in str(error), error
        else:
            raise AssertionError("no error")
"""


def test_in_a_fork_no_route_leads_through_the_gpu(device, child):
    large = "a = np.zeros(9_000_000, np.float32)"
    before = f"{USE_CUDA}; {large}; assert vecadd._core.explain_route(a, a)['reason'] != 'no CUDA'"
    inside = "assert vecadd._core.explain_route(a, a)['reason'] == 'no CUDA'"
    child(IN_A_FORK.format(before=before, inside=inside, leave="os._exit(0)", after=""))


@pytest.mark.parametrize(
    "call",
    [
        "x + x",
        "vecadd.add(x, x, x)",
        "x.numpy()",
        "vecadd.to_device(a)",
        "vecadd.to_device(a, 'cuda:0')",
        "vecadd.add(a, a, device='cuda')",
        "vecadd.empty_pinned(3, 'f4')",
        "vecadd._core.gpu_facts()",
    ],
)
def test_device_calls_in_a_fork_name_spawn(device, child, call):
    child(IN_A_FORK.format(before=USE_CUDA, inside=refused(call), leave="os._exit(0)", after=WORKS))


def test_fork_before_cuda_was_used_may_use_it(double, child):
    inside = f"{USE_CUDA}; {WORKS}"
    child(IN_A_FORK.format(before="vecadd.add(a, a)", inside=inside, leave="sys.exit(0)", after=f"{USE_CUDA}; {WORKS}"))


SPAWN = """
def double_of(a):
    import vecadd
    return (vecadd.to_device(a) + vecadd.to_device(a)).numpy()
"""


def test_spawned_processes_use_the_gpu(device, child, tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWN)
    child(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import multiprocessing, numpy as np, vecadd, spawned\n"
        "a = np.arange(10.0); x = vecadd.to_device(a)\n"
        "with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "    assert (pool.apply(spawned.double_of, (a,)) == a + a).all()\n"
        "    pool.close(); pool.join()\n"
    )
