"""What the tests of vecadd.model share: GPUs, a full set of limits, and the call that expects a rung's time."""

from vecadd import _core, model
from vecadd.model import Curve, Limits, Loaded

RUNGS = {rung["name"]: rung for rung in _core.rungs()}

H200 = {
    "cc_major": 9,
    "cc_minor": 0,
    "multiprocessors": 132,
    "threads_per_multiprocessor": 2048,
    "blocks_per_multiprocessor": 32,
    "registers_per_multiprocessor": 65536,
    "shared_per_multiprocessor": 233_472,
    "shared_reserved": 1024,
    "clock_khz": 1_980_000,
    "memory_clock_khz": 3_201_000,
    "memory_bus_bits": 6016,
    "memory": 150_109_880_320,
    "l2": 62_914_560,
}
T4 = H200 | {"cc_major": 7, "cc_minor": 5, "multiprocessors": 40, "threads_per_multiprocessor": 1024}

# Round numbers of the order of an H200's; no test depends on how near they are.
LIMITS = Limits(
    read=4.5e12,
    write=4.6e12,
    copy=4.2e12,
    l2_read=6.5e12,
    l2_write=3.6e12,
    kernel=3e-6,
    block=0.6e-9,
    turnaround=150e-9,
    queued=1.9e-6,
    node=0.8e-6,
    issued=3.5e-6,
    l1=20e-9,
    l2=150e-9,
    page=400e-9,
    dram=430e-9,
    stream=500e-9,
    atomic=1.75e-9,
    to_device=55e9,
    to_host=55e9,
    both=100e9,
    waited=9e-6,
    table=20e-6,
    job=10e-9,
    waiting=1.1e-6,
    triggering=0.8e-6,
    triggering_node=0.4e-6,
    triggering_block=1.2e-9,
    programmatic_issued=2.9e-6,
    released=0.4e-6,
    threads=16,
    wake=30e-6,
    wake_one=10e-6,
    fresh_node=Curve(((12 << 10, 1.5e-6), (3 << 20, 2.4e-6))),
    host_add=Curve.line(20e-6, 50e9),
    host_add_one=Curve.line(1e-6, 5e9),
    loaded=Loaded(((4096, 1.1e12), (16384, 3.1e12), (32768, 4e12), (98304, 4.3e12))),
)


def expect(name, n, dtype="float32", limits=LIMITS, gpu=H200, facts=None, block=0, footprint=None, **params):
    """Seconds that `vecadd.model` expects of that rung; ``params`` are the rung's own."""
    return model.predict(RUNGS[name], facts, gpu, limits, dtype, n, params, block=block, footprint=footprint).seconds
