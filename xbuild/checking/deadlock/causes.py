"""The class of a deadlock's cause, and the sentence that says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.program import devices_text
from .run import ItemNumber, Run

if TYPE_CHECKING:
    from .stuck import Edge


def cause(run: Run, cycle: Sequence[Edge], roots: list[tuple[ItemNumber, tuple[int, ...]]]) -> tuple[str, str]:
    """The class of the cause, and the sentence that says it."""
    if not cycle:
        return _cause_of_roots(run, roots)
    kinds = {run.item(edge.blocked).kind for edge in cycle}
    given = run.level.skeletons[cycle[0].blocked[0]].given
    tail = "" if given else "; operands, tokens and control edges fix this order, so no schedule helps"
    whose = "both devices" if len(cycle) == 2 else "all devices of the cycle"
    if kinds == {"send"}:
        return "P2P_CYCLE" if given else "TOKEN_ORDER", f"{whose} send before they post their own receive{tail}"
    if kinds == {"recv_done"}:
        return "P2P_CYCLE" if given else "TOKEN_ORDER", f"{whose} wait for a value before they send their own{tail}"
    if kinds <= {"send", "recv_done"}:
        return (
            "P2P_CYCLE" if given else "TOKEN_ORDER",
            f"{whose} have their transfers in orders that do not fit together{tail}",
        )
    places = (*(edge.blocked for edge in cycle), *(edge.partner for edge in cycle))
    names = " and ".join(dict.fromkeys(run.item(place).instruction.name for place in places))
    return "ORDER_INVERSION" if given else "TOKEN_ORDER", f"{names} stand in different orders on these devices{tail}"


def _cause_of_roots(run: Run, roots: list[tuple[ItemNumber, tuple[int, ...]]]) -> tuple[str, str]:
    place, missing = roots[0]
    item = run.item(place)
    if not missing:
        return "STARVED", f"{item.instruction.name} wants more items than the infeed of device {place[0]} has"
    if item.kind == "send":
        return (
            "UNMATCHED_SEND",
            f"{devices_text(missing)} never comes to the recv that {item.instruction.name} waits for",
        )
    if item.kind == "recv_done":
        return (
            "UNMATCHED_RECV",
            f"{devices_text(missing)} never comes to the send that {item.instruction.name} waits for",
        )
    return "MISSING_MEMBER", f"{item.instruction.name} is a meeting of devices of which not all come to it"
