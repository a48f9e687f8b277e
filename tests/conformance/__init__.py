"""Runners for files of neutral cases, one module for each kind."""
