"""vecadd report: what a machine does, as one page with pictures and sentences, from its result files.

runs.py       the runs of one machine
sentences.py  what the figures say, in words
pictures.py   a figure of matplotlib as part of a page, in the page's colours
parts.py      the parts of the page: rows, sentences and pictures of each
command.py    the command line's ``report``
"""
