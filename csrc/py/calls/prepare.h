/* From a call's arguments to a plan, or to the library that adds instead: all that add does before it allocates or
 * computes. */
#ifndef VECADD_PY_CALLS_PREPARE_H
#define VECADD_PY_CALLS_PREPARE_H

#include <stdbool.h>

#include "base/addition.h"
#include "base/operand.h"
#include "base/plan.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/operands.h"
#include "py/operands/where.h"

/* Whether a plan takes this for a list of arrays. */
static inline bool
is_list_of_arrays(PyObject *object)
{
    return PyList_Check(object) || PyTuple_Check(object);
}

/* What a call with add's arguments is for. */
enum purpose { ADD_ARRAYS, EXPLAIN_ADDITION, PLAN_ADDITION, ADD_LISTS };

struct add_arguments {
    PyObject *objects[ROLE_COUNT]; /* a, b and out, or lists of them; out is NULL where there is none */
    enum device_choice choice;
    int device;             /* for DEVICE_CUDA: the ordinal, or -1 for the thread's current device */
    PyObject *stream;       /* NULL where it is None or not given */
    const char *numpys_own; /* a keyword that only numpy.add understands; NULL: none */
    enum purpose purpose;   /* a Plan keeps no gradient and is not traced */

    /* As passed, for numpy.add. */
    PyObject *const *values;
    Py_ssize_t positional;
    PyObject *keywords; /* a tuple of names, or NULL */
};

/* Parses a call's arguments; `function` names it in messages. All references are borrowed. Returns 0, or -1 with an
 * exception set. */
int add_arguments_parse(const struct module_state *state, const char *function, enum purpose purpose,
                        PyObject *const *values, Py_ssize_t positional, PyObject *keywords,
                        struct add_arguments *arguments);

enum call_kind {
    CALL_PLANNED, /* plan is ready; its c is NULL where there is no out */
    CALL_COPIES, /* plan is ready but for a, b and c: host operands are copied first, in `descr` and addition's shape */
    CALL_HOST_TENSORS, /* host arrays of another library than NumPy: vecadd.interop.host_tensors adds them */
    CALL_LIBRARY,      /* `library` itself adds, and records that it does */
    CALL_NUMPY,        /* numpy.add adds; plan.why is the reason */
};

/* Must not be moved: it points into itself. */
struct prepared_call {
    enum call_kind kind;
    const struct library *library; /* CALL_HOST_TENSORS, CALL_LIBRARY: whose arrays they are */
    struct plan plan;
    struct owned_operand operands[ROLE_COUNT]; /* unset for identical contiguous arrays on the host */
    bool described[ROLE_COUNT];                /* which operands are set, and have to be cleared */
    struct device_shape sum;                   /* the array to make for the sum */
    PyArray_Descr *descr;     /* host memory: a new sum's, owned, with NumPy's choice of long or long long; NULL: a's */
    struct addition addition; /* plan.strided and sum point into it */
    const char *differs; /* host memory: why the operands are not contiguous arrays of one dtype and shape, in a few
                          * words; unset where they are */
};

/* Returns 0, and the caller calls call_clear(); or -1 with an exception set and nothing to clear. */
int call_prepare(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call);

void call_clear(struct prepared_call *call);

/* Raises what numpy.add(a, b, out) would raise before it adds. Returns 0, or -1 with an exception set. */
int check_by_numpy(PyObject *const objects[ROLE_COUNT]);

#endif
