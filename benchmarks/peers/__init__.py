"""vecadd against the libraries that a user has in its place, each at its best setting, called in the same form.

    libraries.py   each library: where its arrays lie and how it adds; found or not
    cub.cu         CUB's DeviceTransform behind a C function, compiled when it is needed
    stages.py      device, overhead, transfer, host: which peers meet, and how they are timed
    __main__.py    python -m benchmarks.peers --json-dir DIR [--stage device]

The rounds, the checks and the result file are those of vecadd.bench.
"""
