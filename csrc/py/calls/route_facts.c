/* use_gpu, and the reasons for a call's route. */
#include "py/calls/route_facts.h"

#include "choose/plan.h"
#include "choose/routes.h"
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

/* The known times of the routes, in seconds. */
static PyObject *
predicted(const struct routes_explanation *found)
{
    PyObject *dict = PyDict_New();
    for (enum route route = ROUTE_HOST; dict && route < ROUTE_DEVICE; route++)
        if (found->seconds[route] > 0 && put(dict, route_name[route], PyFloat_FromDouble(found->seconds[route])) < 0)
            Py_CLEAR(dict);
    return dict;
}

static int
estimate_facts_add(PyObject *dict, const struct estimate_choice *estimate)
{
    static const char *const stage[] = {
        [ESTIMATE_LEARNING] = "learning", [ESTIMATE_BEHIND] = "behind",     [ESTIMATE_WAITING] = "waiting",
        [ESTIMATE_TRIAL] = "trial",       [ESTIMATE_MEASURED] = "measured",
    };
    static const char *const link[] = {
        [LINK_ASSUMED] = "assumed", [LINK_ATTRIBUTES] = "attributes", [LINK_MEASURED] = "measured"};
    return put(dict, "stage", PyUnicode_FromString(stage[estimate->stage])) < 0
               ? -1
               : put(dict, "link", PyUnicode_FromString(link[estimate->link]));
}

int
route_facts_add(PyObject *dict, const struct plan *plan, bool asked)
{
    struct routes_explanation found;
    routes_explain(plan, asked, &found);
    if (put(dict, "reason", PyUnicode_FromString(routes_reason_name[found.reason])) < 0 ||
        put(dict, "memory", PyUnicode_FromString(found.memory == MEMORY_PINNED ? "pinned" : "ordinary")) < 0 ||
        put(dict, "predicted", predicted(&found)) < 0)
        return -1;
    if (found.reason == ROUTES_ESTIMATED)
        return estimate_facts_add(dict, &found.estimate);
    return found.reason == ROUTES_FAILED ? put(dict, "failure", PyUnicode_FromString(found.failure)) : 0;
}

const char use_gpu_doc[] = PyDoc_STR(
    "use_gpu($module, wanted=True, /)\n--\n\n"
    "Whether additions of host arrays that name no device may go through the GPU.\n\n"
    "Without this call they may once the process uses CUDA through vecadd, and they do where `vecadd tune routes`\n"
    "has found that faster on this machine. Where it was never run, page-locked arrays of 32 MiB or more may go where\n"
    "such calls took the least time so far, and all others stay on the host. True starts CUDA now, if need be; False\n"
    "keeps such additions on the host from now on. device='cuda' and device arrays are not concerned. Raises\n"
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

const char routes_key_doc[] = PyDoc_STR(
    "routes_key($module, /)\n--\n\n"
    "What the calibration of the routes is kept under: the current GPU, its driver, the host's threads; None\n"
    "where the driver does not say. Raises what every device call raises where there is no GPU.");

PyObject *
py_routes_key(PyObject *module, PyObject *Py_UNUSED(none))
{
    char key[ROUTES_KEY];
    int device;
    struct status status;
    if (device_current(&device, &status) < 0)
        return status_raise(PyModule_GetState(module), &status);
    if (device_routes_key(device, key) < 0)
        Py_RETURN_NONE;
    return PyUnicode_FromString(key);
}
