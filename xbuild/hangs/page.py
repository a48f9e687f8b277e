"""The page about a stuck job: the answer, the ranks at fault with their lines, and the last operations of each rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files

from shape_inference.escaping import filled, in_html, policy

from ..core.report_text import Line, html
from .diagnosis import Diagnosis
from .records import Launch, name_ranks

MOST_ROWS = 64
"""The rows of lanes on a page; ranks that wait at one operation have one row together."""

LAST = 12
"""The operations in a lane, the last ones up to the one at which the rank is blocked and one after it."""


def page_text(diagnosis: Diagnosis, more: Sequence[Line] = ()) -> str:
    """The page as HTML: one file without scripts and requests; `more` are lines below the report."""
    lanes = "\n".join(_lanes(diagnosis))
    parts = {
        "policy": policy(),
        "style": _asset("hang.css"),
        "state": "stuck" if diagnosis.roots else "open",
        "sentence": in_html(diagnosis.sentence),
        "report": html([*[*diagnosis.lines(all=True)][1:], *more]),
        "hidden": "" if lanes else " hidden",
        "lanes": lanes,
    }
    return filled(_asset("hang.html"), parts)


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _lanes(diagnosis: Diagnosis) -> Iterator[str]:
    """A row for each rank at fault, and one for the ranks that wait at one operation."""
    at_fault = {root.rank: root for root in diagnosis.roots}
    rows: list[tuple[list[int], str]] = [([rank], at_fault[rank].kind) for rank in at_fault]
    together: dict[object, list[int]] = defaultdict(list)
    for rank in diagnosis.job.ranks:
        if rank not in at_fault:
            first = next(iter(diagnosis.waits.frontiers.get(rank, [])), None)
            together[None if first is None else first.pair or first.key].append(rank)
    rows += [(ranks, "waits" if place is not None else "idle") for place, ranks in together.items()]
    for ranks, kind in rows[:MOST_ROWS]:
        yield _lane(diagnosis, ranks, kind)
    if len(rows) > MOST_ROWS:
        yield f'<tr><td colspan="3">... and {len(rows) - MOST_ROWS:,} more rows</td></tr>'


def _lane(diagnosis: Diagnosis, ranks: list[int], kind: str) -> str:
    record = diagnosis.job.ranks.get(ranks[0])
    operations = record.operations if record is not None else []
    blocked = next((place for place, each in enumerate(operations) if not each.is_done), len(operations) - 1)
    shown = operations[max(0, blocked - LAST + 2) : blocked + 2]
    root = next((each for each in diagnosis.roots if each.rank == ranks[0]), None)
    boxes = [_box(each, "done" if each.is_done else "pending") for each in shown]
    if root is not None and root.operation is not None and root.kind in ("never_launched", "dead", "unknown"):
        boxes.append(_box(root.operation, "missing"))
    waits = diagnosis.waiting.get(ranks[0])
    because = f" because of {name_ranks(waits)}" if waits else ""
    state = "rank" if kind in ("waits", "idle") else "rank fault"
    return (
        f'<tr><th class="{state}">{in_html(name_ranks(ranks))}</th><td class="kind">{in_html(kind + because)}</td>'
        f'<td class="lane">{"".join(boxes) or "no operations recorded"}</td></tr>'
    )


def _box(operation: Launch, state: str) -> str:
    frame = next((each for each in operation.frames if each.is_of_user), None)
    line = f"\n{frame.file}:{frame.line}" if frame is not None else ""
    title = in_html(f"{operation} of group {operation.group}, {state}{line}")
    name = f"{in_html(str(operation))}<small>{in_html(operation.group)}</small>"
    return f'<span class="box {state}" title="{title}">{name}</span>'
