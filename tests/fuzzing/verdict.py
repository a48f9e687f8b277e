"""Permitted outcomes of any text: a module that is printed, read again and checked, or a refusal with a position."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import xbuild as xb
from shape_inference import KINDS
from tests.support.facts import internals

SECONDS = 60
BYTES = 4 << 30
REPORT = 40_000
_HEAD = re.compile(r"(?:fuzzed\.hlo):(\d+):(\d+): .+ \[(\w+)\]$", re.DOTALL)


class Hang(BaseException):
    """Nothing that the reader catches."""


def verdict(text: str | bytes) -> str:
    """`read` or the kind of the refusal; AssertionError, or what else came, where the text is neither."""
    try:
        module = xb.parse_hlo(text, "fuzzed.hlo", origins=True)
    except xb.HloParseError as refusal:
        refused_well(refusal, text)
        return refusal.kind
    for style in ("short", "full"):
        printed = module.to_hlo(style=style)
        again = xb.parse_hlo(printed)
        assert again.to_hlo(style=style) == printed, f"in style {style} it does not read as the same"
    xb.check(module)
    return "read"


def refused_well(error: xb.HloParseError, text: str | bytes) -> None:
    """Each fault at a place that the text has, with its line, a caret, and no word of how the reader is made."""
    lines = (text.decode("utf-8", errors="replace") if isinstance(text, bytes) else text).split("\n")
    report = str(error)
    assert len(report) < REPORT, f"a report of {len(report)} characters"
    assert error.kind == error.faults[0].kind
    assert all(fault.kind in KINDS for fault in error.faults)
    assert [(f.line, f.column) for f in error.faults] == sorted((f.line, f.column) for f in error.faults)
    for fault in error.faults:
        assert 1 <= fault.line <= len(lines), fault
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1, fault
        assert not internals(fault.message.split("'")[0]), fault
    parts = report.split("\n\nfuzzed.hlo:")[: len(error.faults)]
    assert len(parts) == len(error.faults), report
    assert report.startswith("fuzzed.hlo:"), report
    assert all(re.search(r"^ *\^$", part, re.MULTILINE) for part in parts), report


@contextmanager
def bounded(seconds: float = SECONDS, size: int = BYTES) -> Iterator[None]:
    """Hang where it takes more of the processor's time, MemoryError where it takes more memory; on POSIX alone."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before: Any = signal.signal(signal.SIGVTALRM, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (size, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _hang(*_: object) -> None:
    raise Hang
