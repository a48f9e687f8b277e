"""Attaches the findings of a strict run to the events of a trace."""

from __future__ import annotations

from typing import Any

from xbuild.traces import Trace

from ..strict import Finding, StrictReport


def found_in(trace: Trace, report: StrictReport) -> list[dict[str, Any]]:
    """The findings as plain data, each with its `event`, None where the trace has none."""
    sites: dict[tuple[int, tuple[str, ...], str], list[int]] = {}
    for number, (device, spot) in enumerate(zip(trace.device.tolist(), trace.spot.tolist(), strict=True)):
        where = trace.spots[spot]
        sites.setdefault((device, where.path, where.instruction.name), []).append(number)
    text = [line for finding in report.findings for line in ["\n".join(finding.lines(chained=False))]]
    return [
        {**finding.to_dict(), "event": _event(trace, sites, finding), "text": told}
        for finding, told in zip(report.findings, text, strict=True)
    ]


def _event(trace: Trace, sites: dict[tuple[int, tuple[str, ...], str], list[int]], finding: Finding) -> int | None:
    """The event of a finding; for a finding in a region without events, the event of the op that applies the region."""
    from .run import labels

    path, trips = finding.standing.path, finding.standing.trips
    for end in range(len(path), 0, -1):
        events = sites.get((finding.device, labels(path[: end - 1]), path[end - 1].instruction.name), [])
        known = [trip for trip in trips[:end] if trip is not None]
        for event in events:
            if not known or [trip for _, trip in trace.trips(event)][: len(known)] == known:
                return event
        if events:
            return events[0]
    return None
