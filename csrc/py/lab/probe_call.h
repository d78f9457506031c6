/* A probe of csrc/lab/limits/ as a function of the module: its arguments, its run without the GIL, and what it found as
 * a dict. */
#ifndef VECADD_PY_LAB_PROBE_CALL_H
#define VECADD_PY_LAB_PROBE_CALL_H

#include <stddef.h>

#include "lab/base/probes.h"
#include "py/base/python.h"

/* What a probe was asked; 1 for what it takes none of. */
struct request {
    int device;
    Py_ssize_t bytes;
    int rounds;
};

union found {
    struct {
        struct memory_rates memory, l2;
    } device;
    struct link_limits link;
    struct memory_latency latency;
    struct launch_limits launch;
    struct copy_limits copies;
    struct allocation_limits allocation;
    struct mapped_limits mapped;
    struct managed_limits managed;
    struct thread_probe_limits thread_probe;
};

/* A double of a struct, and its name in Python. An array of them ends with {0}. */
struct figure {
    const char *name;
    size_t offset;
};

struct probe {
    const char *format; /* "ini:NAME": how many of device, nbytes and rounds it takes */
    int (*measure)(const struct request *request, union found *found, struct status *status);
    const struct figure *figures; /* of `found`; NULL: none */

    /* Of an array in it, a list each, up to the first figure below 0; NULL: none. Its elements begin with their bytes;
     * `most` are how many there are, or 0 where the int at `count` says so. */
    const struct figure *columns;
    size_t array, stride, count;
    int most;
};

/* Runs the probe. Returns 0, or -1 with an exception set. */
int probe_measure(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe,
                  union found *found);

/* What it found: the figures, and "bytes" and a list for each column. A new dict, or NULL with an exception set. */
PyObject *probe_dict(const struct probe *probe, const union found *found);

/* Both. */
PyObject *probe_run(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe);

/* Adds figures of `from`, or a value, which it takes and which may be NULL. Both take the dict and return it: NULL with
 * it released and an exception set where that fails, and where it is NULL. */
PyObject *probe_add_figures(PyObject *dict, const struct figure *figures, const void *from);
PyObject *probe_add(PyObject *dict, const char *name, PyObject *value);

#endif
