"""Tests of traces, in memory and on disk."""
