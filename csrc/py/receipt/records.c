#include "py/receipt/records.h"

#include <stdint.h>
#include <string.h>

#include "py/receipt/pages.h"

enum { RECORDS = 1 << 13 }; /* a power of two; half of them are used at most */

static struct record *table; /* stays where it is until records_stop(): an addition keeps its record's address */
static size_t count;
static long long missed, missed_ns;

int
records_start(void)
{
    table = pages_new(RECORDS * sizeof *table);
    count = 0;
    missed = missed_ns = 0;
    if (table)
        return 0;
    PyErr_NoMemory();
    return -1;
}

void
records_stop(void)
{
    for (size_t i = 0; table && i < RECORDS; i++)
        Py_XDECREF(table[i].example);
    pages_free(table, RECORDS * sizeof *table);
    table = NULL;
}

static size_t
hash(const struct record_key *key)
{
    size_t words[sizeof *key / sizeof(size_t)], mixed = 0;
    _Static_assert(sizeof words == sizeof *key, "a key is whole words");
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        mixed = (mixed ^ words[i]) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 32;
}

/* Its record, or the free place where that would be. */
static struct record *
place_in_table(const struct record_key *key)
{
    size_t at = hash(key) & (RECORDS - 1);
    while (table[at].example && memcmp(&table[at].key, key, sizeof *key) != 0)
        at = (at + 1) & (RECORDS - 1);
    return &table[at];
}

struct record *
records_find(const struct record_key *key)
{
    struct record *record = table ? place_in_table(key) : NULL;
    return record && record->example ? record : NULL;
}

struct record *
records_add(const struct record_key *key, enum via via, PyObject *example)
{
    struct record *record = place_in_table(key);
    if (record->example) { /* another thread has made it meanwhile */
        Py_DECREF(example);
        return record;
    }
    if (count >= RECORDS / 2) {
        Py_DECREF(example);
        return NULL;
    }
    *record = (struct record){.key = *key, .via = via, .example = example};
    count++;
    return record;
}

void
records_use(struct uses *uses, const void *data, long long before)
{
    struct use *use = uses->last;
    while (use < uses->last + USES && use->data != data)
        use++;
    if (use < uses->last + USES) {
        uses->again++;
        uses->between += before - use->before;
    } else
        use = &uses->last[uses->next++ % USES];
    *use = (struct use){data, before};
    uses->starts[(uintptr_t)data / 16 % STARTS]++;
}

void
records_miss(long long calls, long long ns)
{
    missed += calls;
    missed_ns += ns;
}

static PyObject *
place_described(PyObject *code, long at)
{
    return code ? Py_BuildValue("Ol", code, at) : Py_NewRef(Py_None);
}

/* Bytes from one use of an array to the next, in the mean; infinite where none came again of more arrays than are
 * remembered, None where none did of fewer. */
static PyObject *
between(const struct uses *uses)
{
    if (uses->again == 0 && uses->next <= USES)
        return Py_NewRef(Py_None);
    return PyFloat_FromDouble(uses->again ? (double)uses->between / (double)uses->again : Py_HUGE_VAL);
}

static PyObject *
starts(const struct uses *uses)
{
    return Py_BuildValue("LLLL", uses->starts[0], uses->starts[1], uses->starts[2], uses->starts[3]);
}

static PyObject *
described(const struct record *record)
{
    static const char *const via[] = {[VIA_NUMPY] = "numpy", [VIA_ADD] = "add", [VIA_ADD_MANY] = "add_many"};
    const struct place *place = &record->key.place;
    return Py_BuildValue(
        "{s:N,s:N,s:s,s:O,s:L,s:L,s:d,s:L,s:d,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:(NNN),s:(NNN)}", "place",
        place_described(place->code, place->at), "through", place_described(place->through, place->through_at), "via",
        via[record->via], "example", record->example, "calls", record->calls, "bytes", record->bytes, "seconds",
        1e-9 * (double)record->ns, "noted", record->noted, "first_seconds", 1e-9 * (double)record->first_ns,
        "first_faults", record->first_faults, "first_faulted", record->first_faulted, "looked", record->looked,
        "faults", record->faults, "faulted", record->faulted, "counted", record->counted, "loops", record->loops,
        "elements", record->elements, "added", record->added, "between", between(&record->uses[0]),
        between(&record->uses[1]), between(&record->uses[2]), "starts", starts(&record->uses[0]),
        starts(&record->uses[1]), starts(&record->uses[2]));
}

PyObject *
records_described(void)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && table && i < RECORDS; i++) {
        PyObject *one = table[i].example ? described(&table[i]) : NULL;
        if ((table[i].example && !one) || (one && PyList_Append(list, one) < 0))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list ? Py_BuildValue("{s:N,s:L,s:d}", "additions", list, "missed", missed, "missed_seconds",
                                1e-9 * (double)missed_ns)
                : NULL;
}
