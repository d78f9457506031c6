"""The table of the stages. Each sweep is a file of its own: which peers meet at which sizes, and how they are timed."""

from benchmarks.peers import (
    device_stage,
    end_to_end_stage,
    files_stage,
    host_stage,
    installed_stage,
    l2_pollution_stage,
    layouts_stage,
    many_stage,
    misaligned_stage,
    overhead_stage,
    transfer_stage,
)

# Seconds of timed work a cell, which has six rounds all the same. The device's 140 cells take 160 s; the host's 216
# take more than 170 s on 16 cores where numexpr, NumKong, JAX and Arrow are there to be timed.
SECONDS = {
    "device": 0.6,
    "layouts": 0.25,
    "host": 0.04,
    "installed": 0.04,
    "transfer": 0.4,
    "end_to_end": 0.4,
    "files": 4,
}

STAGES = {
    "device": (device_stage.STAGE, device_stage.QUEUED),
    "misaligned": (misaligned_stage.STAGE,),
    "layouts": (layouts_stage.STAGE,),
    "scaling": (device_stage.SCALING,),
    "overhead": (overhead_stage.STAGE,),
    "many": (many_stage.STAGE,),
    "l2_pollution": (l2_pollution_stage.STAGE,),
    "transfer": (transfer_stage.STAGE,),
    "end_to_end": (end_to_end_stage.STAGE,),
    "files": (files_stage.STAGE,),
    "host": (host_stage.STAGE,),
    "installed": (installed_stage.STAGE,),
}
