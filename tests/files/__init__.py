"""Tests of programs and arrays that come from elsewhere."""
