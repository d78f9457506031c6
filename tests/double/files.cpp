// The C library's reads and writes of files as the objects under test call them: a test sees each one, and may have it
// fail or move less than was asked for. The linker sends them here (--wrap); Python's own go past.
#include "double.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <sys/types.h>

static std::atomic<double_file_call *> watcher{nullptr};

void
double_on_file_call(double_file_call *call)
{
    watcher = call;
}

// What the watcher says of a call: an errno, which is left in errno; or the negative of the most bytes, INT_MIN for
// none; else 0.
static int
verdict(const char *call, off_t offset, size_t bytes)
{
    double_file_call *watches = watcher;
    const int said = watches ? watches(call, offset, bytes) : 0;
    if (said > 0)
        errno = said;
    return said;
}

static size_t
limited(size_t bytes, int said)
{
    if (said == INT_MIN)
        return 0;
    const size_t most = said < 0 ? static_cast<size_t>(-said) : bytes;
    return most < bytes ? most : bytes;
}

extern "C" {
ssize_t __real_pread(int descriptor, void *to, size_t bytes, off_t offset);
ssize_t __real_pwrite(int descriptor, const void *from, size_t bytes, off_t offset);

ssize_t
__wrap_pread(int descriptor, void *to, size_t bytes, off_t offset)
{
    const int said = verdict("pread", offset, bytes);
    return said > 0 ? -1 : __real_pread(descriptor, to, limited(bytes, said), offset);
}

ssize_t
__wrap_pwrite(int descriptor, const void *from, size_t bytes, off_t offset)
{
    const int said = verdict("pwrite", offset, bytes);
    return said > 0 ? -1 : __real_pwrite(descriptor, from, limited(bytes, said), offset);
}
}
