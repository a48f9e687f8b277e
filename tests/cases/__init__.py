"""The cases of the ops, one file for each family: CASES and REFUSALS."""
