"""Traps that a test must spring: one line of the code is taken out, and the test that is named for it turns red.

table.py      what is taken out, and which test minds
__main__.py   python -m tests.mutants [NAME ...]: builds each mutant beside the tree, on the double, and runs its test
"""
