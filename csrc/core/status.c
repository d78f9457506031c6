#include "status.h"

#include <stdarg.h>
#include <stdio.h>

int
status_set(struct status *status, enum status_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status->code = code;
    status->cuda = 0;
    vsnprintf(status->text, sizeof status->text, format, arguments);
    va_end(arguments);
    return -1;
}
