"""The tables of value rules, and the arguments of a rule: called computations as functions, lines of a plan."""
