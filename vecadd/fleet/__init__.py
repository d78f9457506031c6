"""vecadd fleet: which machines of many are unlike their peers, by their files of vecadd check.

outliers.py   how unlike its peers a figure is, what such figures have in common, and what changed since the last run
command.py    what was found, for a terminal and for a page; the command line's ``fleet``
"""
