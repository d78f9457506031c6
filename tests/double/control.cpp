#include "double.h"

#include "machine.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <utility>

/* The control interface goes past failures, counts and the state of the driver. */
static std::unique_lock<std::mutex>
lock_machine()
{
    return std::unique_lock<std::mutex>(the_machine().mutex);
}

void
double_reset(unsigned seed)
{
    double_fail_allocation(0);
    double_clock(0);
    double_on_file_call(nullptr);
    const auto lock = lock_machine();
    machine &m = the_machine();
    m.failures.clear();
    m.delays.clear();
    m.delayed = false;
    m.capacity = DEVICE_BYTES;
    m.flipped_copies = 0;
    m.peer_access = m.memory_pools = true;
    m.calls.clear();
    m.faults = 0;
    m.evict_last.clear();
    std::fill_n(m.persisting, MAX_DEVICES, size_t(0));
    m.sticky = m.earlier = cudaSuccess;
    m.random.seed(seed);
    machine_shape(m);
}

void
double_fail(const char *call, int nth, int status, int forever)
{
    const auto lock = lock_machine();
    the_machine().failures.push_back({call, nth, static_cast<cudaError_t>(status), forever != 0});
}

void
double_delay(const char *call, int microseconds)
{
    const auto lock = lock_machine();
    the_machine().delays[call] = std::chrono::microseconds(microseconds);
    the_machine().delayed = true;
}

void
double_capacity(size_t bytes)
{
    const auto lock = lock_machine();
    the_machine().capacity = bytes;
}

void
double_peer_access(int possible)
{
    const auto lock = lock_machine();
    the_machine().peer_access = possible != 0;
}

void
double_memory_pools(int supported)
{
    const auto lock = lock_machine();
    the_machine().memory_pools = supported != 0;
}

void
double_flip_copies(int count)
{
    const auto lock = lock_machine();
    the_machine().flipped_copies = count;
}

void
double_report_earlier(int status)
{
    const auto lock = lock_machine();
    the_machine().earlier = static_cast<cudaError_t>(status);
}

int
double_take_errors(void)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    ++m.era;
    return std::exchange(m.threads_with_errors, 0);
}

void
double_fill_queues(int full)
{
    fill_queues(full != 0);
}

int
double_waiting(void)
{
    return waiting_for_room();
}

long
double_calls(const char *call)
{
    const auto lock = lock_machine();
    const auto &calls = the_machine().calls;
    const auto found = calls.find(call);
    return found == calls.end() ? 0 : found->second;
}

long
double_faults(void)
{
    const auto lock = lock_machine();
    return the_machine().faults;
}

void
double_live(size_t *device_blocks, size_t *device_bytes, size_t *pinned_blocks, size_t *streams, size_t *events,
            size_t *graphs)
{
    const auto lock = lock_machine();
    const machine &m = the_machine();
    *device_blocks = *device_bytes = *pinned_blocks = *streams = 0;
    for (const auto &[address, block] : m.blocks)
        if (block->kind == memory_kind::pinned) {
            ++*pinned_blocks;
        } else if ((block->kind == memory_kind::device || block->kind == memory_kind::managed) && !block->released) {
            ++*device_blocks;
            *device_bytes += block->bytes;
        }
    for (const auto &[handle, stream] : m.stream_handles)
        *streams += !stream->foreign;
    *events = m.event_handles.size();
    *graphs = m.graph_handles.size() + m.graph_exec_handles.size() + m.captures.size();
}

void
double_l2(const void *start, size_t bytes, size_t *evict_last, size_t *demoted)
{
    const auto lock = lock_machine();
    const auto &lines = the_machine().evict_last;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(start);
    *evict_last = *demoted = 0;
    for (uintptr_t line = begin / 128; bytes && line <= (begin + bytes - 1) / 128; ++line)
        if (const auto found = lines.find(line); found != lines.end())
            ++*(found->second ? evict_last : demoted);
}

void
double_devices(int count)
{
    const auto lock = lock_machine();
    the_machine().devices = std::min<int>(count, MAX_DEVICES);
}

void
double_driver(int version)
{
    const auto lock = lock_machine();
    the_machine().driver = version;
}

void *
double_device_malloc(int device, size_t bytes)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    m.contexts.at(m.primary[device]).active = true;
    return block_new(m, bytes, memory_kind::foreign, device)->start;
}

void
double_device_free(void *memory)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const block_ptr found = block_at(m, memory);
    if (!found)
        return;
    finish_device(m, found->device);
    block_erase(m, found);
}

int
double_device_split(void *memory, size_t bytes, int device)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const block_ptr first = block_at(m, memory);
    if (!first || first->start != memory || bytes == 0 || bytes >= first->bytes)
        return -1;
    const auto second = std::make_shared<block>(*first);
    second->start += bytes;
    second->bytes -= bytes;
    second->device = device;
    first->bytes = bytes;
    m.blocks[reinterpret_cast<uintptr_t>(second->start)] = second;
    return 0;
}

/* The device memory that the range begins in and ends in, for a copy by the host; null where it is none. */
static block_ptr
opened(machine &m, const void *address, size_t bytes)
{
    const block_ptr found = block_at(m, address);
    if (!found || !found->on_device() ||
        bytes > found->bytes - static_cast<size_t>(static_cast<const char *>(address) - found->start))
        return nullptr;
    finish_device(m, found->device);
    open_memory(m, found->device);
    return found;
}

void *
double_context_create(int device)
{
    CUcontext made = nullptr;
    cuCtxCreate_v4(&made, nullptr, 0, device);
    return made;
}

void
double_context_destroy(void *context)
{
    cuCtxDestroy_v2(static_cast<CUcontext>(context));
}

void *
double_current_context(void)
{
    return reinterpret_cast<void *>(current_context());
}

int
double_device_write(void *device, const void *host, size_t bytes)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    if (bytes == 0)
        return 0;
    if (!opened(m, device, bytes))
        return -1;
    std::memcpy(device, host, bytes);
    close_memory(m);
    return 0;
}

int
double_device_read(void *host, const void *device, size_t bytes)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    if (bytes == 0)
        return 0;
    if (!opened(m, device, bytes))
        return -1;
    std::memcpy(host, device, bytes);
    close_memory(m);
    return 0;
}

void *
double_stream_create(int device, int nonblocking)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const stream_ptr made = stream_new(m, device, !nonblocking);
    made->foreign = true;
    made->context = current_context() && current_device() == device ? current_context() : m.primary[device];
    m.contexts.at(made->context).active = true;
    void *const handle = handle_new<void *>(m);
    m.stream_handles[reinterpret_cast<uintptr_t>(handle)] = made;
    return handle;
}

int
double_stream_destroy(void *handle)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const auto found = m.stream_handles.find(reinterpret_cast<uintptr_t>(handle));
    if (found == m.stream_handles.end())
        return cudaErrorInvalidResourceHandle;
    found->second->destroyed = true;
    m.stream_handles.erase(found);
    return cudaSuccess;
}

int
double_stream_synchronize(void *handle)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const stream_ptr stream = stream_of(m, static_cast<cudaStream_t>(handle));
    finish(m, stream->tail);
    return m.sticky;
}

int
double_copy_async(void *target, const void *source, size_t bytes, void *handle)
{
    const auto lock = lock_machine();
    machine &m = the_machine();
    const stream_ptr stream = stream_of(m, static_cast<cudaStream_t>(handle));
    work_ptr queued;
    return bytes == 0 ? cudaSuccess : copy_queue(m, target, source, bytes, stream, &queued);
}

void
double_synchronize(int device)
{
    const auto lock = lock_machine();
    finish_device(the_machine(), device);
}

int
double_capture_begin(void *stream)
{
    return cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeGlobal);
}

void *
double_capture_end(void *stream)
{
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t ready = nullptr;
    if (cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &captured) != cudaSuccess) {
        cudaGetLastError(); /* it is the other library's */
        return nullptr;
    }
    cudaGraphInstantiate(&ready, captured, 0);
    cudaGraphDestroy(captured);
    return ready;
}

int
double_graph_launch(void *graph, void *stream)
{
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream));
}

int
double_graph_destroy(void *graph)
{
    return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}
