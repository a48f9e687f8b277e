"""Printer of HLO text: instructions, computations, modules."""
