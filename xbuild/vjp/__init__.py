"""Differentiation of programs: for each op the rule that gives the cotangents of its operands, and the walk over a program."""
