"""Tests of HLO text, out and in."""
