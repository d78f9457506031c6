#include "py/operands/kept_streams.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/runtime.h"
#include "gpu/stream.h"

struct entry {
    struct kept_stream kept; /* first, so that its address is the entry's */
    struct entry *next;
    void *stream;
    PyObject *owner; /* owned; True for a stream that nothing destroys, whose entry stays */
};

/* All that have users, and those that wait for a sweep: as long as an owner is here its handle names its stream. The
 * lock is taken for a few instructions, without Python code. */
static struct entry *entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Adds a user to the stream's entry; NULL where there is none. A stream object that is not the entry's owner may be of
 * a new stream, if the owner's was destroyed by a call of its own. */
static struct kept_stream *
use_known(const void *stream, const PyObject *given)
{
    struct kept_stream *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct entry *entry = entries; entry && !found; entry = entry->next)
        if (entry->stream == stream && (!given || given == entry->owner || Py_IsTrue(entry->owner)))
            found = &entry->kept;
    kept_stream_use(found);
    pthread_mutex_unlock(&lock);
    return found;
}

/* Takes the reference to the owner. NULL with an exception set. */
static struct kept_stream *
keep(void *stream, PyObject *owner)
{
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) {
        Py_DECREF(owner);
        PyErr_NoMemory();
        return NULL;
    }
    *entry = (struct entry){.stream = stream, .owner = owner};
    atomic_init(&entry->kept.users, Py_IsTrue(owner) ? 2 : 1);
    pthread_mutex_lock(&lock);
    entry->next = entries;
    entries = entry;
    pthread_mutex_unlock(&lock);
    return &entry->kept;
}

PyObject *
list_of_arrays(PyObject *const *arrays, size_t count, bool lists)
{
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all && i < count; i++) {
        const Py_ssize_t end = PyList_Size(all);
        if (arrays[i] && (lists ? PyList_SetSlice(all, end, end, arrays[i]) : PyList_Append(all, arrays[i])) < 0)
            Py_CLEAR(all);
    }
    return all;
}

PyObject *
stream_owner(void *stream, int device, PyObject *given, PyObject *arrays)
{
    return call_imported("vecadd.interop", "stream_owner", "(KiOO)", (unsigned long long)(uintptr_t)stream, device,
                         given ? given : Py_None, arrays);
}

int
later_stream_find(struct later_stream *found, void *stream, int device, PyObject *given, PyObject *const *arrays,
                  size_t count, bool lists)
{
    *found = (struct later_stream){.stream = stream, .lasting = stream_is_lasting(device, stream)};
    if (found->lasting || stream == STREAM_PER_THREAD)
        return 0;
    if (given && PyIndex_Check(given)) /* a bare handle */
        given = NULL;
    found->kept = use_known(stream, given);
    if (found->kept)
        return 0;
    OWNED PyObject *all = list_of_arrays(arrays, count, lists);
    OWNED PyObject *owner = all ? stream_owner(stream, device, given, all) : NULL;
    if (!owner || Py_IsNone(owner))
        return owner ? 0 : -1;
    found->kept = keep(stream, hand_out(&owner));
    return found->kept ? 0 : -1;
}

void
later_stream_clear(struct later_stream *stream)
{
    kept_stream_leave(stream->kept);
    stream->kept = NULL;
}

/* Removes an entry without users. */
static struct entry *
take_left(void)
{
    struct entry *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct entry **at = &entries; *at && !found;)
        if (atomic_load(&(*at)->kept.users) == 0) {
            found = *at;
            *at = found->next;
        } else
            at = &(*at)->next;
    pthread_mutex_unlock(&lock);
    return found;
}

void
kept_streams_sweep(void)
{
    struct entry *entry;
    if (!kept_streams_left() || !runtime_cuda_usable()) /* in a forked child an owner could not destroy its stream */
        return;
    kept_streams_forget_left();
    while ((entry = take_left())) {
        Py_DECREF(entry->owner);
        free(entry);
    }
}
