"""Tests of functions of whole arrays, of methods of values, and of their agreement with JAX."""
