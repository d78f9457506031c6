/* What memory vecadd holds, for whom, and its way back to the system. */
#include "block.h"
#include "keep.h"
#include "memory.h"
#include "methods.h"
#include "output_pool.h"

const char memory_counts_doc[] =
    PyDoc_STR("memory_counts($module, /)\n--\n\n"
              "Bytes and blocks that DeviceArrays ('device_...') and empty_pinned arrays ('pinned_...') hold now.");

PyObject *
py_memory_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    keep_sweep();
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

const char release_doc[] =
    PyDoc_STR("release($module, /)\n--\n\n"
              "Gives memory that is kept for later additions, and that nobody holds, back to the system: the pool of\n"
              "large sums in host memory, and the pools of the GPUs that this process has used. Returns the bytes of\n"
              "host memory. A GPU is slower for some milliseconds a gigabyte after it.");

PyObject *
py_release(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    keep_sweep();
    PyThreadState *released = PyEval_SaveThread();
    const size_t bytes = output_pool_empty();
    device_blocks_release();
    device_pools_trim();
    PyEval_RestoreThread(released);
    return PyLong_FromSize_t(bytes);
}
