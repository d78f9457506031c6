#include "gpu/device.h"

#include <ctype.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/runtime.h"
#include "cuda/kernels.h"
#include "gpu/state.h"

enum cudaStreamCaptureMode
capture_mode_relax(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
        return mode;
    cudaGetLastError();
    return cudaStreamCaptureModeRelaxed; /* the mode is unchanged: nothing to restore */
}

void
capture_mode_restore(enum cudaStreamCaptureMode before)
{
    for (int attempt = 0; attempt < 2 && before != cudaStreamCaptureModeRelaxed; attempt++) {
        enum cudaStreamCaptureMode mode = before;
        if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
            return;
        cudaGetLastError(); /* the failure may be temporary: try again, to leave the caller in its own mode */
    }
}

bool
capture_is_why(cudaError_t error)
{
    return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

/* Functions of the driver that have no counterpart in the runtime. */
struct driver {
    CUresult (*attributes)(unsigned count, CUpointer_attribute *names, void **values, CUdeviceptr pointer);
    CUresult (*get_current)(CUcontext *);
    CUresult (*set_current)(CUcontext);
    CUresult (*retain)(CUcontext *, CUdevice);
};

struct device_table {
    int count;
    struct driver driver;
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
driver_function(const char *name, unsigned version, void **function, struct status *status)
{
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, function, version, cudaEnableDefault, &found);
    if (error == cudaSuccess && found != cudaDriverEntryPointSuccess)
        error = cudaErrorSymbolNotFound;
    return cuda_result(status, error, "cudaGetDriverEntryPointByVersion");
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

    struct driver driver;
    if (driver_function("cuPointerGetAttributes", 7000, (void **)&driver.attributes, status) < 0 ||
        driver_function("cuCtxGetCurrent", 4000, (void **)&driver.get_current, status) < 0 ||
        driver_function("cuCtxSetCurrent", 4000, (void **)&driver.set_current, status) < 0 ||
        driver_function("cuDevicePrimaryCtxRetain", 7000, (void **)&driver.retain, status) < 0)
        return -1;

    struct device_table *table = calloc(1, sizeof *table + (size_t)count * sizeof *table->state);
    if (!table)
        return status_set(status, STATUS_MEMORY, "there is no memory for the table of %d GPUs", count);
    table->count = count;
    table->driver = driver;
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
    atomic_store(&runtime.cuda_started, true); /* before the lock: no forked child finds it locked and CUDA unmarked */
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
    return CUDA_CALL(status, cudaGetDevice, device);
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

static int
read_properties(int device, struct cudaDeviceProp *properties, struct status *status)
{
    return cuda_result(status, cudaGetDeviceProperties(properties, device), "cudaGetDeviceProperties");
}

int
device_facts(int device, struct device_facts *facts, struct status *status)
{
    if (device_check_ordinal(device, status) < 0)
        return -1;
    struct cudaDeviceProp properties;
    if (read_properties(device, &properties, status) < 0)
        return -1;

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
    device_key(&properties, facts->key);
    if (CUDA_CALL(status, cudaDeviceGetAttribute, &facts->memory_clock_khz, cudaDevAttrMemoryClockRate, device) < 0)
        return -1;
    return CUDA_CALL(status, cudaDeviceGetAttribute, &facts->clock_khz, cudaDevAttrClockRate, device);
}

/* A primary context, made here if it does not exist yet. Others work in it too, so it is never released. */
static int
context_find(struct device_table *table, int device, CUcontext *context, struct status *status)
{
    struct device_state *state = &table->state[device];
    *context = atomic_load_explicit(&state->context, memory_order_acquire);
    if (*context)
        return 0;
    if (cuda_result(status, table->driver.retain(context, device), "cuDevicePrimaryCtxRetain") < 0)
        return -1;
    atomic_store_explicit(&state->context, *context, memory_order_release);
    return 0;
}

/* Makes the device's primary context the thread's current one. After a failure there is nothing to undo. */
static int
context_enter(struct device_table *table, int device, struct device_before *before, struct status *status)
{
    CUcontext context, current;
    before->changed = false;
    if (context_find(table, device, &context, status) < 0)
        return -1;
    if (cuda_result(status, table->driver.get_current(&current), "cuCtxGetCurrent") < 0)
        return -1;
    if (current == context)
        return 0;
    const CUresult error = table->driver.set_current(context);
    if (error != CUDA_SUCCESS) {
        table->driver.set_current(current); /* a call that fails may have changed what is current */
        return device_status(status, (int)error, "cuCtxSetCurrent");
    }
    *before = (struct device_before){true, current};
    return 0;
}

void
device_make_current_again(const struct device_before *before)
{
    if (!before->changed)
        return;
    const struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    if (table->driver.set_current(before->context) != CUDA_SUCCESS)
        table->driver.set_current(before->context); /* may fail for a moment: the caller must get its device back */
}

/* The pool keeps up to an eighth of the device's memory mapped when it is free: mapping 1 GiB again costs 0.4 ms, and
 * unmapping it slows the device by 11 % for 2.7 ms. Virtual GPUs may have no pools: *pool is NULL then. */
static int
pool_make(cudaMemPool_t *pool, int device, struct status *status)
{
    size_t free_bytes, bytes;
    int supported;
    *pool = NULL;
    if (CUDA_CALL(status, cudaDeviceGetAttribute, &supported, cudaDevAttrMemoryPoolsSupported, device) < 0)
        return -1;
    if (!supported)
        return 0;
    if (CUDA_CALL(status, cudaMemGetInfo, &free_bytes, &bytes) < 0)
        return -1;

    const struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = cudaMemHandleTypeNone,
        .location = {.type = cudaMemLocationTypeDevice, .id = device},
    };
    if (CUDA_CALL(status, cudaMemPoolCreate, pool, &properties) < 0)
        return -1;

    uint64_t threshold = bytes / 8;
    const cudaError_t error = cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    if (error == cudaSuccess)
        return 0;
    device_ignore(cudaMemPoolDestroy(*pool));
    return device_status(status, error, "cudaMemPoolSetAttribute");
}

/* Lets other GPUs use the pool's memory where they can reach it, as they can use other libraries' memory. One request a
 * GPU: the driver refuses a request as a whole. What fails leaves that GPU without access. */
static void
pool_share(cudaMemPool_t pool, int device, int count)
{
    for (int peer = 0; pool && peer < count; peer++) {
        const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = peer},
                                                 .flags = cudaMemAccessFlagsProtReadWrite};
        int possible = 0;
        if (peer == device)
            continue;
        cudaError_t error = cudaDeviceCanAccessPeer(&possible, peer, device);
        if (error == cudaSuccess && possible)
            error = cudaMemPoolSetAccess(pool, &access, 1);
        device_ignore(error);
    }
}

static struct launch_configs
shipped_for(const struct cudaDeviceProp *properties)
{
    return launch_configs_shipped(10 * properties->major + properties->minor, (size_t)properties->l2CacheSize);
}

/* The launch configs tuned on the device if any, else the build's. Reads a file. */
static int
kernels_find(struct device_state *state, int device, struct status *status)
{
    struct cudaDeviceProp properties;
    char key[DEVICE_KEY];
    if (read_properties(device, &properties, status) < 0)
        return -1;
    state->programmatic = properties.major >= 9;
    state->launch_configs = shipped_for(&properties);
    device_key(&properties, key);
    launch_configs_read_tuned(&state->launch_configs, key);
    return 0;
}

static device_hook *first_use;

void
device_on_first_use(device_hook *hook)
{
    first_use = hook;
}

/* What lives as long as the process is made in the primary context: it would end with another one. */
static int
state_make(struct device_table *table, int device, struct status *status)
{
    struct device_state *state = &table->state[device];
    struct device_before before;
    int result = -1;
    if (context_enter(table, device, &before, status) < 0)
        return -1;
    pthread_mutex_lock(&state->lock);
    const enum cudaStreamCaptureMode mode = capture_mode_relax();
    if (atomic_load(&state->ready)) {
        result = 0;
        goto done;
    }
    if (kernels_find(state, device, status) < 0 || pool_make(&state->pool, device, status) < 0)
        goto done;
    cudaError_t error = add_load();
    if (error == cudaSuccess)
        error = batch_load();
    if (error == cudaSuccess)
        error = strided_load();
    if (error != cudaSuccess) {
        device_status(status, error, "cudaFuncGetAttributes");
        if (state->pool)
            device_ignore(cudaMemPoolDestroy(state->pool));
        goto done;
    }
    pool_share(state->pool, device, table->count);
    if (first_use)
        first_use(device);
    atomic_store(&state->ready, true);
    result = 0;
done:
    capture_mode_restore(mode);
    pthread_mutex_unlock(&state->lock);
    device_make_current_again(&before);
    return result;
}

enum purpose { TO_ASK, TO_WORK, TO_KEEP }; /* device_enter_to_ask, device_enter, device_enter_primary */

static int
enter(struct device_scope *scope, int device, enum purpose purpose, struct status *status)
{
    struct device_table *table = table_get(status);
    int current = 0; /* a lone device is always current: asking takes 20 to 34 ns */
    if (!table)
        return -1;
    if (table->count > 1 && CUDA_CALL(status, cudaGetDevice, &current) < 0)
        return -1;
    *scope = (struct device_scope){.device = device == -1 ? current : device};
    if (check_ordinal(table, scope->device, status) < 0)
        return -1;
    scope->state = &table->state[scope->device];
    if (purpose != TO_ASK && !atomic_load_explicit(&scope->state->ready, memory_order_acquire) &&
        state_make(table, scope->device, status) < 0)
        return -1;
    if (scope->device == current && purpose != TO_KEEP)
        return 0;
    return context_enter(table, scope->device, &scope->before, status);
}

int
device_enter(struct device_scope *scope, int device, struct status *status)
{
    return enter(scope, device, TO_WORK, status);
}

int
device_enter_to_ask(struct device_scope *scope, int device, struct status *status)
{
    return enter(scope, device, TO_ASK, status);
}

static int
enter_relaxed(struct device_scope *scope, int device, enum purpose purpose, struct status *status)
{
    if (enter(scope, device, purpose, status) < 0)
        return -1;
    scope->relaxed = true;
    scope->mode = capture_mode_relax();
    return 0;
}

int
device_enter_relaxed(struct device_scope *scope, int device, struct status *status)
{
    return enter_relaxed(scope, device, TO_WORK, status);
}

int
device_enter_primary(struct device_scope *scope, int device, struct status *status)
{
    return enter_relaxed(scope, device, TO_KEEP, status);
}

int
device_enter_any(struct device_scope *scope, struct status *status)
{
    struct device_table *table = table_get(status);
    CUcontext current;
    int device = -1;
    if (!table)
        return -1;
    if (cuda_result(status, table->driver.get_current(&current), "cuCtxGetCurrent") < 0)
        return -1;
    for (int i = table->count; !current && i-- > 0;)
        if (atomic_load(&table->state[i].ready))
            device = i;
    return device_enter_primary(scope, device, status);
}

bool
device_is_in_primary(const struct device_scope *scope)
{
    const struct device_table *table = atomic_load_explicit(&runtime.devices, memory_order_acquire);
    CUcontext current;
    return table->driver.get_current(&current) == CUDA_SUCCESS && current == atomic_load(&scope->state->context);
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
    device_make_current_again(&scope->before);
}

int
device_make_current(int device, struct device_before *before, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    *before = scope.before;
    return 0;
}

int
device_find_memory(uintptr_t at, struct known_memory *found, struct status *status)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&found->type, &found->device, &found->begin, &found->bytes};
    const struct device_table *table = table_get(status);
    *found = (struct known_memory){.device = -1};
    if (!table)
        return -1;
    return cuda_result(status, table->driver.attributes(sizeof names / sizeof *names, names, values, at),
                       "cuPointerGetAttributes");
}

int
device_launch_configs(int device, struct device_launch_configs *launch_configs, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    launch_configs->used = scope.state->launch_configs;
    device_leave(&scope);
    struct cudaDeviceProp properties;
    if (read_properties(device, &properties, status) < 0)
        return -1;
    launch_configs->shipped = shipped_for(&properties);
    device_key(&properties, launch_configs->key);
    return 0;
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

bool
device_knows_pointer(const void *pointer)
{
    struct status ignored;
    struct known_memory found;
    return device_find_memory((uintptr_t)pointer, &found, &ignored) == 0 && found.type != 0;
}

int
device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known, int *device,
                          struct status *status)
{
    if (device_range_contains(known, (uintptr_t)pointer, bytes)) {
        *device = known->device;
        return 0;
    }
    if (!table_get(status))
        return -1;
    if (!pointer)
        return status_set(status, STATUS_VALUE, "%s: the pointer is null, for %zu bytes", what, bytes);
    const uintptr_t begin = (uintptr_t)pointer;
    if (bytes > UINTPTR_MAX - begin)
        return status_set(status, STATUS_VALUE, "%s: %zu bytes from %p pass the end of the address space", what, bytes,
                          pointer);

    for (uintptr_t at = begin; at - begin < bytes;) {
        struct known_memory range;
        if (device_find_memory(at, &range, status) < 0)
            return -1;
        bool is_known = range.type != 0 && at - range.begin < range.bytes;
        if (!is_known && at == begin)
            return status_set(status, STATUS_VALUE,
                              "%s: %p is not memory that CUDA knows: it is ordinary host memory or has been freed",
                              what, pointer);
        if (!is_known || (at != begin && range.device != *device))
            return status_set(status, STATUS_VALUE,
                              "%s: %zu bytes from %p do not fit: its allocation ends after %zu bytes", what, bytes,
                              pointer, (size_t)(at - begin));
        if (at == begin)
            known->begin = range.begin;
        known->device = *device = range.device;
        known->end = at = range.begin + range.bytes;
    }
    return 0;
}

enum { MOST_LANES = 32 };

/* The number that a file begins with, in tenths; 0 for anything else. */
static unsigned
tenths_in(const char *folder, const char *name)
{
    char path[128];
    unsigned whole = 0, tenths = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%4u.%1u", &whole, &tenths) < 1)
        whole = 0;
    fclose(file);
    return 10 * whole + tenths;
}

/* The files say "32.0 GT/s PCIe" and "16", and for what is not known "Unknown" and "255". Of both there is a current
 * number too, but an idle GPU has its link run slower. From 8 GT/s on 128 of 130 bits are data, below 8 of 10. */
double
link_rate_of(const char *folder)
{
    const double transfers = 1e8 * tenths_in(folder, "max_link_speed");
    const unsigned lanes = tenths_in(folder, "max_link_width") / 10;
    const double data = transfers >= 8e9 ? 128.0 / 130 : 8.0 / 10;
    return lanes <= MOST_LANES ? transfers * data / 8 * lanes : 0;
}

double
device_link_rate(int device)
{
    char folder[64] = "/sys/bus/pci/devices/";
    const size_t length = sizeof "/sys/bus/pci/devices/" - 1;
    const cudaError_t error = cudaDeviceGetPCIBusId(folder + length, (int)(sizeof folder - length), device);
    if (error != cudaSuccess) {
        device_ignore(error);
        return 0;
    }
    for (char *at = folder + length; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return link_rate_of(folder);
}
