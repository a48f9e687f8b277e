"""Second stage of the check: simulation of each enumerated choice of branches and trip counts."""
