"""The tables of the documents: of the recorded results, as Markdown."""
