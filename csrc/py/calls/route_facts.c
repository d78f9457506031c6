/* use_gpu, and the reasons for a call's route. */
#include "py/calls/route_facts.h"

#include "choose/plan.h"
#include "gpu/device.h"
#include "py/base/errors.h"
#include "py/base/methods.h"

/* Takes the reference to value, which may be NULL with an exception set. */
static int
put(PyObject *dict, const char *name, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return result;
}

/* Seconds by route; empty unless the formula decides. */
static PyObject *
predicted(const struct routes_explanation *found)
{
    PyObject *dict = PyDict_New();
    for (enum route route = ROUTE_HOST; dict && route < ROUTE_DEVICE; route++)
        if (found->seconds[route] > 0 && put(dict, route_name[route], PyFloat_FromDouble(found->seconds[route])) < 0)
            Py_CLEAR(dict);
    return dict;
}

int
route_facts_add(PyObject *dict, const struct plan *plan, bool asked)
{
    static const char *const reasons[] = {
        [ROUTES_ASKED] = "asked",
        [ROUTES_NO_CUDA] = "no CUDA",
        [ROUTES_FORBIDDEN] = "forbidden",
        [ROUTES_FAILED] = "failed",
        [ROUTES_SMALL_OR_ORDINARY] = "small or ordinary",
        [ROUTES_ROUNDING] = "rounding",
        [ROUTES_PREDICTED] = "predicted",
    };
    struct routes_explanation found;
    routes_explain(plan, asked, &found);
    if (put(dict, "reason", PyUnicode_FromString(reasons[found.reason])) < 0 ||
        put(dict, "memory", PyUnicode_FromString(found.pinned ? "pinned" : "ordinary")) < 0 ||
        put(dict, "predicted", predicted(&found)) < 0)
        return -1;
    return found.reason == ROUTES_FAILED ? put(dict, "failure", PyUnicode_FromString(found.failure)) : 0;
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
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "use_gpu() takes at most 1 argument (%zd given)", count);
        return NULL;
    }
    const int wanted = count ? PyObject_IsTrue(values[0]) : 1;
    if (wanted < 0)
        return NULL;
    struct status status;
    int failed = 0;
    if (wanted) {
        PyThreadState *released = PyEval_SaveThread(); /* starting CUDA takes 0.2 s */
        failed = device_start(-1, &status);
        PyEval_RestoreThread(released);
    }
    if (failed)
        return status_raise(state, &status);
    routes_use_gpu(wanted);
    Py_RETURN_NONE;
}
