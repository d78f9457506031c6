/* What the system says of this process's memory. */
#ifndef VECADD_TESTS_PROCESS_MEMORY_H
#define VECADD_TESTS_PROCESS_MEMORY_H

#include <inttypes.h>
#include <string.h>

#include "check.h"

/* Bytes: mapped, and of these resident. */
static inline void
count_bytes(long bytes[2])
{
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &bytes[0], &bytes[1]) == 2 && fclose(file) == 0);
    for (int i = 0; i < 2; i++)
        bytes[i] *= sysconf(_SC_PAGESIZE);
}

/* Whether the flags of the mapping around an address include this one. */
static inline bool
mapping_has(const void *address, const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    char line[512];
    uintptr_t begin, end;
    bool here = false, found = false;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            here = begin <= (uintptr_t)address && (uintptr_t)address < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    fclose(file);
    return found;
}

static inline bool
all_zeros(const unsigned char *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

#endif
