"""Stands in for Nsight Systems' `nsys` where a test puts it on PATH: runs the child, and prints summaries in its CSV.

The layout is that of ``nsys stats --format csv`` of 2023 to 2025, with the lines that it writes between; the numbers
are made up.
"""

import subprocess
import sys
from pathlib import Path

STATS = """Generating SQLite file run.sqlite from run.nsys-rep
Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2025.3.2/host-linux-x64/reports/cuda_api_sum.py]...

Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
71.6,140866925,3,46955641.7,307899.0,257351,140301675,80840040.2,cudaMalloc
27.1,53235196,4,13308799.0,637978.5,445941,51513298,25469846.2,cudaMemcpyAsync

Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2025.3.2/host-linux-x64/reports/cuda_gpu_kern_sum.py]...

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
100.0,1000000,2,500000.0,500000.0,400000,600000,100000.0,"void add<lane_f32>(const float *, float *)"

Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2025.3.2/host-linux-x64/reports/cuda_gpu_mem_time_sum.py]...

Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
66.7,6000000,4,1500000.0,1500000.0,1400000,1600000,10000.0,[CUDA memcpy Host-to-Device]
33.3,3000000,2,1500000.0,1500000.0,1400000,1600000,10000.0,[CUDA memcpy Device-to-Host]
0.0,1000,1,1000.0,1000.0,1000,1000,0.0,[CUDA memset]

Processing [run.sqlite] with [/opt/nvidia/nsight-systems/2025.3.2/host-linux-x64/reports/cuda_gpu_mem_size_sum.py]...

Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
300.000,4,75.000,75.000,75.000,75.000,0.000,[CUDA memcpy Host-to-Device]
150.000,2,75.000,75.000,75.000,75.000,0.000,[CUDA memcpy Device-to-Host]

"""


def main(arguments):
    if arguments[0] == "stats":
        print(STATS if Path(arguments[-1]).exists() else f"{arguments[-1]} does not exist", end="")
        return 0
    output = next(each.partition("=")[2] for each in arguments if each.startswith("--output="))
    status = subprocess.run(arguments[arguments.index(sys.executable) :]).returncode
    if status == 0:
        Path(f"{output}.nsys-rep").write_text("report")
        print(f"Generated:\n    {output}.nsys-rep")
    return status


sys.exit(main(sys.argv[1:]))
