/* From Python's arguments to a rung's call: shared by run_rung and the other functions that run one rung. */
#ifndef VECADD_PY_LAB_RUNG_ARGUMENTS_H
#define VECADD_PY_LAB_RUNG_ARGUMENTS_H

#include "base/status.h"
#include "lab/base/rung.h"
#include "py/operands/operands.h"

/* "host", "device", ...: the names of enum rung_kind. */
extern const char *const rung_kind_name[];

struct rung_arguments {
    const struct rung *rung;
    struct operand operands[ROLE_COUNT]; /* borrow the objects' memory */
    struct rung_call call;
};

/* The call of the rung `name` on (a, b, out) with a block (0: its own) and params, a dict or NULL; b is None where the
 * rung has one operand. Returns 0, or -1 with the exception that run_rung documents. Makes no CUDA call, and
 * leaves nothing to release. */
int rung_arguments_from(struct module_state *state, const char *name, PyObject *const objects[ROLE_COUNT], int block,
                        PyObject *params, struct rung_arguments *given);

/* Whether the rung takes arrays of that dtype: matrix rungs take no complex numbers. */
bool rung_takes(const struct rung *rung, enum dtype dtype);

/* Whether the rung takes DeviceArrays; the others take NumPy arrays. */
bool rung_takes_device_arrays(const struct rung *rung);

/* For a rung that takes DeviceArrays: makes out's stream wait for what the streams of a and b have queued. The rung
 * waits for out's stream, so its caller need not. Returns 0, or -1 with *status set; call it without the GIL. */
int rung_arguments_join(const struct rung_arguments *given, struct status *status);

/* The parts of rung_arguments_from: the rung, or NULL with a ValueError; a block and params, put into *call. */
const struct rung *rung_from_name(const char *name);
int rung_choices_from(const struct rung *rung, int block, PyObject *params, struct rung_call *call);

/* A contiguous ndarray or a DeviceArray as an operand; anything else is a TypeError. */
int rung_operand(struct module_state *state, PyObject *object, const char *what, struct operand *operand);

/* The extents of a matrix rung's call from a tuple of whole numbers. Returns 0, or -1 with an exception. */
int matrix_shape_from(const struct rung *rung, PyObject *shape, struct rung_call *call);

#endif
