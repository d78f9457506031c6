"""Adds Zarr arrays chunk by chunk into a third, in this process or on a Dask cluster: `vecadd.add_zarr`.

Zarr reads, decodes, encodes and writes; Dask runs the work where it is asked to. What is here is the division of a sum
into pieces that fit in memory, the record of what is finished, and how a target appears whole or not at all.
"""
