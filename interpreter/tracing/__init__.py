"""Tracing: records the events and values of a run, and computes their logical times."""

from .origins import ProvenanceWalk, across_in, origins_in
from .run import run_traced, trace, without_run

__all__ = ["ProvenanceWalk", "across_in", "origins_in", "run_traced", "trace", "without_run"]
