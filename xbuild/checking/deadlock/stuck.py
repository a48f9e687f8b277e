"""The finding for a level that is stuck: where each device stops, the shortest cycle of waits, the cause.

Sections:

    The class of the cause, and the sentence that explains it
    The finding: where each device stops, and the shortest cycle of waits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from ...core.graph import Instruction
from ...core.report_text import join_words
from ...properties.effects import start_of, where
from ..model.describe import (
    calls_text,
    cause_in_branch,
    fact,
    innermost_branch,
    predicate_row,
    repair_in_branch,
    untying_text,
)
from ..model.program import devices_text
from ..model.verdict import Finding, ReportRow, Wait
from .level_run import ItemNumber, LevelRun

if TYPE_CHECKING:
    import networkx as nx


# ----------------------------------------------------------------------------
# The class of the cause, and the sentence that explains it


def cause_of_deadlock(
    run: LevelRun, cycle: Sequence[WaitEdge], roots: list[tuple[ItemNumber, tuple[int, ...]]]
) -> tuple[str, str]:
    """The class of the cause, and the sentence that explains it."""
    if not cycle:
        return _cause_of_roots(run, roots)
    kinds = {run.item(edge.blocked).kind for edge in cycle}
    given = run.level.skeletons[cycle[0].blocked[0]].given
    tail = "" if given else "; operands, tokens and control edges fix this order, so no other schedule helps"
    if len(cycle) == 1:
        waiting, sent = run.item(cycle[0].blocked).instruction, run.item(cycle[0].partner).instruction
        text = (
            f"the host function cannot produce the result for {waiting.name} before it receives the operand that "
            f"{sent.name} sends"
        )
        return "P2P_CYCLE" if given else "TOKEN_ORDER", f"{text}{tail}"
    subjects = "both devices" if len(cycle) == 2 else "all devices of the cycle"
    if kinds == {"send"}:
        return "P2P_CYCLE" if given else "TOKEN_ORDER", f"{subjects} send before they post their own recv{tail}"
    if kinds == {"recv_done"}:
        return "P2P_CYCLE" if given else "TOKEN_ORDER", f"{subjects} wait for a value before they send their own{tail}"
    if kinds <= {"send", "recv_done"}:
        return (
            "P2P_CYCLE" if given else "TOKEN_ORDER",
            f"{subjects} execute their transfers in conflicting orders{tail}",
        )
    places = (*(edge.blocked for edge in cycle), *(edge.partner for edge in cycle))
    names = join_words(dict.fromkeys(run.item(place).instruction.name for place in places))
    return "ORDER_INVERSION" if given else "TOKEN_ORDER", f"these devices execute {names} in different orders{tail}"


def _cause_of_roots(run: LevelRun, roots: list[tuple[ItemNumber, tuple[int, ...]]]) -> tuple[str, str]:
    place, missing = roots[0]
    item = run.item(place)
    if not missing:
        return "STARVED", f"{item.instruction.name} takes more items than the infeed of device {place[0]} holds"
    if item.kind == "send":
        return (
            "UNMATCHED_SEND",
            f"{devices_text(missing)} never reaches the recv that {item.instruction.name} waits for",
        )
    if item.kind == "recv_done":
        return (
            "UNMATCHED_RECV",
            f"{devices_text(missing)} never reaches the send that {item.instruction.name} waits for",
        )
    return "MISSING_MEMBER", f"some devices of the collective {item.instruction.name} never reach it"


# ----------------------------------------------------------------------------
# The finding: where each device stops, and the shortest cycle of waits

LARGEST = 2000

REASONS = {
    "send": "a send begins once its receiver has posted a buffer",
    "recv_done": "its value arrives with that send",
    "meet": "a collective begins once every participant has reached it",
    "done": "a done needs the start of every participant",
    "unit": "they communicate with each other inside, so they run together",
}


@frozen
class WaitEdge:
    """A blocked item waits for a partner, which is or follows a blocked item of its own device."""

    blocked: ItemNumber
    partner: ItemNumber
    at: ItemNumber


@define(eq=False)
class Stuck:
    """A run of a level that is stuck."""

    run: LevelRun
    _late: dict[int, list[ItemNumber]] = field(factory=dict)
    _missed: dict[int, str] = field(factory=dict)

    def late_items(self, node: int) -> list[ItemNumber]:
        """The items of a node that are not ready: predecessors on their device are not done."""
        if node not in self._late:
            self._late[node] = [member for member in self.run.members[node] if not self.run.is_ready(member)]
        return self._late[node]

    def missing_text(self, node: int) -> str:
        """The text for devices that never arrive at a node; empty if none is missing."""
        if node not in self._missed:
            missing = self.run.missing(node)
            never = f"{devices_text(missing)}, which never reach{'es' * (len(missing) == 1)} it" if missing else ""
            self._missed[node] = never
        return self._missed[node]

    def blocked(self) -> dict[int, list[ItemNumber]]:
        """The items of each device that are ready and wait for other devices; in a given order at most one."""
        blocked: dict[int, list[ItemNumber]] = {}
        for place in self.run.blocked():
            blocked.setdefault(place[0], []).append(place)
        return blocked

    def partners(self, place: ItemNumber) -> Iterator[ItemNumber]:
        """The items that a blocked item waits for: on other devices, or on its own for a host function."""
        run, node = self.run, self.run.node(place)
        needs = [*run.needs.get(node, ())]
        while needs:
            need = needs.pop()
            if not run.done[need]:
                yield from (m for m in run.members[need] if m[0] != place[0] or run.item(m).kind == "send")
                needs += run.needs.get(need, ()) if not run.members[need] else ()
        yield from (member for member in self.late_items(node) if member != place)

    def edges(self, blocked: dict[int, list[ItemNumber]]) -> Iterator[WaitEdge]:
        for places in blocked.values():
            for place in places:
                for partner in self.partners(place):
                    at = self._blocked_before(partner, blocked.get(partner[0], []))
                    if at is not None:
                        yield WaitEdge(place, partner, at)

    def _blocked_before(self, partner: ItemNumber, blocked: list[ItemNumber]) -> ItemNumber | None:
        """The blocked item before the partner on its device."""
        skeleton = self.run.level.skeletons[partner[0]]
        if partner in blocked:
            return partner
        if skeleton.given:
            return blocked[0] if blocked else None
        return next((place for place in blocked if skeleton.depends(partner[1], place[1])), None)

    def cycle(self, edges: Iterable[WaitEdge]) -> list[WaitEdge]:
        """The shortest cycle of waits, or none; any cycle of a very large graph."""
        import networkx as nx

        by_ends: dict[tuple[ItemNumber, ItemNumber], WaitEdge] = {}
        for edge in edges:
            by_ends.setdefault((edge.blocked, edge.at), edge)
        graph: nx.DiGraph[ItemNumber] = nx.DiGraph(list(by_ends))
        nodes = _shortest_cycle(graph) if len(graph) <= LARGEST else _any_cycle(graph)
        return [by_ends[a, b] for a, b in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True)]


def _shortest_cycle(graph: nx.DiGraph[ItemNumber]) -> list[ItemNumber]:
    """The nodes of a shortest cycle, starting at its least one."""
    import networkx as nx

    best: list[ItemNumber] = []
    for component in sorted(map(sorted, nx.strongly_connected_components(graph))):
        part = graph.subgraph(component)
        starts = component[:1] if part.number_of_edges() == len(component) else component  # a ring: any start finds it
        for node in starts:
            cycle = _cycle_through(part, node, len(best))
            if cycle and (not best or len(cycle) < len(best)):
                best = cycle
            if len(best) == 2:
                return best
    return best


def _cycle_through(graph: nx.DiGraph[ItemNumber], start: ItemNumber, bound: int) -> list[ItemNumber]:
    """A shortest cycle through a node, if it is shorter than the bound."""
    before: dict[ItemNumber, ItemNumber] = {}
    layer, length = [start], 1
    while layer and (not bound or length < bound):
        following = []
        for node in layer:
            for after in sorted(graph.successors(node)):
                if after == start:
                    return _path_back(before, start, node)
                if after not in before:
                    before[after] = node
                    following.append(after)
        layer, length = following, length + 1
    return []


def _path_back(before: dict[ItemNumber, ItemNumber], start: ItemNumber, node: ItemNumber) -> list[ItemNumber]:
    path = [node]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def _any_cycle(graph: nx.DiGraph[ItemNumber]) -> list[ItemNumber]:
    import networkx as nx

    try:
        return [edge[0] for edge in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        return []


Blocked = dict[int, list[ItemNumber]]  # for each device the items at which it is blocked
Inner = dict[int, list[tuple[Instruction, str]]]  # instructions inside the unit at which a device is blocked
Enter = Callable[[LevelRun, Blocked], Inner]


def deadlock_finding(run: LevelRun, enter: Enter) -> Finding:
    """The finding for a run that is stuck; `enter` returns where devices stop inside the units they are blocked at."""
    stuck = Stuck(run)
    blocked = stuck.blocked()
    cycle = stuck.cycle(stuck.edges(blocked))
    roots = _roots(run, blocked)
    inner = enter(run, blocked)
    rows = [_row(run, stuck, place, inner.get(place[0])) for places in blocked.values() for place in places]
    waits = tuple(_wait(run, edge) for edge in cycle)
    involved = [*(run.item(e.blocked).instruction for e in cycle), *(run.item(e.partner).instruction for e in cycle)]
    causes, advice = cause_of_deadlock(run, cycle, roots), _dependency_advice(run, cycle)
    step = innermost_branch(run.item(roots[0][0])) if roots and not cycle and roots[0][1] else None
    if step is not None:
        (device, number), missing = roots[0]
        site = run.item((device, number))
        rows.append(predicate_row(site, step, device, missing))
        causes, advice = (causes[0], cause_in_branch(site, step)), repair_in_branch(site, step)
    return Finding(
        "infeed_starved" if causes[0] == "STARVED" else "deadlock",
        _message(run, cycle, roots),
        tuple(rows),
        tuple(dict.fromkeys([*involved, *(run.item(p).instruction for p, _ in roots)])),
        tuple(sorted({e.blocked[0] for e in cycle} or set(blocked))),
        cause=causes[0],
        cause_text=causes[1],
        repair_text=advice,
        blocked=_blocked_instructions(run, blocked, inner),
        cycle=waits,
    )


def _blocked_instructions(run: LevelRun, blocked: Blocked, inner: Inner) -> dict[int, tuple[Instruction, ...]]:
    """The instructions at which each device stops: those inside a unit, if it is blocked at one."""
    return {
        device: tuple(instruction for instruction, _ in inner[device])
        if device in inner
        else tuple(run.item(place).instruction for place in places)
        for device, places in blocked.items()
    }


def _roots(run: LevelRun, blocked: dict[int, list[ItemNumber]]) -> list[tuple[ItemNumber, tuple[int, ...]]]:
    """Blocked items that wait for devices that never arrive, or for an item of the infeed."""
    roots = []
    for places in blocked.values():
        for place in places:
            node = run.node(place)
            if run.missing(node) or node in run.starved:
                roots.append((place, run.missing(node)))
    return roots


def _message(run: LevelRun, cycle: list[WaitEdge], roots: list[tuple[ItemNumber, tuple[int, ...]]]) -> str:
    if len(cycle) == 1:
        (device, _), name = cycle[0].blocked, run.item(cycle[0].blocked).instruction.name
        operand = run.item(cycle[0].partner).instruction.name
        return (
            f"{name} of device {device} waits for a value that the host computes from {operand}, which device "
            f"{device} sends later"
        )
    if cycle:
        calls = calls_text((e.blocked[0], run.item(e.blocked).instruction) for e in cycle)
        orders = "this schedule allows" if run.level.skeletons[cycle[0].blocked[0]].given else "the dependencies allow"
        return f"{calls} wait for each other{_place_text(run, cycle[0].blocked)} in every order that {orders}"
    place, missing = roots[0]
    item = run.item(place)
    if not missing:
        return f"the infeed of device {place[0]} holds no item for {item}"
    return f"{devices_text(missing)} never reach{'es' * (len(missing) == 1)} {partner_name(run, place)}"


def partner_name(run: LevelRun, place: ItemNumber) -> str:
    """What a blocked item waits for, as text: the collective, or the other half of a channel."""
    item = run.item(place)
    start = start_of(item.instruction) if item.kind == "done" else None
    if start is not None:
        return f"{start.name}, whose done {item} waits for them"
    other = {"send": "the recv", "recv_done": "the send"}.get(item.kind)
    return str(item) if other is None else f"{other} of {fact(item.instruction)}, for which {item} waits"


def _place_text(run: LevelRun, place: ItemNumber) -> str:
    return where(run.item(place).path)


def _row(run: LevelRun, stuck: Stuck, place: ItemNumber, inner: list[tuple[Instruction, str]] | None) -> ReportRow:
    device, item = place[0], run.item(place)
    text = join_words(name for _, name in inner) if inner else str(item)
    partners: dict[str, list[int]] = {}
    for partner in sorted(set(stuck.partners(place))):
        partners.setdefault(run.item(partner).instruction.name, []).append(partner[0])
    shown = [f"{name} on {devices_text(devices)}" for name, devices in partners.items()]
    if missed := stuck.missing_text(run.node(place)):
        shown.append(missed)
    if run.node(place) in run.starved:
        shown.append("an item of its infeed, which is empty")
    reason = REASONS.get(item.kind)
    waits = ", ".join(shown) + (f" ({reason})" if reason else "")
    stopped = inner[0][0] if inner else item.instruction
    return ReportRow((device,), f"stops at {text}", _fact(run, place), stopped.source, waits)


def _fact(run: LevelRun, place: ItemNumber) -> str:
    item = run.item(place)
    if item.kind == "unit":
        return ""
    peer = run.context.transfers.peer(item.instruction, place[0]) if item.kind in ("send", "recv") else None
    return fact(item.instruction, place[0], peer)


def _wait(run: LevelRun, edge: WaitEdge) -> Wait:
    item, partner, at = run.item(edge.blocked), run.item(edge.partner), run.item(edge.at)
    behind = ""
    if edge.at != edge.partner:
        given = run.level.skeletons[edge.at[0]].given
        what = "in the schedule" if given else "by the dependencies"
        behind = f"after {at.instruction.name} {what} of device {edge.at[0]}"
    return Wait(edge.blocked[0], item.instruction, edge.partner[0], partner.instruction, REASONS[item.kind], behind)


def _dependency_advice(run: LevelRun, cycle: list[WaitEdge]) -> str:
    if not cycle or run.level.skeletons[cycle[0].blocked[0]].given:
        return ""
    waits = [(run.item(edge.partner).instruction, run.item(edge.at).instruction, edge.at[0]) for edge in cycle]
    return untying_text([wait for wait in waits if wait[0] is not wait[1]])
