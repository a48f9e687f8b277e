"""Filling traces: a run is watched, its events are put into logical time."""

from .elsewhere import across_in
from .guilt import Guilt
from .run import trace, traced, without_run
from .sources import origins_in

__all__ = ["Guilt", "across_in", "origins_in", "trace", "traced", "without_run"]
