"""Traces: a run as plain data, with the events of each device, their logical times and values, and the waits."""

from .data import Across, Event, Spot, Trace, TracedMeeting, Transfer
from .disk import TraceWriter
from .folder import TraceError
from .summary import Summary, summary

__all__ = [
    "Across",
    "Event",
    "Spot",
    "Summary",
    "Trace",
    "TraceError",
    "TraceWriter",
    "TracedMeeting",
    "Transfer",
    "summary",
]
