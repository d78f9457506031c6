#include "gpu/events.h"

cudaError_t
event_take(struct device_state *state, cudaEvent_t *event)
{
    for (int i = 0; i < SPARE_EVENTS; i++) {
        *event = atomic_load_explicit(&state->spare[i], memory_order_relaxed);
        if (*event && (*event = atomic_exchange(&state->spare[i], NULL)))
            return cudaSuccess;
    }
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

void
event_give(struct device_state *state, cudaEvent_t event)
{
    for (int i = 0; i < SPARE_EVENTS; i++) {
        cudaEvent_t none = NULL;
        if (atomic_compare_exchange_strong(&state->spare[i], &none, event))
            return;
    }
    if (cudaEventDestroy(event) != cudaSuccess)
        cudaGetLastError();
}
