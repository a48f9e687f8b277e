"""Tests of the check and of runs under a runtime."""
