/* The rate of a GPU's link by its attributes, as Linux writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "gpu/device.h"
#include "tests.h"

static char folder[64];

static void
write_file(const char *name, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    remove(path);
    FILE *file = text ? fopen(path, "w") : NULL;
    if (file)
        CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
}

static double
gigabytes(const char *speed, const char *width)
{
    write_file("max_link_speed", speed);
    write_file("max_link_width", width);
    return link_rate_of(folder) / 1e9;
}

static bool
is_about(double rate, double wanted)
{
    return rate > 0.999 * wanted && rate < 1.001 * wanted;
}

TEST(a_link_carries_its_transfers_on_all_lanes)
{
    snprintf(folder, sizeof folder, "/tmp/vecadd-link-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK(is_about(gigabytes("32.0 GT/s PCIe\n", "16\n"), 63.0));
    CHECK(is_about(gigabytes("16.0 GT/s PCIe\n", "16\n"), 31.5));
    CHECK(is_about(gigabytes("16.0 GT/s PCIe\n", "8\n"), 15.75));
    CHECK(is_about(gigabytes("8.0 GT/s PCIe\n", "16\n"), 15.75));
    CHECK(is_about(gigabytes("5.0 GT/s PCIe\n", "16\n"), 8.0));
    CHECK(is_about(gigabytes("2.5 GT/s PCIe\n", "1\n"), 0.25));
    CHECK(gigabytes("Unknown\n", "16\n") == 0 && gigabytes("32.0 GT/s PCIe\n", "255\n") == 0, "unknown");
    CHECK(gigabytes("", "16\n") == 0 && gigabytes("32.0 GT/s PCIe\n", NULL) == 0 && gigabytes(NULL, "16\n") == 0);
    write_file("max_link_width", NULL);
    remove(folder);
}

TEST(a_gpu_without_such_files_has_none)
{
    int count;
    struct status status;
    CHECK(device_count(&count, &status) == 0 && device_link_rate(0) == 0);
    CHECK(device_link_rate(count) == 0, "nor one that is not there");
}
