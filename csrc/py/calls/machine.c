/* The machine from Python, for vecadd.info, the bench and `vecadd tune`: the host, CUDA's versions, the GPUs, their
 * launch configs, and the files that `vecadd tune` writes. */
#include <limits.h>

#include "base/machine.h"
#include "base/tuned_file.h"
#include "gpu/device.h"
#include "host/schedule.h"
#include "py/base/methods.h"
#include "py/base/python.h"

static PyObject *
supported_levels(void)
{
    PyObject *names = PyList_New(0);
    for (const struct host_simd *const *level = host_simd_levels; names && *level; level++)
        if ((*level)->supported())
            names = list_with(names, PyUnicode_FromString((*level)->name));
    return names;
}

static PyObject *
thresholds_dict(const struct host_thresholds *from)
{
    typedef unsigned long long bytes; /* SIZE_MAX, too */
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "awake", (bytes)from->awake, "wake", (bytes)from->wake,
                         "stream_alone", (bytes)from->stream_alone, "stream_together", (bytes)from->stream_together,
                         "moved_alone", (bytes)from->moved_alone, "moved", (bytes)from->moved, "cached",
                         (bytes)from->cached, "narrow", (bytes)from->narrow);
}

PyObject *
py_host_facts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    struct status why; /* for additions to tell: these are facts, whether one can be made or not */
    const struct host_simd *simd = host_simd_chosen(&why);
    return Py_BuildValue("{s:z,s:N,s:i,s:n,s:n,s:n,s:N}", "simd", simd ? simd->name : NULL, "simd_levels",
                         supported_levels(), "threads", threads_available(), "l1", (Py_ssize_t)host_cache_bytes(1),
                         "l2", (Py_ssize_t)host_cache_bytes(2), "l3", (Py_ssize_t)host_cache_bytes(3), "thresholds",
                         thresholds_dict(host_thresholds()));
}

PyObject *
py_host_memory(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *membership = CGROUP_MEMBERSHIP, *mount = CGROUP_MOUNT;
    if (!PyArg_ParseTuple(arguments, "|ss:host_memory", &membership, &mount))
        return NULL;
    return Py_BuildValue("(nn)", (Py_ssize_t)ram_usable(membership, mount),
                         (Py_ssize_t)ram_available(membership, mount));
}

PyObject *
py_cuda_versions(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    int driver, runtime_version;
    device_versions(&driver, &runtime_version);
    return Py_BuildValue("(ii)", driver, runtime_version);
}

static PyObject *
facts_of_device(struct module_state *state, int device)
{
    struct device_facts facts;
    struct status status;
    if (device_facts(device, &facts, &status) < 0)
        return status_raise(state, &status);
    return Py_BuildValue(
        "{s:s,s:s,s:i,s:i,s:i,s:i,s:n,s:n,s:i,s:i,s:i,s:i,s:i,s:n,s:n,s:i,s:i,s:i}", "name", facts.name, "key",
        facts.key, "cc_major", facts.cc_major, "cc_minor", facts.cc_minor, "multiprocessors", facts.multiprocessors,
        "threads_per_multiprocessor", facts.threads_per_multiprocessor, "memory", (Py_ssize_t)facts.memory, "l2",
        (Py_ssize_t)facts.l2, "clock_khz", facts.clock_khz, "memory_clock_khz", facts.memory_clock_khz,
        "memory_bus_bits", facts.memory_bus_bits, "blocks_per_multiprocessor", facts.blocks_per_multiprocessor,
        "registers_per_multiprocessor", facts.registers_per_multiprocessor, "shared_per_multiprocessor",
        (Py_ssize_t)facts.shared_per_multiprocessor, "shared_reserved", (Py_ssize_t)facts.shared_reserved, "pci_domain",
        facts.pci_domain, "pci_bus", facts.pci_bus, "pci_device", facts.pci_device);
}

PyObject *
py_gpu_facts(PyObject *module, PyObject *Py_UNUSED(none))
{
    struct module_state *state = PyModule_GetState(module);
    struct status status;
    int count;
    if (device_count(&count, &status) < 0)
        return status_raise(state, &status);
    PyObject *list = PyList_New(0);
    for (int device = 0; list && device < count; device++)
        list = list_with(list, facts_of_device(state, device));
    return list;
}

static const char *const source_name[] = {
    [LAUNCH_CONFIGS_MEASURED] = "shipped",
    [LAUNCH_CONFIGS_INHERITED] = "inherited",
    [LAUNCH_CONFIGS_TUNED] = "tuned",
};

static PyObject *
list_of_rows(const struct launch_configs *launch_configs)
{
    PyObject *rows = PyList_New(0);
    for (int i = 0; rows && i < launch_configs->count; i++) {
        const struct launch_config *row = &launch_configs->row[i];
        rows = list_with(
            rows, Py_BuildValue("(nIiI)", (Py_ssize_t)row->min_bytes, row->block, (int)row->loads, row->demoted));
    }
    return rows;
}

PyObject *
py_device_launch_configs(PyObject *module, PyObject *arguments)
{
    struct module_state *state = PyModule_GetState(module);
    struct status status;
    struct device_launch_configs launch_configs;
    int device;
    if (!PyArg_ParseTuple(arguments, "i:device_launch_configs", &device))
        return NULL;
    if (WITHOUT_GIL(device_check_ordinal(device, &status) < 0 ||
                    device_launch_configs(device, &launch_configs, &status) < 0))
        return status_raise(state, &status);
    return Py_BuildValue("{s:s,s:n,s:s,s:N,s:N}", "key", launch_configs.key, "l2", (Py_ssize_t)launch_configs.used.l2,
                         "source", source_name[launch_configs.used.source], "rows", list_of_rows(&launch_configs.used),
                         "shipped", list_of_rows(&launch_configs.shipped));
}

PyObject *
py_tuned_path(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *kind, *key;
    char path[PATH_MAX];
    if (!PyArg_ParseTuple(arguments, "ss:tuned_path", &kind, &key))
        return NULL;
    if (!tuned_file_path(kind, key, path, sizeof path))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path);
}

static bool
append_row(void *context, const char *name, const uint64_t *number, int count)
{
    PyObject *rows = context, *numbers = PyTuple_New(count);
    for (int i = 0; numbers && i < count; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(number[i]);
        if (!value || PyTuple_SetItem(numbers, i, value) < 0)
            Py_CLEAR(numbers);
    }
    OWNED PyObject *row = numbers ? Py_BuildValue("(sN)", name, numbers) : NULL;
    return row && PyList_Append(rows, row) == 0;
}

PyObject *
py_tuned_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *kind, *key;
    if (!PyArg_ParseTuple(arguments, "ss:tuned_rows", &kind, &key))
        return NULL;
    OWNED PyObject *rows = PyList_New(0);
    if (rows && tuned_file_read(kind, key, append_row, rows))
        return hand_out(&rows);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}
