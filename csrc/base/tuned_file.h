/* What `vecadd tune` found on this machine: small text files, written by vecadd/tune/store.py and read here.
 *
 *     vecadd 1 KEY            the version of the format, and what was tuned: a GPU and its driver, a processor
 *     name number number      rows, in the order in which they were written
 *     end 1                   how many rows there are: a file that was cut off is none
 *
 * A file lies in $VECADD_CACHE_DIR, else in $XDG_CACHE_HOME/vecadd, else in ~/.cache/vecadd. */
#ifndef VECADD_BASE_TUNED_FILE_H
#define VECADD_BASE_TUNED_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TUNED_VERSION = 1,
    TUNED_NAME = 32,        /* bytes of a row's name with its end: lower case, digits and _ */
    TUNED_NUMBERS = 16,     /* of a row: one at least */
    TUNED_BYTES = 64 << 10, /* of a file */
};

/* Takes one row; false for a row that makes no sense to its reader, which ends the reading. */
typedef bool tuned_row_function(void *context, const char *name, const double *number, int count);

/* Hands over the rows of the file of that kind ("launch configs", "host", "routes") and key, a line without its end.
 *
 * False where there is no regular file, where it belongs to another key or version, where any line of it is not as
 * above, and where `row` refused one. All lines are parsed before the first is handed over, so that only in the last
 * case some were: rows are best collected, and used when this returns true. Opens one file and waits for the disk: for
 * a first use, never inside of an addition after that. */
bool tuned_file_read(const char *kind, const char *key, tuned_row_function *row, void *context);

/* The path of that file, whether it exists or not; false where the environment names no folder, for a key that is no
 * line, and where `size` bytes do not hold it. */
bool tuned_file_path(const char *kind, const char *key, char *path, size_t size);

#endif
