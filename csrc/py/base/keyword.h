/* The keywords of vecadd's additions. */
#ifndef VECADD_PY_BASE_KEYWORD_H
#define VECADD_PY_BASE_KEYWORD_H

#include "py/base/python.h"

/* Which of "out", "device" and "stream" a call's keyword is; NAME_COUNT for any other. */
enum name keyword_name(const struct module_state *state, PyObject *keyword);

#endif
