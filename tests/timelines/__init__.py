"""Tests of time lines: laws, published figures, formats, machines."""
