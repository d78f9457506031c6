"""Mistakes that a test must find: one line of the code is changed, and the test that is named for it turns red.

mutant.py      what a mutant is
table.py       all of them
__main__.py    python -m tests.mutants [NAME ...]: builds each beside the tree, on the double, and runs its test
"""
