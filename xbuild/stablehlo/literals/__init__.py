"""Strings, and elements of tensors, as MLIR text has them."""
