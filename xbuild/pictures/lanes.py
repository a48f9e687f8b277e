"""Lanes as plain data: a row for each device of a verdict or a stopped run, its stops, and the devices it waits for.

Sections:

    Lanes as plain data
    Devices that get a lane of their own
    Columns: logical time
    Lanes of a run of the check
    Lanes of structural faults
    Lanes of a verdict
    Lanes as text
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import define, evolve, field, frozen

from shape_inference.escaping import printable

from ..checking.dataflow.decisions import Decisions, trips_text
from ..checking.deadlock.level_run import ItemNumber, LevelContext, LevelRun, ScheduleLevel
from ..checking.deadlock.levels import LevelStage
from ..checking.deadlock.stuck import Stuck
from ..checking.model.describe import fact, payload
from ..checking.model.program import GridProgram, devices_text
from ..checking.model.verdict import CheckArguments, Finding, Verdict, fix_text, report_lines
from ..checking.structure.collective_matching import collective_identities
from ..checking.structure.transfers import match_transfers
from ..core.graph import Computation, Instruction, Module
from ..core.report_text import BESIDE_PICTURE, Line
from ..properties.effects import LOOPS, branch_name, where
from ..properties.scopes import Scopes, scopes_of
from ..properties.sites import Site, sites_of
from .picture import FLOW, Kind, kind_of

# ----------------------------------------------------------------------------
# Lanes as plain data
#
# A row for each device of a verdict or a stopped run, its stops, and the devices it waits for.

State: TypeAlias = Literal["done", "cycle", "waits", "later", "asked", "open"]


@frozen
class Stop:
    """An instruction of a lane, at a column.

    The `state` is done for an executed instruction; cycle for one of the cycle of waits or of the fault; waits for one
    that is blocked because of the cycle; later for one that comes after the halt; asked for one that a member of the
    cycle waits for; open for one that the data decide, or where a device stands.
    """

    lane: int
    column: int
    name: str
    fact: str
    kind: Kind
    state: State
    tooltip: str = ""
    scope: str = ""


@frozen
class Bar:
    """A collective: the lanes of the devices that meet at a column."""

    column: int
    lanes: tuple[int, ...]
    name: str


@frozen
class Arrow:
    """An arrow from one stop to another, both by number; `what` is channel, cycle, waits, after, move or clash."""

    tail: int
    head: int
    what: str
    words: str = ""
    tooltip: str = ""


@frozen
class Lane:
    """A lane of one device, or of several devices that are alike; `end` is the text at its end."""

    title: str
    note: str = ""
    end: str = ""


@frozen
class Lanes:
    """The lanes of a verdict or a stopped run; `halt` is the column that no device passes, None where none is stuck.

    `remarks` are the cause, the fix and other labelled texts; `notes` state what is not shown; `report`
    has the lines of the report.
    """

    name: str
    kind: str
    headline: str
    lanes: tuple[Lane, ...] = ()
    stops: tuple[Stop, ...] = ()
    bars: tuple[Bar, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    halt: int | None = None
    remarks: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    report: tuple[Line, ...] = ()


def words_of_state(kind: str) -> dict[State, str]:
    """The legend text of each state of a stop, for lanes of this kind."""
    return {
        "cycle": {"error": "mismatch", "stopped": "root cause"}.get(kind, "in the cycle"),
        "asked": "waited for, but never reached",
        "waits": "waits as a result",
        "later": "ended or not started" if kind == "stopped" else "comes later",
        "open": "is here" if kind == "stopped" else "depends on data",
    }


# ----------------------------------------------------------------------------
# Devices that get a lane of their own
#
# Devices that are alike share a lane.

MOST = 8
_ALONE = 4  # devices with a lane of their own, where others share lanes


@frozen
class Rows:
    """The lane of each device, the device that stands for each lane, and the lanes' titles."""

    lane_of: Mapping[int, int]
    shown: Sequence[int]
    lanes: tuple[Lane, ...]


def rows(alike: Mapping[int, Hashable], first: Collection[int]) -> Rows:
    """The lanes of devices: those with an equal value in `alike` share a lane, and those of `first` come first."""
    if len(alike) <= MOST:
        groups = [[device] for device in alike]
    else:
        alone = _alone(alike, first)
        rest: dict[Hashable, list[int]] = {}
        for device, mark in alike.items():
            if device not in alone:
                rest.setdefault(mark, []).append(device)
        groups = [*([device] for device in alone), *rest.values()]
    others = sorted(device for group in groups[MOST - 1 :] for device in group) if len(groups) > MOST else []
    lanes = [*map(_lane, groups[: MOST - 1] if others else groups)]
    if others:
        groups = [*groups[: MOST - 1], others]
        lanes.append(Lane(devices_text(others), f"+{len(others):,} devices"))
    lane_of = {device: lane for lane, group in enumerate(groups) for device in group}
    return Rows(lane_of, [group[0] for group in groups], tuple(lanes))


def _alone(alike: Mapping[int, Hashable], first: Collection[int]) -> list[int]:
    """The devices that get a lane of their own where others share one."""
    if first:
        return sorted(first)[:_ALONE]
    seen: dict[Hashable, int] = {}
    found: list[int] = []
    for device, mark in alike.items():
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] <= max(1, _ALONE - 1) and len(found) < _ALONE:
            found.append(device)
    return found


def _lane(group: Sequence[int]) -> Lane:
    """The lane of a group of devices that are alike."""
    if len(group) == 1:
        return Lane(f"device {group[0]}")
    return Lane(devices_text(group), f"+{len(group):,} devices like it")


# ----------------------------------------------------------------------------
# Columns: logical time
#
# Each executed node is to the right of all nodes that had to precede it.


@define
class Columns:
    """The columns of the nodes of a run that some devices have executed."""

    run: LevelRun
    devices: Collection[int]
    of: dict[int, int] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        before = {node: set(self._before(node)) for device in self.devices for node in self._nodes(device)}
        for device in self.devices:
            last = None
            for node in self._nodes(device):
                if last is not None and last != node:
                    before[node].add(last)
                last = node
        self._assign_columns({node: {each for each in first if each in before} for node, first in before.items()})

    def _nodes(self, device: int) -> list[int]:
        return [self.run.node((device, number)) for number in self.run.order[device]]

    def _before(self, node: int) -> Iterator[int]:
        seen: set[int] = set()
        stack = [*self.run.needs.get(node, ())]
        while stack:
            need = stack.pop()
            if self.run.members[need]:
                yield need
            elif need not in seen:
                seen.add(need)
                stack += self.run.needs.get(need, ())

    def _assign_columns(self, before: Mapping[int, set[int]]) -> None:
        missing = {node: len(first) for node, first in before.items()}
        after: dict[int, list[int]] = {}
        for node, first in before.items():
            for each in first:
                after.setdefault(each, []).append(node)
        ready = [node for node, count in missing.items() if not count]
        for node in ready:
            self.of[node] = max((self.of[each] + 1 for each in before[node]), default=0)
            for each in after.get(node, ()):
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)


# ----------------------------------------------------------------------------
# Lanes of a run of the check
#
# Executed items, the items at which devices stop, and the waits between them.

Parts: TypeAlias = tuple[
    tuple[Lane, ...], tuple[Stop, ...], tuple[Bar, ...], tuple[Arrow, ...], int | None, tuple[str, ...]
]
_STEPS = 12  # columns of executed items that are shown
_LATER = 3  # items after the stop of a lane that are shown, besides those that others wait for


def parts_of_run(verdict: Verdict, run: LevelRun, decisions: Decisions) -> Parts:
    """The lanes, stops, bars and arrows of a run, the column of the halt, and notes of what is not shown."""
    return _Drawn(verdict, run, decisions).parts()


@define
class _Drawn:
    verdict: Verdict
    run: LevelRun
    decisions: Decisions
    rows: Rows = field(init=False)
    columns: Columns = field(init=False)
    notes: list[str] = field(init=False, factory=list)
    _later: int = field(init=False, default=0)
    _stops: list[Stop] = field(init=False, factory=list)
    _number: dict[ItemNumber, int] = field(init=False, factory=dict)
    _wanted: set[ItemNumber] = field(init=False, factory=set)
    _cycle: set[ItemNumber] = field(init=False, factory=set)
    _scopes: dict[Module, Scopes] = field(init=False, factory=dict)

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
        labelled = self._fact(item, place[0])
        calls = {instruction, *(step.instruction for step in item.path)}
        if state == "done" and any(calls & {*finding.instructions} for finding in self.verdict.findings):
            state = "open"
        tooltip = "\n".join(str(each) for each in (instruction, instruction.source) if each)
        name = f"{instruction.name}{where(item.path)}" if item.path else instruction.name
        self._number[place] = len(self._stops)
        scope = self._scopes_of(place[0]).of(instruction)
        self._stops.append(Stop(lane, column, name, labelled, _kind(instruction), state, tooltip, scope))

    def _scopes_of(self, device: int) -> Scopes:
        module = self.run.context.program.class_of[device].module
        if module not in self._scopes:
            self._scopes[module] = scopes_of(module)
        return self._scopes[module]

    def _fact(self, item: Site, device: int) -> str:
        """The second line of a stop; of a send its channel, its peer and its payload, as `#1 → 2, f32[4]`."""
        if item.kind == "unit":
            return self._decided(item, device)
        if item.kind not in ("send", "recv"):
            return fact(item.instruction, device).replace("channel ", "#")
        peer = self.run.context.transfers.peer(item.instruction, device)
        arrow = "" if peer is None else f" {'→' if item.kind == 'send' else '←'} {peer}"
        return f"#{item.instruction.attributes.channel_id}{arrow}, {payload(item.instruction)}"

    def _decided(self, unit: Site, device: int) -> str:
        """The trips of a loop or the branch of a conditional on this device, where they are known before the run."""
        decided = self.decisions.decided(device, unit.instruction, unit.path)
        if decided is None:
            return ""
        return trips_text(decided) if unit.instruction.opcode in LOOPS else branch_name(unit.instruction, decided)

    def parts(self) -> Parts:
        halt = min((stop.column for stop in self._stops if stop.state not in ("done", "open")), default=None)
        lanes = tuple(evolve(lane, end=self._end(n)) for n, lane in enumerate(self.rows.lanes))
        arrows = (*self._channels(), *self._waits(), *self._moves())
        later = [f"+{self._later:,} later steps hidden"] if self._later else []
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
        """The arrows of the moves of the repair: one for each move, in the first lane of the devices that share it."""
        for move in self.verdict.repair.moves if self.verdict.repair else ():
            ends = {
                (self._stop(device, move.instruction), self._stop(device, move.before))
                for device in move.devices
                if device in self.rows.lane_of
            }
            shown = sorted((a, b) for a, b in ends if a is not None and b is not None)
            for tail, head in shown[:1]:
                words = f"fix on {devices_text(move.devices)}" if len(shown) > 1 else "fix"
                yield Arrow(tail, head, "move", words, f"move {move.instruction.name} before {move.before.name}")


def _kind(instruction: Instruction) -> Kind:
    return FLOW if instruction.opcode in LOOPS else kind_of(instruction.opcode)


# ----------------------------------------------------------------------------
# Lanes of structural faults
#
# Communicating instructions, and lines between those that clash.

_MOST = 8  # instructions of a lane that are shown, besides faulty ones


def parts_of_fault(verdict: Verdict, program: GridProgram) -> Parts:
    """The lanes, stops, arrows and notes of a fault; the instructions that the first finding names are marked."""
    finding = verdict.findings[0]
    wrong, trips = finding.instructions, _trips(finding)
    listed = {device: _sites(each.module.entry, wrong) for device, each in program.class_of.items()}
    alike = {device: (trips.get(device), *map(str, sites)) for device, sites in listed.items()}
    found = rows(alike, [d for d in finding.devices if d in listed])
    stops: list[Stop] = []
    notes = []
    for lane, device in enumerate(found.shown):
        sites = listed[device]
        shown = _few(sites, wrong)
        if len(shown) < len(sites):
            notes.append(f"+{len(sites) - len(shown):,} of {found.lanes[lane].title} hidden")
        stops += (_stop(lane, column, site, wrong, trips.get(device, "")) for column, site in enumerate(shown))
    return found.lanes, tuple(stops), (), (*_clashes(stops),), None, tuple(notes)


def _trips(finding: Finding) -> dict[int, str]:
    """How often a loop runs on each device, of a finding that these numbers differ."""
    if finding.kind != "trip_count_mismatch":
        return {}
    return {device: row.fact for row in finding.rows for device in row.devices}


def _sites(entry: Computation, wrong: tuple[Instruction, ...]) -> list[Site]:
    """The communicating instructions, and the faulty instructions even where they do not communicate."""
    sites = [*sites_of(entry)]
    known = {site.instruction for site in sites}
    inside = {*entry.instructions}
    return [*sites, *(Site((), each) for each in wrong if each in inside - known)]


def _few(sites: list[Site], wrong: tuple[Instruction, ...]) -> list[Site]:
    return [site for n, site in enumerate(sites) if n < _MOST or site.instruction in wrong][: 2 * _MOST]


def _stop(lane: int, column: int, site: Site, wrong: tuple[Instruction, ...], trips: str) -> Stop:
    instruction = site.instruction
    tooltip = "\n".join(str(each) for each in (instruction, instruction.source) if each)
    state: State = "cycle" if instruction in wrong else "done"
    labelled = trips if trips and instruction in wrong else fact(instruction).replace("channel ", "#")
    return Stop(lane, column, str(site), labelled, kind_of(instruction.opcode), state, tooltip)


def _clashes(stops: list[Stop]) -> Iterator[Arrow]:
    """The arrows between faulty instructions of successive lanes."""
    wrong = [n for n, stop in enumerate(stops) if stop.state == "cycle"]
    for a, b in itertools.pairwise(wrong):
        if stops[a].lane != stops[b].lane:
            yield Arrow(a, b, "clash")


# ----------------------------------------------------------------------------
# Lanes of a verdict
#
# Taken from the run that the check made, or from the faults that it found.


def lanes_of(verdict: Verdict) -> Lanes:
    """The lanes of a verdict: each device up to its end or its halt; of an error, the communication and its faults."""
    name, report = f"xbuild check: {verdict.kind}", tuple(report_lines(verdict, width=BESIDE_PICTURE))
    if verdict.asked is None:
        return Lanes(name, verdict.kind, _headline(verdict), remarks=_remarks(verdict), report=report)
    if verdict.kind == "error":
        parts = parts_of_fault(verdict, verdict.asked.program)
    else:
        parts = parts_of_run(verdict, *_chosen_run(verdict, verdict.asked))
    remarks = _remarks(verdict)
    return Lanes(name, verdict.kind, _headline(verdict), *parts[:-1], remarks=remarks, notes=parts[-1], report=report)


def _chosen_run(verdict: Verdict, asked: CheckArguments) -> tuple[LevelRun, Decisions]:
    """The run that is stuck; else the finished run of the outermost level that has other items than loops."""
    program = asked.program
    if verdict.kind != "deadlock" and verdict.reordered:
        program = program.with_orders(verdict.reordered)
    context = LevelContext(
        program, match_transfers(program)[0], collective_identities(program), asked.send_buffers, asked.infeed
    )
    stage = LevelStage(context, Decisions(program))
    if stage.stuck:
        return stage.stuck[0], stage.decisions
    levels = stage.levels or [ScheduleLevel({}, {})]
    return LevelRun(context, next((level for level in levels if _has_items(level)), levels[0])), stage.decisions


def _has_items(level: ScheduleLevel) -> bool:
    return any(item.kind != "unit" for skeleton in level.skeletons.values() for item in skeleton.items)


def _headline(verdict: Verdict) -> str:
    if verdict.kind == "ok":
        return verdict.summary
    if verdict.kind == "depends":
        return f"depends on data: {verdict.findings[0].message}"
    return verdict.findings[0].message


def _remarks(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    found = [remark for finding in verdict.findings[:1] for remark in _facts(verdict, finding)]
    if verdict.kind == "depends":
        found += (("or", finding.message) for finding in verdict.findings[1:3])
        found.append(("otherwise", verdict.summary))
    if len(verdict.findings) > 1 and verdict.kind != "depends":
        found.append(("also", verdict.findings[1].message))
    found += (("note", note) for note in verdict.notes)
    return tuple(found)


def _facts(verdict: Verdict, finding: Finding) -> list[tuple[str, str]]:
    labelled = (("cause", finding.cause_text), ("fix", fix_text(verdict, finding)), ("note", finding.note))
    return [(label, text) for label, text in labelled if text]


# ----------------------------------------------------------------------------
# Lanes as text
#
# A line for each device, in columns of logical time.

_MARKS: dict[State, str] = {"done": "", "cycle": "✗ ", "waits": "… ", "later": "· ", "asked": "? ", "open": "~ "}


def lanes_text(lanes: Lanes) -> str:
    """The lanes as text; a mark before each name shows the state of a stop."""
    return printable("".join(f"{line}\n" for line in _text_lines(lanes)))


def _text_lines(lanes: Lanes) -> Iterator[str]:
    yield f"{lanes.kind}: {lanes.headline}"
    yield ""
    titles = [f"{lane.title}  {lane.note}".rstrip() for lane in lanes.lanes]
    wide = max(map(len, titles), default=0)
    columns = _widths(lanes.stops)
    for number, title in enumerate(titles):
        words = {stop.column: _word(stop) for stop in lanes.stops if stop.lane == number}
        cells = [
            f"{'| ' if column == lanes.halt else ''}{words.get(column, ''):<{width}}"
            for column, width in enumerate(columns)
        ]
        end = f"  {lanes.lanes[number].end}" if lanes.lanes[number].end else ""
        yield f"{title:<{wide}}  {'  '.join(cells)}".rstrip() + end
    yield from _legend_lines(lanes)


def _legend_lines(lanes: Lanes) -> Iterator[str]:
    states = {stop.state for stop in lanes.stops}
    marks = [f"{_MARKS[state]}{words}" for state, words in words_of_state(lanes.kind).items() if state in states]
    if marks:
        yield ""
        yield "   ".join(marks)
    if lanes.remarks or lanes.notes:
        yield ""
    for label, words in lanes.remarks:
        yield f"{label:<9} {words}"
    yield from lanes.notes


def _widths(stops: tuple[Stop, ...]) -> list[int]:
    found = [0] * (max((stop.column for stop in stops), default=-1) + 1)
    for stop in stops:
        found[stop.column] = max(found[stop.column], len(_word(stop)))
    return found


def _word(stop: Stop) -> str:
    return f"{_MARKS[stop.state]}{stop.name}"
