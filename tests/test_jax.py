"""JAX's arrays: taken by DLPack in the order of JAX's own work, the sum a JAX array in vecadd's memory."""

import os

import numpy as np
import pytest
from arrays import DTYPES, assert_same_values, numpys_sum, values

import vecadd
from vecadd import _core

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests want memory too
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


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
def test_sum_comes_after_what_jax_still_computes(gpu):
    @jax.jit
    def slowly(x):
        return jax.lax.fori_loop(0, 2000, lambda i, y: y + 1, x)

    a = jnp.zeros(1_000_000, jnp.int32, device=gpu)
    slowly(a).block_until_ready()
    for _ in range(5):
        late = slowly(a)
        assert int(vecadd.add(late, late).min()) == 4000


@pytest.mark.gpu
def test_operands_may_be_dropped_at_once_and_their_memory_reused(gpu):
    n = 4_000_000
    for i in range(50):
        total = vecadd.add(jnp.full(n, i, jnp.int32, device=gpu), jnp.full(n, 1, jnp.int32, device=gpu))
        jnp.full(n, -5, jnp.int32, device=gpu).block_until_ready()
        assert bool((total == i + 1).all())


@pytest.mark.gpu
def test_sums_of_sums_are_right_and_their_memory_comes_back(gpu):
    before = _core.memory_counts()
    x = jnp.arange(100_000.0, device=gpu)
    total = x
    for _ in range(100):
        total = vecadd.add(total, x)
    assert_same_values(np.asarray(total), np.arange(100_000.0) * 101)
    del total
    jax.block_until_ready(x)
    _core.release()
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
def test_out_of_jax_is_refused(gpu):
    x = jnp.ones(3, device=gpu)
    with pytest.raises(TypeError, match="JAX array"):
        vecadd.add(x, x, x)


def test_traced_arrays_are_refused():
    with pytest.raises(TypeError, match=r"jax\.jit"):
        jax.jit(lambda x: vecadd.add(x, x))(jnp.ones(3))
