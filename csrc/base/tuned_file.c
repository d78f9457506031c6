#include "base/tuned_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Characters of a key that a file's name keeps, others become '_'; the file's first line has the unchanged key. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";

enum { KEY_IN_NAME = 128 }; /* bytes: a file's name has 255 at most */

/* The two parts of the folder's path, or false if there is none. Relative paths in XDG_CACHE_HOME and HOME are ignored,
 * as the XDG base directory specification demands: they would change with the working directory. */
static bool
folder(const char **first, const char **second)
{
    static const struct {
        const char *variable, *below;
        bool absolute;
    } places[] = {
        {"VECADD_CACHE_DIR", "", false},
        {"XDG_CACHE_HOME", "/vecadd", true},
        {"HOME", "/.cache/vecadd", true},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value && (!places[i].absolute || *value == '/')) {
            *first = value;
            *second = places[i].below;
            return true;
        }
    }
    return false;
}

bool
tuned_file_path(const char *kind, const char *key, char *path, size_t size)
{
    const char *first, *second;
    char shown[KEY_IN_NAME + 1];
    if (*key == '\0' || strchr(key, '\n') || !folder(&first, &second))
        return false;
    size_t length = 0;
    for (; key[length] && length < KEY_IN_NAME; length++)
        shown[length] = strchr(plain, key[length]) ? key[length] : '_';
    shown[length] = '\0';
    const int written = snprintf(path, size, "%s%s/%s-%s.txt", first, second, kind, shown);
    return written > 0 && (size_t)written < size;
}

struct row {
    char name[TUNED_NAME];
    uint64_t number[TUNED_NUMBERS];
    int count;
};

/* Parses the line at `at`. Returns the start of the next line, or NULL. */
static const char *
parse_line(const char *at, struct row *row)
{
    size_t length = 0;
    while (islower((unsigned char)at[length]) || isdigit((unsigned char)at[length]) || at[length] == '_')
        length++;
    if (length == 0 || length >= TUNED_NAME)
        return NULL;
    memcpy(row->name, at, length);
    row->name[length] = '\0';
    at += length;

    for (row->count = 0; *at == ' ' && row->count < TUNED_NUMBERS; row->count++) {
        char *end;
        errno = 0;
        if (!isdigit((unsigned char)at[1])) /* strtoull would step over white space and a sign */
            return NULL;
        row->number[row->count] = strtoull(at + 1, &end, 10);
        if (errno)
            return NULL;
        at = end;
    }
    return row->count > 0 && *at == '\n' ? at + 1 : NULL;
}

/* Hands all lines after the first to `take`. False for an incomplete file. */
static bool
parse(const char *at, const char *end, tuned_row_function *take, void *context)
{
    struct row row;
    for (uint64_t rows = 0; (at = parse_line(at, &row)) != NULL; rows++) {
        if (strcmp(row.name, "end") == 0)
            return at == end && row.count == 1 && row.number[0] == rows;
        if (!take(context, row.name, row.number, row.count))
            return false;
    }
    return false;
}

/* The file's *length bytes, followed by a 0; the caller frees them. NULL if there is no such file or it is too large.
 */
static char *
contents(const char *path, size_t *length)
{
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(TUNED_BYTES + 1) : NULL;
    if (text) {
        *length = fread(text, 1, TUNED_BYTES + 1, file);
        if (ferror(file) || *length > TUNED_BYTES) { /* it may have grown meanwhile */
            free(text);
            text = NULL;
        } else
            text[*length] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

/* The start of the second line, or NULL if the first line has another key or version. */
static const char *
after_head(const char *text, const char *key)
{
    char head[32];
    const int length = snprintf(head, sizeof head, "vecadd %d ", TUNED_VERSION);
    const size_t key_length = strlen(key);
    if (strncmp(text, head, (size_t)length) != 0 || strncmp(text + length, key, key_length) != 0)
        return NULL;
    text += (size_t)length + key_length;
    return *text == '\n' ? text + 1 : NULL;
}

bool
tuned_file_read(const char *kind, const char *key, tuned_row_function *row, void *context)
{
    char path[PATH_MAX];
    size_t length;
    if (!tuned_file_path(kind, key, path, sizeof path))
        return false;
    char *text = contents(path, &length);
    if (!text)
        return false;
    const char *first = after_head(text, key);
    const bool read = first && parse(first, text + length, row, context);
    free(text);
    return read;
}
