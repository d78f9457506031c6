#include "gpu/launch_configs.h"

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/tuned_file.h"
#include "cuda/kernels.h"
#include "gpu/errors.h"

#define MIB ((size_t)1 << 20)

/* Compute capability 9.0: an H200, buffers rotating, nothing flushed. Times over those of plain loads with 768 threads:
 * of the addition, of a kernel that reads c next, and of both together. "768, 30": evict_last, 30 sixtieths demoted.
 *
 *            256, plain          1024, plain         768, 30             1024, 30            1024, 24
 *     2^24   0.996 1.015 1.003   0.996 1.008 1.001   1.004 0.998 1.002   0.987 1.016 1.000   0.980 1.025 0.999
 *     2^25   1.003 1.009 1.004   1.002 1.005 1.000   0.999 1.001 1.000   0.988 1.013 0.998   0.985 1.016 0.998
 *
 * and torch's kernel 0.995 1.023 1.007 and 1.000 1.013 1.007. The next reader pays for what an addition leaves
 * unwritten in the L2: together they gain 0.2 % at best. So plain loads at 200 MB, with the block that is level with
 * torch and costs the reader half as much; evict_last from 256 MiB on, where a reader of c is as fast as after torch.
 * Beyond, both gain:
 *
 *            768 threads, 16     24           30           1024 threads, 16   24           256 threads, plain
 *     2^26   0.995/1.004  0.996/1.000  0.998/1.001         0.989/1.008  0.990/1.009  1.006/1.005
 *     2^28   0.991/1.000  0.991/1.001  0.991/1.001         0.992/1.003  0.991/1.002  1.008/1.005
 *
 * Work on 45 MB afterwards is 12 % slower with nothing demoted, 1.4 % with 16, 0.4 % with 24 and 0.1 % with 30, on the
 * same stream or another. Up to 2^20, 128 and 256 threads are equal and 512 up to 3 % slower. There two and four
 * vectors a thread, loads through the read-only cache, no tail code at all and launches that are not programmatic gain
 * nothing; what gains has a kernel of its own, tuned_small of cuda/add.cu. */
static const struct launch_config hopper[] = {
    {0, 256, LOADS_PLAIN, 0},
    {128 * MIB, 1024, LOADS_PLAIN, 0},
    {256 * MIB, 1024, LOADS_EVICT_LAST, 30},
    {512 * MIB, 1024, LOADS_EVICT_LAST, 24},
    {2048 * MIB, 768, LOADS_EVICT_LAST, 24},
};

/* Compute capability 9.0 with 50 MiB of L2: an H100. What `vecadd tune device` found there, the addition together with
 * a kernel that reads c next: 768 threads with 30 sixtieths demoted take 0.994 of an H200's config at 192 MiB and 0.999
 * at 768 MiB, 1024 threads with 24 sixtieths 0.999 of it at 3 GiB. Up to 48 MiB 256 threads stay. */
static const struct launch_config hopper_50[] = {
    {0, 256, LOADS_PLAIN, 0},
    {96 * MIB, 768, LOADS_EVICT_LAST, 30},
    {2048 * MIB, 1024, LOADS_EVICT_LAST, 24},
};

/* Not measured: configs that are never much slower on 9.0, with blocks that fill multiprocessors of 1024, 1536 and 2048
 * threads alike. */
static const struct launch_config inherited[] = {
    {0, 256, LOADS_PLAIN, 0},
};

#define ROWS(table) table, sizeof table / sizeof *table

static const struct {
    int capability; /* 0: any other */
    size_t most_l2; /* bytes */
    const struct launch_config *row;
    int count;
} tables[] = {
    {90, 50 * MIB, ROWS(hopper_50)},
    {90, SIZE_MAX, ROWS(hopper)},
    {0, SIZE_MAX, ROWS(inherited)},
};

struct launch_configs
launch_configs_shipped(int capability, size_t l2)
{
    int i = 0;
    while (tables[i].capability != 0 && (tables[i].capability != capability || l2 > tables[i].most_l2))
        i++;
    struct launch_configs launch_configs = {
        .count = tables[i].count,
        .source = tables[i].capability != 0 ? LAUNCH_CONFIGS_MEASURED : LAUNCH_CONFIGS_INHERITED,
        .l2 = l2,
    };
    memcpy(launch_configs.row, tables[i].row, (size_t)tables[i].count * sizeof *launch_configs.row);
    return launch_configs;
}

/* Appends a row that a kernel can run: whole warps, and thresholds that grow from 0. */
static bool
take_row(void *context, const char *name, const uint64_t *number, int count)
{
    struct launch_configs *launch_configs = context;
    if (strcmp(name, "recipe") != 0 || count != 4 || launch_configs->count == LAUNCH_CONFIGS_MAX)
        return false;
    if (number[1] > 1024 || number[2] > LOADS_EVICT_LAST || number[3] > 60)
        return false;
    const struct launch_config row = {(size_t)number[0], (unsigned)number[1], (enum add_loads)number[2],
                                      (unsigned)number[3]};
    const bool first = launch_configs->count == 0;
    if (row.block == 0 || row.block % 32 != 0 || (first && row.min_bytes != 0) ||
        (!first && row.min_bytes <= launch_configs->row[launch_configs->count - 1].min_bytes))
        return false;
    launch_configs->row[launch_configs->count++] = row;
    return true;
}

void
launch_configs_read_tuned(struct launch_configs *launch_configs, const char *key)
{
    struct launch_configs tuned = {.source = LAUNCH_CONFIGS_TUNED, .l2 = launch_configs->l2};
    if (tuned_file_read("recipes", key, take_row, &tuned) && tuned.count > 0)
        *launch_configs = tuned;
}

/* The UUID as nvidia-smi writes it, and the driver, because another driver may schedule blocks differently. */
void
device_key(const struct cudaDeviceProp *properties, char key[DEVICE_KEY])
{
    int driver, runtime_version, length = snprintf(key, DEVICE_KEY, "GPU");
    device_versions(&driver, &runtime_version);
    for (size_t i = 0; i < sizeof properties->uuid.bytes; i++) {
        const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        length += snprintf(key + length, DEVICE_KEY - (size_t)length, "%s%02x", begins_group ? "-" : "",
                           (unsigned char)properties->uuid.bytes[i]);
    }
    snprintf(key + length, DEVICE_KEY - (size_t)length, " driver %d", driver);
}

void
launch_config_choose(const struct launch_configs *launch_configs, struct add_call *call)
{
    const size_t bytes = 3 * call->n * component_size[call->component];
    const struct launch_config *row = launch_configs->row + launch_configs->count - 1;
    while (row > launch_configs->row && bytes < row->min_bytes)
        row--;
    call->block = row->block;
    call->loads = row->loads;
    call->demoted = launch_configs->l2 / 60 * row->demoted;
}
