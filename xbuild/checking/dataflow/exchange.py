"""Collectives in constant propagation: the walks of all devices exchange known operands and wait for results.

The walks are coroutines. A walk that needs the result of a collective stops until all members have brought their
operands; where no walk can go on, the results that are waited for are unknown. An arrival at a collective is counted
for each device; where a device may arrive any number of times, it brings equal operands or the result is unknown.
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import AnyShape, TupleShape

from ...core.graph import Instruction, Module
from ...properties.device_groups import is_member
from ...properties.effects import collective_in, is_in_place
from ...properties.sites import Site, collectives_of
from ...running import Evaluator, Value, same, shared_evaluator
from ..model.program import Program
from ..structure.collective_matching import CollectiveIdentities
from .lattice import Bounds, Leaf, bounded, is_value
from .ranges import collective_bounds

MOST_STEPS = 200_000  # instructions evaluated on all devices; from half of them on, no loop is walked trip by trip
ANY = "any"  # the turn of a device that may arrive any number of times


class ExhaustedError(Exception):
    """The walks would evaluate more than `MOST_STEPS` instructions."""


class RepeatedArrivalError(Exception):
    """A device arrived again, with other operands, at a collective whose result was used; `key` is its identity."""

    def __init__(self, key: Hashable) -> None:
        super().__init__(key)
        self.key = key


@define(eq=False)
class CollectiveInstance:
    """One instance of a collective in a group: operands and results by device, unknown where it `failed`."""

    start: Instruction
    group: tuple[int, ...]
    is_named: bool
    brought: dict[int, tuple[Leaf, ...]] = field(factory=dict)
    results: Mapping[int, Any] | None = None
    failed: bool = False
    bounds: Bounds | None = None
    opens: dict[tuple[int, tuple[int, ...]], Leaf] = field(factory=dict)

    @property
    def is_settled(self) -> bool:
        return self.failed or self.results is not None


@frozen(eq=False)
class Promise:
    """An array of the result of a collective on a device, known once the instance is settled."""

    instance: CollectiveInstance
    device: int
    shape: AnyShape
    at: tuple[int, ...] = ()

    def leaf(self) -> Leaf:
        """The value, or an unknown that is the same for all uses; after the instance is settled."""
        if self.instance.results is None:
            return self.instance.opens.setdefault((self.device, self.at), bounded(self.instance.bounds, self.shape))
        found = self.instance.results[self.device]
        for each in self.at:
            found = found[each]
        return found


def promised(instance: CollectiveInstance, device: int, shape: AnyShape, at: tuple[int, ...] = ()) -> Any:
    """A promise for each array that a device gets."""
    if isinstance(shape, TupleShape):
        return tuple(promised(instance, device, each, (*at, n)) for n, each in enumerate(shape.elements))
    return Promise(instance, device, shape, at)


WalkCoroutine: TypeAlias = Generator[CollectiveInstance, None, Any]


@define(eq=False, slots=False)
class Exchange:
    """All instances of collectives, and the number of instructions that were evaluated."""

    program: Program
    identity: CollectiveIdentities
    banned: frozenset[Hashable] | None  # None where every collective is unknown
    evaluator: Evaluator = field(factory=shared_evaluator)
    steps: int = 0
    _instances: dict[Hashable, CollectiveInstance] = field(factory=dict)
    _turns: Counter[Hashable] = field(factory=Counter)
    _any: dict[Hashable, tuple[Value, ...] | None] = field(factory=dict)
    _settled: list[CollectiveInstance] = field(factory=list)
    _places: dict[Module, Counter[Hashable]] = field(factory=dict)

    @functools.cached_property
    def structure(self) -> Any:
        from ...properties.structure import Structure

        return Structure({})

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise ExhaustedError

    @property
    def is_short(self) -> bool:
        """Whether so much was evaluated that loops are no longer walked trip by trip."""
        return self.steps > MOST_STEPS // 2

    def arrive(self, device: int, site: Site, operands: Sequence[Leaf] | None, is_repeated: bool) -> CollectiveInstance:
        """The instance at which a device arrives, with its operands; `operands` is None where one is unknown."""
        collective = collective_in(site.instruction)
        assert collective is not None
        module, group = self.program.class_of[device].module, self.program.group(collective, device)
        key = self.identity.of(module, site), group
        instance = self._instance_of(device, key, site.instruction, is_repeated)
        if is_repeated and not self._is_same(device, key, operands) and instance.results is not None:
            raise RepeatedArrivalError(key)
        if operands is None or (is_repeated and self._any[device, key] is None) or self._is_ambiguous(module, key[0]):
            self._settle(instance)
        if not instance.is_settled:
            assert operands is not None
            instance.brought[device] = (*operands,)
            if len(instance.brought) == len(group):
                self._conclude(instance)
        return instance

    def _conclude(self, instance: CollectiveInstance) -> None:
        """Settle an instance at which all members have arrived: with results, or with bounds of them."""
        brought = {member: instance.brought[member] for member in instance.group}
        if all(is_value(leaf) for leaves in brought.values() for leaf in leaves):
            results = None
            if _has_values(instance.start):
                results = self.evaluator.collective_results(instance.start, instance.group, instance.is_named, brought)
            self._settle(instance, results)
        else:
            instance.bounds = collective_bounds(instance.start, brought.values())
            self._settle(instance)

    def _settle(self, instance: CollectiveInstance, results: Mapping[int, Any] | None = None) -> None:
        instance.results, instance.failed = results, results is None
        self._settled.append(instance)

    def _is_ambiguous(self, module: Module, identity: Hashable) -> bool:
        """Whether several sites of a program have this identity, so that their order decides which of them meet."""
        if module not in self._places:
            self._places[module] = Counter(self.identity.of(module, site) for site in collectives_of(module.entry))
        return self._places[module][identity] > 1

    def _instance_of(self, device: int, key: Hashable, start: Instruction, is_repeated: bool) -> CollectiveInstance:
        """The instance that this arrival of the device belongs to."""
        mine = device, key
        if not is_repeated and mine in self._any:
            raise RepeatedArrivalError(key)
        turn: Hashable = ANY if is_repeated else self._turns[mine]
        self._turns[mine] += not is_repeated
        at = key, turn
        if at not in self._instances:
            group = key[1]  # type: ignore[index]
            collective = collective_in(start)
            assert collective is not None
            named = is_member(collective, device, *self.program.grid)
            self._instances[at] = CollectiveInstance(
                start, group, named, failed=self.banned is None or key in self.banned
            )
        return self._instances[at]

    def _is_same(self, device: int, key: Hashable, operands: Sequence[Leaf] | None) -> bool:
        """Whether a device that arrives any number of times has brought equal operands each time."""
        is_known = operands is not None and all(map(is_value, operands)) and not self._turns[device, key]
        mine, brought = (device, key), (*operands,) if is_known and operands is not None else None
        before = self._any.setdefault(mine, brought)
        if before is not None and (brought is None or not all(map(same, before, brought))):
            self._any[mine] = None
            return False
        return True

    def run(self, walks: Mapping[int, WalkCoroutine]) -> None:
        """Run all walks to their end."""
        ready, waiting = deque(walks.values()), dict[CollectiveInstance, list[WalkCoroutine]]()
        while ready or waiting:
            if not ready:
                for instance in waiting:
                    self._settle(instance)
            else:
                walk = ready.popleft()
                missed = next((each for each in walk if not each.is_settled), None)
                if missed is not None:
                    waiting.setdefault(missed, []).append(walk)
            for instance in self._settled:
                ready.extend(waiting.pop(instance, ()))
            self._settled.clear()


def _has_values(start: Instruction) -> bool:
    collective = collective_in(start)
    return collective is not None and not is_in_place(collective)
