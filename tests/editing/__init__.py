"""Tests of edits, differences and repairs."""
