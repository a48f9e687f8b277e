"""Differentiation of programs: the table of rules, the walk over a program, and the derivatives made of them."""
