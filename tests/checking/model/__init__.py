"""Tests of the verdict against a model of every run."""
