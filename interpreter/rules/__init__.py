"""The tables of value rules, and what a rule is given: called computations as functions, lines of a plan."""
