/* This folder in a build without CUDA: its functions report that CUDA is missing, or do nothing. */
#include "lab/ladder/clock.h"
#include "lab/ladder/facts.h"
#include "lab/ladder/raw_launch.h"
#include "lab/ladder/timeline.h"
#include "lab/ladder/trial.h"

/* The headers name the parameters; these functions read none. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

const struct rung *const device_rungs[] = {NULL};
const struct rung *const precision_rungs[] = {NULL};
const struct rung *const transfer_rungs[] = {NULL};
const struct rung *const latency_rungs[] = {NULL};
const struct rung *const transpose_rungs[] = {NULL};
const struct rung *const sgemm_rungs[] = {NULL};
const char *const timeline_what_name[TIMELINE_WHATS] = {NULL};

int
raw_launches(const struct plan *plan, enum raw_launch_way way, int calls, double *seconds, struct status *status)
{
    return status_no_cuda(status);
}

int
rung_time_on_device(const struct rung *rung, const struct rung_call *call, double *seconds, struct status *status)
{
    return status_no_cuda(status);
}

int
rung_check_capability(const struct rung *rung, int device, struct status *status)
{
    return status_no_cuda(status);
}

int
trial_begin(struct trial *trial, struct status *status)
{
    return status_no_cuda(status);
}

int
trial_end(struct trial *trial, struct trial_result *result, struct status *status)
{
    return status_no_cuda(status);
}

void
trial_close(struct trial *trial)
{
}

int
rung_facts(const struct rung *rung, const struct rung_call *call, struct rung_facts *facts, struct status *status)
{
    return status_no_cuda(status);
}

struct timeline *
timeline_new(void)
{
    return NULL;
}

void
timeline_free(struct timeline *timeline)
{
}

size_t
timeline_entries(const struct timeline *timeline, const struct timeline_entry **entries)
{
    return 0;
}
