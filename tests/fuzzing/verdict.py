"""Permitted outcomes of any text: a module that is printed, read again and checked, or a refusal with a position."""

from __future__ import annotations

import gc
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xbuild as xb
from shape_inference import KINDS
from tests.support.facts import internals

SECONDS = 60
AGAIN = 0.5
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
        try:
            again = xb.parse_hlo(printed)
        except xb.HloParseError as refusal:
            # The printed header states counts that were inferred, and the reader then refuses what the check refuses.
            if refusal.kind not in {finding.kind for finding in xb.check(module).findings}:
                raise
            return refusal.kind
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
    """Raise Hang after that many seconds of processor time, MemoryError beyond that many more bytes; on POSIX only.

    Objects that exist before are frozen: collections of garbage inside cost only what the inside makes.
    """
    import resource

    is_over = False

    def ring(*_: object) -> None:
        nonlocal is_over
        is_over = True
        raise Hang

    def report(dropped: sys.UnraisableHookArgs) -> None:
        """Keep quiet about a Hang raised where Python drops exceptions, as in a finalizer: the timer rings again."""
        if dropped.exc_type is not Hang:
            reported(dropped)

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")  # what the process already has does not count: JAX maps gigabytes
    taken = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    before: Any = signal.signal(signal.SIGVTALRM, ring)
    reported, sys.unraisablehook = sys.unraisablehook, report
    gc.freeze()
    resource.setrlimit(resource.RLIMIT_AS, (taken + size, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        gc.unfreeze()
        sys.unraisablehook = reported
    if is_over:
        raise Hang
