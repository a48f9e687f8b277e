"""Printer of StableHLO text: instructions, computations, modules."""
