"""Reader of HLO text: modules, computations, instructions."""
