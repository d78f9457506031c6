"""A GPU that fails under an addition that vecadd sent there by itself: the host adds in its place."""

import pytest
import test_routes

opened = test_routes.opened


def test_what_fails_on_the_gpu_is_added_by_the_host(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        add = lambda: vecadd.add(a, b, out)
        for nth in (1, 2, 3):
            control.fail("cudaLaunchKernel", nth, 719, False)  # the device is lost
            out[...] = 0
            assert route(a, b, out) == "hybrid" and launches(add) > 0 and (out == 2).all()
            assert "no device call" in why(a, b, out)
            assert launches(add) == 0 and (out == 2).all()
            control.reset(0)
            vecadd.use_gpu()
        assert route(a, b, out) == "hybrid" and launches(add) > 0
    """)


def test_no_room_or_a_capture_in_the_way_is_no_reason_to_leave_the_gpu(opened):
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for call in ("cudaMallocFromPoolAsync", "cudaMemcpyAsync"):
            for status in (2, 900, 901, 906):
                out[...] = 0
                control.fail(call, 1, status)
                launches(lambda: vecadd.add(a, b, out))
                assert (out == 2).all() and route(a, b, out) == "hybrid"
    """)


def test_a_gpu_that_the_program_has_forbidden_is_no_failure(opened):
    """The program has to take its own word back first: use_gpu() then forgets the failure too."""
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        control.fail("cudaLaunchKernel", 1, 719, False)
        launches(lambda: vecadd.add(a, b, out))
        assert "no device call" in why(a, b, out)
        vecadd.use_gpu(False)
        assert "use_gpu(False)" in why(a, b, out)
        control.reset(0)
        vecadd.use_gpu()
        assert route(a, b, out) == "hybrid"
    """)


@pytest.mark.parametrize("into", "ab")
def test_what_fails_in_place_says_that_the_output_is_undefined(opened, into):
    opened(f"""
        vecadd.use_gpu()
        a, b, out = arrays()
        control.fail("cudaLaunchKernel", 2, 999, False)
        try:
            launches(lambda: vecadd.add(a, b, {into}))
        except RuntimeError as error:
            assert "output is undefined" in str(error)
        else:
            raise AssertionError("no error")
        control.clock(0)
        control.reset(0)
        {into}[...] = 1
        assert (vecadd.add(a, b, out) == 2).all()
    """)


def test_a_gpu_without_room_leaves_a_sum_in_place_to_the_host(opened):
    """Nothing is written by then."""
    opened("""
        vecadd.use_gpu()
        a, b, out = arrays()
        for into in (a, b):
            assert route(a, b, into) == "hybrid"
            control.fail("cudaMallocFromPoolAsync", 1, 2, True)
            launches(lambda: vecadd.add(a, b, into))
            assert (into == 2).all()
            control.reset(0)
            into[...] = 1
    """)
