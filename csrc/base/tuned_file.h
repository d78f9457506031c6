/* Results of `vecadd tune` on this machine: small text files, written by vecadd/tune.py and read here.
 *
 *     vecadd 1 KEY            the version of the format, and what was tuned: a GPU and its driver, a processor
 *     name number number      rows of whole numbers, in the order written
 *     end 1                   the number of rows: a truncated file is rejected
 *
 * A file is in $VECADD_CACHE_DIR, else in $XDG_CACHE_HOME/vecadd, else in ~/.cache/vecadd. */
#ifndef VECADD_BASE_TUNED_FILE_H
#define VECADD_BASE_TUNED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TUNED_VERSION = 1,
    TUNED_NAME = 32,        /* bytes of a row's name with its end: lower case, digits and _ */
    TUNED_NUMBERS = 16,     /* of a row: one at least */
    TUNED_BYTES = 64 << 10, /* of a file */
};

/* Takes one row; returns false for a row that it rejects, which ends the reading. */
typedef bool tuned_row_function(void *context, const char *name, const uint64_t *number, int count);

/* Hands `row` the rows of the file of that kind ("recipes") and key, one line without its newline.
 *
 * False if there is no such file, if it has another key or version, if a line is malformed, or if `row` rejected
 * one, perhaps after some rows were handed over. So collect the rows, and use them once this returns true. Opens one
 * file and waits for the disk: call it on first use, never in later additions. */
bool tuned_file_read(const char *kind, const char *key, tuned_row_function *row, void *context);

/* The path of that file, whether it exists or not. False if the environment names no folder, if the key is empty or has
 * a newline, or if the path does not fit in `size` bytes. */
bool tuned_file_path(const char *kind, const char *key, char *path, size_t size);

#endif
