/* Memory for every array that NumPy makes (NEP 49): large arrays lie in the pool of sums, so that a program's
 * temporaries find pages that exist already, and small ones in the C library's heap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/output_pool.h"
#include "py/base/methods.h"
#include "py/calls/result.h"

/* Stands before an array's bytes, because NumPy names no size when it resizes or frees what it resized. */
struct head {
    size_t bytes; /* the array's */
    size_t pooled;
};

enum { CACHE_LINE = 64 }; /* before a pooled array's bytes, so that they are aligned as other sums are */

static size_t
room(bool pooled)
{
    return pooled ? CACHE_LINE : sizeof(struct head);
}

static struct head *
head_of(void *array)
{
    return (struct head *)array - 1;
}

static void *
take(size_t bytes, bool zeroed)
{
    const bool pooled = bytes >= OUTPUT_POOL_MIN;
    size_t whole;
    if (__builtin_add_overflow(bytes, room(pooled), &whole))
        return NULL;
    char *block = pooled   ? (zeroed ? output_pool_take_zeroed(whole) : output_pool_take(whole))
                  : zeroed ? calloc(1, whole)
                           : malloc(whole);
    if (!block)
        return NULL;
    *head_of(block + room(pooled)) = (struct head){bytes, pooled};
    return block + room(pooled);
}

static void *
memory_malloc(void *Py_UNUSED(context), size_t bytes)
{
    return take(bytes, false);
}

static void *
memory_calloc(void *Py_UNUSED(context), size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : take(bytes, true);
}

static void
memory_free(void *Py_UNUSED(context), void *array, size_t Py_UNUSED(bytes))
{
    if (!array)
        return;
    const bool pooled = head_of(array)->pooled;
    void *block = (char *)array - room(pooled);
    if (pooled)
        output_pool_give(block);
    else
        free(block);
}

static void *
memory_realloc(void *context, void *array, size_t bytes)
{
    if (!array)
        return take(bytes, false);
    const struct head head = *head_of(array);
    if (!head.pooled && bytes < OUTPUT_POOL_MIN) {
        char *block = realloc((char *)array - room(false), bytes + room(false));
        if (!block)
            return NULL;
        *head_of(block + room(false)) = (struct head){bytes, false};
        return block + room(false);
    }
    void *moved = take(bytes, false);
    if (moved) {
        memcpy(moved, array, bytes < head.bytes ? bytes : head.bytes);
        memory_free(context, array, head.bytes);
    }
    return moved;
}

static PyDataMem_Handler memory = {
    .name = "vecadd_array_memory",
    .version = 1,
    .allocator = {.malloc = memory_malloc, .calloc = memory_calloc, .realloc = memory_realloc, .free = memory_free},
};

const char use_array_memory_doc[] =
    PyDoc_STR("use_array_memory($module, handler, /)\n--\n\n"
              "Makes NumPy take the memory of new arrays from that handler, in this context (NEP 49): from ours for\n"
              "True, from NumPy's own for None. Returns the handler so far, for a later call.");

PyObject *
py_use_array_memory(PyObject *Py_UNUSED(module), PyObject *handler)
{
    if (Py_IsNone(handler))
        return array_handler_set(NULL);
    if (!Py_IsTrue(handler))
        return array_handler_set(handler);
    PyObject *ours = PyCapsule_New(&memory, "mem_handler", NULL); /* an array keeps the capsule, not the module */
    PyObject *before = ours ? array_handler_set(ours) : NULL;
    Py_XDECREF(ours);
    return before;
}
