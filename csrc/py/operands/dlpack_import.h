/* The consumer's half of DLPack's Python protocol: https://dmlc.github.io/dlpack/latest/python_spec.html. */
#ifndef VECADD_PY_OPERANDS_DLPACK_IMPORT_H
#define VECADD_PY_OPERANDS_DLPACK_IMPORT_H

#include "py/base/python.h"
#include "py/operands/dlpack.h"

struct dlpack_import {
    const struct dl_tensor *tensor; /* lives as long as owner */
    bool writable;                  /* the producer does not say that it is read-only */
    PyObject *owner;                /* a capsule; its destructor calls the tensor's deleter, once */
};

/* Asks where the object's memory is: 1, 0 where the object has no __dlpack_device__, or -1 with an exception set. */
int dlpack_device_of(struct module_state *state, PyObject *object, const char *what, struct dl_device *device);

/* Takes what object.__dlpack__(stream=...) gives, without a copy, into *import. `stream` is a handle of which NULL is
 * the legacy default stream: its later work comes after what the producer has queued. has_stream false: None is passed
 * on, for memory of the host. Returns 0, or -1 with an exception set, the deleter called if there was one. */
int dlpack_import(struct module_state *state, PyObject *object, const char *what, bool has_stream, void *stream,
                  struct dlpack_import *import);

#endif
