"""Tests of StableHLO text."""
