"""The level stage: programs run level by level without values; loops and branches that meet run together.

Sections:

    Companions: loops and conditionals of several devices that run together
    Reordering: orders of all instructions
    LevelStage: all devices, level by level, without values
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from attrs import define, evolve, field, frozen

from ...core.graph import Computation, Instruction
from ...process.limits import ask
from ...properties.effects import LOOPS, CallStep, Path, collective_in, communicates, rendezvous_of, steps
from ...properties.order import linear
from ...properties.sites import Key, Site, reached, site_key, sites
from ..dataflow.decisions import Decisions
from ..model.describe import finding, named
from ..model.program import GridProgram, Order, Orders
from ..model.verdict import Finding
from .level_run import ItemNumber, LevelContext, LevelRun, ScheduleLevel
from .skeleton import Skeleton, skeleton
from .stuck import deadlock_finding

# ----------------------------------------------------------------------------
# Companions: loops and conditionals of several devices that run together
#
# They run together since communication inside them matches.


def find_companions(context: LevelContext, skeletons: Mapping[int, Skeleton]) -> list[list[ItemNumber]]:
    """The units of a level in sets, joined where communication inside two units matches, directly or through others."""
    leader: dict[ItemNumber, ItemNumber] = {}

    def find(place: ItemNumber) -> ItemNumber:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    first: dict[Hashable, ItemNumber] = {}
    for device, outline in skeletons.items():
        for number in outline.units:
            ask()
            place = leader[device, number] = (device, number)
            for key in _communication_keys(context, device, outline.items[number]):
                leader[find(place)] = find(first.setdefault(key, place))
    sets: dict[ItemNumber, list[ItemNumber]] = {}
    for place in leader:
        sets.setdefault(find(place), []).append(place)
    return list(sets.values())


def _communication_keys(context: LevelContext, device: int, item: Site) -> Iterator[Hashable]:
    """Keys of the communication inside a unit: channels with both devices, collectives with their group."""
    program = context.program
    module = program.class_of[device].module
    for site in sites_inside(item):
        instruction, collective = site.instruction, collective_in(site.instruction)
        if collective is not None:
            yield context.identity.of(module, site), program.group(collective, device)[0]  # groups are disjoint
        elif instruction.opcode in ("send", "recv"):
            peer = context.transfers.peer(instruction, device)
            if peer is not None:
                yield site.channel, *((device, peer) if instruction.opcode == "send" else (peer, device))


def sites_inside(unit: Site) -> Iterator[Site]:
    """The sites inside a loop or conditional."""
    for step in steps(unit.instruction):
        yield from sites(step.computation, (*unit.path, step))


def companion_conflict(skeletons: Mapping[int, Skeleton], places: Sequence[ItemNumber]) -> Finding | None:
    """The finding that two units of one device are companions; None if no two are."""
    seen: dict[int, Site] = {}
    for device, number in places:
        item = skeletons[device].items[number]
        other = seen.setdefault(device, item)
        if other is not item:
            return finding(
                "companion_conflict",
                f"on device {device}, {named(other.instruction)} and {named(item.instruction)} would have to "
                "run at the same time",
                ((device,), other),
                ((device,), item),
                cause_text="both communicate with ops inside a single loop or conditional on another device",
                repair_text=(
                    f"merge {other.instruction.name} and {item.instruction.name}, or split the loop or conditional "
                    "on the other device"
                ),
            )
    return None


# ----------------------------------------------------------------------------
# Reordering: orders of all instructions, made from orders of the items


@frozen
class OrderConflict:
    """Why no order of each computation has the order that was found: a call is left and entered again, or shared.

    `call` would be left and entered again, or `shared` would run its items in one order here and another there.
    """

    call: Instruction | None = None
    shared: Computation | None = None


Anchors = dict[Computation, tuple[Instruction, ...]]
"""For each computation its items and the calls that have items, in the order in which they run."""


@define(eq=False)
class Reordering:
    """Orders of computations that differ from the recorded ones."""

    program: GridProgram
    _conflict: OrderConflict | None = None
    _anchors: dict[int, Anchors] = field(factory=dict)
    _in_recorded_order: list[tuple[int, Computation, int, Skeleton]] = field(factory=list)
    _anchors_of_levels: dict[Any, Anchors] = field(factory=dict)
    _arranged: dict[Any, Order] = field(factory=dict)

    def record(
        self, device: int, computation: Computation, depth: int, skeleton: Skeleton, order: Sequence[int] | None
    ) -> None:
        """Record the order in which a device runs the items of a computation and of those flattened into it.

        None is the recorded order.
        """
        if skeleton.given:
            return
        if order is None or all(n == number for n, number in enumerate(order)):
            self._in_recorded_order.append((device, computation, depth, skeleton))
            return
        key = (computation, skeleton, tuple(order))
        if key not in self._anchors_of_levels:
            anchors = self._anchors_of_levels[key] = {}
            self._place(anchors, computation, depth, [skeleton.items[n] for n in order])
        self._add(self._anchors.setdefault(device, {}), self._anchors_of_levels[key])

    def _place(self, anchors: Anchors, computation: Computation, depth: int, items: Sequence[Site]) -> None:
        """Enter the anchors of a computation, and those of the computations that are flattened into it."""
        own: dict[Instruction, None] = {}
        for anchor, group in groupby(items, lambda item: _anchor(item, depth)):
            inner = list(group)
            if anchor in own:
                self._conflict = self._conflict or OrderConflict(call=anchor)
            own[anchor] = None
            if len(inner[0].path) > depth:
                self._place(anchors, inner[0].path[depth].computation, depth + 1, inner)
        self._add(anchors, {computation: tuple(own)})

    def _add(self, anchors: Anchors, more: Anchors) -> None:
        for computation, order in more.items():
            if anchors.setdefault(computation, order) != order:
                self._conflict = self._conflict or OrderConflict(shared=computation)

    def find_conflict(self) -> OrderConflict | None:
        """The first reason why `orders` has not the order that was found; None if there is none."""
        for device, computation, depth, level in self._in_recorded_order:
            if self._conflict is None and device in self._anchors:
                recorded: Anchors = {}
                self._place(recorded, computation, depth, level.items)
                known = self._anchors[device]
                self._add({c: known[c] for c in recorded if c in known}, recorded)
        return self._conflict

    def orders(self) -> Mapping[int, Orders]:
        """For each device the computations that it must run in an order that differs from the recorded one."""
        linear_orders: dict[Computation, dict[Computation, Order]] = {}
        changes: dict[int, Orders] = {}
        for device, device_class in self.program.class_of.items():
            entry = device_class.module.entry
            if entry not in linear_orders:
                linear_orders[entry] = _linear_orders(entry)
            found = linear_orders[entry] | {
                computation: self._arrange(computation, anchors)
                for computation, anchors in self._anchors.get(device, {}).items()
            }
            orders = dict(device_class.orders) if device_class.given else found
            changed = tuple((c, order) for c, order in orders.items() if order != c.instructions)
            if changed:
                changes[device] = changed
        return changes

    def _arrange(self, computation: Computation, anchors: tuple[Instruction, ...]) -> Order:
        key = computation, anchors
        if key not in self._arranged:
            self._arranged[key] = arrange_instructions(computation, dict.fromkeys(anchors))
        return self._arranged[key]


def _anchor(item: Site, depth: int) -> Instruction:
    return item.path[depth].instruction if len(item.path) > depth else item.instruction


def _linear_orders(entry: Computation) -> dict[Computation, Order]:
    """An order for each computation whose recorded order violates dependencies."""
    orders = {computation: linear(computation) for computation in reached(entry)}
    return {c: order for c, order in orders.items() if order is not None and order != c.instructions}


def arrange_instructions(computation: Computation, anchors: Mapping[Instruction, None]) -> Order:
    """All instructions: the anchors in this order, each after its dependencies, and the rest in recorded order."""
    recorded = linear(computation) or computation.instructions
    place = {instruction: n for n, instruction in enumerate(recorded)}
    found: dict[Instruction, None] = {}
    for target in (*anchors, *recorded):
        ask()
        stack = [target]
        needed: set[Instruction] = set()
        while stack:
            instruction = stack.pop()
            if instruction not in found and instruction not in needed and instruction in place:
                needed.add(instruction)
                stack += (*instruction.operands, *instruction.control)
        found |= dict.fromkeys(sorted(needed, key=place.__getitem__))
    return tuple(found)


# ----------------------------------------------------------------------------
# LevelStage: all devices, level by level, without values
#
# A level that is stuck is a finding.

Places = Mapping[int, tuple[Computation, Path]]  # for each device a computation, and the path to it


@define(eq=False)
class LevelStage:
    """The findings of all levels, and the order in which each device may run each computation.

    `is_forced`: dependencies leave one order of the items, or one order serves all devices. `fills_buffers`: a trip of
    a loop sends more than is received, so that buffers have room for only some trips.
    """

    context: LevelContext
    decisions: Decisions
    found: list[Finding] = field(factory=list)
    stuck: list[LevelRun] = field(factory=list)
    is_forced: bool = True
    fills_buffers: bool = False
    levels: list[ScheduleLevel] = field(factory=list)
    recorder: Reordering = field(init=False)
    _chosen: dict[int, dict[Key, int]] = field(factory=dict)
    _skeletons: dict[Any, Skeleton] = field(factory=dict)  # also of other stages of these programs

    def __attrs_post_init__(self) -> None:
        self.recorder = Reordering(self.context.program)
        self.run_level({device: (each.module.entry, ()) for device, each in self.context.program.class_of.items()})

    @property
    def is_refused(self) -> bool:
        """Whether the levels found a deadlock or an error, not only conditions on data."""
        return bool(self.stuck) or any(finding.kind != "data_dependent" for finding in self.found)

    def with_buffers(self, send_buffers: float) -> LevelStage:
        """The levels of these programs with another number of send buffers."""
        return LevelStage(evolve(self.context, send_buffers=send_buffers), self.decisions, skeletons=self._skeletons)

    def assuming(self, context: LevelContext, assumed: Mapping[Hashable, int]) -> LevelStage:
        """The levels of these programs under assumed decisions, by device and site."""
        return LevelStage(context, self.decisions.assuming(assumed))

    def run_level(self, places: Places) -> None:
        """Run one level, then the levels inside its units."""
        ask()
        skeletons, sets = self._flattened_level(places)
        conflicts = [fault for members in sets if (fault := companion_conflict(skeletons, members)) is not None]
        self.found += conflicts
        self.is_forced &= not conflicts
        if not skeletons or conflicts:
            return
        self._run(ScheduleLevel(skeletons, _name_companions(sets)), places)
        for members in sets:
            self._unit([(device, skeletons[device].items[number]) for device, number in members])

    def _flattened_level(self, places: Places) -> tuple[dict[int, Skeleton], list[list[ItemNumber]]]:
        """The items of a level and its sets of companions, after all units with known decisions are flattened."""
        while True:
            skeletons = {device: self.skeleton(device, *place) for device, place in places.items()}
            skeletons = {device: each for device, each in skeletons.items() if each.items}
            sets = find_companions(self.context, skeletons)
            if not sum(self._flatten(skeletons, members) for members in sets):
                return skeletons, sets

    def _flatten(self, skeletons: Mapping[int, Skeleton], places: list[ItemNumber]) -> bool:
        """Flatten companions with known decisions that run their inside at most once; whether it did so."""
        members = [(device, skeletons[device].items[number]) for device, number in places]
        branches = self._decisions_of(members)
        known = zip(members, branches, strict=True)
        if not all(branch is not None and _runs_at_most_once(site, branch) for (_, site), branch in known):
            return False
        for (device, site), branch in zip(members, branches, strict=True):
            self._chosen.setdefault(device, {})[site_key(site.instruction, site.path)] = branch  # type: ignore[assignment]
        return True

    def _decisions_of(self, members: list[tuple[int, Site]]) -> list[int | None]:
        deciding = members[:1] if self.decisions.agree(members) else members
        decided = [self.decisions.decided(device, site.instruction, site.path) for device, site in deciding]
        return decided if len(deciding) == len(members) else decided * len(members)

    def skeleton(self, device: int, computation: Computation, path: Path) -> Skeleton:
        """The items of a computation on a device; one object for all devices with the same items."""
        each, chosen = self.context.program.class_of[device], self._chosen.get(device, {})
        key = (each, site_key(computation.root, path), tuple(chosen.items()))
        if key not in self._skeletons:
            known = {**chosen}  # without decisions that are entered later
            self._skeletons[key] = skeleton(
                computation, path, each.order, lambda i, at: known.get(site_key(i, at)), given=each.given
            )
        return self._skeletons[key]

    def _run(self, level: ScheduleLevel, places: Places) -> None:
        self.levels.append(level)
        self.fills_buffers = self.fills_buffers or (self.context.send_buffers > 0 and self._fills_buffers(level))
        if self._is_one_program(level):
            self._record(level, places, {})
            return
        self.is_forced = self.is_forced and all(each.is_chain for each in level.skeletons.values())
        run = LevelRun(self.context, level)
        if not run.finished:
            self.stuck.append(run)
            self.found.append(deadlock_finding(run, self._blocked_inside))
            return
        self._record(level, places, run.order)

    def _record(self, level: ScheduleLevel, places: Places, orders: Mapping[int, Sequence[int]]) -> None:
        for device, each in level.skeletons.items():
            computation, path = places[device]
            self.recorder.record(device, computation, len(path), each, orders.get(device))

    def _fills_buffers(self, level: ScheduleLevel) -> bool:
        """Whether the level is inside a loop, and has more sends of a channel than recvs."""
        left = Counter[tuple[int, ...]]()
        for device, each in level.skeletons.items():
            for item in each.items:
                if item.kind in ("send", "recv") and any(step.instruction.opcode in LOOPS for step in item.path):
                    peer = self.context.transfers.peer(item.instruction, device)
                    if peer is not None:
                        is_send = item.kind == "send"
                        ends = (device, peer) if is_send else (peer, device)
                        left[item.channel, *ends] += 1 if is_send else -1
        return any(count > 0 for count in left.values())

    def _is_one_program(self, level: ScheduleLevel) -> bool:
        """Whether all devices have the same items and only collectives: any one order of them serves all.

        Operands of host functions, which never wait, and results that come after them may be among these.
        """
        if len(set(level.skeletons.values())) > 1 or len(level.skeletons) < len(self.context.program.devices):
            return False
        shared = next(iter(level.skeletons.values()))
        kinds = ("send", "recv", "infeed") if self.context.infeed is not None else ("send", "recv")
        return not any(
            item.kind == "infeed" or self._may_wait(level, shared, number)
            for number, item in enumerate(shared.items)
            if item.kind in kinds
        )

    def _may_wait(self, level: ScheduleLevel, shared: Skeleton, number: int) -> bool:
        """Whether a send or recv may wait for a device, or for an operand of its host function that comes later."""
        instruction = shared.items[number].instruction
        name = rendezvous_of(instruction)
        if name is None or any(
            self.context.transfers.peer(instruction, device) is not None for device in level.skeletons
        ):
            return True
        operands = (n for n, item in enumerate(shared.items) if _is_operand(item.instruction, name))
        return instruction.opcode == "recv" and not all(shared.depends(number, n) for n in operands)

    def _unit(self, members: list[tuple[int, Site]]) -> None:
        """Check that companions make equal decisions, and then the levels inside them."""
        finding = self.decisions.disagreement(members)
        if finding is not None:
            self.found.append(finding)
        inside: dict[str, dict[int, tuple[Computation, Path]]] = {}
        for device, site in members:
            ways = self.decisions.ways(device, site.instruction, site.path)
            for number, step in enumerate(steps(site.instruction)):
                is_possible = ways is None or site.instruction.opcode != "conditional" or number in ways
                if is_possible and communicates(step.computation):
                    inside.setdefault(step.role, {})[device] = (step.computation, (*site.path, step))
        for places in inside.values():
            self.run_level(places)

    def _blocked_inside(
        self, run: LevelRun, blocked: Mapping[int, list[ItemNumber]]
    ) -> dict[int, list[tuple[Instruction, str]]]:
        """For devices that are blocked at a unit, the items inside it at which they wait."""
        units = {
            device: run.item(places[0]) for device, places in blocked.items() if run.item(places[0]).kind == "unit"
        }
        if not units:
            return {}
        entered = {device: _first_inside(item) for device, item in units.items()}
        skeletons = {device: self.skeleton(device, step.computation, path) for device, (step, path) in entered.items()}
        inner = LevelRun(
            self.context, ScheduleLevel(skeletons, _name_companions(find_companions(self.context, skeletons)))
        )
        waiting: dict[int, list[ItemNumber]] = {}
        for place in inner.blocked():
            waiting.setdefault(place[0], []).append(place)
        found = {
            device: [(inner.item(p).instruction, str(inner.item(p))) for p in places]
            for device, places in waiting.items()
        }
        return {**found, **self._blocked_inside(inner, waiting)}


def _runs_at_most_once(unit: Site, number: int) -> bool:
    """Whether a unit with this decision runs its inside at most once, so that it is flattened into the level."""
    if unit.instruction.opcode == "conditional":
        return True
    *condition, _ = steps(unit.instruction)
    return number <= 1 and not any(communicates(step.computation) for step in condition)


def _first_inside(unit: Site) -> tuple[CallStep, Path]:
    """The communicating callee of a unit: the body of a loop, else its condition; the first such branch."""
    inner = [step for step in steps(unit.instruction) if communicates(step.computation)]
    step = inner[-1] if unit.instruction.opcode in LOOPS else inner[0]
    return step, (*unit.path, step)


def _name_companions(sets: list[list[ItemNumber]]) -> dict[ItemNumber, ItemNumber]:
    return {place: members[0] for members in sets for place in members}


def _is_operand(instruction: Instruction, name: str) -> bool:
    """Whether it sends an operand to the host function of this rendezvous."""
    return instruction.opcode == "send" and rendezvous_of(instruction) == name
