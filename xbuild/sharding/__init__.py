"""Shardings: how the axes of a mesh cut the dimensions of an array."""
