"""The report of a verdict as text: the sentence, where each device stands, the cycle, the cause, the repair."""

from __future__ import annotations

from collections.abc import Iterator

from .program import devices_text
from .verdict import Finding, ReportRow, Verdict, Wait

MOST_ROWS = 8
MOST_EDGES = 4


def report(verdict: Verdict) -> str:
    """The whole report, in plain text."""
    notes = [f"  note    {note}" for note in verdict.notes]
    if verdict.kind == "ok":
        return "\n".join([f"ok: {verdict.summary}", *notes])
    lines = [f"depends: {_conditions(verdict)}"] if verdict.kind == "depends" else []
    for finding in verdict.findings:
        lines += _finding(verdict, finding)
    if verdict.kind == "depends" and verdict.summary:
        lines += ["", f"  otherwise {verdict.summary}"]
    return "\n".join([*lines, *notes])


def _conditions(verdict: Verdict) -> str:
    count = len(verdict.findings)
    return f"the data decide; it deadlocks {'under one of these conditions' if count > 1 else 'under this condition'}"


def _finding(verdict: Verdict, finding: Finding) -> Iterator[str]:
    if verdict.kind == "depends":
        yield ""
        yield f"  {finding.message}"
    else:
        if finding is not verdict.findings[0]:
            yield ""
        yield f"{verdict.kind}: {finding.message} [{finding.kind}]"
    if finding.rows:
        yield ""
        yield from _rows(finding.rows)
    if finding.cycle:
        yield ""
        yield f"  the cycle   {_cycle(finding.cycle)}"
    facts = [*_labelled(verdict, finding)]
    if facts:
        yield ""
        yield from facts


def _labelled(verdict: Verdict, finding: Finding) -> Iterator[str]:
    mended = verdict.repair is not None and finding is verdict.findings[0]
    repair = f"{verdict.repair.text}   (checked: ok)" if mended and verdict.repair else finding.repair_text
    for label, text in (("cause", finding.cause_text), ("repair", repair), ("note", finding.note)):
        if text:
            yield f"  {label:<7} {text}"


def _rows(rows: tuple[ReportRow, ...]) -> Iterator[str]:
    """The rows, one for each device; devices with equal rows are listed with the first of them."""
    alike: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        alike.setdefault(_alike(row), []).append(row)
    shown = [group[0] for group in alike.values()][:MOST_ROWS]
    labels = [devices_text(row.devices) for row in shown]
    wide = max(map(len, labels))
    text = max(len(row.text) for row in shown)
    fact = max(len(row.fact) for row in shown)
    for row, label in zip(shown, labels, strict=True):
        source = f"   {row.source}" if row.source else ""
        yield f"  {label:<{wide}}  {row.text:<{text}}   {row.fact:<{fact}}{source}".rstrip()
        if row.waits:
            yield f"  {'':<{wide}}  waits for {row.waits}"
        others = sorted({d for each in alike[_alike(row)][1:] for d in each.devices} - set(row.devices))
        if others:
            yield f"  {devices_text(others):<{wide}}  like {label}"
    if len(alike) > MOST_ROWS:
        yield f"  and {len(alike) - MOST_ROWS} more places"


def _alike(row: ReportRow) -> tuple[object, ...]:
    """The key by which rows are equal; partners may differ, and so may the channel and peer of a waiting transfer."""
    is_transfer = row.fact.startswith("channel")
    return row.text, row.source, "" if row.waits and is_transfer else row.fact


def _cycle(cycle: tuple[Wait, ...]) -> str:
    """`send.1 @0 -> recv.1 @1 -> (after send.2 in the schedule of device 1) send.2 @1 -> ... -> send.1 @0`"""
    parts = [f"{cycle[0].instruction.name} @{cycle[0].device}"]
    for number, wait in enumerate(cycle[:MOST_EDGES]):
        parts.append(f"{wait.partner.name} @{wait.partner_device}")
        following = cycle[(number + 1) % len(cycle)]
        if wait.behind:
            parts.append(f"({wait.behind}) {following.instruction.name} @{following.device}")
    if len(cycle) > MOST_EDGES:
        parts.append(f"... {len(cycle) - MOST_EDGES} more waits")
        parts.append(f"{cycle[0].instruction.name} @{cycle[0].device}")
    return " -> ".join(parts)
