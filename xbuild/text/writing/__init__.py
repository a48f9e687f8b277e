"""HLO text out: instructions, computations, modules."""
