"""Shardings: how the axes of a mesh split the dimensions of an array, their text, and resharding."""
