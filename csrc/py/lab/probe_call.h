/* A probe of csrc/lab/limits/ as a function of the module: its arguments, its run without the GIL, and its results as a
 * dict. */
#ifndef VECADD_PY_LAB_PROBE_CALL_H
#define VECADD_PY_LAB_PROBE_CALL_H

#include <stddef.h>

#include "lab/base/probes.h"
#include "py/base/python.h"

/* A probe's arguments; 1 for those that it does not take. */
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
    struct loaded_latency loaded[LIMITS_LOADED];
    struct launch_limits launch;
};

/* A double of a struct, and its name in Python. An array of figures ends with {0}. */
struct figure {
    const char *name;
    size_t offset;
};

struct probe {
    const char *format; /* "i:NAME" for the device alone, "ini:NAME" with nbytes and rounds */
    int (*measure)(const struct request *request, union found *found, struct status *status);
    const struct figure *figures; /* of `found`; NULL: none */

    /* Figures of an array of `count` elements in `found`, given as a list each; NULL: none. Each element begins with
     * its bytes. */
    const struct figure *columns;
    size_t array, stride;
    int count;
};

/* Runs the probe. Returns 0, or -1 with an exception set. */
int probe_measure(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe,
                  union found *found);

/* The results: the figures, and "bytes" and a list for each column. A new dict, or NULL with an exception set. */
PyObject *probe_dict(const struct probe *probe, const union found *found);

/* probe_measure, then probe_dict. */
PyObject *probe_run(PyObject *module, PyObject *arguments, PyObject *keywords, const struct probe *probe);

/* Adds figures of `from` to the dict, and returns it. On failure releases it and returns NULL with an exception set; a
 * dict of NULL stays NULL. */
PyObject *probe_add_figures(PyObject *dict, const struct figure *figures, const void *from);

#endif
