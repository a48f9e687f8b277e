"""Tests of the three packages, and of how they fit together."""
