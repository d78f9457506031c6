#include "files/move.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/min_max.h"

enum { LOOK = 256 }; /* pages that one question to the kernel is about */

void
file_open_direct(struct file *file, bool writes)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->plain);
    file->direct = open(path, (writes ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    file->pages = NULL;
    if (file->direct < 0 || writes)
        return;
    void *pages = MAP_FAILED;
    if (fstat(file->plain, &status) == 0 && status.st_size > 0) {
        file->size = (size_t)status.st_size;
        pages = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->plain, 0);
    }
    if (pages != MAP_FAILED)
        file->pages = pages;
    else
        file_close_direct(file);
}

void
file_close_direct(struct file *file)
{
    if (file->direct >= 0)
        close(file->direct);
    if (file->pages)
        munmap(file->pages, file->size);
    file->direct = -1;
    file->pages = NULL;
}

/* Whether the page cache lacks some of the bytes. The kernel says so only of files that this user owns or may write to;
 * of all others it says that they are there. */
static bool
is_missing(const struct file *file, size_t bytes, off_t at)
{
    const size_t begin = (size_t)at / FILE_PAGE * FILE_PAGE, end = smaller((size_t)at + bytes, file->size);
    unsigned char there[LOOK];
    for (size_t page = begin; page < end; page += (size_t)LOOK * FILE_PAGE) {
        const size_t asked = smaller((size_t)LOOK * FILE_PAGE, end - page);
        if (mincore(file->pages + page, asked, there) < 0)
            return false;
        for (size_t i = 0; i * FILE_PAGE < asked; i++)
            if (!(there[i] & 1))
                return true;
    }
    return false;
}

static int
read_plainly(int descriptor, char *to, size_t bytes, off_t at)
{
    while (bytes) {
        const ssize_t got = pread(descriptor, to, bytes, at);
        if (got == 0)
            return FILE_CUT_SHORT;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0) {
            to += got;
            at += got;
            bytes -= (size_t)got;
        }
    }
    return 0;
}

int
file_read(const struct file *file, void *to, size_t bytes, off_t at)
{
    const size_t before = (size_t)at % FILE_PAGE, whole = (before + bytes + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE;
    if (file->direct >= 0 && (uintptr_t)to % FILE_PAGE == before && is_missing(file, bytes, at)) {
        const ssize_t got = pread(file->direct, (char *)to - before, whole, at - (off_t)before);
        if (got >= (ssize_t)(before + bytes))
            return 0;
    } /* what cannot be read so is read, or refused, by the page cache */
    return read_plainly(file->plain, to, bytes, at);
}

static int
write_plainly(int descriptor, const char *from, size_t bytes, off_t at)
{
    while (bytes) {
        const ssize_t put = pwrite(descriptor, from, bytes, at);
        if (put == 0)
            return ENOSPC; /* no errno says why: there was no room, as other programs take it */
        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0) {
            from += put;
            at += put;
            bytes -= (size_t)put;
        }
    }
    return 0;
}

int
file_write(const struct file *file, const void *from, size_t bytes, off_t at)
{
    if (file->direct >= 0 && ((uintptr_t)from | bytes | (size_t)at) % FILE_PAGE == 0 &&
        pwrite(file->direct, from, bytes, at) == (ssize_t)bytes)
        return 0;
    return write_plainly(file->plain, from, bytes, at);
}
