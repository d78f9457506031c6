/* The driver's contexts. A thread has one current, or none: then a call of the runtime's makes the primary context of
 * the thread's device current, and active where it is not: on a GPU that takes hundreds of megabytes. Only questions
 * about devices do not. */
#include "double.h"

#include "machine.h"

#include <cuda.h>

#include <set>

static thread_local int device = 0; /* the runtime's, where no context is current */
static thread_local uintptr_t bound = 0;

uintptr_t
current_context()
{
    return bound;
}

int
current_device()
{
    return bound ? the_machine().contexts.at(bound).device : device;
}

void
make_current(machine &m, int wanted)
{
    bound = m.primary[wanted];
    m.contexts.at(bound).active = true;
}

static bool
asks_about_devices(const std::string &name)
{
    static const auto &names =
        *new std::set<std::string>{"cudaGetDeviceCount",
                                   "cudaGetDevice",
                                   "cudaSetDevice",
                                   "cudaGetDeviceProperties",
                                   "cudaDeviceGetAttribute",
                                   "cudaDeviceCanAccessPeer",
                                   "cudaDeviceGetP2PAttribute",
                                   "cudaDeviceGetPCIBusId",
                                   "cudaGetDriverEntryPointByVersion"}; /* never destroyed: threads may call at exit */
    return names.count(name);
}

void
bind_context(machine &m, const char *name)
{
    if (!bound && !is_driver_call(name) && !asks_about_devices(name))
        make_current(m, device);
}

int
double_current_device(int wanted)
{
    const std::lock_guard<std::mutex> lock(the_machine().mutex);
    const int before = current_device();
    if (wanted != -1)
        make_current(the_machine(), wanted);
    return before;
}

int
double_contexts(int wanted)
{
    const std::lock_guard<std::mutex> lock(the_machine().mutex);
    int active = 0;
    for (const auto &[handle, context] : the_machine().contexts)
        active += context.active && context.device == wanted;
    return active;
}

cudaError_t
cudaGetDevice(int *found)
{
    return cuda_call(__func__, [&](machine &) {
        *found = current_device();
        return cudaSuccess;
    });
}

/* Whether a call that was made to fail has changed what is current all the same: code may rely on neither. */
static bool
has_changed_it()
{
    machine &m = the_machine();
    const std::lock_guard<std::mutex> lock(m.mutex);
    return m.below(2);
}

/* One that fails and has changed the device has left no context. */
cudaError_t
cudaSetDevice(int wanted)
{
    const cudaError_t error = cuda_call(__func__, [&](machine &m) {
        if (wanted < 0 || wanted >= m.devices)
            return cudaErrorInvalidDevice;
        device = wanted;
        make_current(m, wanted);
        return cudaSuccess;
    });
    if (error != cudaSuccess && wanted >= 0 && wanted < the_machine().devices && has_changed_it()) {
        device = wanted;
        bound = 0;
    }
    return error;
}

template <typename Body>
static CUresult
driver_call(const char *name, Body body)
{
    return static_cast<CUresult>(
        cuda_call(name, [&](machine &m) { return static_cast<cudaError_t>(static_cast<CUresult>(body(m))); }));
}

CUresult
cuCtxGetCurrent(CUcontext *found)
{
    return driver_call(__func__, [&](machine &) {
        *found = reinterpret_cast<CUcontext>(bound);
        return CUDA_SUCCESS;
    });
}

CUresult
cuCtxSetCurrent(CUcontext wanted)
{
    const uintptr_t handle = reinterpret_cast<uintptr_t>(wanted);
    const CUresult error = driver_call(__func__, [&](machine &m) {
        const auto found = m.contexts.find(handle);
        return !handle || (found != m.contexts.end() && found->second.active) ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_INVALID_CONTEXT;
    });
    if (error == CUDA_SUCCESS || (error != CUDA_ERROR_INVALID_CONTEXT && has_changed_it()))
        bound = handle;
    return error;
}

CUresult
cuDevicePrimaryCtxRetain(CUcontext *made, CUdevice wanted)
{
    return driver_call(__func__, [&](machine &m) {
        if (wanted < 0 || wanted >= m.devices)
            return CUDA_ERROR_INVALID_DEVICE;
        m.contexts.at(m.primary[wanted]).active = true;
        *made = reinterpret_cast<CUcontext>(m.primary[wanted]);
        return CUDA_SUCCESS;
    });
}

CUresult
cuDevicePrimaryCtxGetState(CUdevice wanted, unsigned *flags, int *active)
{
    return driver_call(__func__, [&](machine &m) {
        if (wanted < 0 || wanted >= m.devices)
            return CUDA_ERROR_INVALID_DEVICE;
        *flags = 0;
        *active = m.contexts.at(m.primary[wanted]).active;
        return CUDA_SUCCESS;
    });
}

/* Also makes it current. */
CUresult
cuCtxCreate_v4(CUcontext *made, CUctxCreateParams *, unsigned, CUdevice wanted)
{
    return driver_call(__func__, [&](machine &m) {
        if (wanted < 0 || wanted >= m.devices)
            return CUDA_ERROR_INVALID_DEVICE;
        *made = handle_new<CUcontext>(m);
        m.contexts[reinterpret_cast<uintptr_t>(*made)] = {wanted, true, bound};
        bound = reinterpret_cast<uintptr_t>(*made);
        return CUDA_SUCCESS;
    });
}

template <typename Handles>
static void
forget_handles(Handles &handles, uintptr_t context)
{
    for (auto each = handles.begin(); each != handles.end();)
        each = each->second->context == context ? handles.erase(each) : std::next(each);
}

/* With all that was made in it: streams, events, memory that is no pool's. */
CUresult
cuCtxDestroy_v2(CUcontext ended)
{
    return driver_call(__func__, [&](machine &m) {
        const uintptr_t handle = reinterpret_cast<uintptr_t>(ended);
        const auto found = m.contexts.find(handle);
        if (found == m.contexts.end() || handle == m.primary[found->second.device])
            return CUDA_ERROR_INVALID_CONTEXT;
        finish_device(m, found->second.device);
        forget_handles(m.stream_handles, handle);
        forget_handles(m.event_handles, handle);
        std::vector<block_ptr> theirs;
        for (const auto &[address, block] : m.blocks)
            if (block->context == handle)
                theirs.push_back(block);
        for (const block_ptr &block : theirs)
            block_release(m, block);
        if (bound == handle)
            bound = found->second.before;
        m.contexts.erase(handle);
        return CUDA_SUCCESS;
    });
}
