/* What a program leaves out under compute-sanitizer: make gpu STAGE=sanitize sets the variable. */
#ifndef VECADD_SANITIZER_H
#define VECADD_SANITIZER_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool
under_sanitizer(void)
{
    return getenv("VECADD_UNDER_SANITIZER") != NULL;
}

#endif
