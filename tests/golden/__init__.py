"""Texts that the printer and the pictures must give, kept as files; `python -m tests.golden` writes them anew."""
