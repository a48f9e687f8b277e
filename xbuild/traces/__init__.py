"""Traces: a run as plain data, with the events of each device, their logical times and values, and the waits."""

from .across import Across
from .data import Event, Meeting, Spot, Trace, Transfer
from .disk import Writer
from .folder import TraceError
from .summary import Summary, summary

__all__ = ["Across", "Event", "Meeting", "Spot", "Summary", "Trace", "TraceError", "Transfer", "Writer", "summary"]
