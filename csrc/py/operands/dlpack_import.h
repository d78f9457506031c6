/* The consumer's half of DLPack's Python protocol: https://dmlc.github.io/dlpack/latest/python_spec.html. */
#ifndef VECADD_PY_OPERANDS_DLPACK_IMPORT_H
#define VECADD_PY_OPERANDS_DLPACK_IMPORT_H

#include "py/base/python.h"
#include "py/operands/dlpack.h"

struct dlpack_import {
    const struct dl_tensor *tensor; /* lives as long as owner */
    bool writable;                  /* the producer does not mark it read-only */
    PyObject *owner;                /* a capsule; its destructor calls the tensor's deleter, once */
};

/* The device of the object's memory: 1, 0 where the object has no __dlpack_device__, or -1 with an exception set. */
int dlpack_device_of(struct module_state *state, PyObject *object, const char *what, struct dl_device *device);

/* Imports the tensor of object.__dlpack__(stream=stream), without a copy, into *import. The producer orders its queued
 * work before later work on the stream: a handle, 1 for the legacy default stream, or -1, which asks for no order. None
 * is for memory of the host; of a device it means the legacy default stream. Returns 0, or -1 with an exception set and
 * any deleter called. */
int dlpack_import(struct module_state *state, PyObject *object, const char *what, PyObject *stream,
                  struct dlpack_import *import);

#endif
