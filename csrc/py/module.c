/* vecadd._core: its contents. */
#include <stdatomic.h>

#include "base/dtype.h"
#include "base/runtime.h"
#include "base/tuned_file.h"
#include "host/schedule.h"
#include "py/base/methods.h"
#include "py/calls/deferred_release.h"
#include "py/calls/result.h"
#include "py/receipt/receipt.h"

#if VECADD_CUDA
#include <cuda_runtime_api.h>
#else
#define CUDART_VERSION 0
#endif

#define PLAIN(name, flags)                                                                                             \
    {                                                                                                                  \
#name, py_##name, flags, name##_doc                                                                            \
    }
#define UNDOCUMENTED(name, flags)                                                                                      \
    {                                                                                                                  \
#name, (PyCFunction)(void (*)(void))py_##name, flags, NULL                                                     \
    }
#define WITH_KEYWORDS(name, flags)                                                                                     \
    {                                                                                                                  \
#name, (PyCFunction)(void (*)(void))py_##name, (flags) | METH_KEYWORDS, name##_doc                             \
    }

#define ABSENT(name, refusal)                                                                                          \
    {                                                                                                                  \
#name, (PyCFunction)(void (*)(void))refusal, METH_VARARGS | METH_KEYWORDS, NULL                                \
    }

/* What the laboratory measures, and what it measures of GPUs: a build without them answers here. */
#if !VECADD_LAB
#define LABORATORY(name, flags) ABSENT(name, without_laboratory)
#define LABORATORY_ON_GPUS      LABORATORY

static PyObject *
without_laboratory(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    return PyErr_Format(PyExc_RuntimeError,
                        "this vecadd was built without the laboratory (VECADD_LAB=0): to get it, run "
                        "pip install --force-reinstall --no-deps . in its sources without that variable");
}
#elif !VECADD_CUDA
#define LABORATORY                      UNDOCUMENTED
#define LABORATORY_ON_GPUS(name, flags) ABSENT(name, without_cuda)

static PyObject *
without_cuda(PyObject *module, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    struct status status;
    status_no_cuda(&status);
    return status_raise(PyModule_GetState(module), &status);
}
#else
#define LABORATORY         UNDOCUMENTED
#define LABORATORY_ON_GPUS UNDOCUMENTED
#endif

static PyMethodDef methods[] = {
    WITH_KEYWORDS(add, METH_FASTCALL),
    WITH_KEYWORDS(add_many, METH_FASTCALL),
    UNDOCUMENTED(add_files, METH_VARARGS),
    UNDOCUMENTED(explain_route, METH_FASTCALL | METH_KEYWORDS),
    WITH_KEYWORDS(plan, METH_FASTCALL),
    {"use_gpu", (PyCFunction)(void (*)(void))py_use_gpu, METH_FASTCALL, use_gpu_doc},
    PLAIN(get_num_threads, METH_NOARGS),
    PLAIN(set_num_threads, METH_O),
    WITH_KEYWORDS(to_device, METH_VARARGS),
    WITH_KEYWORDS(empty_pinned, METH_VARARGS),

    UNDOCUMENTED(host_facts, METH_NOARGS),
    UNDOCUMENTED(host_memory, METH_VARARGS),
    UNDOCUMENTED(cuda_versions, METH_NOARGS),
    UNDOCUMENTED(gpu_facts, METH_NOARGS),
    UNDOCUMENTED(memory_counts, METH_NOARGS),
    UNDOCUMENTED(output_pool_counts, METH_NOARGS),
    UNDOCUMENTED(transfer_counts, METH_NOARGS),
    PLAIN(release, METH_NOARGS),
    UNDOCUMENTED(install_loops, METH_O),
    UNDOCUMENTED(uninstall_loops, METH_NOARGS),
    UNDOCUMENTED(loop_counts, METH_NOARGS),
    UNDOCUMENTED(use_array_memory, METH_O),
    PLAIN(receipt_start, METH_VARARGS),
    PLAIN(receipt_stop, METH_NOARGS),
    UNDOCUMENTED(device_launch_configs, METH_VARARGS),
    UNDOCUMENTED(tuned_path, METH_VARARGS),
    UNDOCUMENTED(tuned_rows, METH_VARARGS),

    UNDOCUMENTED(host_view, METH_O),
    UNDOCUMENTED(host_limit, METH_VARARGS),
    UNDOCUMENTED(host_limit_round, METH_O),

    LABORATORY(rungs, METH_NOARGS),
    LABORATORY(run_rung, METH_VARARGS | METH_KEYWORDS),
    LABORATORY(poison, METH_O),
    LABORATORY(clear, METH_O),
    LABORATORY(wake_limits, METH_NOARGS),
    LABORATORY(pattern_write, METH_VARARGS),
    LABORATORY(pattern_check, METH_VARARGS),
    LABORATORY_ON_GPUS(latency_stages, METH_VARARGS | METH_KEYWORDS),
    LABORATORY_ON_GPUS(rung_facts, METH_VARARGS | METH_KEYWORDS),
    LABORATORY_ON_GPUS(timeline, METH_VARARGS | METH_KEYWORDS),
    LABORATORY_ON_GPUS(judge_call, METH_VARARGS | METH_KEYWORDS),
    LABORATORY_ON_GPUS(repeat, METH_VARARGS),
    LABORATORY_ON_GPUS(probe, METH_VARARGS),
    LABORATORY_ON_GPUS(device_memory, METH_VARARGS),
    LABORATORY_ON_GPUS(peer_limits, METH_VARARGS),
    LABORATORY_ON_GPUS(raw_launches, METH_VARARGS | METH_KEYWORDS),
    LABORATORY_ON_GPUS(call_stages, METH_VARARGS | METH_KEYWORDS),
    {NULL, NULL, 0, NULL},
};

#define TEXT_OF(ID, text) [NAME_##ID] = (text),
static const char *const name_text[NAME_COUNT] = {EACH_NAME(TEXT_OF)};
#undef TEXT_OF

PyDoc_STRVAR(device_lost_doc,
             "A fault on the GPU has ended every use of CUDA in this process; additions on the host go on.\n\n"
             ">>> def add_all(pairs):\n"
             "...     try:\n"
             "...         return [vecadd.add(a, b, device='cuda') for a, b in pairs]\n"
             "...     except vecadd.DeviceLostError:\n"
             "...         return [vecadd.add(a, b) for a, b in pairs]\n"
             ">>> add_all([(np.ones(2), np.ones(2))])\n"
             "[array([2., 2.])]");

static int
fill_state(PyObject *module, struct module_state *state)
{
    for (int name = 0; name < NAME_COUNT; name++)
        if (!(state->names[name] = PyUnicode_InternFromString(name_text[name])))
            return -1;
    state->numpy_add = imported("numpy", "add");
    if (!state->numpy_add)
        return -1;
    state->device_lost_error =
        PyErr_NewExceptionWithDoc("vecadd.DeviceLostError", device_lost_doc, PyExc_RuntimeError, NULL);
    state->device_array_type = device_array_make_type(module);
    state->plan_type = plan_make_type(module);
    state->kinds = PyDict_New();
    state->libraries = PyDict_New();
    state->output_handler = output_handler_make();
    return state->device_lost_error && state->device_array_type && state->plan_type && state->kinds &&
                   state->libraries && state->output_handler
               ? 0
               : -1;
}

/* {"float32": 4, ...}, in the table's order. */
static PyObject *
dtype_sizes(void)
{
    PyObject *sizes = PyDict_New();
    for (int dtype = 0; sizes && dtype < DTYPE_COUNT; dtype++)
        sizes = dict_with(sizes, dtype_table[dtype].name, PyLong_FromSize_t(dtype_table[dtype].itemsize));
    return sizes;
}

static int
warn_of_environment(void)
{
    const char *threads = threads_invalid_variable(), *wake = host_invalid_wake_variable();
    if (threads &&
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         THREADS_VARIABLE " is \"%s\": it takes a number of threads from 1 to %d; additions use %d",
                         threads, THREADS_MAX, threads_available()) < 0)
        return -1;
    if (wake && PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                 WAKE_VARIABLE " is \"%s\": it takes a number of bytes; threads are woken from %zu on",
                                 wake, host_thresholds()->wake) < 0)
        return -1;
    return 0;
}

static int
module_exec(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    if (warn_of_environment() < 0 || numpy_api_import() < 0 || fill_state(module, state) < 0)
        return -1;
    receipt_find_methods(methods);
    runtime_start();
    deferred_release_start();
    PyObject *sizes = dtype_sizes(), *dtypes = sizes ? PyDictProxy_New(sizes) : NULL;
    int failed = PyModule_AddObjectRef(module, "DTYPES", dtypes);
    Py_XDECREF(dtypes);
    Py_XDECREF(sizes);
    if (failed || PyModule_AddObjectRef(module, "DeviceLostError", state->device_lost_error) < 0 ||
        PyModule_AddObjectRef(module, "DeviceArray", (PyObject *)state->device_array_type) < 0 ||
        PyModule_AddObjectRef(module, "Plan", (PyObject *)state->plan_type) < 0 ||
        PyModule_AddObjectRef(module, "CUDA_BUILD", VECADD_CUDA ? Py_True : Py_False) < 0 ||
        PyModule_AddObjectRef(module, "LAB_BUILD", VECADD_LAB ? Py_True : Py_False) < 0 ||
        PyModule_AddIntConstant(module, "CUDA_RUNTIME_VERSION", CUDART_VERSION) < 0 ||
        PyModule_AddIntConstant(module, "TUNED_VERSION", TUNED_VERSION) < 0)
        return -1;
    return 0;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = PyModule_GetState(module);
    Py_VISIT(state->numpy_add);
    Py_VISIT(state->device_array_type);
    Py_VISIT(state->plan_type);
    Py_VISIT(state->device_lost_error);
    Py_VISIT(state->kinds);
    Py_VISIT(state->libraries);
    PyObject *library_of = state->library_of;
    Py_VISIT(library_of);
    return 0;
}

static int
module_clear(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->numpy_add);
    Py_CLEAR(state->device_array_type);
    Py_CLEAR(state->plan_type);
    Py_CLEAR(state->device_lost_error);
    Py_CLEAR(state->kinds);
    Py_CLEAR(state->libraries);
    Py_CLEAR(state->output_handler);
    for (int name = 0; name < NAME_COUNT; name++)
        Py_CLEAR(state->names[name]);
    PyObject *library_of = atomic_exchange(&state->library_of, NULL);
    Py_XDECREF(library_of);
    return 0;
}

static void
module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "vecadd._core",
    .m_doc = PyDoc_STR("The C extension of vecadd; its public names are in vecadd."),
    .m_size = sizeof(struct module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
