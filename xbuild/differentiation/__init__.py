"""Derivatives of programs: the table of rules, the walk that applies them, reverse and forward mode."""
