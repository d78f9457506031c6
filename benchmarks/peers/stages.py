"""The table of the stages. Each is a file of its own: which peers meet at which sizes, and how they are timed."""

from benchmarks.peers import courtesy_stage, device_stage, host_stage, overhead_stage, transfer_stage

SECONDS = {"device": 0.6}  # of timed work a cell: it has 132, and shall end within 5 minutes

STAGES = {
    "device": device_stage.STAGE,
    "overhead": overhead_stage.STAGE,
    "courtesy": courtesy_stage.STAGE,
    "transfer": transfer_stage.STAGE,
    "host": host_stage.STAGE,
}
