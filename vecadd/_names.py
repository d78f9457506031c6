"""What is said of a name that is none."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """ "no rung is called 'nave'; did you mean naive?", or all known names where none is like the given one."""
    known = list(known)
    near = get_close_matches(given.lower(), known, cutoff=0.7)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"no {what} is called {given!r}; {advice}"
