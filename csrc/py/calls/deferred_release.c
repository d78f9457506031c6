#include "py/calls/deferred_release.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/runtime.h"
#include "gpu/buffer.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "py/operands/kept_streams.h"
#include "py/operands/library.h"

/* The owners that are kept for one call. */
struct kept {
    struct kept *next;
    PyObject *owners[ROLE_COUNT]; /* NULL for operands without one */
    int device;
    void *stream; /* lasting where there is no mark */
    void *mark;   /* an event after the call's work; NULL where none could be recorded yet */
};

/* Oldest first. The lock is taken for a few instructions, without Python code or CUDA calls. A stream takes about a
 * thousand launches (1021 on an H200), so at most that many calls of a stream are in the list. */
static struct {
    pthread_mutex_t lock;
    struct kept *first, **end;
    atomic_size_t count;
} list = {PTHREAD_MUTEX_INITIALIZER, NULL, &list.first, 0};

static void
lock_list(void)
{
    pthread_mutex_lock(&list.lock);
}

static void
unlock_list(void)
{
    pthread_mutex_unlock(&list.lock);
}

static void
register_fork_handlers(void)
{
    pthread_atfork(lock_list, unlock_list, unlock_list);
}

void
deferred_release_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
}

static void
append(struct kept *entry)
{
    entry->next = NULL;
    lock_list();
    *list.end = entry;
    list.end = &entry->next;
    unlock_list();
    atomic_fetch_add(&list.count, 1);
}

static struct kept *
take_all(void)
{
    lock_list();
    struct kept *taken = list.first;
    list.first = NULL;
    list.end = &list.first;
    unlock_list();
    return taken;
}

/* Puts entries back, ahead of those appended meanwhile. `end` is the last entry's `next`. */
static void
put_back(struct kept *entries, struct kept **end)
{
    if (!entries)
        return;
    lock_list();
    *end = list.first;
    if (!list.first)
        list.end = end;
    list.first = entries;
    unlock_list();
}

/* Whether the GPU is done with the entry's memory. */
static bool
is_done(struct kept *entry)
{
    if (!entry->mark && stream_mark(entry->device, entry->stream, &entry->mark) == STREAM_DONE)
        return true;
    return entry->mark && stream_mark_reached(entry->device, entry->mark);
}

/* An entry of each stream whose oldest entry is not done, so that its younger ones need no check. */
struct slow_streams {
    const struct kept *entry[16];
    int count;
};

/* One handle, NULL, is the legacy stream of each device. */
static bool
is_slow(const struct slow_streams *slow, const struct kept *entry)
{
    for (int i = 0; i < slow->count; i++)
        if (slow->entry[i]->stream == entry->stream && slow->entry[i]->device == entry->device)
            return true;
    return false;
}

/* One handle is the per-thread stream of all threads. */
static void
note_slow(struct slow_streams *slow, const struct kept *entry)
{
    if (entry->stream != STREAM_PER_THREAD && slow->count < (int)(sizeof slow->entry / sizeof *slow->entry))
        slow->entry[slow->count++] = entry;
}

/* Removes finished entries from the list. Each stream is checked separately, so a slow one does not delay the
 * others. */
static struct kept *
take_done(void)
{
    struct slow_streams slow = {.count = 0};
    struct kept *done = NULL, *left = NULL, **end = &left;
    for (struct kept *entry = take_all(), *next; entry; entry = next) {
        next = entry->next;
        if (!is_slow(&slow, entry)) {
            if (is_done(entry)) {
                entry->next = done;
                done = entry;
                continue;
            }
            note_slow(&slow, entry);
        }
        *end = entry;
        end = &entry->next;
    }
    put_back(left, end);
    return done;
}

static void
let_go(struct kept *entry)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_XDECREF(entry->owners[role]);
    free(entry);
}

void
deferred_release_sweep(void)
{
    if (atomic_load_explicit(&list.count, memory_order_relaxed) == 0 && !device_buffers_wait() && !kept_streams_left())
        return;
    PyThreadState *released = PyEval_SaveThread(); /* freeing and ordering may wait */
    device_buffers_settle();
    struct kept *done = take_done();
    PyEval_RestoreThread(released);
    for (struct kept *next; done; done = next) {
        next = done->next;
        atomic_fetch_sub(&list.count, 1);
        let_go(done);
    }
    kept_streams_sweep();
}

static atomic_bool asked;

static int
sweep_when_asked(void *Py_UNUSED(nothing))
{
    atomic_store(&asked, false);
    deferred_release_sweep();
    return 0;
}

void
deferred_release_sweep_soon(void)
{
    if (!Py_IsInitialized() || !runtime_cuda_usable() || atomic_exchange(&asked, true))
        return;
    if (Py_AddPendingCall(sweep_when_asked, NULL) < 0)
        atomic_store(&asked, false); /* Python's list is full: vecadd's next call sweeps */
}

/* The owners of the call's operands that need a keepalive, borrowed; false where there are none. */
static bool
find_needing_keepalive(const struct prepared_call *call, PyObject *owners[ROLE_COUNT])
{
    bool any = false;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const bool needs_keepalive = call->described[role] && call->operands[role].needs_keepalive && call->plan.n > 0;
        owners[role] = needs_keepalive ? call->operands[role].exported : NULL;
        any |= owners[role] != NULL;
    }
    return any;
}

/* `in_graph`: if the stream captures, all work that the call queued on it is part of the capture. Where the work can
 * neither be marked now nor later it is waited for, and where that fails too the owners are kept for good. */
static void
keep(const struct prepared_call *call, void *stream, bool in_graph, PyObject *const owners[ROLE_COUNT])
{
    /* Another thread may record the mark later, and its per-thread stream is a different one. */
    void *mark, *const later = stream_of_all_threads(stream);
    struct kept *entry = malloc(sizeof *entry);
    PyThreadState *released = PyEval_SaveThread();
    enum stream_marked marked = stream_mark(call->plan.device, stream, &mark);
    if (marked == STREAM_CAPTURED)
        marked = in_graph ? STREAM_DONE : STREAM_UNMARKED;
    while (!entry && marked == STREAM_MARKED && !stream_mark_reached(call->plan.device, mark))
        sched_yield();
    bool done = marked == STREAM_DONE || (!entry && marked == STREAM_MARKED);
    if (marked == STREAM_UNMARKED && (!entry || !stream_is_lasting(call->plan.device, later))) {
        done = device_wait(call->plan.device);
        free(entry);
        entry = NULL;
    }
    PyEval_RestoreThread(released);
    if (done) {
        free(entry);
        return;
    }
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_XINCREF(owners[role]);
    if (!entry)
        return;
    *entry = (struct kept){.device = call->plan.device, .stream = mark ? stream : later, .mark = mark};
    for (int role = 0; role < ROLE_COUNT; role++)
        entry->owners[role] = owners[role];
    append(entry);
}

void
defer_release_of_operands(const struct prepared_call *call)
{
    PyObject *owners[ROLE_COUNT];
    if (find_needing_keepalive(call, owners))
        keep(call, call->plan.stream, true, owners);
    deferred_release_sweep();
}

void
defer_release_of_plan(const struct prepared_call *call, bool stream_is_kept)
{
    PyObject *owners[ROLE_COUNT];
    if (!find_needing_keepalive(call, owners))
        return;
    if (stream_is_kept) {
        keep(call, stream_of_all_threads(call->plan.stream), false, owners);
        return;
    }
    const bool done = WITHOUT_GIL(device_wait(call->plan.device));
    for (int role = 0; role < ROLE_COUNT && !done; role++)
        Py_XINCREF(owners[role]); /* for good */
}

int
record_operands(const struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct owned_operand *operand = &call->operands[role];
        if (call->described[role] && operand->exported && call->plan.n > 0 && operand->library &&
            operand->operand.stream != call->plan.stream &&
            library_record_stream(operand->library, operand->exported, call->plan.stream) < 0)
            return -1;
    }
    return 0;
}

int
record_objects(struct module_state *state, PyObject *objects, void *stream)
{
    const Py_ssize_t count = objects ? PySequence_Size(objects) : 0;
    int result = count < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; i < count && result == 0; i++) {
        const struct library *library = NULL;
        OWNED PyObject *object = PySequence_GetItem(objects, i);
        result = object ? library_of(state, object, &library) : -1;
        if (result == 0 && library)
            result = library_record_stream(library, object, stream);
    }
    return result;
}
