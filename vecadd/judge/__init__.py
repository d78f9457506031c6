"""A kernel of your own, judged: is its sum right at every size and alignment, how fast is it beside the ladder, and
does it play by the rules.

contestant.py  what is judged, as the child process is told it
process.py     the child process: questions, answers, how it ends
child.py       in the child: answers the questions; load.py and compile.py read the contestant's code
watched.py     in the child: which functions that code has replaced
session.py     which calls are made, in which order; places.py: where their arrays lie
findings.py    what can be wrong, by name
foresight.py   whether it is faster on operands that it can foresee
clock.py       the times, in rounds with tuned and the nearest rung
verdict.py     what came of it
command.py     the command line's `judge`
"""

from vecadd.judge.findings import KINDS
from vecadd.judge.run import judge
from vecadd.judge.verdict import Size, Verdict

__all__ = ["KINDS", "Size", "Verdict", "judge"]
