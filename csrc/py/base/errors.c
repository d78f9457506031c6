#include "py/base/errors.h"

#include <string.h>

/* NULL: vecadd.DeviceLostError, which is in the module's state. */
static PyObject **const exception_types[STATUS_CODE_COUNT] = {
    [STATUS_OK] = &PyExc_SystemError,       [STATUS_VALUE] = &PyExc_ValueError,
    [STATUS_MEMORY] = &PyExc_MemoryError,   [STATUS_NO_CUDA_BUILD] = &PyExc_RuntimeError,
    [STATUS_NO_GPU] = &PyExc_RuntimeError,  [STATUS_DRIVER_TOO_OLD] = &PyExc_RuntimeError,
    [STATUS_FORKED] = &PyExc_RuntimeError,  [STATUS_DEVICE_LOST] = NULL,
    [STATUS_CAPTURE] = &PyExc_RuntimeError, [STATUS_CUDA] = &PyExc_RuntimeError,
};

int
clear_refusal(void)
{
    PyObject *const refusals[] = {PyExc_AttributeError, PyExc_BufferError, PyExc_OverflowError,
                                  PyExc_RuntimeError,   PyExc_TypeError,   PyExc_ValueError};
    if (!PyErr_Occurred())
        return 0;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (PyErr_ExceptionMatches(refusals[i])) {
            PyErr_Clear();
            return 0;
        }
    return -1;
}

void *
status_raise(const struct module_state *state, const struct status *status)
{
    PyObject **type = exception_types[status->code];
    /* The text may be cut inside a character, and may quote an environment variable of any bytes. */
    PyObject *text = PyUnicode_DecodeUTF8(status->text, (Py_ssize_t)strlen(status->text), "replace");
    if (text) {
        PyErr_SetObject(type ? *type : state->device_lost_error, text);
        Py_DECREF(text);
    }
    return NULL;
}
