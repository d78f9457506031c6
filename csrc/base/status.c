#include "base/status.h"

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

int
status_no_cuda(struct status *status)
{
    return status_set(status, STATUS_NO_CUDA_BUILD,
                      "this vecadd was built with VECADD_CUDA=0, for the host only: to use GPUs, run "
                      "pip install --force-reinstall --no-deps . in its sources without that variable");
}
