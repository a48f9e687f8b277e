"""Report of a difference of two programs, as lines of text and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core.graph import Instruction
from .difference import Change, Changed, ComputationDiff, Diff

Paint = Callable[[str, str], str]
_MARKS = {"changed": "~", "added": "+", "removed": "-"}


def _plain(text: str, kind: str) -> str:
    return text


def as_lines(diff: Diff, paint: Paint = _plain) -> Iterator[str]:
    """The lines of the report; `paint` gets each piece of text and its kind: changed, added, removed or empty."""
    if diff.same:
        yield "the programs are the same"
    for change in diff.changes:
        yield paint(f"module {change}", "changed")
    for each in diff.computations:
        if not each.same:
            yield from _computation(each, paint)


def _computation(each: ComputationDiff, paint: Paint) -> Iterator[str]:
    if each.before is None or each.after is None:
        kind = "added" if each.before is None else "removed"
        count = len(each.added) + len(each.removed)
        yield paint(f"{each.name}: {kind} as a whole, {count} instruction{'s' * (count != 1)}", kind)
        return
    rows = (("matched", each.matched), ("changed", each.changed), ("added", each.added), ("removed", each.removed))
    yield paint(f"{each.name}: " + ", ".join(f"{len(found)} {word}" for word, found in rows if found), "")
    for change in each.changes:
        yield paint(f"  {change}", "changed")
    changed = {row.after: row for row in each.changed}
    added = set(each.added)
    for instruction in each.removed:
        yield _line(instruction, "removed", paint)
    for instruction in each.after.instructions:
        if instruction in added:
            yield _line(instruction, "added", paint)
        elif instruction in changed:
            yield from _changed_lines(changed[instruction], paint)


def _changed_lines(row: Changed, paint: Paint) -> Iterator[str]:
    is_renamed = row.before.name != row.after.name
    yield _line(row.after, "changed", paint) + paint(f"  (was {row.before.name})", "") * is_renamed
    yield from (paint(f"      {change}", "") for change in row.changes if change.what != "name")


def _line(instruction: Instruction, kind: str, paint: Paint) -> str:
    text = repr(instruction)
    return paint(f"  {_MARKS[kind]} {text if len(text) <= 160 else f'{text[:157]}...'}", kind)


def as_dict(diff: Diff) -> dict[str, Any]:
    return {
        "same": diff.same,
        "changes": list(map(_change, diff.changes)),
        "computations": [_row(each) for each in diff.computations if not each.same],
    }


def _change(change: Change) -> dict[str, str]:
    return {"what": change.what, "before": change.before, "after": change.after}


def _row(each: ComputationDiff) -> dict[str, Any]:
    return {
        "before": each.before and each.before.name,
        "after": each.after and each.after.name,
        "matched": len(each.matched),
        "changes": list(map(_change, each.changes)),
        "changed": list(map(_changed_dict, each.changed)),
        "added": [instruction.name for instruction in each.added],
        "removed": [instruction.name for instruction in each.removed],
    }


def _changed_dict(row: Changed) -> dict[str, Any]:
    return {"before": row.before.name, "after": row.after.name, "changes": list(map(_change, row.changes))}
