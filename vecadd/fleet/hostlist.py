"""Host names as Slurm writes them: node[01-03,07]."""

import re
from collections.abc import Iterable, Iterator


def compressed(hosts: Iterable[str]) -> str:
    """The hosts in one line, for ``sbatch --exclude``; names that differ in their last number share a bracket.

    >>> compressed(["node07", "node01", "node02", "login"])
    'login,node[01-02,07]'
    """
    families: dict[tuple[str, int], set[int]] = {}
    names = set()
    for host in sorted(set(hosts)):
        found = re.fullmatch(r"(.*?)([0-9]+)", host)
        if found is None:
            names.add(host)
            continue
        prefix, digits = found.groups()
        width = len(digits) if digits.startswith("0") or (prefix, len(digits)) in families else 0
        families.setdefault((prefix, width), set()).add(int(digits))
    names |= {_family(prefix, width, sorted(numbers)) for (prefix, width), numbers in families.items()}
    return ",".join(sorted(names))


def _family(prefix: str, width: int, numbers: list[int]) -> str:
    ranges = [
        f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
        for first, last in _ranges(numbers)
    ]
    return f"{prefix}{ranges[0]}" if len(numbers) == 1 else f"{prefix}[{','.join(ranges)}]"


def _ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
