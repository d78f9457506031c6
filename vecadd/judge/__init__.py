"""A kernel of your own, judged: is its sum right at every size and alignment, how fast is it beside the ladder, and
does it play by the rules.

run.py      what is judged, and the judgement from beginning to end
process.py  the child process: questions, answers, how it ends
child.py    in the child: reads the contestant's code (compile.py: a .cu file), answers the questions
session.py  what can be wrong; which calls find it, in which order and at which addresses
verdict.py  the times, in rounds with tuned and the nearest rung, and what came of it
command.py  the command line's `judge`
"""

from vecadd.judge.run import judge
from vecadd.judge.session import KINDS
from vecadd.judge.verdict import Size, Verdict

__all__ = ["KINDS", "Size", "Verdict", "judge"]
