"""Benchmarks, run with `make bench`; none of them asserts a time."""
