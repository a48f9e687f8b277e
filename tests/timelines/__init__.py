"""Tests of timelines: laws, published figures, formats, machines."""
