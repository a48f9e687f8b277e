"""Tests of branches and trip counts: known before the run, or decided by data."""
