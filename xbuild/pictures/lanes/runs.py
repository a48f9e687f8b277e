"""Lanes of a run of the check: executed items, the items at which devices stop, and the waits between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from attrs import define, evolve, field

from ...checking.deadlock.level_run import ItemNumber, LevelRun
from ...checking.deadlock.stuck import Stuck
from ...checking.model.describe import fact, payload
from ...checking.model.verdict import Verdict
from ...core.graph import Instruction
from ...properties.effects import LOOPS, where
from ...properties.sites import Site
from ..model.kinds import FLOW, Kind, kind_of
from . import Arrow, Bar, Lane, State, Stop
from .columns import Columns
from .devices import Rows, rows

Parts: TypeAlias = tuple[
    tuple[Lane, ...], tuple[Stop, ...], tuple[Bar, ...], tuple[Arrow, ...], int | None, tuple[str, ...]
]
_STEPS = 12  # columns of executed items that are shown
_LATER = 3  # items after the stop of a lane that are shown, besides those that others wait for


def of_run(verdict: Verdict, run: LevelRun) -> Parts:
    """The lanes, stops, bars and arrows of a run, the column of the halt, and notes of what is not shown."""
    return _Drawn(verdict, run).parts()


@define
class _Drawn:
    verdict: Verdict
    run: LevelRun
    rows: Rows = field(init=False)
    columns: Columns = field(init=False)
    notes: list[str] = field(init=False, factory=list)
    _later: int = field(init=False, default=0)
    _stops: list[Stop] = field(init=False, factory=list)
    _number: dict[ItemNumber, int] = field(init=False, factory=dict)
    _wanted: set[ItemNumber] = field(init=False, factory=set)
    _cycle: set[ItemNumber] = field(init=False, factory=set)

    def __attrs_post_init__(self) -> None:
        run = self.run
        blocked = set(run.blocked())
        alike = {
            device: (*((item.kind, item.instruction.name) for item in skeleton.items), tuple(run.order[device]))
            for device, skeleton in run.level.skeletons.items()
        }
        finding = self.verdict.findings[0] if self.verdict.findings else None
        waits = finding.cycle if finding else ()
        self.rows = rows(alike, {wait.device for wait in waits} | {wait.partner_device for wait in waits})
        self.columns = Columns(run, self.rows.shown)
        for wait in waits:
            self._cycle |= set(self._find(wait.device, wait.instruction))
            self._wanted |= set(self._find(wait.partner_device, wait.partner))
        self._place(blocked)

    def _find(self, device: int, instruction: Instruction) -> Iterator[ItemNumber]:
        """The number of the item of an instruction in the lane of its device; nothing where there is none."""
        shown = self.rows.shown[self.rows.lane_of[device]]
        for number, item in enumerate(self.run.level.skeletons[shown].items):
            if item.instruction.name == instruction.name:
                yield shown, number
                return

    def _place(self, blocked: set[ItemNumber]) -> None:
        """Place the stops: executed ones by logical time, blocked ones in the next column, later ones behind it."""
        last = max(self.columns.of.values(), default=-1)
        skip = max(0, last + 1 - _STEPS) if blocked else 0
        end = last + 1 if blocked else min(last + 1, _STEPS)
        if skip or end < last + 1:
            hidden = skip or last + 1 - end
            self.notes.append(f"+{hidden:,} steps {'before these' if skip else 'after these'} hidden")
        for lane, device in enumerate(self.rows.shown):
            for number in self.run.order[device]:
                column = self.columns.of[self.run.node((device, number))]
                if skip <= column < end:
                    self._add(lane, column - skip, (device, number), "done")
            self._rest(lane, device, last + 1 - skip, blocked)

    def _rest(self, lane: int, device: int, column: int, blocked: set[ItemNumber]) -> None:
        items = self.run.level.skeletons[device].items
        left = [(device, n) for n in range(len(items)) if not self.run.done[self.run.node((device, n))]]
        left.sort(key=lambda place: place not in blocked)
        hidden = 0
        for count, place in enumerate(left):
            if place in blocked or count < _LATER or place in self._wanted or place in self._cycle:
                self._add(lane, column, place, self._state(place, blocked))
                column += 1
            else:
                hidden += 1
        self._later += hidden

    def _state(self, place: ItemNumber, blocked: set[ItemNumber]) -> State:
        if place in self._cycle:
            return "cycle"
        if place in self._wanted:
            return "asked"
        return "waits" if place in blocked else "later"

    def _add(self, lane: int, column: int, place: ItemNumber, state: State) -> None:
        item = self.run.item(place)
        instruction = item.instruction
        told = self._fact(item, place[0])
        calls = {instruction, *(step.instruction for step in item.path)}
        if state == "done" and any(calls & {*finding.instructions} for finding in self.verdict.findings):
            state = "open"
        tooltip = "\n".join(str(each) for each in (instruction, instruction.source) if each)
        name = f"{instruction.name}{where(item.path)}" if item.path else instruction.name
        self._number[place] = len(self._stops)
        self._stops.append(Stop(lane, column, name, told, _kind(instruction), state, tooltip))

    def _fact(self, item: Site, device: int) -> str:
        """The second line of a stop; of a send its channel, its peer and its payload, as `#1 → 2, f32[4]`."""
        if item.kind == "unit":
            return ""
        if item.kind not in ("send", "recv"):
            return fact(item.instruction, device).replace("channel ", "#")
        peer = self.run.context.transfers.peer(item.instruction, device)
        arrow = "" if peer is None else f" {'→' if item.kind == 'send' else '←'} {peer}"
        return f"#{item.instruction.attributes.channel_id}{arrow}, {payload(item.instruction)}"

    def parts(self) -> Parts:
        halt = min((stop.column for stop in self._stops if stop.state not in ("done", "open")), default=None)
        lanes = tuple(evolve(lane, end=self._end(n)) for n, lane in enumerate(self.rows.lanes))
        arrows = (*self._channels(), *self._waits(), *self._moves())
        later = [f"+{self._later:,} later ones hidden"] if self._later else []
        return lanes, tuple(self._stops), (*self._bars(),), arrows, halt, (*self.notes, *later)

    def _end(self, lane: int) -> str:
        """The mark at the end of a device that ends while others are stuck."""
        stuck = not self.run.finished
        return "ends" if stuck and all(stop.state == "done" for stop in self._stops if stop.lane == lane) else ""

    def _bars(self) -> Iterator[Bar]:
        seen: set[int] = set()
        for place, number in self._number.items():
            node, stop = self.run.node(place), self._stops[number]
            if node not in seen and stop.state in ("done", "open"):
                seen.add(node)
                lanes = {self.rows.lane_of[device] for device, _ in self.run.members[node]}
                if len(lanes) > 1:
                    yield Bar(stop.column, tuple(sorted(lanes)), stop.name)

    def _channels(self) -> Iterator[Arrow]:
        """The arrow from each send to the recv-done that receives its value."""
        numbers: dict[int, list[int]] = {}
        for place, number in self._number.items():
            numbers.setdefault(self.run.node(place), []).append(number)
        for place, number in self._number.items():
            if self.run.item(place).kind == "recv_done" and self._stops[number].state == "done":
                for need in self.run.needs.get(self.run.node(place), ()):
                    for tail in numbers.get(need, ()):
                        channel = self.run.item(place).instruction.attributes.channel_id
                        yield Arrow(tail, number, "channel", f"{channel}", f"channel {channel}")

    def _waits(self) -> Iterator[Arrow]:
        """The arrows of the cycle, edge by edge, and those of the other blocked devices."""
        finding = self.verdict.findings[0] if self.verdict.findings else None
        drawn = set()
        for number, wait in enumerate(finding.cycle if finding else ()):
            tail, head = self._stop(wait.device, wait.instruction), self._stop(wait.partner_device, wait.partner)
            following = finding.cycle[(number + 1) % len(finding.cycle)]  # type: ignore[union-attr]
            at = self._stop(following.device, following.instruction)
            for a, b, what, words in ((tail, head, "cycle", wait.reason), (head, at, "after", wait.behind)):
                if a is not None and b is not None and a != b and (a, b) not in drawn and self._is_shown(what, a, b):
                    drawn.add((a, b))
                    yield Arrow(a, b, what, "waits for" if what == "cycle" else "after", words)
        if not self.run.finished:
            yield from self._victims()

    def _is_shown(self, what: str, a: int, b: int) -> bool:
        """Whether an arrow is drawn: a wait between devices that share a lane is not."""
        return what == "after" or self._stops[a].lane != self._stops[b].lane

    def _stop(self, device: int, instruction: Instruction) -> int | None:
        return next((self._number[place] for place in self._find(device, instruction) if place in self._number), None)

    def _victims(self) -> Iterator[Arrow]:
        stuck, drawn = Stuck(self.run), set()
        for place, number in self._number.items():
            if self._stops[number].state == "waits":
                for device, partner in stuck.partners(place):
                    lane = self.rows.shown[self.rows.lane_of[device]]
                    head = self._number.get((lane, partner))
                    if head is not None and head != number and (number, head) not in drawn:
                        drawn.add((number, head))
                        yield Arrow(number, head, "waits")
                        break

    def _moves(self) -> Iterator[Arrow]:
        """The arrows of the moves of the repair."""
        for move in self.verdict.repair.moves if self.verdict.repair else ():
            ends = {
                (self._stop(device, move.instruction), self._stop(device, move.before))
                for device in move.devices
                if device in self.rows.lane_of
            }
            for tail, head in sorted((a, b) for a, b in ends if a is not None and b is not None):
                yield Arrow(tail, head, "move", "repair", f"move {move.instruction.name} before {move.before.name}")


def _kind(instruction: Instruction) -> Kind:
    return FLOW if instruction.opcode in LOOPS else kind_of(instruction.opcode)
