"""Tracing: records the events and values of a run, and computes their logical times."""

from .elsewhere import across_in
from .guilt import Guilt
from .run import trace, traced, without_run
from .sources import origins_in

__all__ = ["Guilt", "across_in", "origins_in", "trace", "traced", "without_run"]
