"""The level stage: the programs of all devices are run level by level without values; what is stuck is a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from attrs import define, field

from ...core.graph import Computation, Instruction
from ...process.deadline import ask
from ...properties.effects import LOOPS, Path, Step, communicates, steps
from ...properties.host import rendezvous_of
from ...properties.sites import Site
from ..dataflow.analysis import Key, key_of
from ..dataflow.decisions import Decisions
from ..model.verdict import Finding
from .companions import companion_conflict, companions
from .level_run import Context, ItemNumber, Level, LevelRun
from .orders import Recorder
from .skeleton import Skeleton, skeleton
from .stuck import deadlock_finding

Places = Mapping[int, tuple[Computation, Path]]  # for each device a computation, and the path to it


@define(eq=False)
class LevelStage:
    """The findings of all levels, and the order in which each device may run each computation.

    `is_forced`: dependencies leave one order of the items, or one order serves all devices. `fills`: a trip of a loop
    sends more than is received, so that buffers have room for some trips only.
    """

    context: Context
    decisions: Decisions
    found: list[Finding] = field(factory=list)
    stuck: list[LevelRun] = field(factory=list)
    is_forced: bool = True
    fills: bool = False
    levels: list[Level] = field(factory=list)
    recorder: Recorder = field(init=False)
    _chosen: dict[int, dict[Key, int]] = field(factory=dict)
    _skeletons: dict[Any, Skeleton] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.recorder = Recorder(self.context.program)
        self.level({device: (each.module.entry, ()) for device, each in self.context.program.class_of.items()})

    @property
    def is_refused(self) -> bool:
        """Whether the levels found a deadlock or an error, not only conditions on data."""
        return bool(self.stuck) or any(found.kind != "data_dependent" for found in self.found)

    def assuming(self, context: Context, assumed: Mapping[Hashable, int]) -> LevelStage:
        """The levels of these programs under assumed decisions, by device and site."""
        return LevelStage(context, self.decisions.assuming(assumed))

    def level(self, places: Places) -> None:
        """Run one level, then the levels inside its units."""
        ask()
        skeletons, sets = self._flattened_level(places)
        conflicts = [fault for members in sets if (fault := companion_conflict(skeletons, members)) is not None]
        self.found += conflicts
        self.is_forced &= not conflicts
        if not skeletons or conflicts:
            return
        self._run(Level(skeletons, _leaders(sets)), places)
        for members in sets:
            self._unit([(device, skeletons[device].items[number]) for device, number in members])

    def _flattened_level(self, places: Places) -> tuple[dict[int, Skeleton], list[list[ItemNumber]]]:
        """The items of a level and the sets of its companions, after flattening all units with known decisions."""
        while True:
            skeletons = {device: self.skeleton(device, *place) for device, place in places.items()}
            skeletons = {device: each for device, each in skeletons.items() if each.items}
            sets = companions(self.context, skeletons)
            if not sum(self._flatten(skeletons, members) for members in sets):
                return skeletons, sets

    def _flatten(self, skeletons: Mapping[int, Skeleton], places: list[ItemNumber]) -> bool:
        """Flatten companions whose decisions are all known and run their inside at most once; whether that is so."""
        members = [(device, skeletons[device].items[number]) for device, number in places]
        branches = self._decisions_of(members)
        known = zip(members, branches, strict=True)
        if not all(branch is not None and _is_flattened(site, branch) for (_, site), branch in known):
            return False
        for (device, site), branch in zip(members, branches, strict=True):
            self._chosen.setdefault(device, {})[key_of(site.instruction, site.path)] = branch  # type: ignore[assignment]
        return True

    def _decisions_of(self, members: list[tuple[int, Site]]) -> list[int | None]:
        asked = members[:1] if self.decisions.agree(members) else members
        found = [self.decisions.decided(device, site.instruction, site.path) for device, site in asked]
        return found if len(asked) == len(members) else found * len(members)

    def skeleton(self, device: int, computation: Computation, path: Path) -> Skeleton:
        """The items of a computation on a device; one object for all devices with the same items."""
        each, chosen = self.context.program.class_of[device], self._chosen.get(device, {})
        key = (each, key_of(computation.root, path), tuple(chosen.items()))
        if key not in self._skeletons:
            known = {**chosen}  # without decisions that are entered later
            self._skeletons[key] = skeleton(
                computation, path, each.order, lambda i, at: known.get(key_of(i, at)), given=each.given
            )
        return self._skeletons[key]

    def _run(self, level: Level, places: Places) -> None:
        self.levels.append(level)
        self.fills = self.fills or (self.context.send_buffers > 0 and self._fills_buffers(level))
        if self._is_one_program(level):
            return
        self.is_forced = self.is_forced and all(each.is_chain for each in level.skeletons.values())
        run = LevelRun(self.context, level)
        if not run.finished:
            self.stuck.append(run)
            self.found.append(deadlock_finding(run, self._inner))
            return
        for device, each in level.skeletons.items():
            computation, path = places[device]
            self.recorder.record(device, computation, len(path), each, run.order[device])

    def _fills_buffers(self, level: Level) -> bool:
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

    def _is_one_program(self, level: Level) -> bool:
        """Whether all devices have the same items and only collectives: any one order of them serves all.

        Operands of host functions, which wait for nobody, and results that come after these may be among them.
        """
        if len(set(level.skeletons.values())) > 1 or len(level.skeletons) < len(self.context.program.devices):
            return False
        shared = next(iter(level.skeletons.values()))
        return not any(
            self._waits(level, shared, number) or (item.kind == "infeed" and self.context.infeed is not None)
            for number, item in enumerate(shared.items)
        )

    def _waits(self, level: Level, shared: Skeleton, number: int) -> bool:
        """Whether a send or recv may wait for a device, or for an operand of its host function that comes later."""
        instruction = shared.items[number].instruction
        if instruction.opcode not in ("send", "recv"):
            return False
        name = rendezvous_of(instruction)
        if name is None or any(
            self.context.transfers.peer(instruction, device) is not None for device in level.skeletons
        ):
            return True
        operands = (n for n, item in enumerate(shared.items) if _is_operand(item.instruction, name))
        return instruction.opcode == "recv" and not all(shared.depends(number, n) for n in operands)

    def _unit(self, members: list[tuple[int, Site]]) -> None:
        """Check that companions decide alike, and then the levels inside them."""
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
            self.level(places)

    def _inner(
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
        inner = LevelRun(self.context, Level(skeletons, _leaders(companions(self.context, skeletons))))
        standing: dict[int, list[ItemNumber]] = {}
        for place in inner.blocked():
            standing.setdefault(place[0], []).append(place)
        found = {
            device: [(inner.item(p).instruction, str(inner.item(p))) for p in places]
            for device, places in standing.items()
        }
        return {**found, **self._inner(inner, standing)}


def _is_flattened(unit: Site, number: int) -> bool:
    """Whether the inside of a unit with this decision is flattened into the level: it runs once, or not at all."""
    if unit.instruction.opcode == "conditional":
        return True
    *condition, _ = steps(unit.instruction)
    return number <= 1 and not any(communicates(step.computation) for step in condition)


def _first_inside(unit: Site) -> tuple[Step, Path]:
    """The communicating callee of a unit: the body of a loop, else its condition; the first such branch."""
    inner = [step for step in steps(unit.instruction) if communicates(step.computation)]
    step = inner[-1] if unit.instruction.opcode in LOOPS else inner[0]
    return step, (*unit.path, step)


def _leaders(sets: list[list[ItemNumber]]) -> dict[ItemNumber, ItemNumber]:
    return {place: members[0] for members in sets for place in members}


def _is_operand(instruction: Instruction, name: str) -> bool:
    """Whether it sends an operand to the host function of this rendezvous."""
    return instruction.opcode == "send" and rendezvous_of(instruction) == name
