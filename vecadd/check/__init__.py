"""vecadd check: the acceptance test of a machine: its figures against the figures expected of it.

rows.py       what is measured: a row is one figure, over all rounds
measure.py    a round: host, link, device, launch and pairs of GPUs, every timed sum checked
expected.py   what a figure is compared with: an earlier file, or theory and the probes of the same run
links.py      how two GPUs are connected
nodes.py      NUMA nodes
soak.py       memory written and looked through for as long as asked
findings.py   what the check says of the machine; texts.py and normal.py what a row's figure means,
              topology.py what its parts are and how they are put together
document.py   the result file, which schema.json describes
outputs.py    the same for CI, for monitoring, and as a page (pages/check.html)
tables.py     the rows as a table
command.py    the command line's `check`
"""
