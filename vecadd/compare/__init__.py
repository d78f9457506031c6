"""vecadd compare: what is faster and what is slower than in an earlier run, by both runs' result files.

figures.py    the figures of result files, each under a name that both runs share
verdict.py    the ratio of two figures with its interval, and what it says
tables.py     the comparison, for a terminal and for a page
command.py    the command line's ``compare``
"""
