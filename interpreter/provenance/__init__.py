"""Provenance: the operand elements from which each element of a result was computed."""
