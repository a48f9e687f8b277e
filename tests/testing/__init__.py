"""Contracts of `xb.testing`: counts in every form of a collective, faults, files, and what pytest adds."""
