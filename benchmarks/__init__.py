"""Comparisons with other libraries (peers), recorded results, and what the documents show of them."""
