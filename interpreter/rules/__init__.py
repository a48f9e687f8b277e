"""The tables of value rules, and the arguments of rules: regions, lines of a plan, limits, denormal modes."""
