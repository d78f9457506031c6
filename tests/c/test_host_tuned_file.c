/* Files of what was tuned: whole ones are read, anything else is as if it were not there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tuned_file.h"
#include "check.h"

#define KEY  "GPU-01 driver 13000"
#define HEAD "vecadd 1 " KEY "\n"

static char folder[64];

/* A folder of this process's own, and the variable that names it. */
static void
make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/vecadd-tuned-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    setenv("VECADD_CACHE_DIR", folder, 1);
}

static void
write_bytes(const char *text, size_t length)
{
    char path[256];
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, length, file) == length && fclose(file) == 0);
}

static void
write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static void
remove_folder(void)
{
    char path[256];
    if (tuned_file_path("recipes", KEY, path, sizeof path))
        remove(path);
    remove(folder);
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
    make_folder();
    write_text(HEAD "recipe 0 256 1\nrecipe_2 134217728 18446744073709551615 2 16\nend 2\n");
    CHECK(reads(&seen));
    CHECK(seen.rows == 2 && seen.numbers == 7 && strcmp(seen.last, "recipe_2") == 0);
    CHECK(seen.number[0] == 134217728 && seen.number[1] == UINT64_MAX && seen.number[2] == 2 && seen.number[3] == 16);
    write_text(HEAD "end 0\n");
    CHECK(reads(&seen) && seen.rows == 0);
    remove_folder();
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
    };
    struct seen seen;
    make_folder();
    CHECK(!reads(&seen), "there is none yet");
    for (size_t i = 0; i < sizeof corrupt / sizeof *corrupt; i++) {
        write_text(corrupt[i]);
        CHECK(!reads(&seen), "%s", corrupt[i]);
    }
    write_bytes(HEAD "recipe 1\0\nend 1\n", sizeof HEAD "recipe 1\0\nend 1\n" - 1);
    CHECK(!reads(&seen), "a zero byte");
    remove_folder();
}

static void
a_file_cut_off_anywhere_is_no_file(void)
{
    static const char whole[] = HEAD "recipe 0 256\nrecipe 12 1024\nend 2\n";
    struct seen seen;
    make_folder();
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        write_bytes(whole, length);
        CHECK(!reads(&seen), "%zu bytes", length);
    }
    write_text(whole);
    CHECK(reads(&seen));
    remove_folder();
}

static void
a_file_of_another_key_or_version_is_no_file(void)
{
    static const char *const foreign[] = {
        "vecadd 1 GPU-02 driver 13000\nend 0\n",
        "vecadd 1 " KEY "0\nend 0\n",
        "vecadd 1 GPU-01\nend 0\n",
        "vecadd 2 " KEY "\nend 0\n",
        "vecadd 11 " KEY "\nend 0\n",
        "other 1 " KEY "\nend 0\n",
    };
    struct seen seen;
    make_folder();
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        write_text(foreign[i]);
        CHECK(!reads(&seen), "%s", foreign[i]);
    }
    remove_folder();
}

static void
a_file_that_is_too_long_is_no_file(void)
{
    enum { ROWS = 8000 };
    static const char row[] = "recipe 12\n", head[] = HEAD, end[] = "end 8000\n";
    char *text = malloc(sizeof head + ROWS * (sizeof row - 1) + sizeof end);
    size_t length = 0;
    struct seen seen;
    if (!text)
        abort();
    length += (size_t)sprintf(text, "%s", head);
    for (int i = 0; i < ROWS; i++)
        length += (size_t)sprintf(text + length, "%s", row);
    length += (size_t)sprintf(text + length, "%s", end);
    CHECK(length > TUNED_BYTES);
    make_folder();
    write_bytes(text, length);
    CHECK(!reads(&seen));
    free(text);
    remove_folder();
}

/* A reader that waited for a FIFO's writer would wait for ever: the alarm ends the test then. */
static void
what_is_no_regular_file_is_no_file(void)
{
    struct seen seen;
    char path[256];
    make_folder();
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    alarm(20);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(!reads(&seen), "a FIFO");
    CHECK(remove(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(!reads(&seen), "a folder");
    static const char *const targets[] = {"/dev/zero", "/dev/tty", "/nowhere/at/all"};
    CHECK(remove(path) == 0);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CHECK(symlink(targets[i], path) == 0);
        CHECK(!reads(&seen), "a link to %s", targets[i]);
        CHECK(remove(path) == 0);
    }
    CHECK(symlink(path, path) == 0);
    CHECK(!reads(&seen), "a link to itself");
    alarm(0);
    remove_folder();
}

static void
a_link_to_a_whole_file_is_followed(void)
{
    struct seen seen;
    char path[256], target[300];
    make_folder();
    write_text(HEAD "end 0\n");
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    snprintf(target, sizeof target, "%s.elsewhere", path);
    CHECK(rename(path, target) == 0 && symlink(target, path) == 0);
    CHECK(reads(&seen) && seen.rows == 0);
    remove(target);
    remove_folder();
}

/* root reads it all the same, and then it is a whole one. */
static void
a_file_that_may_not_be_read_is_no_file(void)
{
    struct seen seen;
    char path[256];
    make_folder();
    write_text(HEAD "end 0\n");
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path) && chmod(path, 0) == 0);
    CHECK(reads(&seen) == (access(path, R_OK) == 0));
    remove_folder();
}

static void
a_file_of_a_terabyte_is_refused_by_its_size(void)
{
    struct seen seen;
    char path[256];
    make_folder();
    write_text(HEAD "end 0\n");
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    if (truncate(path, 1LL << 40) == 0) /* all of it a hole; not every file system has room for the number */
        CHECK(!reads(&seen));
    remove_folder();
}

static void
a_reader_may_refuse_a_row(void)
{
    struct seen seen = {.accepted = 1};
    make_folder();
    write_text(HEAD "recipe 1\nrecipe 2\nrecipe 3\nend 3\n");
    CHECK(!tuned_file_read("recipes", KEY, note_row, &seen));
    CHECK(seen.rows == 1);
    remove_folder();
}

static void
folders_are_taken_in_order(void)
{
    char path[256];
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
    RUN(a_whole_file_is_handed_over_in_order);
    RUN(anything_else_is_no_file);
    RUN(a_file_cut_off_anywhere_is_no_file);
    RUN(a_file_of_another_key_or_version_is_no_file);
    RUN(a_file_that_is_too_long_is_no_file);
    RUN(what_is_no_regular_file_is_no_file);
    RUN(a_link_to_a_whole_file_is_followed);
    RUN(a_file_that_may_not_be_read_is_no_file);
    RUN(a_file_of_a_terabyte_is_refused_by_its_size);
    RUN(a_reader_may_refuse_a_row);
    RUN(folders_are_taken_in_order);
    return check_report();
}
