"""Without Zarr and Dask there is nothing to test here."""

from importlib.util import find_spec

if find_spec("zarr") is None or find_spec("distributed") is None:
    collect_ignore_glob = ["test_*.py"]
