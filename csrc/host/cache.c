#include "host/cache.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads one word of the kernel's description of a cache of processor 0. */
static bool
read_word(int index, const char *name, char word[16])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool found = fscanf(file, "%15s", word) == 1;
    fclose(file);
    return found;
}

static size_t
from_sysfs(int level)
{
    char found[16], type[16], size[16];
    for (int index = 0; read_word(index, "level", found); index++) {
        int number;
        size_t kilobytes;
        if (sscanf(found, "%d", &number) != 1 || number != level)
            continue;
        if (!read_word(index, "type", type) || strcmp(type, "Instruction") == 0)
            continue;
        if (read_word(index, "size", size) && sscanf(size, "%zuK", &kilobytes) == 1)
            return kilobytes << 10;
    }
    return 0;
}

/* glibc asks the processor, which works without /sys too, but only on x86. */
static size_t
from_sysconf(int level)
{
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    const long bytes = sysconf(names[level - 1]);
    return bytes > 0 ? (size_t)bytes : 0;
#else
    return (void)level, 0;
#endif
}

size_t
host_cache_bytes(int level)
{
    if (level < 1 || level > 3)
        return 0;
    const size_t bytes = from_sysconf(level);
    return bytes ? bytes : from_sysfs(level);
}
