"""A run as plain data: what each device came to, when in logical time, with which value, and whom it waited for."""

from .across import Across
from .data import Event, Meeting, Spot, Trace, Transfer
from .disk import Writer
from .folder import TraceError
from .summary import Summary, summary

__all__ = ["Across", "Event", "Meeting", "Spot", "Summary", "Trace", "TraceError", "Transfer", "Writer", "summary"]
