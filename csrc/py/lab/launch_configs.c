/* A device's launch configs from Python: those that `vecadd tune` compares its search with, and those that additions
 * use. */
#include "gpu/device.h"
#include "py/base/errors.h"
#include "py/base/methods.h"

static const char *const source_name[] = {
    [LAUNCH_CONFIGS_MEASURED] = "shipped",
    [LAUNCH_CONFIGS_INHERITED] = "inherited",
    [LAUNCH_CONFIGS_TUNED] = "tuned",
};

static PyObject *
list_of_rows(const struct launch_configs *launch_configs)
{
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < launch_configs->count; i++) {
        const struct launch_config *row = &launch_configs->row[i];
        PyObject *item = Py_BuildValue("(nIiI)", (Py_ssize_t)row->min_bytes, row->block, (int)row->loads, row->demoted);
        if (!item || PyList_Append(rows, item) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(item);
    }
    return rows;
}

const char device_launch_configs_doc[] = PyDoc_STR(
    "device_launch_configs($module, device, /)\n--\n\n"
    "What additions on a device go by, a dict: 'key' (of its tuned file), 'l2' (bytes), 'source' ('shipped',\n"
    "'inherited' from another compute capability, 'tuned'), 'rows' and 'shipped', the build's own: tuples (bytes of\n"
    "a, b and c from which on it holds, threads a block, loads: 0 plain, 1 evict_last, sixtieths of the L2 that the\n"
    "end of each input is demoted in). Starts the device. Raises RuntimeError where there is none, ValueError for an\n"
    "ordinal that is none.");

PyObject *
py_device_launch_configs(PyObject *module, PyObject *arguments)
{
    struct module_state *state = PyModule_GetState(module);
    struct status status;
    struct device_launch_configs launch_configs;
    int device;
    if (!PyArg_ParseTuple(arguments, "i:device_launch_configs", &device))
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    const int failed =
        device_check_ordinal(device, &status) < 0 || device_launch_configs(device, &launch_configs, &status) < 0;
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(state, &status);
    PyObject *rows = list_of_rows(&launch_configs.used), *shipped = list_of_rows(&launch_configs.shipped);
    if (!rows || !shipped) {
        Py_XDECREF(rows);
        Py_XDECREF(shipped);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:n,s:s,s:N,s:N}", "key", launch_configs.key, "l2", (Py_ssize_t)launch_configs.used.l2,
                         "source", source_name[launch_configs.used.source], "rows", rows, "shipped", shipped);
}
