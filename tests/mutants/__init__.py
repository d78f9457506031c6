"""Traps that a test must spring: one line of the code is taken out, and the test that is named for it turns red.

mutant.py                                 what a mutant is
host.py device.py calls.py operands.py    what is taken out of which part of the code, and which test minds
files.py stores.py package.py fleet.py
table.py                                  all of them
__main__.py                               python -m tests.mutants [NAME ...]: builds each beside the tree, on the
                                          double, and runs its test
"""
