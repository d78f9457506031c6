"""JAX's arrays: taken by DLPack in the order of JAX's own work, the sum a JAX array in vecadd's memory."""

import gc
import os
import time

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, values

import vecadd
from vecadd import _core

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests want memory too
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
KNOWN = jnp.arange(3.0)


@pytest.fixture
def gpu(runtime):
    """JAX's first GPU."""
    if runtime != "gpu" or jax.default_backend() != "gpu":
        pytest.skip("needs a GPU and a JAX that can use it")
    return jax.devices()[0]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 17, 100_003])
def test_sum_is_numpys_and_a_jax_array(gpu, n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    x, y = jax.device_put(a, gpu), jax.device_put(b, gpu)
    got = vecadd.add(x, y)
    assert isinstance(got, jax.Array)
    assert got.devices() == {gpu}
    assert_same_values(np.asarray(got), numpys_sum(a, b))
    assert_same_values(np.asarray(x), a)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("a", "b"), [("int32", "float16"), ("uint8", "bfloat16"), ("int64", "float32"), ("bool", "int8")]
)
def test_sums_of_two_dtypes_and_transposed_arrays_are_jaxs(gpu, a, b):
    x, y = (jnp.arange(6).reshape(2, 3).astype(dtype) for dtype in (a, b))
    for p, q in ((x, y), (x.T, y.T), (x, y[0]), (y, 2), (2, y), (np.float64(1), y), (x.T, y.reshape(3, 2))):
        got, want = vecadd.add(p, q), jnp.add(p, q)
        assert type(got) is type(want)
        assert got.dtype == want.dtype
        assert bool((got == want).all())


@pytest.mark.gpu
@pytest.mark.parametrize("given", [False, True], ids=["no stream=", "stream="])
def test_sum_comes_after_what_jax_still_computes(gpu, driver, given):
    @jax.jit
    def slowly(x):
        return jax.lax.fori_loop(0, 2000, lambda i, y: y + 1, x)

    a = jnp.zeros(1_000_000, jnp.int32, device=gpu)
    slowly(a).block_until_ready()
    for _ in range(5):
        late = slowly(a)
        assert int(vecadd.add(late, late, stream=driver.stream() if given else None).min()) == 4000


@pytest.mark.gpu
def test_operands_may_be_dropped_at_once_and_their_memory_reused(gpu, driver):
    n, run_on = 4_000_000, driver.stream()
    for i in range(10):
        driver.delay(run_on)
        total = vecadd.add(jnp.full(n, i, jnp.int32, device=gpu), jnp.full(n, 1, jnp.int32, device=gpu), stream=run_on)
        jnp.full(n, -5, jnp.int32, device=gpu).block_until_ready()
        assert bool((total == i + 1).all())


@pytest.mark.gpu
def test_jax_reads_a_sum_when_it_is_there(gpu, driver):
    x, run_on = jnp.arange(1_000_000, device=gpu).block_until_ready(), driver.stream()
    driver.delay(run_on)
    assert bool((vecadd.add(x, x, stream=run_on) == 2 * x).all())


@pytest.mark.gpu
def test_sums_of_sums_are_right_and_their_memory_comes_back(gpu):
    before = _core.memory_counts()
    x = jnp.arange(100_000.0, device=gpu)
    total = x
    for _ in range(100):
        total = vecadd.add(total, x)
    assert_same_values(np.asarray(total), np.arange(100_000.0) * 101)
    del total
    for _ in range(200):  # JAX gives memory back on threads of its own
        _core.release()
        gc.collect()  # what JAX has lent and got back it drops in Python's next collection
        if _core.memory_counts() == before:
            break
        time.sleep(0.05)
    assert _core.memory_counts() == before


@pytest.mark.gpu
@pytest.mark.parametrize("stream", [0, 2])
def test_stream_may_be_given(gpu, stream):
    x = jnp.arange(1000.0, device=gpu)
    assert_same_values(np.asarray(vecadd.add(x, x, stream=stream)), np.arange(1000.0) * 2)


@pytest.mark.gpu
def test_jax_takes_device_arrays(gpu):
    a = np.arange(1000.0)
    x = vecadd.to_device(a)
    assert_same_values(np.asarray(jax.dlpack.from_dlpack(x + x)), a + a)


@pytest.mark.gpu
def test_device_arrays_and_jax_arrays_mix(gpu):
    a = np.arange(100.0)
    x, j = vecadd.to_device(a), jnp.asarray(a, device=gpu)
    assert isinstance(vecadd.add(j, x), jax.Array)
    assert type(vecadd.add(x, j)) is vecadd.DeviceArray
    assert_same_values(np.asarray(vecadd.add(j, x)), a + a)
    out = vecadd.to_device(a)
    assert vecadd.add(j, j, out) is out
    assert_same_values(out.numpy(), a + a)


@pytest.mark.gpu
def test_jax_array_in_a_capture_of_torchs(gpu):
    """A wait for JAX's own stream, or for the legacy default one, would end the capture: the array is to be ready."""
    torch = pytest.importorskip("torch")
    x = jnp.arange(1000.0, device=gpu).block_until_ready()
    a, out = torch.ones(1000, dtype=torch.float64, device="cuda"), torch.zeros(1000, dtype=torch.float64, device="cuda")
    vecadd.add(x, a, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vecadd.add(x, a, out)
        vecadd.add(out, x, out)
    out.zero_()
    graph.replay()
    np.testing.assert_array_equal(out.cpu().numpy(), 2 * np.arange(1000.0) + 1)


@pytest.mark.gpu
def test_jax_arrays_of_a_list_in_a_capture_of_cupys(gpu):
    cupy = pytest.importorskip("cupy")
    x = jnp.arange(1000.0, device=gpu).block_until_ready()
    a, out = cupy.ones(1000), [cupy.zeros(1000), cupy.zeros(1000)]
    vecadd.add_many([x, a], [a, a], out)
    cupy.cuda.Device().synchronize()  # CuPy orders no stream after another
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        vecadd.add_many([x, a], [a, a], out)
        graph = stream.end_capture()
        a.fill(5)
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out[0].get(), np.arange(1000.0) + 5)
    assert (out[1] == 10).all()


@pytest.mark.gpu
def test_out_of_jax_is_refused(gpu):
    x = jnp.ones(3, device=gpu)
    with pytest.raises(TypeError, match="JAX array"):
        vecadd.add(x, x, x)


TRANSFORMS = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "jit of grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize(
    "call",
    [lambda add, x: add(x, x), lambda add, x: add(x, 1.5), lambda add, x: add(2, x), lambda add, x: add(x, KNOWN),
     lambda add, x: add(np.ones(3), x)],
    ids=["traced", "number", "number first", "not traced", "NumPy's"],
)  # fmt: skip
def test_what_jax_traces_gets_jaxs_own_sum(transform, call):
    x = jnp.arange(6.0).reshape(2, 3)
    got, want = (transform(lambda x, add=add: call(add, x))(x) for add in (vecadd.add, jnp.add))
    for p, q in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert_same_values(np.asarray(p), np.asarray(q))


def test_out_and_keywords_of_numpys_go_with_nothing_that_jax_traces():
    x, out = jnp.ones(3), np.zeros(3)
    with pytest.raises(TypeError, match="omit out"):
        jax.jit(lambda x: vecadd.add(x, x, out))(x)
    with pytest.raises(TypeError, match="where="):
        jax.jit(lambda x: vecadd.add(x, x, where=True))(x)
    seen = []
    jax.jit(lambda x: seen.append(vecadd.explain(x, x)) or x)(x)
    assert seen[0].route == "library"
    assert "jax.numpy.add" in seen[0].why


# On the host.


@pytest.fixture
def cpu():
    return jax.devices("cpu")[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 17, 1000])
def test_sum_on_the_host_is_numpys_and_a_jax_array(cpu, n, dtype):
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    x, y = jax.device_put(a, cpu), jax.device_put(b, cpu)
    with np.errstate(all="ignore"):
        got = vecadd.add(x, y)
        assert isinstance(got, jax.Array)
        assert got.devices() == {cpu}
        assert_same_values(np.asarray(got), numpys_sum(a, b))
        assert_same_values(np.asarray(x), a)


def test_addition_on_the_host_is_vecadds_own(cpu):
    x = jax.device_put(np.ones((30, 40)), cpu)
    assert _core.explain_route(x, x)["route"] == "host"


def test_large_sum_on_the_host_is_read_back_right(cpu):
    a = np.arange(1_000_000.0)
    x = jax.device_put(a, cpu)
    total = vecadd.add(x, x)
    del x
    assert_same_values(np.asarray(vecadd.add(total, total)), a * 4)


def test_sum_on_the_host_waits_for_what_jax_still_computes(cpu):
    a = jax.device_put(np.zeros(100_000, np.int32), cpu)
    late = jax.jit(lambda x: jax.lax.fori_loop(0, 500, lambda i, y: y + 1, x))(a)
    assert int(vecadd.add(late, late).min()) == 1000


@pytest.mark.parametrize(
    "call",
    [lambda add, x: add(x, 1.5), lambda add, x: add(2, x), lambda add, x: add(x, x[:1]), lambda add, x: add(x, x > 1)],
    ids=["number", "number first", "broadcast", "two dtypes"],
)
def test_what_is_broadcast_or_cast_is_jaxs_own_sum(cpu, call):
    x = jax.device_put(np.arange(3, dtype=np.float32), cpu)
    got, want = call(vecadd.add, x), call(jnp.add, x)
    assert type(got) is type(want)
    assert_same_values(np.asarray(got), np.asarray(want))


def test_out_of_jax_on_the_host_is_refused(cpu):
    x = jax.device_put(np.ones(3), cpu)
    with pytest.raises(TypeError, match="JAX array"):
        vecadd.add(x, x, x)


def test_jax_and_numpy_on_the_host_are_numpys(cpu):
    x = jax.device_put(np.ones(3), cpu)
    assert_same_values(np.asarray(vecadd.add(x, np.ones(3))), np.full(3, 2.0))


def test_overflow_on_the_host_warns_as_numpy_does(cpu):
    x = jax.device_put(np.full(10, 3e38, np.float32), cpu)
    with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
        vecadd.add(x, x)


def test_keys_of_random_generators_are_a_type_error():
    key = jax.random.key(0)
    for operands in ((key, key), (key, 1), (np.ones(2), key)):
        with pytest.raises(TypeError, match=r"dtype key<.*have no sum"):
            vecadd.add(*operands)
