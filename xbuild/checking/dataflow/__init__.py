"""Dataflow analyses: constants, bounds and equality across devices, and the decisions of control flow that follow."""
