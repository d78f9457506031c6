#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static FILE *
open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length < (int)sizeof path ? fopen(path, "re") : NULL;
}

long long
cgroup_number(const char *folder, const char *name)
{
    long long value = 0;
    FILE *file = open_in(folder, name);
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

void
cgroup_two_numbers(const char *folder, const char *name, long long *first, long long *second)
{
    FILE *file = open_in(folder, name);
    if (file == NULL || fscanf(file, "%lld %lld", first, second) != 2)
        *first = *second = 0;
    if (file)
        fclose(file);
}

/* The smaller of two limits; 0 stands for no limit. */
static long long
smaller_limit(long long a, long long b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest limit of a group and its ancestors, all of which apply to it. Inside a container the path that /proc
 * shows may not exist under the hierarchy's mount, whose top is then the container's own group; a missing folder counts
 * as no limit. */
static long long
up_the_tree(long long (*limit)(const char *folder), const char *mount, const char *hierarchy, const char *path)
{
    char folder[PATH_MAX];
    const size_t top = strlen(mount) + strlen(hierarchy);
    if (snprintf(folder, sizeof folder, "%s%s%s", mount, hierarchy, path) >= (int)sizeof folder)
        return 0;
    long long smallest = limit(folder);
    while (strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        smallest = smaller_limit(smallest, limit(folder));
    }
    return smallest;
}

/* One line of the membership, "number:controllers:/path". Version 2 names no controllers; its hierarchy is the whole
 * mount, or `unified` beside those of version 1. A version 1 hierarchy has a folder or a link for each controller. */
static long long
limit_of_line(const struct cgroup_limit *limit, char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return 0;
    *controllers++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';

    if (*controllers == '\0')
        return smaller_limit(up_the_tree(limit->v2, mount, "", path), up_the_tree(limit->v2, mount, "/unified", path));
    char hierarchy[64];
    snprintf(hierarchy, sizeof hierarchy, "/%s", limit->controller);
    for (char *name; (name = strsep(&controllers, ",")) != NULL;)
        if (strcmp(name, limit->controller) == 0)
            return up_the_tree(limit->v1, mount, hierarchy, path);
    return 0;
}

long long
cgroup_smallest(const struct cgroup_limit *limit, const char *membership, const char *mount)
{
    char line[PATH_MAX + 256];
    long long smallest = 0;
    FILE *file = fopen(membership, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file))
        smallest = smaller_limit(smallest, limit_of_line(limit, line, mount));
    fclose(file);
    return smallest;
}
