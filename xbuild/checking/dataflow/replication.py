"""Which devices hold equal values, whatever the data: XLA's replication analysis, with partitions of the devices.

A fact about an instruction compares the devices trip by trip. Inside loops and branches it holds for devices that
execute the instruction equally often, which are those of one class of `context`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import define, field

from shape_inference import AnyShape, RuleTable, TupleShape

from ...core.graph import Computation, Instruction
from ...core.op import opcodes
from ...properties.effects import (
    MEETING,
    Path,
    collective_in,
    communicates,
    has_side_effect,
    remembered,
    steps,
)
from ..model.scans import scan_result, slices_of, split_carries, trip_results
from .agreement import Agreement, Labels, Partitions
from .analysis import Analysis, Leaf, Reading, TooMuchError, flat, path_key
from .facts import branch_number
from .id_values import IdValues
from .invariants import carried_unchanged, replaced
from .shared_results import result_labels

varies = RuleTable("varies")
AnyReplication = TypeVar("AnyReplication", bound="Replication")
MOST_BY_VALUE = 20_000  # instructions visited; then calls are distinguished by labels alone, and not by values


@define(eq=False)
class Replication(Analysis):
    """The analysis of the program of some devices, in the grid that counts their replicas and partitions.

    Leaves that are one object stand for one value. `has_equal_trips` says of a loop whether all devices are known to
    run it equally often; `promised` gives the readings that annotations promise.
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
        """A new value for each leaf of a shape, all with the labels of the given one."""
        if not isinstance(shape, TupleShape):
            return leaf
        return tuple(self.spread(Agreement(leaf.labels), element) for element in shape.elements)

    def where(self, computation: Computation, path: Path) -> Hashable:
        """What distinguishes calls with equal arguments: the call path, where the computation communicates."""
        return path_key(path) if communicates(computation) else ()

    def run(self, computation: Computation, parameters: list[Reading], path: Path = ()) -> Reading:
        """The reading of the root; the result of an earlier call with equal facts about its arguments is used again."""
        if not path:
            return self._run(computation, parameters, path)
        given = flat((*parameters,))
        if self.work > MOST_BY_VALUE and any(each.formula for each in given):
            plain = {id(each): Agreement(each.labels) for each in given}
            result = self.run(computation, [self.mapped(p, lambda leaf: plain[id(leaf)]) for p in parameters], path)
            return replaced(result, [plain[id(each)] for each in given], given)
        form = computation, self.where(computation, path), id(self.context), _argument_key(given)
        if form in self._found:
            before, result = self._found[form]
            return replaced(result, before, given)
        result = self._run(computation, parameters, path)
        self._found[form] = given, result
        return result

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a is b else Agreement(self.partitions.refined(a.labels, b.labels))

    def fresh(self, reading: Reading) -> Reading:
        """New values with the labels of these."""
        return self.mapped(reading, lambda leaf: Agreement(leaf.labels))

    def default(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """The result of an op that is a function of its operands, unless a region of it uses the device id."""
        if any(map(depends_on_device, instruction.called)):
            return self.nowhere
        return self.ids.made(instruction, leaves) or Agreement(self.partitions.of_all([each.labels for each in leaves]))

    @contextmanager
    def inside(self, decides: Labels) -> Iterator[None]:
        """Inside the block, devices of one class of the context also agree on this decision."""
        before = self.context
        self.context = self.partitions.refined(before, decides)
        try:
            yield
        finally:
            self.context = before

    def loop(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after any number of trips; an element that no trip changes keeps its value."""
        condition, body = steps(instruction)
        state = carried_unchanged(body.computation, operands[0], self.fresh)
        decides = self.partitions.everywhere
        while True:
            with self.inside(decides):
                holds = self.run(condition.computation, [state], (*path, condition))
                after = self.run(body.computation, [state], (*path, body))
            following = self.joined(state, after)
            known = decides if self.has_equal_trips(instruction) else self.partitions.refined(decides, holds.labels)
            if known is decides and _is_unchanged(state, following):
                break
            state, decides = self._next_state(state, following), known
        self.decide(instruction, path, Agreement(decides))
        return self._state_after(operands[0], state, after, decides)

    def _next_state(self, state: Reading, following: Reading) -> Reading:
        """The state of the next round: new values, except for elements that the body returned unchanged."""
        if isinstance(state, tuple):
            return tuple(self._next_state(*pair) for pair in zip(state, following, strict=True))
        return state if state is following else Agreement(following.labels)

    def _state_after(self, before: Reading, state: Reading, after: Reading, decides: Labels) -> Reading:
        """The state after a loop; leaves that a trip changed are refined by the decision about trips."""
        if isinstance(state, tuple):
            return tuple(self._state_after(*each, decides) for each in zip(before, state, after, strict=True))
        return before if state is after else Agreement(self.partitions.refined(state.labels, decides))

    def counted(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        inputs = flat((*split_carries(scan, operands)[0],)) if slices_of(scan)[1] else []
        return Agreement(self.partitions.of_all([each.labels for each in inputs]))

    def scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The results after all trips, joined with the fact for their number."""
        (body,) = steps(instruction)
        count = self.counted(instruction, operands)
        self.decide(instruction, path, count)
        slices, first = split_carries(instruction, operands)
        slices, state = [*map(self.fresh, slices)], [*map(self.fresh, first)]
        while True:
            with self.inside(count.labels):
                root = self.run(body.computation, [*slices, *state], (*path, body))
            outputs, after = trip_results(instruction, root)
            following = [*map(self.joined, state, after)]
            if all(map(_is_unchanged, state, following)):
                break
            state = [*map(self._next_state, state, following)]
        left = [self._state_after(*each, count.labels) for each in zip(first, state, after, strict=True)]
        given = [self.mapped(each, lambda leaf: Agreement(self.join(leaf, count).labels)) for each in outputs]
        return scan_result(instruction, [*given, *left])

    def branches(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of the branch that is taken; where that is unknown, joined with the fact for the index."""
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
        """The result of a conditional, given the branch that each device takes, where that is known."""
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


def _argument_key(given: Sequence[Agreement]) -> Hashable:
    """A key of the facts about arguments: labels, formulas, and which arguments are one value."""
    first: dict[int, int] = {}
    return tuple([(id(g.labels), id(g.formula), first.setdefault(id(g), n)) for n, g in enumerate(given)])


def _is_unchanged(state: Reading, following: Reading) -> bool:
    """Whether a round has changed no fact about the state."""
    if isinstance(state, tuple):
        return all(map(_is_unchanged, state, following))
    return state is following or (state.labels is following.labels and state.formula is None)


def replication_of(
    computation: Computation, devices: tuple[int, ...], num_replicas: int, num_partitions: int, is_own: bool = False
) -> Replication:
    """The analysis of a program whose parameters differ on all devices."""
    return analysed(Replication(varies, devices, num_replicas, num_partitions, is_own), computation)


def analysed(walk: AnyReplication, computation: Computation) -> AnyReplication:
    """An analysis after its run with parameters that differ on all devices; no facts where the program is too large."""
    try:
        walk.run(computation, [walk.spread(walk.nowhere, p.shape) for p in computation.parameters])
    except TooMuchError:
        walk.gave_up = True
        walk.decides.clear()
    return walk


@remembered
def depends_on_device(computation: Computation) -> bool:
    """Whether an instruction of a computation may differ between devices though its operands are equal."""
    return any(i.opcode in varies or any(map(depends_on_device, i.called)) for i in computation.instructions)


@varies
def replica_id(of: Replication, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [replica for replica, _ in of.ids.ids])


@varies
def partition_id(of: Replication, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [partition for _, partition in of.ids.ids])


def _own(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """A result that differs on all devices."""
    return of.spread(of.nowhere, instruction.shape)


def _fed(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """A result that differs on all devices, except where its annotations promise otherwise."""
    promised = of.promised(of, instruction)
    return _own(of, instruction) if promised is None else promised


def _of_operands(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    return of.spread(of.default(instruction, [leaf for each in operands for leaf in flat(each)]), instruction.shape)


def _by_group(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    """The result of a collective; where an asynchronous op wraps anything else, a function of its operands."""
    collective = collective_in(instruction)
    if collective is None:
        return _of_operands(of, instruction, *operands)
    grid = of.num_replicas, of.num_partitions, of.is_own
    brought = [leaf.labels for each in operands for leaf in flat(each)]
    results = result_labels(collective, instruction, brought, of.devices, grid, of.context, of.partitions)
    if len(results) == 1:
        return of.spread(Agreement(results[0]), instruction.shape)
    return tuple(map(Agreement, results))


@varies
def custom_call(of: Replication, instruction: Instruction, *operands: Reading) -> Reading:
    return (_own if has_side_effect(instruction) else _of_operands)(of, instruction, *operands)


PER_DEVICE = opcodes(lambda op: op.depends_on in ("outside", "random_state"))
varies.enter("infeed", _fed)
for _opcode in sorted(PER_DEVICE - {"infeed"}):
    varies.enter(_opcode, _own)
for _opcode in sorted(MEETING):
    varies.enter(_opcode, _by_group)
