/* set_num_threads and get_num_threads: the threads that additions on the host use. */
#include "host/threads.h"
#include "py/base/methods.h"

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
    "It holds from the next call on, in every thread, and in child processes that are forked from now on. A Plan\n"
    "keeps the number of the time when it was made. Small sums use fewer. The sizes from which threads pay stay as\n"
    "they are.\n\n"
    "Raises TypeError for what is no int, and ValueError for a number below 1 or above 256.\n\n"
    ">>> before = vecadd.set_num_threads(1)\n"
    ">>> vecadd.set_num_threads(before)\n"
    "1");

PyObject *
py_set_num_threads(PyObject *Py_UNUSED(module), PyObject *given)
{
    if (!PyIndex_Check(given) || PyBool_Check(given)) {
        PyErr_Format(PyExc_TypeError, "set_num_threads() takes an int from 1 to %d, not %R", THREADS_MAX, given);
        return NULL;
    }
    const Py_ssize_t count = PyNumber_AsSsize_t(given, NULL); /* too large: clipped */
    if (count == -1 && PyErr_Occurred())
        return NULL;
    if (count < 1 || count > THREADS_MAX) {
        PyErr_Format(PyExc_ValueError, "set_num_threads() takes 1 to %d threads, not %S", THREADS_MAX, given);
        return NULL;
    }
    return PyLong_FromLong(threads_choose((int)count));
}
