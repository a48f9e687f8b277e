"""Tests of the verdict before the run."""
