"""Lessons, puzzles and the game on a server for this machine: pages with an editor, whose code runs within limits."""

from __future__ import annotations
