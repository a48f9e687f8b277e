"""Tests of the reader and the printer of HLO text."""
