"""Tests of costs: laws, and the counting of real XLA."""
