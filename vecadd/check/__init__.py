"""vecadd check: the acceptance test of a machine: its figures against the figures expected of it.

measure.py    a round: host, link, device, launch and pairs of GPUs, every timed sum checked
topology.py   NUMA nodes, and how two GPUs are connected
expected.py   what a figure is compared with: an earlier file, or theory and the probes of the same run
findings.py   what the check says of the machine: what each figure means, and what to do
soak.py       memory written and looked through for as long as asked
outputs.py    the result: its file, which schema.json describes, a table, for CI, for monitoring, and as a page
command.py    the command line's `check`
"""
