#include "gpu/device.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/runtime.h"
#include "cuda/batch_kernel.h"
#include "cuda/kernels.h"
#include "gpu/capture_mode.h"
#include "gpu/events.h"
#include "gpu/state.h"
#include "gpu/tuned_configs.h"

struct device_table {
    int count;
    device_pointer_attributes *attributes;
    struct device_state state[];
};

static int
refuse_unusable(struct status *status)
{
    if (atomic_load(&runtime.forked_after_cuda))
        return status_set(status, STATUS_FORKED,
                          "CUDA was used before this process was forked and cannot be used in it: use "
                          "multiprocessing's 'spawn' start method");
    return status_set(status, STATUS_CUDA, "CUDA cannot be used any more: the process is exiting");
}

static int
table_make(struct device_table **made, struct status *status)
{
    int count;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0)
        error = cudaErrorNoDevice;
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDeviceCount");

    void *attributes;
    enum cudaDriverEntryPointQueryResult found;
    error = cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &attributes, 7000, cudaEnableDefault, &found);
    if (error == cudaSuccess && found != cudaDriverEntryPointSuccess)
        error = cudaErrorSymbolNotFound;
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDriverEntryPointByVersion");

    struct device_table *table = calloc(1, sizeof *table + (size_t)count * sizeof *table->state);
    if (!table)
        return status_set(status, STATUS_MEMORY, "there is no memory for the table of %d GPUs", count);
    table->count = count;
    table->attributes = (device_pointer_attributes *)attributes;
    for (int i = 0; i < count; i++)
        pthread_mutex_init(&table->state[i].lock, NULL);
    *made = table;
    return 0;
}

/* The table, made on first use, or NULL with *status set. Initialises the driver and makes no context. */
static struct device_table *
table_get(struct status *status)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

    if (!runtime_cuda_usable()) {
        refuse_unusable(status);
        return NULL;
    }
    struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    if (table)
        return table;

    runtime_start();
    atomic_store(&runtime.cuda_started, true); /* before the lock: no forked child finds it held and CUDA unmarked */
    pthread_mutex_lock(&making);
    table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    if (!table && table_make(&table, status) == 0)
        atomic_store_explicit(&runtime.devices, table, memory_order_release);
    pthread_mutex_unlock(&making);
    return table;
}

int
device_count(int *count, struct status *status)
{
    struct device_table *table = table_get(status);
    if (!table)
        return -1;
    *count = table->count;
    return 0;
}

int
device_current(int *device, struct status *status)
{
    if (!table_get(status))
        return -1;
    cudaError_t error = cudaGetDevice(device);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaGetDevice");
}

static int
check_ordinal(const struct device_table *table, int device, struct status *status)
{
    if (device >= 0 && device < table->count)
        return 0;
    return status_set(status, STATUS_VALUE, "there is no device %d: this process sees %d GPU%s, counted from 0", device,
                      table->count, table->count == 1 ? "" : "s");
}

int
device_check_ordinal(int device, struct status *status)
{
    struct device_table *table = table_get(status);
    return table ? check_ordinal(table, device, status) : -1;
}

int
device_facts(int device, struct device_facts *facts, struct status *status)
{
    if (device_check_ordinal(device, status) < 0)
        return -1;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDeviceProperties");

    *facts = (struct device_facts){
        .cc_major = properties.major,
        .cc_minor = properties.minor,
        .multiprocessors = properties.multiProcessorCount,
        .threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor,
        .memory = properties.totalGlobalMem,
        .l2 = (size_t)properties.l2CacheSize,
        .memory_bus_bits = properties.memoryBusWidth,
        .blocks_per_multiprocessor = properties.maxBlocksPerMultiProcessor,
        .registers_per_multiprocessor = properties.regsPerMultiprocessor,
        .shared_per_multiprocessor = properties.sharedMemPerMultiprocessor,
        .shared_reserved = properties.reservedSharedMemPerBlock,
        .pci_domain = properties.pciDomainID,
        .pci_bus = properties.pciBusID,
        .pci_device = properties.pciDeviceID,
    };
    _Static_assert(sizeof facts->name == sizeof properties.name, "a device's name fits");
    memcpy(facts->name, properties.name, sizeof facts->name);
    if (device_key(device, facts->key, status) < 0)
        return -1;
    error = cudaDeviceGetAttribute(&facts->memory_clock_khz, cudaDevAttrMemoryClockRate, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&facts->clock_khz, cudaDevAttrClockRate, device);
    return error == cudaSuccess ? 0 : device_status(status, error, "cudaDeviceGetAttribute");
}

/* The pool keeps up to an eighth of the device's memory mapped when it is free: mapping 1 GiB again costs 0.4 ms, and
 * unmapping it slows the device by 11 % for 2.7 ms. */
static int
pool_make(cudaMemPool_t *pool, int device, struct status *status)
{
    size_t free_bytes, bytes;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &bytes);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemGetInfo");

    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = cudaMemHandleTypeNone,
        .location = {.type = cudaMemLocationTypeDevice, .id = device},
    };
    error = cudaMemPoolCreate(pool, &properties);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemPoolCreate");

    uint64_t threshold = bytes / 8;
    error = cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    if (error == cudaSuccess)
        return 0;
    device_ignore(cudaMemPoolDestroy(*pool));
    return device_status(status, error, "cudaMemPoolSetAttribute");
}

static int
kernels_find(struct device_state *state, int device, struct status *status)
{
    int major = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    state->programmatic = major >= 9;
    return launch_configs_find(&state->launch_configs, device, status);
}

static device_hook *first_use;

void
device_on_first_use(device_hook *hook)
{
    first_use = hook;
}

static int
state_make(struct device_state *state, int device, struct status *status)
{
    int result = -1;
    pthread_mutex_lock(&state->lock);
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    if (atomic_load(&state->ready)) {
        result = 0;
        goto done;
    }
    if (kernels_find(state, device, status) < 0 || pool_make(&state->pool, device, status) < 0)
        goto done;
    cudaEvent_t event;
    cudaError_t error = event_take(state, &event);
    if (error != cudaSuccess) {
        device_status(status, error, "cudaEventCreateWithFlags");
        device_ignore(cudaMemPoolDestroy(state->pool));
        goto done;
    }
    error = add_load();
    if (error == cudaSuccess)
        error = batch_load();
    if (error == cudaSuccess)
        error = strided_load();
    if (error != cudaSuccess) {
        device_status(status, error, "cudaFuncGetAttributes");
        device_ignore(cudaEventDestroy(event));
        device_ignore(cudaMemPoolDestroy(state->pool));
        goto done;
    }
    event_give(state, event);
    if (first_use)
        first_use(device);
    atomic_store(&state->ready, true);
    result = 0;
done:
    capture_mode_restore(before);
    pthread_mutex_unlock(&state->lock);
    return result;
}

int
device_enter(struct device_scope *scope, int device, struct status *status)
{
    struct device_table *table = table_get(status);
    if (!table)
        return -1;
    scope->relaxed = false;
    scope->previous = 0; /* a lone device is always current: asking takes 20 to 34 ns */
    cudaError_t error = table->count == 1 ? cudaSuccess : cudaGetDevice(&scope->previous);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDevice");
    scope->device = device == -1 ? scope->previous : device;
    if (check_ordinal(table, scope->device, status) < 0)
        return -1;
    scope->state = &table->state[scope->device];

    if (scope->device != scope->previous) {
        error = cudaSetDevice(scope->device);
        if (error != cudaSuccess) {
            device_status(status, error, "cudaSetDevice");
            device_ignore(cudaSetDevice(scope->previous));
            return -1;
        }
    }
    if (atomic_load_explicit(&scope->state->ready, memory_order_acquire))
        return 0;
    if (state_make(scope->state, scope->device, status) == 0)
        return 0;
    device_leave(scope);
    return -1;
}

int
device_start(int device, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    device_leave(&scope);
    return 0;
}

bool
device_is_started(int device)
{
    struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    if (!table)
        return false;
    return device < 0 || device >= table->count || atomic_load(&table->state[device].ready);
}

int
device_count_if_known(void)
{
    const struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    return table ? table->count : 0;
}

const struct device_state *
device_state_if_started(int device)
{
    const struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    const bool exists = table && device >= 0 && device < table->count;
    return exists && atomic_load(&table->state[device].ready) ? &table->state[device] : NULL;
}

bool
device_enter_to_release(struct device_scope *scope, int device)
{
    struct status ignored;
    return device_enter(scope, device, &ignored) == 0 || device_enter(scope, device, &ignored) == 0;
}

void
device_leave(const struct device_scope *scope)
{
    if (scope->relaxed)
        capture_mode_restore(scope->mode);
    if (scope->device != scope->previous && cudaSetDevice(scope->previous) != cudaSuccess) {
        cudaSetDevice(scope->previous); /* may fail for a moment: the caller must get its device back */
        cudaGetLastError();
    }
}

int
device_enter_relaxed(struct device_scope *scope, int device, struct status *status)
{
    if (device_enter(scope, device, status) < 0)
        return -1;
    scope->relaxed = true;
    scope->mode = capture_mode_relax();
    return 0;
}

int
device_make_current(int device, int *previous, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    *previous = scope.previous;
    return 0;
}

void
device_make_current_again(int previous, int device)
{
    device_leave(&(struct device_scope){.device = device, .previous = previous});
}

device_pointer_attributes *
device_attributes_of_pointers(struct status *status)
{
    const struct device_table *table = table_get(status);
    return table ? table->attributes : NULL;
}

void
device_pools_trim(void)
{
    struct device_table *table = runtime_cuda_usable() ? atomic_load(&runtime.devices) : NULL;
    if (!table)
        return;
    const enum cudaStreamCaptureMode before = capture_mode_relax();
    for (int i = 0; i < table->count; i++)
        if (atomic_load(&table->state[i].ready))
            device_ignore(cudaMemPoolTrimTo(table->state[i].pool, 0));
    capture_mode_restore(before);
}

int
device_launch_configs(int device, struct device_launch_configs *launch_configs, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    launch_configs->used = scope.state->launch_configs;
    device_leave(&scope);
    if (launch_configs_of_build(&launch_configs->shipped, device, status) < 0)
        return -1;
    return device_key(device, launch_configs->key, status);
}

int
launch_config_choose_on_current_device(struct add_call *call)
{
    struct device_scope scope;
    struct status status = {0};
    if (device_enter(&scope, -1, &status) < 0)
        return status.cuda ? status.cuda : cudaErrorUnknown;
    launch_config_choose(&scope.state->launch_configs, call);
    device_leave(&scope);
    return cudaSuccess;
}
