#include "py/base/keyword.h"

enum name
keyword_name(const struct module_state *state, PyObject *keyword)
{
    static const enum name ours[] = {NAME_OUT, NAME_DEVICE, NAME_STREAM};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (keyword == state->names[ours[i]])
            return ours[i];
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) /* for names built at run time, which are not interned */
        if (PyUnicode_Compare(keyword, state->names[ours[i]]) == 0)
            return ours[i];
    return NAME_COUNT;
}
