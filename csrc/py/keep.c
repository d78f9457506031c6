#include "keep.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "foreign.h"
#include "stream.h"

struct kept {
    struct kept *next;
    PyObject *owner;
    void *mark;
};

/* Oldest first. No Python code runs and the GIL is not given up under the lock, so that no fork meets it held. */
static struct {
    pthread_mutex_t lock;
    struct kept *first, **end;
} queue = {PTHREAD_MUTEX_INITIALIZER, NULL, &queue.first};

static void
append(struct kept *entry)
{
    entry->next = NULL;
    pthread_mutex_lock(&queue.lock);
    *queue.end = entry;
    queue.end = &entry->next;
    pthread_mutex_unlock(&queue.lock);
}

/* The oldest entry, taken out; NULL where the GPU is not done with it, or there is none. */
static struct kept *
take_done(void)
{
    pthread_mutex_lock(&queue.lock);
    struct kept *entry = queue.first;
    if (entry && stream_mark_reached(entry->mark)) {
        queue.first = entry->next;
        if (!queue.first)
            queue.end = &queue.first;
    } else
        entry = NULL;
    pthread_mutex_unlock(&queue.lock);
    return entry;
}

void
keep_sweep(void)
{
    for (struct kept *entry; (entry = take_done());) {
        Py_DECREF(entry->owner);
        free(entry);
    }
}

/* Whether the operand's owner is held now; if not, it need not be. */
static bool
keep(const struct plan *plan, PyObject *owner)
{
    struct kept *entry = malloc(sizeof *entry);
    PyThreadState *released = PyEval_SaveThread();
    void *mark = stream_mark(plan->device, plan->stream);
    while (mark && !entry && !stream_mark_reached(mark)) /* no room to note it down: it has to be waited for */
        sched_yield();
    PyEval_RestoreThread(released);
    if (!mark || !entry) {
        free(entry);
        return false;
    }
    entry->mark = mark;
    entry->owner = Py_NewRef(owner);
    append(entry);
    return true;
}

static bool
holds(const struct prepared_call *call, int role)
{
    return call->held[role] && call->devices[role].exported && call->plan.n > 0;
}

void
keep_lent_operands(const struct prepared_call *call)
{
    bool kept = false;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (holds(call, role) && call->devices[role].lent)
            kept |= keep(&call->plan, call->devices[role].exported);
    if (kept) /* else the stream captures, which a query would end */
        keep_sweep();
}

int
record_operands(const struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct device_operand *operand = &call->devices[role];
        if (holds(call, role) && operand->library && operand->operand.stream != call->plan.stream &&
            foreign_record_stream(operand->library, operand->exported, call->plan.stream) < 0)
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
        PyObject *library = NULL, *object = PySequence_GetItem(objects, i);
        result = object ? foreign_library(state, object, &library) : -1;
        if (result == 0 && library)
            result = foreign_record_stream(library, object, stream);
        Py_XDECREF(library);
        Py_XDECREF(object);
    }
    return result;
}
