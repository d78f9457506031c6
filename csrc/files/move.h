/* Bytes of files to and from memory: through the page cache, or past it (O_DIRECT). All functions return 0, an errno,
 * or FILE_CUT_SHORT where a file ends before the bytes do; short reads, short writes and signals are gone on from. */
#ifndef VECADD_FILES_MOVE_H
#define VECADD_FILES_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    FILE_CUT_SHORT = -1,
    FILE_PAGE = 4096, /* a multiple of every alignment that O_DIRECT asks for, but on disks that no one sells */
};

/* An open file. The plain descriptor is the caller's. */
struct file {
    int plain;
    int direct;           /* of the same file, with O_DIRECT; -1: there is none */
    unsigned char *pages; /* of an input that is read directly: mapped to ask which of them are in the cache, never
                           * touched. NULL: not */
    size_t size;          /* of the mapping */
};

/* Opens the file a second time, for direct reads or writes. Where that cannot be done, all goes through the page cache.
 */
void file_open_direct(struct file *file, bool writes);

/* Closes and unmaps what file_open_direct opened. */
void file_close_direct(struct file *file);

/* Reads to `to`. Directly where `file` has a direct descriptor and the page cache lacks some of the bytes: then `to`
 * stands as far behind a page's begin as `at` does, and the pages that the bytes lie on are all memory to write to. */
int file_read(const struct file *file, void *to, size_t bytes, off_t at);

/* Writes; directly where there is a direct descriptor and whole pages are written from a page's begin. */
int file_write(const struct file *file, const void *from, size_t bytes, off_t at);

#endif
