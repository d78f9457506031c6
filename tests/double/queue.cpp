/* Streams as queues: the edges that CUDA's rules draw between pieces of work, and a random walk through what they
 * leave open. */
#include "machine.h"

#include <algorithm>
#include <cfenv>
#include <thread>
#include <unordered_set>

/* A real queue holds about a thousand launches and then makes the caller wait; looking for what may run is quadratic.
 */
static constexpr size_t MOST_PENDING = 256;

stream_ptr
stream_new(machine &m, int device, bool blocking)
{
    const auto made = std::make_shared<stream>();
    made->device = device;
    made->blocking = blocking;
    m.streams.push_back(made);
    return made;
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
    return found == m.stream_handles.end() ? nullptr : found->second;
}

static void
come_after(work &later, const work_ptr &earlier)
{
    if (earlier && !earlier->done)
        later.after.push_back(earlier);
}

work_ptr
enqueue(machine &m, const stream_ptr &stream, std::function<void()> run, const work_ptr &also)
{
    while (m.pending.size() >= MOST_PENDING)
        finish(m, m.pending[m.below(MOST_PENDING)]);

    const auto queued = std::make_shared<work>();
    queued->run = std::move(run);
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
    m.pending.push_back(queued);
    return queued;
}

static bool
may_run(const work_ptr &candidate)
{
    return std::all_of(candidate->after.begin(), candidate->after.end(), [](const work_ptr &w) { return w->done; });
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
    if (chosen->run)
        chosen->run();
    std::fesetenv(&callers);
    chosen->finished = std::chrono::steady_clock::now();
    chosen->done = true;
    chosen->run = nullptr;
    chosen->after.clear();
}

static std::unordered_set<const work *>
ancestry(const work_ptr &target)
{
    std::unordered_set<const work *> found{target.get()};
    std::vector<const work *> unvisited{target.get()};
    while (!unvisited.empty()) {
        const work *w = unvisited.back();
        unvisited.pop_back();
        for (const work_ptr &earlier : w->after)
            if (!earlier->done && found.insert(earlier.get()).second)
                unvisited.push_back(earlier.get());
    }
    return found;
}

/* Mostly what the target needs, in any order; now and then something else that is allowed to run too. */
void
finish(machine &m, work_ptr target)
{
    if (!target || target->done)
        return;
    const auto needed = ancestry(target);
    while (!target->done) {
        const bool any = m.below(4) == 0;
        std::vector<size_t> ready;
        for (size_t i = 0; i < m.pending.size(); ++i)
            if ((any || needed.count(m.pending[i].get())) && may_run(m.pending[i]))
                ready.push_back(i);
        run_one(m, ready[m.below(static_cast<unsigned>(ready.size()))]);
    }
    close_memory(m);

    const auto over = [](const stream_ptr &s) { return s->destroyed && (!s->tail || s->tail->done); };
    m.streams.erase(std::remove_if(m.streams.begin(), m.streams.end(), over), m.streams.end());
}

void
finish_device(machine &m, int device)
{
    const std::vector<stream_ptr> streams = m.streams;
    for (const stream_ptr &s : streams)
        if (s->device == device)
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
