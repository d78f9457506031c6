/* Streams as queues: the edges that CUDA's rules draw between pieces of work, and a random walk through what they
 * leave open. */
#include "machine.h"

#include <algorithm>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unordered_set>
#include <utility>

/* A real queue takes about a thousand launches and then makes the caller wait; looking for what may run is quadratic.
 */
static constexpr size_t MAX_PENDING = 256;

stream_ptr
stream_new(machine &m, int device, bool blocking)
{
    const auto made = std::make_shared<stream>();
    made->device = device;
    made->blocking = blocking;
    m.streams.push_back(made);
    return made;
}

/* CUDA reads what a handle points to, and says nothing: a destroyed stream's handle ends the process (seen on an H100).
 */
[[noreturn]] static void
die_of(cudaStream_t handle)
{
    std::fprintf(stderr, "CUDA-runtime double: %p is no stream, or was destroyed\n", static_cast<void *>(handle));
    std::abort();
}

stream_ptr
stream_of(machine &m, cudaStream_t handle)
{
    static thread_local stream_ptr per_thread[MAX_DEVICES];

    if (handle == nullptr || handle == cudaStreamLegacy)
        return m.legacy[current_device()];
    if (handle == cudaStreamPerThread) {
        stream_ptr &mine = per_thread[current_device()];
        if (!mine)
            mine = stream_new(m, current_device(), true);
        return mine;
    }
    const auto found = m.stream_handles.find(reinterpret_cast<uintptr_t>(handle));
    if (found == m.stream_handles.end())
        die_of(handle);
    return found->second;
}

bool
work::settled() const
{
    return done &&
           std::all_of(prerequisites.begin(), prerequisites.end(), [](const work_ptr &w) { return w->settled(); });
}

/* What comes after a kernel also comes after those that it overtook. */
void
come_after(work &later, const work_ptr &earlier)
{
    if (!earlier)
        return;
    for (const work_ptr &prerequisite : earlier->prerequisites)
        come_after(later, prerequisite);
    if (!earlier->done)
        later.after.push_back(earlier);
}

void
add_pending(machine &m, const work_ptr &queued)
{
    while (m.pending.size() >= MAX_PENDING)
        finish(m, m.pending[m.below(MAX_PENDING)]);
    m.pending.push_back(queued);
}

/* In a stream that captures nothing is queued and there is nothing to wait for: null. */
work_ptr
enqueue(machine &m, const stream_ptr &stream, std::function<void()> run, const work_ptr &also, work_kind kind)
{
    if (stream->capturing) {
        capture_node(*stream, std::move(run), kind);
        return nullptr;
    }
    const auto queued = std::make_shared<work>();
    queued->run = std::move(run);
    queued->kind = kind;
    /* Only a kernel can be begun ahead of, and only in a stream that orders nothing else. */
    if (kind == work_kind::programmatic && !stream->legacy && stream->tail && stream->tail->kind != work_kind::other)
        queued->prerequisites.push_back(stream->tail);
    else
        come_after(*queued, stream->tail);
    come_after(*queued, also);
    if (stream->legacy) {
        for (const stream_ptr &other : m.streams)
            if (other->blocking && other->device == stream->device)
                come_after(*queued, other->tail);
    } else if (stream->blocking) {
        come_after(*queued, m.legacy[stream->device]->tail);
    }
    stream->tail = queued;
    add_pending(m, queued);
    return queued;
}

/* Marks what may run. Prerequisites come before what waits for them, here as in the order of the calls. */
static void
mark_ready(const machine &m)
{
    for (const work_ptr &w : m.pending)
        w->ready =
            std::all_of(w->after.begin(), w->after.end(), [](const work_ptr &earlier) { return earlier->done; }) &&
            std::all_of(w->prerequisites.begin(), w->prerequisites.end(),
                        [](const work_ptr &earlier) { return earlier->done || earlier->ready; });
}

/* Kernels run as on a GPU: rounding to nearest, subnormals kept, whatever the thread that waits has set. */
static void
run_one(machine &m, size_t index)
{
    const work_ptr chosen = m.pending[index];
    m.pending.erase(m.pending.begin() + static_cast<ptrdiff_t>(index));
    std::fenv_t callers;
    std::fegetenv(&callers);
    std::fesetenv(FE_DFL_ENV);
    const work_ptr caller = std::exchange(m.running, chosen);
    if (chosen->run)
        chosen->run();
    m.running = caller;
    std::fesetenv(&callers);
    chosen->finished = std::chrono::steady_clock::now();
    chosen->done = true;
    chosen->run = nullptr;
    chosen->after.clear();
    if (chosen->settled())
        chosen->prerequisites.clear();
}

static std::unordered_set<const work *>
ancestry(const work_ptr &target)
{
    std::unordered_set<const work *> found{target.get()};
    std::vector<const work *> unvisited{target.get()};
    while (!unvisited.empty()) {
        const work *w = unvisited.back();
        unvisited.pop_back();
        for (const auto *edges : {&w->after, &w->prerequisites})
            for (const work_ptr &earlier : *edges)
                if (!earlier->settled() && found.insert(earlier.get()).second)
                    unvisited.push_back(earlier.get());
    }
    return found;
}

void
blockade_on_cpu(const unsigned *open, unsigned *expired)
{
    machine &m = the_machine();
    m.blockade_open = open;
    m.blockade_expired = expired;
}

/* A blockade ends with its memory too. */
static bool
is_blockaded(machine &m)
{
    if (m.blockade_open && (!block_at(m, m.blockade_open) || *m.blockade_open))
        m.blockade_open = nullptr;
    return m.blockade_open != nullptr;
}

/* Runs one piece of work that may run: one that is needed, or any. */
static void
run_some(machine &m, const std::unordered_set<const work *> &needed, bool any)
{
    std::vector<size_t> ready;
    mark_ready(m);
    const bool blockaded = is_blockaded(m);
    for (size_t i = 0; i < m.pending.size(); ++i)
        if (m.pending[i]->ready && (any || needed.count(m.pending[i].get())) &&
            !(blockaded && m.pending[i]->kind != work_kind::other))
            ready.push_back(i);
    if (blockaded && ready.empty()) {
        *m.blockade_expired = 1;
        m.blockade_open = nullptr;
        return;
    }
    run_one(m, ready[m.below(static_cast<unsigned>(ready.size()))]);
}

/* Mostly what the target needs, in any order; now and then something else that is allowed to run too. */
void
finish(machine &m, work_ptr target)
{
    if (!target || target->settled())
        return;
    const auto needed = ancestry(target);
    while (!target->settled())
        run_some(m, needed, m.below(4) == 0);
    target->prerequisites.clear();
    close_memory(m);

    const auto over = [](const stream_ptr &s) { return s->destroyed && (!s->tail || s->tail->done); };
    m.streams.erase(std::remove_if(m.streams.begin(), m.streams.end(), over), m.streams.end());
}

/* What a kernel's wait is for: that its prerequisites have ended, and not those that they overtook. Nothing
 * but what that needs may run in the middle of the kernel. */
void
finish_prerequisites(machine &m)
{
    const auto has_ended = [](const work_ptr &prerequisite) { return prerequisite->done; };
    if (std::all_of(m.running->prerequisites.begin(), m.running->prerequisites.end(), has_ended))
        return; /* as every thread of the kernel but the first finds them */
    const std::vector<work_ptr> prerequisites = m.running->prerequisites;
    for (const work_ptr &prerequisite : prerequisites) {
        const auto needed = ancestry(prerequisite);
        while (!prerequisite->done)
            run_some(m, needed, false);
    }
}

/* In a random order of the streams: by their age, one that was made early would hardly ever come late. */
void
finish_device(machine &m, int device)
{
    std::vector<stream_ptr> busy;
    for (const stream_ptr &s : m.streams)
        if (s->device == device && s->tail && !s->tail->settled())
            busy.push_back(s);
    for (size_t left = busy.size(); left > 1; --left)
        std::swap(busy[left - 1], busy[m.below(static_cast<unsigned>(left))]);
    for (const stream_ptr &s : busy)
        finish(m, s->tail);
}

bool
finished_by_now(machine &m, const work_ptr &target)
{
    if (!target || target->done)
        return true;
    if (m.below(3) != 0)
        return false;
    finish(m, target);
    return true;
}
