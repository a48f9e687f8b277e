"""Tests of what is said of instructions and of words."""
