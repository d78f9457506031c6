/* How vecadd works in this process: threads, memory that is kept, and the use of the GPU. */
#include "choose/plan.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "host/output_pool.h"
#include "host/schedule.h"
#include "py/base/methods.h"
#include "py/calls/deferred_release.h"
#include "transfer/transfer.h"

const char get_num_threads_doc[] = PyDoc_STR(
    "get_num_threads($module, /)\n--\n\n"
    "The most threads that an addition on the host uses, the caller's included, an int: what set_num_threads has set,\n"
    "else VECADD_NUM_THREADS of the environment, else the processors that this process may use.\n\n"
    ">>> vecadd.get_num_threads() == vecadd.info().cpu.threads\n"
    "True");

PyObject *
py_get_num_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(threads_available());
}

const char set_num_threads_doc[] = PyDoc_STR(
    "set_num_threads($module, n, /)\n--\n\n"
    "Sets the most threads that an addition on the host uses, the caller's included: an int from 1 to 256. Returns\n"
    "the number so far.\n\n"
    "It takes effect from the next call on, in every thread, and in child processes that are forked from now on. A "
    "Plan\n"
    "keeps the number of the time when it was made. Small sums use fewer. The sizes from which threads pay stay as\n"
    "they are.\n\n"
    "Raises TypeError for anything but an int, and ValueError for a number below 1 or above 256.\n\n"
    ">>> before = vecadd.set_num_threads(1)\n"
    ">>> vecadd.set_num_threads(before)\n"
    "1");

PyObject *
py_set_num_threads(PyObject *Py_UNUSED(module), PyObject *given)
{
    if (!PyIndex_Check(given) || PyBool_Check(given))
        return PyErr_Format(PyExc_TypeError, "set_num_threads() takes an int from 1 to %d, not %R", THREADS_MAX, given);
    const Py_ssize_t count = PyNumber_AsSsize_t(given, NULL); /* too large: clipped */
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if (count < 1 || count > THREADS_MAX)
        return PyErr_Format(PyExc_ValueError, "set_num_threads() takes 1 to %d threads, not %S", THREADS_MAX, given);
    return PyLong_FromLong(threads_choose((int)count));
}

PyObject *
py_memory_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    deferred_release_sweep();
    const struct memory_counts counts = memory_counts();
    return Py_BuildValue("{s:n,s:n,s:n,s:n}", "device_bytes", (Py_ssize_t)counts.device_bytes, "device_blocks",
                         (Py_ssize_t)counts.device_blocks, "pinned_bytes", (Py_ssize_t)counts.pinned_bytes,
                         "pinned_blocks", (Py_ssize_t)counts.pinned_blocks);
}

PyObject *
py_output_pool_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const struct output_pool_counts counts = output_pool_counts();
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:K}", "used_bytes", (Py_ssize_t)counts.used_bytes, "used_blocks",
                         (Py_ssize_t)counts.used_blocks, "kept_bytes", (Py_ssize_t)counts.kept_bytes, "kept_blocks",
                         (Py_ssize_t)counts.kept_blocks, "bound", (unsigned long long)counts.bound);
}

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

const char use_gpu_doc[] = PyDoc_STR(
    "use_gpu($module, wanted=True, /)\n--\n\n"
    "Whether additions of host arrays that name no device may go through the GPU.\n\n"
    "Without this call they may once the process uses CUDA through vecadd. Page-locked arrays of 32 MiB or more then\n"
    "go to processor and GPU together, unless the link is far slower than the processor; all others stay on the host.\n"
    "True starts CUDA now, if need be; False keeps such additions on the host from now on. device='cuda' and device\n"
    "arrays are not concerned. Raises\n"
    "RuntimeError for True where CUDA cannot be used.\n\n"
    ">>> vecadd.use_gpu()           # begin to use the GPU, where it is faster\n"
    ">>> vecadd.use_gpu(False)      # and stop");

PyObject *
py_use_gpu(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    struct module_state *state = PyModule_GetState(module);
    if (count > 1)
        return PyErr_Format(PyExc_TypeError, "use_gpu() takes at most 1 argument (%zd given)", count);
    const int wanted = count ? PyObject_IsTrue(values[0]) : 1;
    if (wanted < 0)
        return NULL;
    struct status status;
    if (wanted && WITHOUT_GIL(device_start(-1, &status)) < 0) /* starting CUDA takes 0.2 s */
        return status_raise(state, &status);
    routes_use_gpu(wanted);
    Py_RETURN_NONE;
}
