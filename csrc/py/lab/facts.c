/* The core's facts for vecadd.info and the bench: the host, CUDA's versions, the GPUs. */
#include "base/cgroup.h"
#include "base/ram.h"
#include "gpu/device.h"
#include "host/add.h"
#include "host/schedule.h"
#include "host/threads.h"
#include "py/base/errors.h"
#include "py/base/methods.h"

static PyObject *
supported_levels(void)
{
    PyObject *names = PyList_New(0);
    for (const struct host_simd *const *level = host_simd_levels; names && *level; level++) {
        PyObject *name = (*level)->supported() ? PyUnicode_FromString((*level)->name) : Py_NewRef(Py_None);
        if (!name || (!Py_IsNone(name) && PyList_Append(names, name) < 0))
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *
thresholds_dict(const struct host_thresholds *from)
{
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n}", "awake", (Py_ssize_t)from->awake, "wake", (Py_ssize_t)from->wake,
                         "stream_alone", (Py_ssize_t)from->stream_alone, "stream_together",
                         (Py_ssize_t)from->stream_together, "cached", (Py_ssize_t)from->cached, "narrow",
                         (Py_ssize_t)from->narrow);
}

const char host_facts_doc[] = PyDoc_STR(
    "host_facts($module, /)\n--\n\n"
    "The host as the adders see it, a dict: 'simd' (the level in use; None where VECADD_SIMD names no level that\n"
    "works), 'simd_levels' (those that work here, best first), 'threads' (that an addition may use), 'l1', 'l2', 'l3'\n"
    "(bytes, 0: unknown), 'thresholds' (a dict: the fields of struct host_thresholds, in bytes).");

PyObject *
py_host_facts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    struct status why; /* for additions to tell: these are facts, whether one can be made or not */
    const struct host_simd *simd = host_simd_chosen(&why);
    PyObject *levels = supported_levels(), *sizes = levels ? thresholds_dict(host_thresholds()) : NULL;
    if (!sizes) {
        Py_XDECREF(levels);
        return NULL;
    }
    return Py_BuildValue("{s:z,s:N,s:i,s:n,s:n,s:n,s:N}", "simd", simd ? simd->name : NULL, "simd_levels", levels,
                         "threads", threads_available(), "l1", (Py_ssize_t)host_cache_bytes(1), "l2",
                         (Py_ssize_t)host_cache_bytes(2), "l3", (Py_ssize_t)host_cache_bytes(3), "thresholds", sizes);
}

const char host_memory_doc[] = PyDoc_STR(
    "host_memory($module, membership='/proc/self/cgroup', mount='/sys/fs/cgroup', /)\n--\n\n"
    "(usable, available): bytes of memory that this process may use, and bytes that can be allocated now without\n"
    "swapping, both as the control groups of that list under that mount allow.");

PyObject *
py_host_memory(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *membership = CGROUP_MEMBERSHIP, *mount = CGROUP_MOUNT;
    if (!PyArg_ParseTuple(arguments, "|ss:host_memory", &membership, &mount))
        return NULL;
    return Py_BuildValue("(nn)", (Py_ssize_t)ram_usable(membership, mount),
                         (Py_ssize_t)ram_available(membership, mount));
}

const char cuda_versions_doc[] =
    PyDoc_STR("cuda_versions($module, /)\n--\n\n"
              "(driver, runtime) as CUDA counts versions, 13000 for 13.0; 0 where there is none.");

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

const char gpu_facts_doc[] =
    PyDoc_STR("gpu_facts($module, /)\n--\n\n"
              "A list of one dict a GPU: the fields of struct device_facts. Raises RuntimeError where there is none.");

PyObject *
py_gpu_facts(PyObject *module, PyObject *Py_UNUSED(none))
{
    struct module_state *state = PyModule_GetState(module);
    struct status status;
    int count;
    if (device_count(&count, &status) < 0)
        return status_raise(state, &status);
    PyObject *list = PyList_New(0);
    for (int device = 0; list && device < count; device++) {
        PyObject *facts = facts_of_device(state, device);
        if (!facts || PyList_Append(list, facts) < 0)
            Py_CLEAR(list);
        Py_XDECREF(facts);
    }
    return list;
}
