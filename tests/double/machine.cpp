#include "machine.h"

#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <unistd.h>

/* This thread's, as long as the machine has not forgotten all threads' errors since. */
static thread_local struct {
    cudaError_t error = cudaSuccess;
    unsigned era = 0;
} last;

static int
environment(const char *name, int otherwise)
{
    const char *value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

void
machine_shape(machine &m)
{
    m.devices = environment("VECADD_DOUBLE_DEVICES", 2);
    m.driver = environment("VECADD_DOUBLE_DRIVER", CUDART_VERSION);
}

machine::machine() : random(environment("VECADD_DOUBLE_SEED", 0))
{
    machine_shape(*this);
    for (int device = 0; device < MAX_DEVICES; ++device) {
        primary[device] = next_handle += 16;
        contexts[primary[device]] = {device, false};
        default_pools[device].device = device;
        legacy[device] = stream_new(*this, device, true);
        legacy[device]->legacy = true;
    }
}

machine &
the_machine()
{
    static machine *const m = new machine;
    return *m;
}

bool
forked_child()
{
    const pid_t owner = the_machine().owner;
    return owner != 0 && owner != getpid();
}

void
delay(machine &m, const char *name)
{
    std::chrono::microseconds time{0};
    if (!m.delayed)
        return;
    {
        const std::lock_guard<std::mutex> lock(m.mutex);
        const auto found = m.delays.find(name);
        if (found != m.delays.end())
            time = found->second;
    }
    if (time.count())
        std::this_thread::sleep_for(time);
}

/* Nothing is counted, because another thread of the parent's may have taken the lock for ever. */
cudaError_t
refuse_in_child(const char *name)
{
    dprintf(STDERR_FILENO, "double: %s in a forked child\n", name);
    return cudaErrorInitializationError;
}

/* Errors after which the real context is lost. */
bool
is_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
        return true;
    default:
        return false;
    }
}

bool
is_driver_call(const char *name)
{
    return name[2] >= 'A' && name[2] <= 'Z';
}

static cudaError_t
injected(machine &m, const char *name)
{
    for (failure &f : m.failures) {
        if (f.call != name || f.countdown <= 0)
            continue;
        if (--f.countdown > 0)
            continue;
        if (f.forever)
            f.countdown = 1;
        if (is_sticky(f.status))
            m.sticky = f.status;
        return f.status;
    }
    return cudaSuccess;
}

/* Calls that could wait for work on the device, whatever they are made on. Those that are made on a stream or an event
 * ask forbidden_in_capture themselves, after what that stream or event has to say. */
static bool
could_wait(const std::string &name)
{
    static const auto &names = *new std::set<std::string>{
        "cudaMalloc",           "cudaMallocManaged",       "cudaFree",
        "cudaMallocHost",       "cudaHostAlloc",           "cudaFreeHost",
        "cudaHostRegister",     "cudaHostUnregister",      "cudaMemPoolCreate",
        "cudaMemPoolTrimTo",    "cudaMemPoolSetAttribute", "cudaMemPoolSetAccess",
        "cudaGraphInstantiate", "cudaGraphExecDestroy"}; /* never destroyed: threads may call at exit */
    return names.count(name);
}

/* Calls that did not return on an H200 while one thread was launching into a full queue. The others did. */
static bool
needs_room(const std::string &name)
{
    static const auto &names =
        *new std::set<std::string>{"cudaLaunchKernel",     "cudaLaunchKernelExC",
                                   "cudaGraphLaunch",      "cudaGraphUpload",
                                   "cudaEventRecord",      "cudaStreamWaitEvent",
                                   "cudaFreeAsync",        "cudaMemcpyAsync",
                                   "cudaMemsetAsync",      "cudaEventCreate",
                                   "cudaEventDestroy",     "cudaEventCreateWithFlags",
                                   "cudaStreamCreate",     "cudaStreamCreateWithFlags",
                                   "cudaStreamDestroy",    "cudaGraphInstantiate",
                                   "cudaGraphExecDestroy", "cudaHostAlloc",
                                   "cudaFreeHost",         "cudaMallocHost",
                                   "cudaMalloc",           "cudaFree",
                                   "cudaHostRegister",     "cudaHostUnregister",
                                   "cudaStreamQuery",      "cudaStreamSynchronize",
                                   "cudaDeviceSynchronize"}; /* never destroyed: threads may call at exit */
    return names.count(name);
}

static struct {
    std::mutex mutex;
    std::condition_variable room;
    std::atomic<bool> full{false};
    std::atomic<int> waiting{0};
} queues;

void
wait_for_room(const char *name)
{
    if (!queues.full || !needs_room(name))
        return;
    std::unique_lock<std::mutex> lock(queues.mutex);
    ++queues.waiting;
    queues.room.wait(lock, [] { return !queues.full; });
    --queues.waiting;
}

void
fill_queues(bool full)
{
    const std::lock_guard<std::mutex> lock(queues.mutex);
    queues.full = full;
    queues.room.notify_all();
}

int
waiting_for_room()
{
    return queues.waiting;
}

cudaError_t
call_enter(machine &m, const char *name, bool needs_driver)
{
    ++m.calls[name];
    const cudaError_t failed = injected(m, name);
    if (failed != cudaSuccess || !needs_driver)
        return failed;
    if (m.driver < CUDART_VERSION)
        return cudaErrorInsufficientDriver;
    m.owner = getpid();
    if (m.devices == 0)
        return cudaErrorNoDevice;
    if (m.sticky != cudaSuccess && !is_driver_call(name))
        return m.sticky;
    return could_wait(name) ? forbidden_in_capture(m) : cudaSuccess;
}

/* Calls that report errors of earlier work although they have done what they are for. */
static bool
waits_or_gives_back(const std::string &name)
{
    static const auto &names = *new std::set<std::string>{
        "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaFree",
        "cudaFreeAsync",         "cudaFreeHost",          "cudaHostUnregister",   "cudaStreamDestroy",
        "cudaEventDestroy",      "cudaGraphDestroy",      "cudaGraphExecDestroy", "cudaMemPoolDestroy",
        "cudaMemPoolTrimTo"}; /* never destroyed: threads may call at exit */
    return names.count(name);
}

static cudaError_t &
last_error(machine &m)
{
    if (last.era != m.era)
        last = {cudaSuccess, m.era};
    return last.error;
}

cudaError_t
call_leave(machine &m, const char *name, cudaError_t error)
{
    if (is_driver_call(name)) /* the last error is the runtime's */
        return error;
    if (error == cudaSuccess)
        error = m.sticky; /* work that this call waited for went wrong */
    if (error == cudaSuccess && m.earlier != cudaSuccess && waits_or_gives_back(name))
        error = m.earlier;
    if (error != cudaSuccess && error != cudaErrorNotReady) {
        m.threads_with_errors += last_error(m) == cudaSuccess;
        last_error(m) = error;
    }
    return error;
}

cudaError_t
take_last_error(machine &m, bool clear)
{
    const cudaError_t error = last_error(m);
    if (clear && error != cudaSuccess) {
        --m.threads_with_errors;
        last_error(m) = cudaSuccess;
    }
    return error;
}

static void __attribute__((format(printf, 1, 0))) say(const char *format, va_list arguments)
{
    std::fputs("CUDA-runtime double: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    ++the_machine().faults;
}

void
fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    the_machine().sticky = cudaErrorIllegalAddress;
}

void
misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}
