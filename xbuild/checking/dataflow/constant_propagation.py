"""Constant propagation for each device: branches and trip counts known before a run, across collectives.

Sections:

    Exchange: collectives between the walks of all devices
    Readings of tuples
    Propagation: the walk of one device
    propagate_constants: all devices together, or one by one
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Container, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.trees import fill, flatten, leaves, map_leaves, map_paths, unflatten

from ...core.graph import Computation, Instruction, Module
from ...process.limits import ask
from ...properties.device_groups import is_member
from ...properties.effects import MEETS, Path, collective_in, communicates, is_in_place, steps
from ...properties.sites import Site, collectives_of, path_key, site_key
from ...properties.sources import CALLS
from ...properties.trip_counts import scan_result, slices_of, split_carries, trip_results
from ...running import Evaluator, Value, as_in_a_run, result_shape, same, shared_evaluator
from ..model.program import GridProgram
from ..structure.collective_matching import CollectiveIdentities
from .analysis import Reading
from .backward_slice import SAME, BackwardSlice
from .lattice import (
    MOST_TRIED,
    Bounds,
    DecisionFacts,
    Leaf,
    OpenValue,
    bound_collective,
    bounds_of,
    contains,
    is_value,
    join,
    leaf_within,
    open_result,
    possible_branches,
)

# ----------------------------------------------------------------------------
# Exchange: collectives between the walks of all devices
#
# The walks are coroutines, which exchange known operands and wait for results. A walk that needs the result of a
# collective stops until all members have passed their operands; if no walk can continue, the awaited results are
# unknown. Arrivals at a collective are counted for each device; if a device may arrive any number of times, it must
# pass equal operands each time, or the result is unknown.
#
# At a call of a computation with loops of collectives the walks meet at a gate. If all devices reach it, and the
# collectives inside meet none outside, the results are a function of the arguments of all devices and are cached: a
# later call with the same arguments is not walked again. A gate delays walks and decides nothing: if no walk can
# continue, the gates open before any result counts as unknown.

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
    """One instance of a collective in a group: operands and results by device, unknown if it `failed`."""

    start: Instruction
    key: tuple[Hashable, tuple[int, ...]]  # the identity, and the group
    is_named: bool
    operands: dict[int, tuple[Leaf, ...]] = field(factory=dict)
    results: Mapping[int, Any] | None = None
    failed: bool = False
    bounds: Bounds | None = None
    opens: dict[tuple[int, tuple[int, ...]], Leaf] = field(factory=dict)

    @property
    def group(self) -> tuple[int, ...]:
        return self.key[1]

    @property
    def is_settled(self) -> bool:
        return self.failed or self.results is not None


@define(eq=False)
class Gate:
    """A call at which all walks meet; once it is settled, `runs` has the earlier walks with the same arguments, if any.

    `key` is the cache key of these walks, None if they are not cached; `stalls` is the number of stalls of the exchange
    so far.
    """

    arguments: dict[int, tuple[Reading, ...]] = field(factory=dict)
    is_settled: bool = False
    runs: JointRuns | None = None
    key: Hashable = None
    stalls: int = 0
    left: dict[int, tuple[Propagation, Reading, DecisionFacts, Meetings]] = field(factory=dict)


@define(eq=False)
class Meetings:
    """The instances at which a device has arrived in a part of its walk, and the keys of those that were not walked."""

    instances: set[CollectiveInstance] = field(factory=set)
    keys: set[tuple[Hashable, tuple[int, ...]]] = field(factory=set)
    is_repeated: bool = False

    def include(self, other: Meetings) -> None:
        self.instances |= other.instances
        self.keys |= other.keys
        self.is_repeated |= other.is_repeated


@frozen(eq=False)
class JointRuns:
    """The walks of all devices through one call, and the keys of the collectives at which they met."""

    runs: Mapping[int, ComputationRun]
    keys: frozenset[tuple[Hashable, tuple[int, ...]]]


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
            return self.instance.opens.setdefault((self.device, self.at), leaf_within(self.instance.bounds, self.shape))
        result = self.instance.results[self.device]
        for index in self.at:
            result = result[index]
        return result


def promise_results(instance: CollectiveInstance, device: int, shape: AnyShape) -> Any:
    """A promise for each array of the result on a device."""
    return map_paths(lambda path, leaf: Promise(instance, device, leaf, path), shape)


WalkCoroutine: TypeAlias = Generator[CollectiveInstance | Gate, None, Any]


@define(eq=False, slots=False)
class CollectiveExchange:
    """All instances of collectives, and the number of instructions that were evaluated."""

    program: GridProgram
    identity: CollectiveIdentities
    banned: frozenset[Hashable] | None  # None where every collective is unknown
    evaluator: Evaluator = field(factory=shared_evaluator)
    steps: int = 0
    _instances: dict[Hashable, CollectiveInstance] = field(factory=dict)
    _turns: Counter[Hashable] = field(factory=Counter)
    _any: dict[Hashable, tuple[Value, ...] | None] = field(factory=dict)
    _settled: list[CollectiveInstance | Gate] = field(factory=list)
    _places: dict[Module, Counter[Hashable]] = field(factory=dict)
    _devices: tuple[int, ...] = ()
    _stalls: int = 0
    _gates: dict[Hashable, Gate] = field(factory=dict)
    _joint: dict[Hashable, JointRuns] = field(factory=dict)

    @functools.cached_property
    def structure(self) -> Any:
        from ...properties.structure import Structure

        return Structure({})

    def spend(self, steps: int) -> None:
        """Count evaluated instructions. Raises ExhaustedError beyond `MOST_STEPS`, DeadlineError after the deadline."""
        ask()
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
            instance.operands[device] = (*operands,)
            if len(instance.operands) == len(group):
                self._complete(instance)
        return instance

    def _complete(self, instance: CollectiveInstance) -> None:
        """Settle an instance at which all members have arrived, with the results or with their bounds."""
        operands = {member: instance.operands[member] for member in instance.group}
        if all(is_value(leaf) for leaves in operands.values() for leaf in leaves):
            results = None
            if _has_values(instance.start):
                results = self.evaluator.collective_results(instance.start, instance.group, instance.is_named, operands)
            self._settle(instance, results)
        else:
            instance.bounds = bound_collective(instance.start, operands.values())
            self._settle(instance)

    def _settle(self, instance: CollectiveInstance, results: Mapping[int, Any] | None = None) -> None:
        instance.results, instance.failed = results, results is None
        self._settled.append(instance)

    def gate(self, device: int, place: Hashable, arguments: tuple[Reading, ...]) -> Gate:
        """The gate of a device's n-th arrival at a call; it is settled once all devices have reached it."""
        mine = device, place
        at = place, self._turns[mine]
        self._turns[mine] += 1
        gate = self._gates.setdefault(at, Gate())
        gate.arguments[device] = arguments
        if not gate.is_settled and len(gate.arguments) == len(self._devices):
            del self._gates[at]
            gate.is_settled = True
            self._settled.append(gate)
            known = {member: (*map(replace_settled, gate.arguments[member]),) for member in self._devices}
            if not any(isinstance(leaf, Promise) for readings in known.values() for leaf in flatten(readings)):
                gate.arguments, gate.stalls = known, self._stalls
                gate.key = place, *(reading_key(known[member]) for member in self._devices)
                runs = self._joint.get(gate.key)
                gate.runs = runs if runs is not None and all(map(self._is_even, runs.keys)) else None
        return gate

    def leave(
        self, gate: Gate, device: int, walk: Propagation, result: Reading, facts: DecisionFacts, meetings: Meetings
    ) -> None:
        """Take a device's walk of the call behind a gate; the walks of all devices are cached if nothing else met."""
        gate.left[device] = walk, result, facts, meetings
        if gate.key is None or len(gate.left) < len(self._devices) or gate.stalls != self._stalls or self.is_short:
            return
        all_meetings = {member: meetings for member, (*_, meetings) in gate.left.items()}
        if any(meetings.is_repeated for meetings in all_meetings.values()):
            return
        instances = {instance for meetings in all_meetings.values() for instance in meetings.instances}
        if not all(instance in all_meetings[member].instances for instance in instances for member in instance.group):
            return
        runs: dict[int, ComputationRun] = {}
        for member, (own_walk, reading, decisions, _) in gate.left.items():
            reading, arguments = replace_settled(reading), gate.arguments[member]
            if any(isinstance(leaf, Promise) for leaf in flatten(reading)):
                return
            runs[member] = ComputationRun(arguments, reading, decisions, own_walk.find_new_unknowns(arguments, reading))
        keys = {instance.key for instance in instances}.union(*(each.keys for each in all_meetings.values()))
        self._joint[gate.key] = JointRuns(runs, frozenset(keys))

    def _is_even(self, key: tuple[Hashable, tuple[int, ...]]) -> bool:
        """Whether all participants of a group have arrived at a collective equally often, a known number of times."""
        turns = {self._turns[member, key] for member in key[1]}
        return len(turns) == 1 and not any((member, key) in self._any for member in key[1])

    def _is_ambiguous(self, module: Module, identity: Hashable) -> bool:
        """Whether several sites of a program have this identity, so that their order decides which of them meet."""
        if module not in self._places:
            self._places[module] = Counter(self.identity.of(module, site) for site in collectives_of(module.entry))
        return self._places[module][identity] > 1

    def _instance_of(
        self, device: int, key: tuple[Hashable, tuple[int, ...]], start: Instruction, is_repeated: bool
    ) -> CollectiveInstance:
        """The instance that this arrival of the device belongs to."""
        mine = device, key
        if not is_repeated and mine in self._any and not self._is_banned(key):
            raise RepeatedArrivalError(key)
        turn: Hashable = ANY if is_repeated else self._turns[mine]
        self._turns[mine] += not is_repeated
        at = key, turn
        if at not in self._instances:
            collective = collective_in(start)
            assert collective is not None
            named = is_member(collective, device, *self.program.grid)
            self._instances[at] = CollectiveInstance(start, key, named, failed=self._is_banned(key))
        return self._instances[at]

    def _is_banned(self, key: Hashable) -> bool:
        """Whether the results of a collective are unknown from the start, however often its devices arrive."""
        return self.banned is None or key in self.banned

    def _is_same(self, device: int, key: Hashable, operands: Sequence[Leaf] | None) -> bool:
        """Whether a device that arrives any number of times has passed equal operands each time."""
        is_known = operands is not None and all(map(is_value, operands)) and not self._turns[device, key]
        mine, operands = (device, key), (*operands,) if is_known and operands is not None else None
        before = self._any.setdefault(mine, operands)
        if before is not None and (operands is None or not all(map(same, before, operands))):
            self._any[mine] = None
            return False
        return True

    def run(self, walks: Mapping[int, WalkCoroutine]) -> None:
        """Run all walks to their end."""
        self._devices = (*walks,)
        ready, waiting = deque(walks.values()), dict[CollectiveInstance | Gate, list[WalkCoroutine]]()
        while ready or waiting:
            if not ready:
                self._open_result(waiting)
            else:
                walk = ready.popleft()
                missed = next((awaited for awaited in walk if not awaited.is_settled), None)
                if missed is not None:
                    waiting.setdefault(missed, []).append(walk)
            for instance in self._settled:
                ready.extend(waiting.pop(instance, ()))
            self._settled.clear()

    def _open_result(self, waiting: Iterable[CollectiveInstance | Gate]) -> None:
        """Open the gates at which walks wait, or, where there are none, settle the instances as unknown."""
        gates = [each for each in waiting if isinstance(each, Gate)]
        for gate in gates:
            gate.is_settled = True
            self._settled.append(gate)
        if not gates:
            self._stalls += 1
            for instance in waiting:
                assert isinstance(instance, CollectiveInstance)
                self._settle(instance)


def _has_values(start: Instruction) -> bool:
    collective = collective_in(start)
    return collective is not None and not is_in_place(collective)


# ----------------------------------------------------------------------------
# Readings of tuples
#
# A leaf of the lattice for each array of a tuple, with the operations on them for loops and scans.

SHOWN = 64  # elements up to which equal values are recognised


def await_results(reading: Reading) -> WalkCoroutine:
    """The reading with every promise replaced by the result, once its collective is settled."""
    if isinstance(reading, tuple):
        found = []
        for each in reading:
            found.append((yield from await_results(each)))
        return (*found,)
    if not isinstance(reading, Promise):
        return reading
    while not reading.instance.is_settled:
        yield reading.instance
    return reading.leaf()


def unknown_reading(shape: AnyShape) -> Reading:
    """An unknown value of a shape, leaf by leaf."""
    return map_leaves(
        lambda leaf: (
            leaf_within((0, 1), leaf) if isinstance(leaf, Shape) and leaf.dtype.kind == "pred" else OpenValue()
        ),
        shape,
    )


def fill_missing(reading: Reading, shape: AnyShape) -> Reading:
    """The reading with a leaf for each array: `None` for arrays outside the slice."""
    if not isinstance(shape, TupleShape):
        return reading
    if reading is None:
        return fill(shape, None)
    return (*map(fill_missing, reading, shape.elements),)


def leaf_key(leaf: Leaf) -> Hashable:
    """A key of a leaf: equal small values have one, and one unknown has one."""
    if is_value(leaf) and leaf.size <= SHOWN:
        return leaf.dtype, leaf.shape, leaf.tobytes()
    return id(leaf)


def reading_key(reading: Reading) -> Hashable:
    """A key of a reading, by the marks of its leaves."""
    return map_leaves(leaf_key, reading)  # type: ignore[no-any-return]


def replace_settled(reading: Reading) -> Reading:
    """The reading with the results of all collectives that are settled so far."""
    return map_leaves(
        lambda leaf: leaf.leaf() if isinstance(leaf, Promise) and leaf.instance.is_settled else leaf, reading
    )


def renew_unknowns(reading: Reading, ids: Container[int], known: dict[int, Leaf]) -> Reading:
    """The reading with a new unknown value in place of each with one of these ids."""
    return map_leaves(lambda leaf: known.setdefault(id(leaf), renew(leaf)) if id(leaf) in ids else leaf, reading)


def is_within(now: Leaf, after: Leaf, shape: AnyShape, is_changed: bool) -> bool:
    """Whether a trip leaves a leaf of the state unchanged, or, once it has changed, within what it describes."""
    if now is after or now is None:
        return True
    if is_changed or is_value(now):
        return contains(now, after, shape)
    return False


def widen(now: Leaf, after: Leaf, shape: AnyShape) -> Leaf:
    joined = join(now, after, shape)
    return unknown_reading(shape) if joined is None else joined


def renew(leaf: Leaf) -> Leaf:
    """A leaf with the same facts for a new value."""
    return OpenValue(leaf.bounds, leaf.among) if isinstance(leaf, OpenValue) else leaf


def join_columns(rows: Sequence[Sequence[Leaf]], shape: AnyShape) -> Iterator[Leaf]:
    """The join of the rows, leaf by leaf."""
    for column, leaf in zip(zip(*rows, strict=True), leaves(shape), strict=True):
        yield functools.reduce(lambda a, b, leaf=leaf: join(a, b, leaf), column)  # type: ignore[misc]


def list_concrete_states(state: Sequence[Leaf]) -> list[list[Leaf]]:
    """The concrete states that a state describes, if they are few: one for each combination of possible values."""
    options = {id(leaf): leaf.among for leaf in state if isinstance(leaf, OpenValue) and leaf.among}
    if not options or math.prod(map(len, options.values())) > MOST_TRIED:
        return []
    chosen = (dict(zip(options, values, strict=True)) for values in itertools.product(*options.values()))
    return [[values.get(id(leaf), leaf) for leaf in state] for values in chosen]


def slice_leaf(leaf: Leaf, scan: Instruction, place: int) -> Leaf:
    if is_value(leaf):
        return np.take(leaf, place, scan.attributes.dimension)[()]
    return OpenValue(leaf.bounds) if isinstance(leaf, OpenValue) else None


def stack_outputs(scan: Instruction, trips: Sequence[Sequence[Leaf]]) -> list[Leaf]:
    """The outputs of all trips, in the order of the slices; unknown where no trip was walked."""
    shapes = scan.shape.elements if isinstance(scan.shape, TupleShape) else (scan.shape,)
    outputs = split_carries(scan, shapes)[0]
    if not trips:
        return [*map(unknown_reading, outputs)]
    columns = zip(*(trips[::-1] if scan.attributes.is_reverse else trips), strict=True)
    axis = scan.attributes.dimension
    return [
        np.stack(column, axis) if all(map(is_value, column)) else unknown_reading(shape)
        for column, shape in zip(columns, outputs, strict=True)
    ]


# ----------------------------------------------------------------------------
# Propagation: the walk of one device
#
# A walk evaluates the backward slice (`backward_slice`) in program order: leaves (`lattice`) by the value rules of the
# interpreter (`running`), by bounds if operands are unknown, and through collectives (`CollectiveExchange`). A loop is
# walked trip by trip as long as its condition is known; then its state is joined with that of one more trip up to a
# fixpoint (bounds are widened after a few trips), and decisions inside hold for every trip.

MOST_ROUNDS = 16  # rounds of a loop; then everything that it changes is unknown
WIDENED = 3  # rounds of a loop; then bounds that still grow are dropped
MOST_SILENT = 5_000  # instructions of all trips of a scan that is walked though nothing in it communicates


@frozen(eq=False)
class ComputationRun:
    """A walk of a computation: its arguments, result and decisions, and the ids of the unknown values it created."""

    arguments: Reading
    result: Reading
    facts: DecisionFacts
    new_unknowns: frozenset[int]

    def reuse(self) -> Reading:
        """The result of another run: the same, with new unknown values for those that a run creates."""
        return self.result if not self.new_unknowns else renew_unknowns(self.result, self.new_unknowns, {})


@define(eq=False)
class Propagation:
    """The walk of one device through its program."""

    exchange: CollectiveExchange
    needed: BackwardSlice
    device: int
    facts: DecisionFacts = field(factory=DecisionFacts)
    _ids: tuple[int, int] = field(init=False)
    _repeated: int = 0  # loops and branches around the walk that may run any number of times
    _silent: int = 0  # loops around the walk whose state is no fixpoint yet
    _results_by_key: dict[Hashable, tuple[Leaf, Any]] = field(factory=dict)
    _open_operands: dict[int, list[Leaf]] = field(factory=dict)  # by id of a result in `_results_by_key`
    _runs: dict[Hashable, ComputationRun] = field(factory=dict)
    _meetings: Meetings = field(factory=Meetings)

    def __attrs_post_init__(self) -> None:
        self._ids = divmod(self.device, self.needed.module.num_partitions)

    def walk(self) -> WalkCoroutine:
        entry = self.needed.module.entry
        yield from self.run(entry, [unknown_reading(p.shape) for p in entry.parameters], ())

    def run(self, computation: Computation, parameters: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The reading of the root, by that of the parameters.

        A computation with calls inside is walked once for equal parameters, so that nested loops take time by the
        number of states that each loop goes through, and not by the product of these.
        """
        if not path or not self.needed.is_nested(computation):
            return (yield from self._walk(computation, parameters, path))
        if not self._silent and not self._is_alone(computation):
            is_apart = self._repeated or not self.needed.has_loop_of_collectives(computation)
            return (yield from (self._walk if is_apart else self._walk_with_others)(computation, parameters, path))
        arguments = (*map(replace_settled, parameters),)
        place = () if self._silent else path_key(path)
        key = computation, place, self._repeated > 0, self._silent > 0, *map(reading_key, arguments)
        run = self._runs.get(key)
        if run is not None:
            self.exchange.spend(1)
            self.facts.include(run.facts)
            return run.reuse()
        result, facts = yield from self._walk_apart(computation, arguments, path)
        result = replace_settled(result)
        if not any(isinstance(leaf, Promise) for leaf in flatten((arguments, result))):
            self._runs[key] = ComputationRun(arguments, result, facts, self.find_new_unknowns(arguments, result))
        return result

    def _walk_with_others(self, computation: Computation, parameters: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The same for a computation with loops of collectives: all devices walk it together, if all reach it."""
        gate = self.exchange.gate(self.device, self._key_of_path(path), (*parameters,))
        while not gate.is_settled:
            yield gate
        if gate.runs is not None:
            run = gate.runs.runs[self.device]
            self.exchange.spend(1)
            self.facts.include(run.facts)
            self._meetings.keys |= gate.runs.keys
            return run.reuse()
        outside, self._meetings = self._meetings, Meetings()
        result, facts = yield from self._walk_apart(computation, gate.arguments[self.device], path)
        self.exchange.leave(gate, self.device, self, result, facts, self._meetings)
        outside.include(self._meetings)
        self._meetings = outside
        return result

    def _key_of_path(self, path: Path) -> Hashable:
        """A key of a path of calls, which is the same in the programs of devices that may go through it together."""
        spmd = self.exchange.program.spmd
        return path_key(path) if spmd else (*((step.instruction.name, step.role) for step in path),)

    def _walk_apart(self, computation: Computation, arguments: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The result of a walk, and the decisions in it, which are also added to the earlier ones."""
        outside, self.facts = self.facts, DecisionFacts()
        result = yield from self._walk(computation, arguments, path)
        facts, self.facts = self.facts, outside
        self.facts.include(facts)
        return result, facts

    def _is_alone(self, computation: Computation) -> bool:
        """Whether a walk of a computation has no effect on the walks of other devices."""
        return self.exchange.banned is None or not self.needed.has_collective(computation)

    def find_new_unknowns(self, arguments: Reading, result: Reading) -> frozenset[int]:
        """The ids of unknown values in a result that are not functions of the arguments: each walk creates new ones."""
        known = {id(leaf): False for leaf in flatten(arguments)}
        return frozenset(
            id(leaf) for leaf in flatten(result) if isinstance(leaf, OpenValue) and self._is_new(leaf, known)
        )

    def _is_new(self, leaf: OpenValue, known: dict[int, bool]) -> bool:
        """Whether an unknown value depends on one that is neither in `known` nor a function of those."""
        stack = [leaf]
        while stack:
            value = stack[-1]
            operands = self._open_operands.get(id(value))
            missing = [operand for operand in operands or () if id(operand) not in known]
            if id(value) in known or not missing:
                known.setdefault(id(value), operands is None or any(known.get(id(o), False) for o in operands))
                stack.pop()
            else:
                stack += missing
        return known[id(leaf)]

    def _walk(self, computation: Computation, parameters: Sequence[Reading], path: Path) -> WalkCoroutine:
        wanted = self.needed.of(computation)
        self.exchange.spend(len(wanted) + 1)
        known: dict[Instruction, Reading] = dict(zip(computation.parameters, parameters, strict=True))
        for instruction in wanted:
            operands = [known.get(o) for o in instruction.operands]
            follow = _CALLING.get(instruction.opcode)
            if follow is not None:
                known[instruction] = yield from follow(self, instruction, operands, path)
            elif instruction.opcode in _PASSING:
                known[instruction] = _PASSING[instruction.opcode](instruction, operands)
            elif instruction.opcode in MEETS:
                known[instruction] = yield from self._meet(instruction, operands, path)
            else:
                readings = [*operands]
                for n, operand in enumerate(operands):
                    if operand.__class__ is Promise or operand.__class__ is tuple:
                        readings[n] = yield from await_results(operand)
                known[instruction] = self._evaluate(instruction, readings)
        return known.get(computation.root)

    def _evaluate(self, instruction: Instruction, operands: Sequence[Reading]) -> Reading:
        """The result of an op that only computes; unknown if the op or an operand is."""
        if not all(is_value(leaf) for operand in operands for leaf in flatten(operand)):
            return self._open_result(instruction, operands)
        value = self.exchange.evaluator.value(instruction, operands, self._ids)
        return unknown_reading(instruction.shape) if value is None else value

    def _open_result(self, instruction: Instruction, operands: Sequence[Reading]) -> Reading:
        """The result of an op with unknown operands; equal ops of equal operands share one leaf."""
        if not self.exchange.evaluator.is_pure(instruction) or any(
            leaf is None for operand in operands for leaf in flatten(operand)
        ):
            return unknown_reading(instruction.shape)
        key = (
            self.exchange.structure.label(instruction),
            *(leaf_key(leaf) for operand in operands for leaf in flatten(operand)),
        )
        if key not in self._results_by_key:
            leaf = open_result(instruction, operands, lambda values: self._evaluate(instruction, values))
            reading = unknown_reading(instruction.shape) if leaf is None else leaf
            self._results_by_key[key] = reading, operands  # kept, since the marks are ids
            unknown = [leaf for operand in operands for leaf in flatten(operand) if isinstance(leaf, OpenValue)]
            for leaf in flatten(reading):
                if isinstance(leaf, OpenValue) and not any(leaf is operand for operand in unknown):
                    self._open_operands.setdefault(id(leaf), unknown)
        return self._results_by_key[key][0]

    def _meet(self, instruction: Instruction, operands: Sequence[Reading], path: Path) -> WalkCoroutine:
        """The promised result of a collective, blocking or started."""
        shape, leaves_of_operands = result_shape(instruction), []
        for operand in operands:
            leaves_of_operands += flatten((yield from await_results(operand)))
        if self._silent:
            return unknown_reading(shape)
        known = len(leaves_of_operands) == len(operands) and not any(leaf is None for leaf in leaves_of_operands)
        instance = self.exchange.arrive(
            self.device, Site(path, instruction), leaves_of_operands if known else None, self._repeated > 0
        )
        self._meetings.instances.add(instance)
        self._meetings.is_repeated |= self._repeated > 0
        return promise_results(instance, self.device, shape)

    def run_call(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        if collective_in(instruction) is not None:
            return (yield from self._meet(instruction, operands, path))
        step = next(steps(instruction))
        return (yield from self.run(step.computation, operands, (*path, step)))

    def run_while(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """Walk a while trip by trip as long as its condition is known; the decision is its trip count."""
        state, trips, has_ended = yield from self._walk_known_trips(
            instruction, fill_missing(operands[0], instruction.shape), path
        )
        if has_ended:
            self._decide(instruction, path, frozenset((trips,)))
            return state
        ends = yield from self._walk_each_state(instruction, state, path)
        if ends:
            self._decide(instruction, path, frozenset(trips + more for _, more in ends))
            return unflatten(instruction.shape, join_columns([left for left, _ in ends], instruction.shape))
        self._decide(instruction, path, None)
        condition, body = steps(instruction)

        def trip(now: Reading) -> WalkCoroutine:
            yield from self.run(condition.computation, [now], (*path, condition))
            return fill_missing((yield from self.run(body.computation, [now], (*path, body))), instruction.shape)

        return (yield from self._walk_to_fixpoint(trip, state, instruction.shape))

    def _walk_known_trips(self, loop: Instruction, state: Reading, path: Path) -> WalkCoroutine:
        """The state after the trips that are known to be run, how many these are, and whether the loop has ended."""
        condition, body = steps(loop)
        trips = 0
        while not self.exchange.is_short:
            goes_on = yield from await_results(
                (yield from self.run(condition.computation, [state], (*path, condition)))
            )
            if not is_value(goes_on) or not goes_on:
                return state, trips, is_value(goes_on)
            state = fill_missing((yield from self.run(body.computation, [state], (*path, body))), loop.shape)
            trips += 1
        return state, trips, False

    def _walk_each_state(self, loop: Instruction, state: Reading, path: Path) -> WalkCoroutine:
        """The end states and trip counts of a loop for each state it may begin in; empty if one never ends."""
        ends: list[tuple[list[Leaf], int]] = []
        ways = list_concrete_states(flatten((yield from await_results(state))))
        self._repeated += 1
        for way in ways:
            left, trips, has_ended = yield from self._walk_known_trips(loop, unflatten(loop.shape, way), path)
            if not has_ended:
                ends = []
                break
            ends.append((flatten((yield from await_results(left))), trips))
        self._repeated -= 1
        return ends

    def _walk_to_fixpoint(
        self, trip: Callable[[Reading], WalkCoroutine], state: Reading, shape: AnyShape
    ) -> WalkCoroutine:
        """The state after any number of trips; in the last walk of the body, decisions inside hold for every trip."""
        now, shapes = flatten((yield from await_results(state))), [*leaves(shape)]
        changed: set[int] = set()
        self._silent += 1
        for turn in range(MOST_ROUNDS + 1):
            after = flatten((yield from await_results((yield from trip(unflatten(shape, now))))))
            moved = [n for n, leaf in enumerate(after) if not is_within(now[n], leaf, shapes[n], n in changed)]
            if not moved:
                break
            changed |= {*moved} if turn < MOST_ROUNDS else {*range(len(now))}
            for n in changed if turn == MOST_ROUNDS else moved:
                now[n] = widen(now[n], after[n], shapes[n]) if turn < WIDENED else unknown_reading(shapes[n])
        self._silent -= 1
        if not self._silent:
            self._repeated += 1
            yield from trip(unflatten(shape, now))
            self._repeated -= 1
        return unflatten(shape, (renew(leaf) if n in changed else leaf for n, leaf in enumerate(now)))

    def run_scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """Walk a scan trip by trip if anything may become known; its trip count is known unless it is a bound."""
        (body,) = steps(instruction)
        count, is_bound = slices_of(instruction)
        readings = []
        for reading, operand in zip(operands, instruction.operands, strict=True):
            readings.append(fill_missing((yield from await_results(reading)), operand.shape))
        inputs, state = split_carries(instruction, readings)
        self._decide(instruction, path, None if is_bound else frozenset((count,)))
        is_silent = not communicates(body.computation) and not any(is_value(leaf) for leaf in flatten((*readings,)))
        steps_of_all = count * (len(self.needed.of(body.computation)) + 1)
        most = MOST_STEPS if communicates(body.computation) else MOST_SILENT
        if is_bound or is_silent or self.exchange.is_short or steps_of_all > most:
            return (yield from self._scan_to_fixpoint(instruction, inputs, state, path))
        outputs = []
        for number in range(count):
            place = count - 1 - number if instruction.attributes.is_reverse else number
            slices = [slice_leaf(leaf, instruction, place) for leaf in inputs]
            root = yield from await_results((yield from self.run(body.computation, [*slices, *state], (*path, body))))
            trip_outputs, state = trip_results(instruction, fill_missing(root, body.computation.root.shape))
            outputs.append(trip_outputs)
        return scan_result(instruction, [*stack_outputs(instruction, outputs), *state])

    def _scan_to_fixpoint(
        self, instruction: Instruction, inputs: list[Leaf], state: list[Leaf], path: Path
    ) -> WalkCoroutine:
        (body,) = steps(instruction)
        shapes = [i.shape for i in split_carries(instruction, instruction.operands)[0]]
        carried = TupleShape([i.shape for i in split_carries(instruction, instruction.operands)[1]])

        def trip(now: Reading) -> WalkCoroutine:
            slices = [OpenValue(bounds_of(leaf, shape)) for leaf, shape in zip(inputs, shapes, strict=True)]
            root = yield from self.run(body.computation, [*slices, *now], (*path, body))
            return (*trip_results(instruction, fill_missing(root, body.computation.root.shape))[1],)

        after = yield from self._walk_to_fixpoint(trip, (*state,), carried)
        return scan_result(instruction, [*stack_outputs(instruction, ()), *after])

    def run_conditional(self, instruction: Instruction, operands: list[Reading], path: Path) -> WalkCoroutine:
        """The result of the branch that is taken, or the join of those that may be taken."""
        branches = [*steps(instruction)]
        index = yield from await_results(operands[0])
        ways = possible_branches(instruction, index, len(branches))
        self._decide(instruction, path, ways)
        results = []
        self._repeated += len(ways) > 1
        for number in sorted(ways):
            step = branches[number]
            result = yield from self.run(step.computation, [operands[1 + number]], (*path, step))
            results.append(fill_missing(result, instruction.shape))
        self._repeated -= len(ways) > 1
        if len(results) == 1:
            return results[0]
        for n, result in enumerate(results):
            results[n] = flatten((yield from await_results(result)))
        return unflatten(instruction.shape, join_columns(results, instruction.shape))

    def _decide(self, instruction: Instruction, path: Path, ways: frozenset[int] | None) -> None:
        if not self._silent:
            self.facts.add(site_key(instruction, path), ways, self._repeated > 0)


_CALLING: Mapping[str, Callable[..., WalkCoroutine]] = {
    **dict.fromkeys(CALLS, Propagation.run_call),
    "while": Propagation.run_while,
    "scan": Propagation.run_scan,
    "conditional": Propagation.run_conditional,
}
_PASSING: Mapping[str, Callable[[Instruction, list[Reading]], Reading]] = {
    "tuple": lambda _, operands: (*operands,),
    "get_tuple_element": lambda of, operands: operands[0] and operands[0][of.attributes.index],
    **dict.fromkeys(SAME, lambda _, operands: operands[0]),
}


# ----------------------------------------------------------------------------
# propagate_constants: all devices together, since collectives carry values between them, or one by one

MOST_RESTARTS = 8  # restarts, each after a RepeatedArrivalError


def propagate_constants(
    program: GridProgram, identity: CollectiveIdentities, needed: Mapping[Module, BackwardSlice], devices: Sequence[int]
) -> Mapping[int, DecisionFacts]:
    """The facts of these devices, propagated together, so that results of collectives may be known.

    If that takes too long, the devices are analysed one by one; a device for which that takes too long has no facts.
    """
    banned: frozenset[Hashable] = frozenset()
    while len(devices) > 1 and len(banned) < MOST_RESTARTS:
        try:
            return _walk_devices(CollectiveExchange(program, identity, banned), needed, devices)
        except RepeatedArrivalError as again:
            banned |= {again.key}
        except ExhaustedError:
            break
    facts: dict[int, DecisionFacts] = {}
    for device in devices:
        try:
            facts |= _walk_devices(CollectiveExchange(program, identity, None), needed, (device,))
        except ExhaustedError:
            facts[device] = DecisionFacts()
    return facts


def _walk_devices(
    exchange: CollectiveExchange, needed: Mapping[Module, BackwardSlice], devices: Sequence[int]
) -> Mapping[int, DecisionFacts]:
    modules = {device: exchange.program.class_of[device].module for device in devices}
    walks = {device: Propagation(exchange, needed[module], device) for device, module in modules.items()}
    with as_in_a_run():
        exchange.run({device: walk.walk() for device, walk in walks.items()})
    return {device: walk.facts for device, walk in walks.items()}
