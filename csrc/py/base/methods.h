/* The module's functions, listed in module.c. Public functions have their docstrings beside them; internal ones have
 * comments in vecadd/_core.pyi. */
#ifndef VECADD_PY_BASE_METHODS_H
#define VECADD_PY_BASE_METHODS_H

#include "py/base/python.h"

typedef PyObject *plain_function(PyObject *module, PyObject *argument);
typedef PyObject *keyword_function(PyObject *module, PyObject *arguments, PyObject *keywords);
typedef PyObject *positional_function(PyObject *module, PyObject *const *values, Py_ssize_t count);
typedef PyObject *fast_function(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords);

fast_function py_add, py_add_many, py_explain_route, py_plan;
keyword_function py_to_device, py_empty_pinned, py_run_rung, py_latency_stages, py_rung_facts, py_timeline,
    py_judge_call;
positional_function py_use_gpu;
plain_function py_device_launch_configs, py_tuned_path, py_tuned_rows, py_host_facts, py_host_memory, py_cuda_versions,
    py_gpu_facts, py_memory_counts, py_output_pool_counts, py_transfer_counts, py_release, py_rungs, py_poison,
    py_clear, py_repeat, py_host_view, py_host_limit, py_host_limit_round, py_wake_limits, py_get_num_threads,
    py_set_num_threads, py_add_files, py_install_loops, py_uninstall_loops, py_loop_counts, py_use_array_memory,
    py_receipt_start, py_receipt_stop, py_probe, py_device_memory, py_peer_limits, py_pattern_write, py_pattern_check;
keyword_function py_raw_launches, py_call_stages;

extern const char add_doc[], add_many_doc[], plan_doc[], use_gpu_doc[], get_num_threads_doc[], set_num_threads_doc[],
    to_device_doc[], empty_pinned_doc[], release_doc[], receipt_start_doc[], receipt_stop_doc[];

#endif
