/* The owners of other libraries' streams that vecadd uses after the call in which they were given. */
#ifndef VECADD_PY_OPERANDS_KEPT_STREAMS_H
#define VECADD_PY_OPERANDS_KEPT_STREAMS_H

#include "base/kept_stream.h"
#include "py/base/python.h"

/* A stream, as what is made in a call uses it later. {0} is the legacy default stream. */
struct later_stream {
    void *stream;
    struct kept_stream *kept; /* its owner is kept for as long as this struct is a user */
    bool lasting;             /* no owner has to be kept: a default stream, vecadd's own, or that of an array in use */
};

/* A new list of a call's arrays: `count` objects, or lists and tuples of them. Some may be NULL. */
PyObject *list_of_arrays(PyObject *const *arrays, size_t count, bool lists);

/* A new reference to what keeps a stream: the object that destroys it when it goes, True where nothing destroys it, or
 * None where nothing is known. `given` is the caller's stream= (NULL: none, or a bare handle), `arrays` the list of a
 * call's. NULL with an exception set. */
PyObject *stream_owner(void *stream, int device, PyObject *given, PyObject *arrays);

/* Adds a user to the stream's owner if there is one. `given` may be a bare handle here; the last three are those of
 * list_of_arrays. Returns 0, to be cleared, or -1 with an exception set. */
int later_stream_find(struct later_stream *found, void *stream, int device, PyObject *given, PyObject *const *arrays,
                      size_t count, bool lists);
void later_stream_clear(struct later_stream *stream);

/* Lets go of the owners of streams without users. May run Python code. */
void kept_streams_sweep(void);

#endif
