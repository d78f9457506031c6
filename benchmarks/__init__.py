"""Comparisons with other libraries (peers), recorded results, and the tables that README.md makes of them."""
