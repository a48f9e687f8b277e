"""The finding for a level that is stuck: where each device stands, the shortest cycle of waits, the cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from ...core.graph import Instruction
from ...properties.effects import start_of, where
from ..model.branches import cause_in_branch, innermost_branch, predicate_row, repair_in_branch
from ..model.describe import calls_text, fact, untying_text
from ..model.program import devices_text
from ..model.verdict import Finding, ReportRow, Wait
from .causes import cause_of_deadlock
from .level_run import ItemNumber, LevelRun

if TYPE_CHECKING:
    import networkx as nx

LARGEST = 2000

REASONS = {
    "send": "a send begins when its receiver has posted a buffer",
    "recv_done": "its value comes with that send",
    "meet": "a collective begins when every member has come",
    "done": "a done needs the start of every member",
    "unit": "what is inside of them meets, so they run together",
}


@frozen
class Edge:
    """A blocked item waits for a partner, which stands at or behind a blocked item of its own device."""

    blocked: ItemNumber
    partner: ItemNumber
    at: ItemNumber


@define(eq=False)
class Stuck:
    """A run of a level that is stuck."""

    run: LevelRun
    _late: dict[int, list[ItemNumber]] = field(factory=dict)
    _missed: dict[int, str] = field(factory=dict)

    def late(self, node: int) -> list[ItemNumber]:
        """The items of a node that are not ready: predecessors on their device are not done."""
        if node not in self._late:
            self._late[node] = [member for member in self.run.members[node] if not self.run.is_ready(member)]
        return self._late[node]

    def missed(self, node: int) -> str:
        """The words for devices that never arrive at a node; empty where none is missing."""
        if node not in self._missed:
            missing = self.run.missing(node)
            never = f"{devices_text(missing)}, which never come{'s' * (len(missing) == 1)} to it" if missing else ""
            self._missed[node] = never
        return self._missed[node]

    def blocked(self) -> dict[int, list[ItemNumber]]:
        """The items of each device that are ready and wait for other devices; in a given order at most one."""
        found: dict[int, list[ItemNumber]] = {}
        for place in self.run.blocked():
            found.setdefault(place[0], []).append(place)
        return found

    def partners(self, place: ItemNumber) -> Iterator[ItemNumber]:
        """The items that a blocked item waits for: on other devices, or for a host function on its own device."""
        run, node = self.run, self.run.node(place)
        needs = [*run.needs.get(node, ())]
        while needs:
            need = needs.pop()
            if not run.done[need]:
                yield from (m for m in run.members[need] if m[0] != place[0] or run.item(m).kind == "send")
                needs += run.needs.get(need, ()) if not run.members[need] else ()
        yield from (member for member in self.late(node) if member != place)

    def edges(self, blocked: dict[int, list[ItemNumber]]) -> Iterator[Edge]:
        for places in blocked.values():
            for place in places:
                for partner in self.partners(place):
                    at = self._stands_before(partner, blocked.get(partner[0], []))
                    if at is not None:
                        yield Edge(place, partner, at)

    def _stands_before(self, partner: ItemNumber, blocked: list[ItemNumber]) -> ItemNumber | None:
        """The blocked item before the partner on its device."""
        skeleton = self.run.level.skeletons[partner[0]]
        if partner in blocked:
            return partner
        if skeleton.given:
            return blocked[0] if blocked else None
        return next((place for place in blocked if skeleton.depends(partner[1], place[1])), None)

    def cycle(self, edges: Iterable[Edge]) -> list[Edge]:
        """The shortest cycle of waits, or none; of a very large graph any."""
        import networkx as nx

        by_ends: dict[tuple[ItemNumber, ItemNumber], Edge] = {}
        for edge in edges:
            by_ends.setdefault((edge.blocked, edge.at), edge)
        graph: nx.DiGraph[ItemNumber] = nx.DiGraph(list(by_ends))
        nodes = _shortest(graph) if len(graph) <= LARGEST else _any(graph)
        return [by_ends[a, b] for a, b in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True)]


def _shortest(graph: nx.DiGraph[ItemNumber]) -> list[ItemNumber]:
    """The nodes of a shortest cycle, from its least on."""
    import networkx as nx

    best: list[ItemNumber] = []
    for component in sorted(map(sorted, nx.strongly_connected_components(graph))):
        part = graph.subgraph(component)
        starts = component[:1] if part.number_of_edges() == len(component) else component  # a ring: any start finds it
        for node in starts:
            found = _through(part, node, len(best))
            if found and (not best or len(found) < len(best)):
                best = found
            if len(best) == 2:
                return best
    return best


def _through(graph: nx.DiGraph[ItemNumber], start: ItemNumber, bound: int) -> list[ItemNumber]:
    """A shortest cycle through a node, if it is shorter than the bound."""
    before: dict[ItemNumber, ItemNumber] = {}
    layer, length = [start], 1
    while layer and (not bound or length < bound):
        following = []
        for node in layer:
            for after in sorted(graph.successors(node)):
                if after == start:
                    return _back(before, start, node)
                if after not in before:
                    before[after] = node
                    following.append(after)
        layer, length = following, length + 1
    return []


def _back(before: dict[ItemNumber, ItemNumber], start: ItemNumber, node: ItemNumber) -> list[ItemNumber]:
    path = [node]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def _any(graph: nx.DiGraph[ItemNumber]) -> list[ItemNumber]:
    import networkx as nx

    try:
        return [edge[0] for edge in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        return []


Blocked = dict[int, list[ItemNumber]]  # for each device the items at which it is blocked
Inner = dict[int, list[tuple[Instruction, str]]]  # instructions inside the unit at which a device is blocked
Enter = Callable[[LevelRun, Blocked], Inner]


def deadlock_finding(run: LevelRun, enter: Enter) -> Finding:
    """The finding for a run that is stuck; `enter` tells where devices stand inside the units they are blocked at."""
    stuck = Stuck(run)
    blocked = stuck.blocked()
    cycle = stuck.cycle(stuck.edges(blocked))
    roots = _roots(run, blocked)
    inner = enter(run, blocked)
    rows = [_row(run, stuck, place, inner.get(place[0])) for places in blocked.values() for place in places]
    waits = tuple(_wait(run, edge) for edge in cycle)
    involved = [*(run.item(e.blocked).instruction for e in cycle), *(run.item(e.partner).instruction for e in cycle)]
    causes, mended = cause_of_deadlock(run, cycle, roots), _untied(run, cycle)
    step = innermost_branch(run.item(roots[0][0])) if roots and not cycle and roots[0][1] else None
    if step is not None:
        (device, number), missing = roots[0]
        site = run.item((device, number))
        rows.append(predicate_row(step, device, missing))
        causes, mended = (causes[0], cause_in_branch(site, step)), repair_in_branch(site, step)
    return Finding(
        "infeed_starved" if causes[0] == "STARVED" else "deadlock",
        _message(run, cycle, roots),
        tuple(rows),
        tuple(dict.fromkeys([*involved, *(run.item(p).instruction for p, _ in roots)])),
        tuple(sorted({e.blocked[0] for e in cycle} or set(blocked))),
        cause=causes[0],
        cause_text=causes[1],
        repair_text=mended,
        blocked=_standing(run, blocked, inner),
        cycle=waits,
    )


def _standing(run: LevelRun, blocked: Blocked, inner: Inner) -> dict[int, tuple[Instruction, ...]]:
    """The instructions at which each device stops: those inside a unit, where it is blocked at one."""
    return {
        device: tuple(instruction for instruction, _ in inner[device])
        if device in inner
        else tuple(run.item(place).instruction for place in places)
        for device, places in blocked.items()
    }


def _roots(run: LevelRun, blocked: dict[int, list[ItemNumber]]) -> list[tuple[ItemNumber, tuple[int, ...]]]:
    """Blocked items that wait for devices that never arrive, or for an item of the infeed."""
    found = []
    for places in blocked.values():
        for place in places:
            node = run.node(place)
            if run.missing(node) or node in run.starved:
                found.append((place, run.missing(node)))
    return found


def _message(run: LevelRun, cycle: list[Edge], roots: list[tuple[ItemNumber, tuple[int, ...]]]) -> str:
    if len(cycle) == 1:
        (device, _), name = cycle[0].blocked, run.item(cycle[0].blocked).instruction.name
        operand = run.item(cycle[0].partner).instruction.name
        return f"{name} of device {device} waits for what the host makes of {operand}, which comes after it"
    if cycle:
        calls = calls_text((e.blocked[0], run.item(e.blocked).instruction) for e in cycle)
        orders = "this schedule allows" if run.level.skeletons[cycle[0].blocked[0]].given else "the dependencies allow"
        return f"{calls} wait for each other{_around(run, cycle[0].blocked)} in every order that {orders}"
    place, missing = roots[0]
    item = run.item(place)
    if not missing:
        return f"the infeed of device {place[0]} has no item for {item}"
    return f"{devices_text(missing)} never come{'s' * (len(missing) == 1)} to {partner_name(run, place)}"


def partner_name(run: LevelRun, place: ItemNumber) -> str:
    """The words for what a blocked item waits for: the collective, the other half of a channel."""
    item = run.item(place)
    start = start_of(item.instruction) if item.kind == "done" else None
    if start is not None:
        return f"{start.name}, whose done {item} waits for them"
    other = {"send": "the recv", "recv_done": "the send"}.get(item.kind)
    return str(item) if other is None else f"{other} of {fact(item.instruction)}, which {item} waits for"


def _around(run: LevelRun, place: ItemNumber) -> str:
    return where(run.item(place).path)


def _row(run: LevelRun, stuck: Stuck, place: ItemNumber, inner: list[tuple[Instruction, str]] | None) -> ReportRow:
    device, item = place[0], run.item(place)
    text = " and ".join(each for _, each in inner) if inner else str(item)
    partners: dict[str, list[int]] = {}
    for partner in sorted(set(stuck.partners(place))):
        partners.setdefault(run.item(partner).instruction.name, []).append(partner[0])
    shown = [f"{name} on {devices_text(devices)}" for name, devices in partners.items()]
    if missed := stuck.missed(run.node(place)):
        shown.append(missed)
    if run.node(place) in run.starved:
        shown.append("an item of its infeed, which has no more")
    reason = REASONS.get(item.kind)
    waits = ", ".join(shown) + (f" ({reason})" if reason else "")
    stands = inner[0][0] if inner else item.instruction
    return ReportRow((device,), f"stops at {text}", _fact(run, place), stands.source, waits)


def _fact(run: LevelRun, place: ItemNumber) -> str:
    item = run.item(place)
    if item.kind == "unit":
        return ""
    peer = run.context.transfers.peer(item.instruction, place[0]) if item.kind in ("send", "recv") else None
    return fact(item.instruction, place[0], peer)


def _wait(run: LevelRun, edge: Edge) -> Wait:
    item, partner, at = run.item(edge.blocked), run.item(edge.partner), run.item(edge.at)
    behind = ""
    if edge.at != edge.partner:
        given = run.level.skeletons[edge.at[0]].given
        what = "in the schedule" if given else "by the dependencies"
        behind = f"after {at.instruction.name} {what} of device {edge.at[0]}"
    return Wait(edge.blocked[0], item.instruction, edge.partner[0], partner.instruction, REASONS[item.kind], behind)


def _untied(run: LevelRun, cycle: list[Edge]) -> str:
    if not cycle or run.level.skeletons[cycle[0].blocked[0]].given:
        return ""
    waits = [(run.item(edge.partner).instruction, run.item(edge.at).instruction, edge.at[0]) for edge in cycle]
    return untying_text([wait for wait in waits if wait[0] is not wait[1]])
