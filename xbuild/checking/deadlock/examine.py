"""Level by level through the programs of all devices: run each level without values, and tell what goes wrong in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import LOOPS, Path, Step, communicates, steps
from ...properties.sites import Site
from ..dataflow.analysis import Key, key_of
from ..dataflow.control import Control
from ..model.verdict import Finding
from .companions import companions, conflict
from .orders import Recorder
from .run import Context, ItemNumber, Level, Run
from .skeleton import Skeleton, skeleton
from .stuck import deadlock

Places = Mapping[int, tuple[Computation, Path]]  # for each device a computation, and the calls that led there


@define(eq=False)
class Examination:
    """The findings about control flow and order, and the order in which each device may run each computation.

    `is_forced`: dependencies alone leave one order of what communicates, or one program serves all. `fills`: a trip of
    a loop sends more than it takes, so that buffers have room for some trips only.
    """

    context: Context
    control: Control
    found: list[Finding] = field(factory=list)
    stuck: list[Run] = field(factory=list)
    is_forced: bool = True
    fills: bool = False
    levels: list[Level] = field(factory=list)
    recorder: Recorder = field(init=False)
    _chosen: dict[int, dict[Key, int]] = field(factory=dict)
    _skeletons: dict[Any, Skeleton] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.recorder = Recorder(self.context.program)
        self.level({device: (each.module.entry, ()) for device, each in self.context.program.class_of.items()})

    def level(self, places: Places) -> None:
        """Run the items of these computations against each other, then what is inside their units."""
        ask()
        skeletons, sets = self._settled(places)
        conflicts = [fault for members in sets if (fault := conflict(skeletons, members)) is not None]
        self.found += conflicts
        self.is_forced &= not conflicts
        if not skeletons or conflicts:
            return
        self._run(Level(skeletons, _names(sets)), places)
        for members in sets:
            self._unit([(device, skeletons[device].items[number]) for device, number in members])

    def _settled(self, places: Places) -> tuple[dict[int, Skeleton], list[list[ItemNumber]]]:
        """The items of a level and its units in sets, once every conditional whose branch is known is entered."""
        while True:
            skeletons = {device: self.skeleton(device, *place) for device, place in places.items()}
            skeletons = {device: each for device, each in skeletons.items() if each.items}
            sets = companions(self.context, skeletons)
            if not sum(self._choose(skeletons, members) for members in sets):
                return skeletons, sets

    def _choose(self, skeletons: Mapping[int, Skeleton], places: list[ItemNumber]) -> bool:
        """Enter conditionals of which every device knows its branch, and loops of one trip; leave out those of none."""
        members = [(device, skeletons[device].items[number]) for device, number in places]
        branches = self._decided(members)
        known = zip(members, branches, strict=True)
        if not all(branch is not None and _is_entered(site, branch) for (_, site), branch in known):
            return False
        for (device, site), branch in zip(members, branches, strict=True):
            self._chosen.setdefault(device, {})[key_of(site.instruction, site.path)] = branch  # type: ignore[assignment]
        return True

    def _decided(self, members: list[tuple[int, Site]]) -> list[int | None]:
        asked = members[:1] if self.control.agree(members) else members
        found = [self.control.decided(device, site.instruction, site.path) for device, site in asked]
        return found if len(asked) == len(members) else found * len(members)

    def skeleton(self, device: int, computation: Computation, path: Path) -> Skeleton:
        """The items of a computation on a device; the same object for devices that do the same."""
        each, chosen = self.context.program.class_of[device], self._chosen.get(device, {})
        key = (each, key_of(computation.root, path), tuple(chosen.items()))
        if key not in self._skeletons:
            known = {**chosen}  # what is chosen later does not count
            self._skeletons[key] = skeleton(
                computation, path, each.order, lambda i, at: known.get(key_of(i, at)), given=each.given
            )
        return self._skeletons[key]

    def _run(self, level: Level, places: Places) -> None:
        self.levels.append(level)
        self.fills = self.fills or (self.context.send_buffers > 0 and self._leaves(level))
        if self._is_one_program(level):
            return
        self.is_forced = self.is_forced and all(each.is_chain for each in level.skeletons.values())
        run = Run(self.context, level)
        if not run.finished:
            self.stuck.append(run)
            self.found.append(deadlock(run, self._inner))
            return
        for device, each in level.skeletons.items():
            computation, path = places[device]
            self.recorder.record(device, computation, len(path), each, run.order[device])

    def _leaves(self, level: Level) -> bool:
        """Whether it is run again and again, and has more sends of a channel than recvs."""
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

    def _is_one_program(self, level: Level) -> bool:
        """Whether all devices have the same items and only collectives: any one order of them serves all."""
        if len(set(level.skeletons.values())) > 1 or len(level.skeletons) < len(self.context.program.devices):
            return False
        items = next(iter(level.skeletons.values())).items
        return not any(
            item.kind in ("send", "recv") or (item.kind == "infeed" and self.context.infeed is not None)
            for item in items
        )

    def _unit(self, members: list[tuple[int, Site]]) -> None:
        """Whether devices go through a loop or conditional alike, and then what is inside."""
        verdict = self.control.verdict(members)
        if verdict is not None:
            self.found.append(verdict)
        inside: dict[str, dict[int, tuple[Computation, Path]]] = {}
        for device, site in members:
            ways = self.control.ways(device, site.instruction, site.path)
            for number, step in enumerate(steps(site.instruction)):
                is_possible = ways is None or site.instruction.opcode != "conditional" or number in ways
                if is_possible and communicates(step.computation):
                    inside.setdefault(step.role, {})[device] = (step.computation, (*site.path, step))
        for places in inside.values():
            self.level(places)

    def _inner(self, run: Run, blocked: Mapping[int, list[ItemNumber]]) -> dict[int, list[tuple[Instruction, str]]]:
        """Where devices that are blocked at a unit stand inside it, at what misses its partner there."""
        units = {
            device: run.item(places[0]) for device, places in blocked.items() if run.item(places[0]).kind == "unit"
        }
        if not units:
            return {}
        entered = {device: _first_inside(item) for device, item in units.items()}
        skeletons = {device: self.skeleton(device, step.computation, path) for device, (step, path) in entered.items()}
        inner = Run(self.context, Level(skeletons, _names(companions(self.context, skeletons))))
        standing: dict[int, list[ItemNumber]] = {}
        for place in inner.blocked():
            standing.setdefault(place[0], []).append(place)
        found = {
            device: [(inner.item(p).instruction, str(inner.item(p))) for p in places]
            for device, places in standing.items()
        }
        return {**found, **self._inner(inner, standing)}


def _is_entered(unit: Site, number: int) -> bool:
    """Whether what is inside of a unit counts as standing around it: it runs once, or not at all."""
    if unit.instruction.opcode == "conditional":
        return True
    *condition, _ = steps(unit.instruction)
    return number <= 1 and not any(communicates(step.computation) for step in condition)


def _first_inside(unit: Site) -> tuple[Step, Path]:
    """What of a unit communicates: of a loop the body if it does, of a conditional the first branch that does."""
    inner = [step for step in steps(unit.instruction) if communicates(step.computation)]
    step = inner[-1] if unit.instruction.opcode in LOOPS else inner[0]
    return step, (*unit.path, step)


def _names(sets: list[list[ItemNumber]]) -> dict[ItemNumber, ItemNumber]:
    return {place: members[0] for members in sets for place in members}
