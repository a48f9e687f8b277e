"""Which devices hold equal values, whatever the data: XLA's replication analysis, with partitions of the devices.

What is said of an instruction holds each time that devices come to it, trip by trip. Inside of loops and branches it is
said of devices that come there equally often: those of one part of `context`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import define, field

from shape_inference import AnyShape, RuleTable, TupleShape

from ...core.graph import Computation, Instruction
from ...properties.effects import (
    COLLECTIVES,
    STARTS,
    Path,
    collective_in,
    communicates,
    has_side_effect,
    remembered,
    steps,
)
from ..model.scans import parted, results_of, slices_of, whole
from .agreement import Agreement, Labels, Partitions
from .analysis import Analysis, Leaf, Reading, TooMuchError, flat, way_of
from .facts import branch_number
from .id_values import IdValues
from .invariants import carried_unchanged, replaced
from .shared_results import met

varies = RuleTable("varies")
Walk = TypeVar("Walk", bound="Replication")
MOST_BY_VALUE = 20_000  # instructions; what is called later is told apart by who agrees on its arguments alone


@define(eq=False)
class Replication(Analysis):
    """The walk over the program of some devices, in the grid that their replicas and partitions count in.

    Two leaves that are one object are one value. `has_equal_trips` says of loops what is known of them from elsewhere.
    """

    devices: tuple[int, ...]
    num_replicas: int
    num_partitions: int
    is_own: bool = False
    has_equal_trips: Callable[[Instruction], bool] = lambda loop: False
    promised: Callable[[Replication, Instruction], Reading | None] = lambda of, instruction: None
    partitions: Partitions = field(init=False)
    context: Labels = field(init=False)
    ids: IdValues = field(init=False)
    gave_up: bool = field(default=False, init=False)
    _found: dict[Hashable, tuple[list[Agreement], Reading]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.partitions = Partitions(len(self.devices))
        self.context = self.partitions.everywhere
        ids = [divmod(device, self.num_partitions) for device in self.devices]
        self.ids = IdValues(self.partitions, ids)

    @property
    def everywhere(self) -> Agreement:
        return Agreement(self.partitions.everywhere)

    @property
    def nowhere(self) -> Agreement:
        return Agreement(self.partitions.nowhere)

    def spread(self, leaf: Agreement, shape: AnyShape) -> Reading:
        """A value of its own for each leaf of a tuple, alike in where devices agree."""
        if not isinstance(shape, TupleShape):
            return leaf
        return tuple(self.spread(Agreement(leaf.labels), element) for element in shape.elements)

    def where(self, computation: Computation, path: Path) -> Hashable:
        """What tells calls apart beyond what they are given: where units may meet, each place decides by itself."""
        return way_of(path) if communicates(computation) else ()

    def run(self, computation: Computation, parameters: list[Reading], path: Path = ()) -> Reading:
        """The reading of the root; a call that has been read with as much known of its arguments is not read again."""
        if not path:
            return self._run(computation, parameters, path)
        given = flat((*parameters,))
        if self.work > MOST_BY_VALUE and any(each.formula for each in given):
            plain = {id(each): Agreement(each.labels) for each in given}
            result = self.run(computation, [self.mapped(p, lambda leaf: plain[id(leaf)]) for p in parameters], path)
            return replaced(result, [plain[id(each)] for each in given], given)
        form = computation, self.where(computation, path), id(self.context), _form(given)
        if form in self._found:
            before, result = self._found[form]
            return replaced(result, before, given)
        result = self._run(computation, parameters, path)
        self._found[form] = given, result
        return result

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a is b else Agreement(self.partitions.refined(a.labels, b.labels))

    def fresh(self, reading: Reading) -> Reading:
        """Other values of which as much is known."""
        return self.mapped(reading, lambda leaf: Agreement(leaf.labels))

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """A function of its operands, but for regions that ask who the device is."""
        if any(map(asks, instruction.called)):
            return self.nowhere
        return self.ids.made(instruction, leaves) or Agreement(self.partitions.of_all([each.labels for each in leaves]))

    @contextmanager
    def inside(self, decides: Labels) -> Iterator[None]:
        """Within it only those are in one part who come there alike."""
        before = self.context
        self.context = self.partitions.refined(before, decides)
        try:
            yield
        finally:
            self.context = before

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after any number of trips; what no trip changes is afterwards what it was before."""
        condition, body = steps(instruction)
        state = carried_unchanged(body.computation, operands[0], self.fresh)
        decides = self.partitions.everywhere
        while True:
            with self.inside(decides):
                holds = self.run(condition.computation, [state], (*path, condition))
                after = self.run(body.computation, [state], (*path, body))
            following = self.joined(state, after)
            known = decides if self.has_equal_trips(instruction) else self.partitions.refined(decides, holds.labels)
            if known is decides and _is_as_much(state, following):
                break
            state, decides = self._renewed(state, following), known
        self.decide(instruction, path, Agreement(decides))
        return self._left(operands[0], state, after, decides)

    def _renewed(self, state: Reading, following: Reading) -> Reading:
        """The state of the next round, of which no value is one of this round's unless it was handed on."""
        if isinstance(state, tuple):
            return tuple(self._renewed(*pair) for pair in zip(state, following, strict=True))
        return state if state is following else Agreement(following.labels)

    def _left(self, before: Reading, state: Reading, after: Reading, decides: Labels) -> Reading:
        if isinstance(state, tuple):
            return tuple(self._left(*each, decides) for each in zip(before, state, after, strict=True))
        return before if state is after else Agreement(self.partitions.refined(state.labels, decides))

    def counted(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        inputs = flat((*parted(scan, operands)[0],)) if slices_of(scan)[1] else []
        return Agreement(self.partitions.of_all([each.labels for each in inputs]))

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The results after all trips, joined with what says how many."""
        (body,) = steps(instruction)
        count = self.counted(instruction, operands)
        self.decide(instruction, path, count)
        slices, first = parted(instruction, operands)
        slices, state = [*map(self.fresh, slices)], [*map(self.fresh, first)]
        while True:
            with self.inside(count.labels):
                root = self.run(body.computation, [*slices, *state], (*path, body))
            outputs, after = results_of(instruction, root)
            following = [*map(self.joined, state, after)]
            if all(map(_is_as_much, state, following)):
                break
            state = [*map(self._renewed, state, following)]
        left = [self._left(*each, count.labels) for each in zip(first, state, after, strict=True)]
        given = [self.mapped(each, lambda leaf: Agreement(self.join(leaf, count).labels)) for each in outputs]
        return whole(instruction, [*given, *left])

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of the branch that is taken, joined with what decides where that is not known."""
        index = operands[0]
        self.decide(instruction, path, index)
        results = []
        for step, operand in zip(steps(instruction), operands[1:], strict=True):
            with self.inside(index.labels):
                results.append(self.run(step.computation, [operand], (*path, step)))
        taken = self._taken(instruction, index, len(results))
        return self._either(results, index.labels, taken)

    def _taken(self, conditional: Instruction, index: Agreement, count: int) -> list[int] | None:
        """The branch that each device takes, where that follows from its ids."""
        numbers = self.ids.numbers(index)
        return None if numbers is None else [branch_number(conditional, each, count) for each in numbers]

    def _either(self, results: Sequence[Any], index: Labels, taken: list[int] | None) -> Reading:
        if isinstance(results[0], tuple):
            return tuple(self._either(each, index, taken) for each in zip(*results, strict=True))
        if all(each is results[0] for each in results):
            return results[0]
        if taken is None:
            return Agreement(self.partitions.of_all([index, *(each.labels for each in results)]))
        chosen = [results[branch] for branch in taken]
        if all(each is chosen[0] for each in chosen):
            return chosen[0]
        return Agreement(self.partitions.by((id(each), each.labels[n]) for n, each in enumerate(chosen)))


def _form(given: Sequence[Agreement]) -> Hashable:
    """What is known of arguments: who agrees, how they follow from ids, and which of them are one value."""
    first: dict[int, int] = {}
    return tuple([(id(g.labels), id(g.formula), first.setdefault(id(g), n)) for n, g in enumerate(given)])


def _is_as_much(state: Reading, following: Reading) -> bool:
    """Whether as much is known of the next trip as of this one."""
    if isinstance(state, tuple):
        return all(map(_is_as_much, state, following))
    return state is following or (state.labels is following.labels and state.formula is None)


def uniformity(
    computation: Computation, devices: tuple[int, ...], num_replicas: int, num_partitions: int, is_own: bool = False
) -> Replication:
    """Where the devices that run this program agree; each is fed parameters of its own."""
    return walked(Replication(varies, devices, num_replicas, num_partitions, is_own), computation)


def walked(walk: Walk, computation: Computation) -> Walk:
    """Where that is too much, nobody is known to agree on anything."""
    try:
        walk.run(computation, [walk.spread(walk.nowhere, p.shape) for p in computation.parameters])
    except TooMuchError:
        walk.gave_up = True
        walk.decides.clear()
    return walk


@remembered
def asks(computation: Computation) -> bool:
    """Whether a value in it depends on the device."""
    return any(i.opcode in varies or any(map(asks, i.called)) for i in computation.instructions)


@varies
def replica_id(of: Replication, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [replica for replica, _ in of.ids.ids])


@varies
def partition_id(of: Replication, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [partition for _, partition in of.ids.ids])


def _own(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """Each device has its own."""
    return of.spread(of.nowhere, instruction.shape)


def _fed(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """Each device has its own, but for what its annotations promise."""
    promised = of.promised(of, instruction)
    return _own(of, instruction) if promised is None else promised


def _of_operands(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    return of.spread(of.default(instruction, [leaf for each in operands for leaf in flat(each)]), instruction.shape)


def _by_group(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """What a collective gives; what starts something else depends on its operands."""
    collective = collective_in(instruction)
    if collective is None:
        return _of_operands(of, instruction, *operands)
    grid = of.num_replicas, of.num_partitions, of.is_own
    brought = [leaf.labels for each in operands for leaf in flat(each)]
    results = met(collective, instruction, brought, of.devices, grid, of.context, of.partitions)
    if len(results) == 1:
        return of.spread(Agreement(results[0]), instruction.shape)
    return tuple(map(Agreement, results))


@varies
def custom_call(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    return (_own if has_side_effect(instruction) else _of_operands)(of, instruction, *operands)


varies.enter("infeed", _fed)
for _opcode in ("recv", "recv_done", "rng", "rng_get_and_update_state"):
    varies.enter(_opcode, _own)
for _opcode in (*COLLECTIVES, *STARTS, "async_start"):
    varies.enter(_opcode, _by_group)
