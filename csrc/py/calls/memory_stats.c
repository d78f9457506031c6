/* The memory that vecadd holds, by its use, and how it is given back to the system. */
#include "gpu/buffer.h"
#include "gpu/memory.h"
#include "host/output_pool.h"
#include "py/base/methods.h"
#include "py/calls/deferred_release.h"
#include "transfer/transfer.h"

const char memory_counts_doc[] =
    PyDoc_STR("memory_counts($module, /)\n--\n\n"
              "Bytes and blocks that DeviceArrays ('device_...') and empty_pinned arrays ('pinned_...') hold now.");

PyObject *
py_memory_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    deferred_release_sweep();
    const struct memory_counts counts = memory_counts();
    return Py_BuildValue("{s:n,s:n,s:n,s:n}", "device_bytes", (Py_ssize_t)counts.device_bytes, "device_blocks",
                         (Py_ssize_t)counts.device_blocks, "pinned_bytes", (Py_ssize_t)counts.pinned_bytes,
                         "pinned_blocks", (Py_ssize_t)counts.pinned_blocks);
}

const char output_pool_counts_doc[] =
    PyDoc_STR("output_pool_counts($module, /)\n--\n\n"
              "Bytes and blocks of the pool for large sums: in callers' hands ('used_...'), waiting for the next sum\n"
              "('kept_...'), and the bound of what is kept.");

PyObject *
py_output_pool_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const struct output_pool_counts counts = output_pool_counts();
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "used_bytes", (Py_ssize_t)counts.used_bytes, "used_blocks",
                         (Py_ssize_t)counts.used_blocks, "kept_bytes", (Py_ssize_t)counts.kept_bytes, "kept_blocks",
                         (Py_ssize_t)counts.kept_blocks, "bound", (Py_ssize_t)counts.bound);
}

const char transfer_counts_doc[] = PyDoc_STR(
    "transfer_counts($module, /)\n--\n\n"
    "Bytes and blocks of page-locked memory that is kept for the next transfer of host arrays through a GPU.");

PyObject *
py_transfer_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const struct transfer_counts counts = transfer_counts();
    return Py_BuildValue("{s:n,s:n}", "bytes", (Py_ssize_t)counts.bytes, "blocks", (Py_ssize_t)counts.blocks);
}

const char release_doc[] = PyDoc_STR(
    "release($module, /)\n--\n\n"
    "Gives memory that is kept for later additions back to the system: the pool of large sums in host memory,\n"
    "the page-locked memory that host arrays go to a GPU through, and the pools of the GPUs that this process\n"
    "has used. What an addition in another thread works with stays. Waits for a GPU that has memory which work on a\n"
    "stream of another library's may still use. Returns the bytes of host memory, page-locked or not. A GPU is slower\n"
    "for some milliseconds a gigabyte after it.\n\n"
    ">>> total = vecadd.add(np.ones(1_000_000), 1)\n"
    ">>> del total\n"
    ">>> vecadd.release() >= 8_000_000\n"
    "True");

PyObject *
py_release(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    deferred_release_sweep();
    PyThreadState *released = PyEval_SaveThread();
    const size_t bytes = output_pool_empty() + transfer_release();
    device_buffers_release();
    device_pools_trim();
    PyEval_RestoreThread(released);
    return PyLong_FromSize_t(bytes);
}
