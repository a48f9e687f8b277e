"""Tests of reduction: conditions, cuts, the search, and faults that are hidden in real programs."""
