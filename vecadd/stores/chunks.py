"""Which objects of a store the elements of an array lie in: its chunks, or its shards where it has them."""

from itertools import product

from vecadd.stores.target import Array

Box = tuple[slice, ...]


def chunks_in(array: Array, box: Box) -> dict[str, Box]:
    """The keys of the chunks, or shards, that a box of the array reaches into, and of each what lies in the box."""
    extents = array.shards or array.chunks
    ranges = [range(part.start // extent, -(-part.stop // extent)) for part, extent in zip(box, extents, strict=True)]
    return {
        array.metadata.encode_chunk_key(at): tuple(
            slice(max(part.start, n * extent), min(part.stop, (n + 1) * extent))
            for part, n, extent in zip(box, at, extents, strict=True)
        )
        for at in product(*ranges)
    }
