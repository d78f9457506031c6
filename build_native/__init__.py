"""Builds what is compiled: the extension, the CUDA-runtime double and the C tests.

    toolkit.py       finds nvcc, or says which package to ask for
    incremental.py   runs the compiler commands whose result is not already there
    flags.py         which sources there are, and their flags
    targets.py       what each target is built from
    __main__.py      python -m build_native --help

Part of the source distribution, never installed. Imports nothing but the standard library until something is built, so
that the build backend can ask what the build requires before any of it is there.
"""
