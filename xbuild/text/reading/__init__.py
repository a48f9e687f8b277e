"""HLO text in: modules, computations, instructions."""
