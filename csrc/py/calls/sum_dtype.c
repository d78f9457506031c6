#include "py/calls/sum_dtype.h"

#include "py/operands/interop.h"

/* The sum's dtype by the rules of the operands' library, if all arrays are that library's: 1, 0 or -1. */
static int
library_dtype(const struct add_arguments *arguments, const struct prepared_call *call, enum dtype *dtype)
{
    PyObject *library = NULL;
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        if (!call->held[role])
            continue;
        if (!call->operands[role].library || (library && library != call->operands[role].library))
            return 0;
        library = call->operands[role].library;
    }
    PyObject *name = interop_result_dtype(library, arguments->objects[ROLE_A], arguments->objects[ROLE_B]);
    if (!name || Py_IsNone(name)) {
        Py_XDECREF(name);
        return name ? 0 : -1;
    }
    int found = -1;
    for (int i = 0; i < DTYPE_COUNT && found < 0; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, dtype_table[i].name) == 0) {
            *dtype = (enum dtype)i;
            found = 1;
        }
    if (found < 0)
        dtype_refuse("the sum", name);
    Py_DECREF(name);
    return found;
}

int
find_sum_dtype(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call,
               struct scalar numbers[ROLE_OUT])
{
    enum dtype dtypes[ROLE_OUT];
    enum weakness weak[ROLE_OUT] = {NOT_WEAK, NOT_WEAK};
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        dtypes[role] = call->operands[role].operand.dtype;
        if (call->held[role])
            continue;
        if (scalar_from(state, arguments->objects[role], (enum role)role, &numbers[role]) < 0)
            return -1;
        dtypes[role] = numbers[role].dtype;
        weak[role] = numbers[role].weak;
    }
    int found = library_dtype(arguments, call, &call->sum.dtype);
    if (found < 0)
        return -1;
    if (!found) {
        int sum = promoted_dtype(state, dtypes[ROLE_A], weak[ROLE_A], dtypes[ROLE_B], weak[ROLE_B]);
        if (sum < 0)
            return -1;
        call->sum.dtype = (enum dtype)sum;
    }
    const bool numbers_there = !call->held[ROLE_A] || !call->held[ROLE_B];
    const int as_torch =
        found && numbers_there ? interop_says(call->operands[call->sum.like].library, "numbers_as_torch") : 0;
    if (as_torch < 0)
        return -1;
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        if (call->held[role])
            continue;
        if ((as_torch ? scalar_as_torch : scalar_settle)(arguments->objects[role], call->sum.dtype, &numbers[role]) < 0)
            return -1;
        call->operands[role].operand = (struct operand){
            .data = numbers[role].value, .size = 1, .dtype = numbers[role].dtype, .place = PLACE_NUMBER, .device = -1};
    }
    return call->held[ROLE_OUT] ? check_cast(state, call->sum.dtype, call->operands[ROLE_OUT].operand.dtype) : 0;
}
