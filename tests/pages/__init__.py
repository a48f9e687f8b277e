"""Tests of step pages and of `xbuild step`."""
