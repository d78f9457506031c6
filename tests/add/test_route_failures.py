"""Additions that stay on the host: beside a GPU that has failed, and by a calibration that is none."""

import pytest
import test_route_choice as table

choosing = table.choosing


def test_a_gpu_that_the_program_has_forbidden_is_no_failure(choosing: table.Choosing) -> None:
    """The program has to take its own word back first: use_gpu() then forgets the failure too."""
    choosing("""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        control.fail("cudaLaunchKernel", 1, 719, False)
        vecadd.add(a, b, out)
        assert "no device call" in vecadd.explain(a, b, out).why
        vecadd.use_gpu(False)
        assert "use_gpu(False)" in vecadd.explain(a, b, out).why
        control.reset(0)
        vecadd.use_gpu()
        assert route(a, b, out) == "transfer"
    """)


def test_a_gpu_without_room_leaves_a_sum_in_place_to_the_host(choosing: table.Choosing) -> None:
    """Nothing is written by then."""
    choosing("""
        from double import control
        vecadd.use_gpu()
        a, b, out = arrays(1024)
        for into in (a, b):
            assert route(a, b, into) == "transfer"
            control.fail("cudaMallocFromPoolAsync", 1, 2, True)
            assert (vecadd.add(a, b, into) == 2).all()
            control.reset(0)
            into[...] = 1
    """)


@pytest.mark.parametrize(
    "rows",
    [[*table.ROWS[:1], ("zero_copy", (-1,)), *table.ROWS[2:]], [*table.ROWS, table.ROWS[0]]],
    ids=["fewer bytes than none", "sizes that come twice"],
)
def test_a_calibration_that_no_search_has_written_is_none(rows: object, choosing: table.Choosing) -> None:
    choosing(
        """
        vecadd.use_gpu()
        found = vecadd.explain(*arrays(1024))
        assert found.route == "host" and "vecadd tune routes" in found.why and not found.predicted
        """,
        rows,
    )
