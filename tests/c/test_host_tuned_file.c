/* Files of what was tuned: whole ones are read, anything else is as if it were not there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tuned_file.h"
#include "check.h"

#define KEY  "GPU-01 driver 13000"
#define HEAD "vecadd 1 " KEY "\n"

/* Of the folder that main made for this file alone; each test begins with what it writes there. */
static char path[256];

static void
find_path(const char *folder)
{
    setenv("VECADD_CACHE_DIR", folder, 1);
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
}

static void
write_bytes(const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, length, file) == length && fclose(file) == 0);
}

static void
write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

struct seen {
    int rows, numbers;
    int accepted; /* rows; -1: any number */
    char last[TUNED_NAME];
    uint64_t number[TUNED_NUMBERS];
};

static bool
note_row(void *context, const char *name, const uint64_t *number, int count)
{
    struct seen *seen = context;
    if (seen->rows == seen->accepted)
        return false;
    seen->rows++;
    seen->numbers += count;
    snprintf(seen->last, sizeof seen->last, "%s", name);
    memcpy(seen->number, number, (size_t)count * sizeof *number);
    return true;
}

static bool
reads(struct seen *seen)
{
    *seen = (struct seen){.accepted = -1};
    return tuned_file_read("recipes", KEY, note_row, seen);
}

static void
a_whole_file_is_handed_over_in_order(void)
{
    struct seen seen;
    write_text(HEAD "recipe 0 256 1\nrecipe_2 134217728 18446744073709551615 2 16\nend 2\n");
    CHECK(reads(&seen));
    CHECK(seen.rows == 2 && seen.numbers == 7 && strcmp(seen.last, "recipe_2") == 0);
    CHECK(seen.number[0] == 134217728 && seen.number[1] == UINT64_MAX && seen.number[2] == 2 && seen.number[3] == 16);
    write_text(HEAD "end 0\n");
    CHECK(reads(&seen) && seen.rows == 0);
}

static void
anything_else_is_no_file(void)
{
    static const char *const corrupt[] = {
        "",
        "vecadd 1 " KEY,
        HEAD,
        HEAD "recipe 1\n",
        HEAD "recipe 1\nend 2\n",
        HEAD "recipe 1\nend 1",
        HEAD "recipe 1\nend 1\n ",
        HEAD "recipe 1\nend 1\nrecipe 1\n",
        HEAD "recipe 1\nend 1 1\n",
        HEAD "recipe\nend 1\n",
        HEAD "recipe \nend 1\n",
        HEAD "recipe  1\nend 1\n",
        HEAD "recipe 1 \nend 1\n",
        HEAD "recipe 1,5\nend 1\n",
        HEAD "recipe 1x\nend 1\n",
        HEAD "recipe -1\nend 1\n",
        HEAD "recipe +1\nend 1\n",
        HEAD "recipe 1.5\nend 1\n",
        HEAD "recipe 18446744073709551616\nend 1\n",
        HEAD "recipe \n1\nend 1\n",
        HEAD "Recipe 1\nend 1\n",
        HEAD " recipe 1\nend 1\n",
        HEAD "recipe 1\r\nend 1\r\n",
        HEAD "\nend 0\n",
        HEAD "a_name_of_more_characters_than_fit 1\nend 1\n",
        HEAD "recipe 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\nend 1\n",
        /* of another key or version */
        "vecadd 1 GPU-02 driver 13000\nend 0\n",
        "vecadd 1 " KEY "0\nend 0\n",
        "vecadd 1 GPU-01\nend 0\n",
        "vecadd 2 " KEY "\nend 0\n",
        "vecadd 11 " KEY "\nend 0\n",
        "other 1 " KEY "\nend 0\n",
    };
    struct seen seen;
    remove(path);
    CHECK(!reads(&seen), "the file does not exist");
    CHECK(mkdir(path, 0700) == 0 && !reads(&seen) && remove(path) == 0, "a folder");
    for (size_t i = 0; i < sizeof corrupt / sizeof *corrupt; i++) {
        write_text(corrupt[i]);
        CHECK(!reads(&seen), "%s", corrupt[i]);
    }
    write_bytes(HEAD "recipe 1\0\nend 1\n", sizeof HEAD "recipe 1\0\nend 1\n" - 1);
    CHECK(!reads(&seen), "a zero byte");
}

static void
a_file_cut_off_anywhere_is_no_file(void)
{
    static const char whole[] = HEAD "recipe 0 256\nrecipe 12 1024\nend 2\n";
    struct seen seen;
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        write_bytes(whole, length);
        CHECK(!reads(&seen), "%zu bytes", length);
    }
    write_text(whole);
    CHECK(reads(&seen));
}

static void
a_file_that_is_too_long_is_no_file(void)
{
    enum { ROWS = 8000 };
    static char text[ROWS * 10 + 100];
    struct seen seen;
    size_t length = (size_t)sprintf(text, HEAD);
    for (int i = 0; i < ROWS; i++)
        length += (size_t)sprintf(text + length, "recipe 12\n");
    length += (size_t)sprintf(text + length, "end 8000\n");
    CHECK(length > TUNED_BYTES);
    write_bytes(text, length);
    CHECK(!reads(&seen));
}

static void
a_reader_may_refuse_a_row(void)
{
    struct seen seen = {.accepted = 1};
    write_text(HEAD "recipe 1\nrecipe 2\nrecipe 3\nend 3\n");
    CHECK(!tuned_file_read("recipes", KEY, note_row, &seen));
    CHECK(seen.rows == 1);
}

static void
folders_are_taken_in_order(void)
{
    setenv("VECADD_CACHE_DIR", "here", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("HOME", "/home/me", 1);
    CHECK(tuned_file_path("host", "a b/c", path, sizeof path) && strcmp(path, "here/host-a_b_c.txt") == 0, "%s", path);
    setenv("VECADD_CACHE_DIR", "", 1);
    CHECK(tuned_file_path("host", "k", path, sizeof path) && strcmp(path, "/xdg/vecadd/host-k.txt") == 0, "%s", path);
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(tuned_file_path("host", "k", path, sizeof path) && strcmp(path, "/home/me/.cache/vecadd/host-k.txt") == 0,
          "%s", path);
    CHECK(!tuned_file_path("host", "k", path, 20), "no room");
    CHECK(!tuned_file_path("host", "two\nlines", path, sizeof path));
    CHECK(!tuned_file_path("host", "", path, sizeof path));
    unsetenv("HOME");
    CHECK(!tuned_file_path("host", "k", path, sizeof path));
    CHECK(!tuned_file_read("host", "k", note_row, NULL));
}

int
main(void)
{
    char folder[] = "/tmp/vecadd-tuned-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    find_path(folder);
    RUN(a_whole_file_is_handed_over_in_order);
    RUN(anything_else_is_no_file);
    RUN(a_file_cut_off_anywhere_is_no_file);
    RUN(a_file_that_is_too_long_is_no_file);
    RUN(a_reader_may_refuse_a_row);
    RUN(folders_are_taken_in_order);
    CHECK(remove(path) == 0 && remove(folder) == 0);
    return check_report();
}
