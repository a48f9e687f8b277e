"""Deadlock cases as programs: their data, the order of their items, what is written and how it is run."""
