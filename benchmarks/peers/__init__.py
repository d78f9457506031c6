"""vecadd against the libraries that users have instead, each at its best setting, called in the same form.

    libraries.py   rows of the tables of peers: found or not, and which version; where each library's arrays are
    tensors.py     memory on the device that all libraries share, filled and checked there
    device_peers.py, triton_add.py, jax_peer.py, cub.cu   how each library adds in it, by which settings
    clocks.py, events.py   the clocks that several stages share: the host's, and CUDA events
    *_stage.py     a stage each: which peers meet at which dtypes and sizes, and its clock
    stages.py      the table of them
    __main__.py    python -m benchmarks.peers --json-dir DIR [--stage device]

The rounds, the checks and the result file are those of vecadd.bench.
"""
