"""Filling traces: a run is watched, its events are put into logical time."""

from .run import trace

__all__ = ["trace"]
