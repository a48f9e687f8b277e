"""Races of scheduled programs: the check and strict runs, against a model of buffers that tries all interleavings."""
