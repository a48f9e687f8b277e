"""Tests of ops in two halves on several devices."""
