/* Streams that capture, and graphs. A capture is of kernels, fills, copies within a device, memory, and events that
 * lead from stream to stream; what else could be captured is a fault, because no test needs it yet. What ends a
 * capture is conformance/captures.c's table. */
#include "double.h"

#include "machine.h"

#include <algorithm>
#include <utility>

cudaError_t
capture_invalidate(capture &broken, cudaError_t why)
{
    broken.invalid = true;
    return why;
}

/* The capture of a stream that the legacy default stream would have to wait for. */
static capture *
implied(const machine &m, const stream &legacy)
{
    for (const stream_ptr &other : m.streams)
        if (other->capturing && !other->destroyed && other->blocking && other->device == legacy.device)
            return other->capturing.get();
    return nullptr;
}

cudaError_t
usable_stream(machine &m, cudaStream_t handle, stream_ptr &stream)
{
    stream = stream_of(m, handle);
    if (stream->capturing && stream->capturing->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->legacy)
        if (capture *const other = implied(m, *stream))
            return capture_invalidate(*other, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

/* For calls that are no part of a graph, a wait that would never end or a question about the stream. */
cudaError_t
waitable_stream(machine &m, cudaStream_t handle, stream_ptr &stream)
{
    const cudaError_t error = usable_stream(m, handle, stream);
    if (error == cudaSuccess && stream->capturing)
        return capture_invalidate(*stream->capturing, cudaErrorStreamCaptureUnsupported);
    return error;
}

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaError_t
cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    return cuda_call(__func__, [&](machine &) {
        if (!mode || static_cast<unsigned>(*mode) > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        std::swap(*mode, thread_mode);
        return cudaSuccess;
    });
}

int
double_take_capture_mode(void)
{
    return std::exchange(thread_mode, cudaStreamCaptureModeGlobal);
}

/* Ends every capture that forbids the call. */
template <typename Forbids>
static cudaError_t
forbidden_where(const machine &m, Forbids forbids)
{
    cudaError_t error = cudaSuccess;
    for (const stream_ptr &stream : m.streams)
        if (stream->capturing && !stream->destroyed && forbids(*stream))
            error = capture_invalidate(*stream->capturing, cudaErrorStreamCaptureUnsupported);
    return error;
}

cudaError_t
forbidden_in_capture(machine &m)
{
    return forbidden_where(m, [](const stream &capturing) {
        const capture &open = *capturing.capturing;
        if (open.mode == cudaStreamCaptureModeRelaxed || thread_mode == cudaStreamCaptureModeRelaxed)
            return false;
        const bool global = open.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
        return global || open.thread == std::this_thread::get_id();
    });
}

cudaError_t
forbidden_beside_captures(machine &m, int device)
{
    return forbidden_where(m, [device](const stream &capturing) { return capturing.device == device; });
}

void
capture_node(stream &stream, std::function<void()> run, work_kind kind)
{
    std::vector<graph_node> &nodes = stream.capturing->captured.nodes;
    graph_node node = {std::move(run), kind, stream.captured_tail, {}};
    const bool after_a_kernel =
        node.after.size() == 1 && nodes[node.after[0]].kind != work_kind::other && kind == work_kind::programmatic;
    if (after_a_kernel)
        std::swap(node.after, node.prerequisites);
    nodes.push_back(std::move(node));
    stream.captured_tail = {nodes.size() - 1};
}

static void
begin(const stream_ptr &stream, const capture_ptr &capture)
{
    stream->capturing = capture;
    stream->captured_tail.clear();
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    return cuda_call(__func__, [&](machine &m) {
        const stream_ptr stream = stream_of(m, handle);
        if (capture *const other = stream->legacy ? implied(m, *stream) : nullptr)
            return capture_invalidate(*other, cudaErrorStreamCaptureImplicit);
        if (stream->legacy)
            return cudaErrorStreamCaptureUnsupported;
        if (static_cast<unsigned>(mode) > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        if (stream->capturing)
            return cudaErrorIllegalState;
        const auto made = std::make_shared<capture>();
        made->mode = mode;
        made->thread = std::this_thread::get_id();
        made->origin = stream;
        m.captures.push_back(made);
        begin(stream, made);
        return cudaSuccess;
    });
}

/* Whether every node of the capture leads to the end of this stream. */
static bool
joined(const stream &origin)
{
    const std::vector<graph_node> &nodes = origin.capturing->captured.nodes;
    std::vector<bool> reached(nodes.size(), false);
    for (const size_t last : origin.captured_tail)
        reached[last] = true;
    for (size_t i = nodes.size(); i-- > 0;)
        if (reached[i])
            for (const auto *edges : {&nodes[i].after, &nodes[i].prerequisites})
                for (const size_t earlier : *edges)
                    reached[earlier] = true;
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

static void
end_capture(machine &m, const capture_ptr &ended)
{
    m.captures.erase(std::find(m.captures.begin(), m.captures.end(), ended));
    for (const stream_ptr &other : m.streams)
        if (other->capturing == ended)
            begin(other, nullptr);
}

/* One that is made to fail ends the capture all the same. */
cudaError_t
cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *result)
{
    bool refused = true;
    const cudaError_t error = cuda_call(__func__, [&](machine &m) {
        refused = false;
        const stream_ptr stream = stream_of(m, handle);
        if (!result)
            return cudaErrorInvalidValue;
        *result = nullptr;
        const capture_ptr ended = stream->capturing;
        if (!ended)
            return cudaErrorIllegalState;
        if (ended->origin.lock() != stream)
            return capture_invalidate(*ended, cudaErrorStreamCaptureUnmatched);
        if (ended->mode != cudaStreamCaptureModeRelaxed && ended->thread != std::this_thread::get_id())
            return cudaErrorStreamCaptureWrongThread;
        const bool complete = joined(*stream);
        end_capture(m, ended);
        if (ended->invalid)
            return cudaErrorStreamCaptureInvalidated;
        if (!complete)
            return cudaErrorStreamCaptureUnjoined;
        *result = handle_new<cudaGraph_t>(m);
        m.graph_handles[reinterpret_cast<uintptr_t>(*result)] = std::make_unique<graph>(std::move(ended->captured));
        return cudaSuccess;
    });
    if (refused && !forked_child()) {
        machine &m = the_machine();
        const std::lock_guard<std::mutex> lock(m.mutex);
        const stream_ptr stream = stream_of(m, handle);
        if (stream && stream->capturing && stream->capturing->origin.lock() == stream)
            end_capture(m, capture_ptr(stream->capturing));
    }
    return error;
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    return cuda_call(__func__, [&](machine &m) {
        const stream_ptr stream = stream_of(m, handle);
        if (stream->legacy && implied(m, *stream))
            return cudaErrorStreamCaptureImplicit;
        *status = !stream->capturing           ? cudaStreamCaptureStatusNone
                  : stream->capturing->invalid ? cudaStreamCaptureStatusInvalidated
                                               : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

template <typename Thing>
static Thing *
find(const std::map<uintptr_t, std::unique_ptr<Thing>> &things, const void *handle)
{
    const auto found = things.find(reinterpret_cast<uintptr_t>(handle));
    return found == things.end() ? nullptr : found->second.get();
}

cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t handle, unsigned long long flags)
{
    return cuda_call(__func__, [&](machine &m) {
        const graph *const found = find(m.graph_handles, handle);
        if (!result || !found || flags)
            return cudaErrorInvalidValue;
        *result = handle_new<cudaGraphExec_t>(m);
        auto made = std::make_unique<graph_exec>();
        made->made_of = *found;
        m.graph_exec_handles[reinterpret_cast<uintptr_t>(*result)] = std::move(made);
        return cudaSuccess;
    });
}

/* The nodes between two markers, the second of which is what the stream goes on from. */
static void
queue_graph(machine &m, graph_exec &exec, const stream_ptr &stream)
{
    const work_ptr begin = enqueue(m, stream, nullptr, exec.last);
    std::vector<work_ptr> queued;
    const auto end = std::make_shared<work>();
    come_after(*end, begin);
    for (const graph_node &node : exec.made_of.nodes) {
        const auto made = std::make_shared<work>();
        made->run = node.run;
        made->kind = node.kind;
        come_after(*made, begin);
        for (const size_t earlier : node.after)
            come_after(*made, queued[earlier]);
        for (const size_t earlier : node.prerequisites)
            made->prerequisites.push_back(queued[earlier]);
        queued.push_back(made);
        add_pending(m, made);
    }
    for (const work_ptr &each : queued)
        come_after(*end, each);
    add_pending(m, end);
    stream->tail = exec.last = end;
}

/* Counts a thread in or out of a launch of the graph. CUDA leaves it to its callers that one thread launches at a time,
 * and does not tell those that forget. */
static void
launching(cudaGraphExec_t handle, int change)
{
    machine &m = the_machine();
    if (forked_child())
        return;
    const std::lock_guard<std::mutex> lock(m.mutex);
    graph_exec *const launched = find(m.graph_exec_handles, handle);
    if (launched && (launched->launching += change) > 1)
        misuse("two threads launch one graph at once");
}

static cudaError_t
launch(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    return cuda_call("cudaGraphLaunch", [&](machine &m) {
        graph_exec *const found = find(m.graph_exec_handles, handle);
        stream_ptr stream;
        if (!found)
            return cudaErrorInvalidValue;
        const cudaError_t error = waitable_stream(m, stream_handle, stream);
        if (error == cudaSuccess)
            queue_graph(m, *found, stream);
        return error;
    });
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream)
{
    launching(handle, 1);
    const cudaError_t error = launch(handle, stream);
    launching(handle, -1);
    return error;
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_ptr stream;
        if (!find(m.graph_exec_handles, handle))
            return cudaErrorInvalidValue;
        const cudaError_t error = waitable_stream(m, stream_handle, stream);
        if (error == cudaSuccess)
            enqueue(m, stream, nullptr);
        return error;
    });
}

/* Launches that were made go on. */
cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        return m.graph_exec_handles.erase(reinterpret_cast<uintptr_t>(handle)) ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t
cudaGraphDestroy(cudaGraph_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        return m.graph_handles.erase(reinterpret_cast<uintptr_t>(handle)) ? cudaSuccess : cudaErrorInvalidValue;
    });
}
