"""Tests of real XLA as an engine beside the interpreter."""
