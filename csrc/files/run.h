/* Reads two files, adds them and writes a third: stretch by stretch, on several threads, in bounded memory. */
#ifndef VECADD_FILES_RUN_H
#define VECADD_FILES_RUN_H

#include "files/description.h"

/* What came of a run. */
struct files_outcome {
    int error;    /* 0, an errno, or FILES_ENDED and below */
    enum way way; /* the quicker way of two; WAY_COUNT if they were not compared */
};

/* Adds, in `memory`. No thread of it works any more when it returns. */
void files_run(const struct files_run *run, char *memory, struct files_outcome *outcome);

#endif
