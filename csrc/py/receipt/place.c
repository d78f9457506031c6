#include "py/receipt/place.h"

#include <stdint.h>

#include "py/receipt/pages.h"

enum {
    CODES = 1 << 13, /* a power of two; half of them are used at most */
    WALKED = 32,     /* frames: libraries nest their calls less deeply, and each frame takes 80 ns */
};

enum whose { WHOSE_UNKNOWN, WHOSE_PROGRAM, WHOSE_LIBRARY, WHOSE_OURS };

struct noted_code {
    PyObject *code; /* owned, so that its address stays its own; NULL in a free place */
    enum whose whose;
};

static struct {
    struct noted_code *codes;
    size_t count;
    PyObject *ours, *libraries; /* owned */
} known;

static PyObject *f_lasti, *f_back, *co_filename; /* interned, for good */

/* Threads in place_find(). It makes objects, for which the garbage collector may run, and then other threads: what it
 * reads is kept for it. */
static unsigned readers;

int
place_start(PyObject *ours, PyObject *libraries)
{
    if (!f_lasti)
        f_lasti = PyUnicode_InternFromString("f_lasti");
    if (!f_back)
        f_back = PyUnicode_InternFromString("f_back");
    if (!co_filename)
        co_filename = PyUnicode_InternFromString("co_filename");
    if (!f_lasti || !f_back || !co_filename)
        return -1;
    known.codes = pages_new(CODES * sizeof *known.codes);
    if (!known.codes) {
        PyErr_NoMemory();
        return -1;
    }
    known.count = 0;
    known.ours = Py_NewRef(ours);
    known.libraries = Py_NewRef(libraries);
    return 0;
}

void
place_stop(void)
{
    if (readers == 0) { /* else they are left in memory */
        for (size_t i = 0; i < CODES; i++)
            Py_XDECREF(known.codes[i].code);
        pages_free(known.codes, CODES * sizeof *known.codes);
        Py_DECREF(known.ours);
        Py_DECREF(known.libraries);
    }
    known.codes = NULL;
}

static bool
begins_with_one(PyObject *name, PyObject *beginnings)
{
    const Py_ssize_t count = PyTuple_Size(beginnings);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyUnicode_Tailmatch(name, PyTuple_GetItem(beginnings, i), 0, PY_SSIZE_T_MAX, -1) > 0)
            return true;
    return false;
}

static enum whose
read_name(PyObject *code)
{
    PyObject *name = PyObject_GetAttr(code, co_filename);
    const enum whose whose = !name                                    ? WHOSE_UNKNOWN
                             : begins_with_one(name, known.ours)      ? WHOSE_OURS
                             : begins_with_one(name, known.libraries) ? WHOSE_LIBRARY
                                                                      : WHOSE_PROGRAM;
    Py_XDECREF(name);
    return whose;
}

static enum whose
whose_is(PyObject *code)
{
    size_t at = ((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 40 & (CODES - 1);
    for (; known.codes[at].code; at = (at + 1) & (CODES - 1))
        if (known.codes[at].code == code)
            return known.codes[at].whose;
    if (known.count >= CODES / 2)
        return WHOSE_UNKNOWN;
    known.codes[at] = (struct noted_code){Py_NewRef(code), read_name(code)};
    known.count++;
    return known.codes[at].whose;
}

static long
instruction_of(PyObject *frame)
{
    PyObject *number = PyObject_GetAttr(frame, f_lasti);
    const long at = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return at;
}

/* The frame that called this one, a new reference; NULL at the end of the stack. Drops `frame`. */
static PyObject *
back(PyObject *frame)
{
    PyObject *outer = PyObject_GetAttr(frame, f_back);
    Py_DECREF(frame);
    if (outer && Py_IsNone(outer))
        Py_CLEAR(outer);
    return outer;
}

/* place_find() for a reader. */
static bool
walk(struct place *place)
{
    struct place library = {0};
    bool found = false;
    PyObject *frame = Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int walked = 0; frame && walked < WALKED && !found; walked++) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        const enum whose whose = known.codes ? whose_is(code) : WHOSE_UNKNOWN;
        Py_DECREF(code); /* the frame keeps it, and so does known.codes */
        if (whose == WHOSE_UNKNOWN)
            break;
        if (whose == WHOSE_LIBRARY && !library.code)
            library = (struct place){.code = code, .at = instruction_of(frame)};
        if (whose == WHOSE_PROGRAM) {
            *place = (struct place){code, instruction_of(frame), library.code, library.at};
            found = true;
        } else
            frame = back(frame);
    }
    Py_XDECREF(frame);
    if (found || !library.code)
        return found;
    *place = library;
    return true;
}

bool
place_find(struct place *place)
{
    readers++;
    *place = (struct place){0};
    const bool found = walk(place);
    readers--;
    return found;
}
