"""Which devices hold equal values, whatever the data: XLA's replication analysis, by partitions of the devices.

Sections:

    Agreement: what is known of one value, by partitions of the devices
    What no trip of a loop changes
    IdValues: values that follow from device ids and constants
    Results of collectives: their labels, by the groups and the labels of the operands
    Replication: the analysis
    Recording: the analysis with its result for every value
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from attrs import define, field, frozen

from shape_inference import AnyShape, RuleTable, Shape, TupleShape
from shape_inference.trees import flatten, map_leaves

from ...core.graph import Computation, Instruction, Module
from ...core.op import opcodes
from ...properties.device_groups import Group, grouping, pairs_of
from ...properties.effects import (
    MEETING,
    Path,
    base_of,
    branch_number,
    collective_in,
    communicates,
    has_side_effect,
    is_in_place,
    remembered,
    steps,
)
from ...properties.sites import path_key, site_key
from ...properties.structure import Structure
from ...properties.trip_counts import scan_result, slices_of, split_carries, trip_results, unchanged
from ...running import Evaluator, as_in_a_run, shared_evaluator
from ..model.program import Extent
from .analysis import DataflowAnalysis, Leaf, Reading, TooMuchError

# ----------------------------------------------------------------------------
# Agreement: what is known of one value, by partitions of the devices

Labels: TypeAlias = tuple[int, ...]  # a number for each device; devices with equal numbers hold equal values

MOST_DEEP = 50  # the greatest depth of a formula


@define(eq=False)
class Formula:
    """An expression of constants and device ids.

    `values` has the results that were computed, by label; `number` is the value number, which equal expressions share.
    """

    instruction: Instruction
    operands: tuple[Agreement, ...]
    values: dict[int, Any] = field(factory=dict)
    number: int | None = None
    depth: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.depth = 1 + max((operand.formula.depth for operand in self.operands if operand.formula), default=0)


@frozen(eq=False)
class Agreement:
    """What is known of one value: devices with equal labels hold equal values.

    Two agreements are equal only as one object, which is one value. `formula` is None if the value does not follow from
    constants and device ids only.
    """

    labels: Labels
    formula: Formula | None = None

    @property
    def is_everywhere(self) -> bool:
        return not any(self.labels)


@define(eq=False)
class Partitions:
    """Partitions of the devices as tuples of labels; equal partitions are one object."""

    count: int
    everywhere: Labels = field(init=False)
    nowhere: Labels = field(init=False)
    _known: dict[Labels, Labels] = field(factory=dict, init=False)
    _refined: dict[tuple[int, int], Labels] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.everywhere = self.group_by([0] * self.count)
        self.nowhere = self.group_by(range(self.count))

    def group_by(self, marks: Iterable[Hashable]) -> Labels:
        """The partition in which devices with equal marks have equal labels."""
        numbers: dict[Hashable, int] = {}
        labels = tuple([numbers.setdefault(mark, len(numbers)) for mark in marks])
        return self._known.setdefault(labels, labels)

    def refine(self, a: Labels, b: Labels) -> Labels:
        """The common refinement: devices have equal labels if both partitions give them equal labels."""
        if a is b or b is self.everywhere:
            return a
        if a is self.everywhere or b is self.nowhere:
            return b
        if a is self.nowhere:
            return a
        key = id(a), id(b)
        if key not in self._refined:
            self._refined[key] = self.group_by(zip(a, b, strict=True))
        return self._refined[key]

    def refine_all(self, labels: Iterable[Labels]) -> Labels:
        """The common refinement of any number of partitions."""
        result = self.everywhere
        for partition in labels:
            result = self.refine(result, partition)
        return result


def group_devices(labels: Labels, devices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The classes of a partition, each as a tuple of devices."""
    classes: dict[int, list[int]] = {}
    for label, device in zip(labels, devices, strict=True):
        classes.setdefault(label, []).append(device)
    return tuple(map(tuple, classes.values()))


# ----------------------------------------------------------------------------
# What no trip of a loop changes
#
# Elements of its state, and arguments that a call returns unchanged.


def enter_loop(body: Computation, state: Reading, change: Callable[[Reading], Reading]) -> Reading:
    """The state inside a loop: elements that the body returns unchanged stay, `change` applies to the others."""
    return map_leaves(lambda is_unchanged, leaf: leaf if is_unchanged else change(leaf), unchanged(body), state)


def replace_arguments(result: Reading, before: Sequence[Leaf], arguments: Sequence[Leaf]) -> Reading:
    """The result of an earlier call for new arguments: returned arguments are replaced, other leaves are new values."""
    new = {id(old): leaf for old, leaf in zip(before, arguments, strict=True)}
    return map_leaves(lambda leaf: new[id(leaf)] if id(leaf) in new else type(leaf)(leaf.labels, leaf.formula), result)


# ----------------------------------------------------------------------------
# IdValues: values that follow from device ids and constants
#
# Computed, and compared across devices.

MOST_EVALUATED = 50_000  # values of single instructions in one walk
LARGEST = 4096  # elements of a value that is compared between devices


@define(eq=False)
class IdValues:
    """The evaluation of formulas on some devices, given by their ids (replica, partition)."""

    partitions: Partitions
    ids: Sequence[tuple[int, int]]
    left: int = MOST_EVALUATED
    evaluator: Evaluator = field(factory=shared_evaluator)
    structure: Structure = field(factory=lambda: Structure({}))
    _numbers: dict[tuple[Any, ...], int] = field(factory=dict, init=False)
    _compared: dict[int, tuple[Labels, dict[int, Any]] | None] = field(factory=dict, init=False)

    def id_of(self, instruction: Instruction, ids: Sequence[int]) -> Agreement:
        """The agreement of an instruction that returns the replica or partition id, given the id of each device."""
        return Agreement(self.partitions.group_by(ids), Formula(instruction, ()))

    def combine(self, instruction: Instruction, operands: Sequence[Agreement]) -> Agreement | None:
        """The agreement of an op whose operands all have formulas; None if one has none, or the value is unknown.

        A value that is equal on all devices is evaluated only if it is needed.
        """
        shape = instruction.shape
        if not isinstance(shape, Shape) or shape.size > LARGEST or any(operand.formula is None for operand in operands):
            return None
        formula = Formula(instruction, tuple(operands))
        if formula.depth > MOST_DEEP:
            return None
        together = self.partitions.refine_all([operand.labels for operand in operands])
        if together is self.partitions.everywhere:
            return Agreement(together, formula)
        number = self._number(formula)
        if number not in self._compared:
            self._compared[number] = self._compare(formula, together)
        comparison = self._compared[number]
        if comparison is None:
            return None
        labels, formula.values = comparison
        return Agreement(labels, formula)

    def _number(self, formula: Formula) -> int:
        """The value number of a formula: equal for equal ops on operands of equal numbers."""
        if formula.number is None:
            operands = [self._number(operand.formula) for operand in formula.operands if operand.formula is not None]
            key = (self.structure.label(formula.instruction), *operands)
            formula.number = self._numbers.setdefault(key, len(self._numbers))
        return formula.number

    def _compare(self, formula: Formula, together: Labels) -> tuple[Labels, dict[int, Any]] | None:
        """The labels of the devices by their results, and the result of each label."""
        values: dict[int, Any] = {}
        with as_in_a_run():
            for place, label in enumerate(together):
                if label not in values:
                    values[label] = self._evaluated(formula, place)
                    if values[label] is None:
                        return None
        labels = self.partitions.group_by([values[label].tobytes() for label in together])
        return labels, {label: values[together[place]] for place, label in enumerate(labels)}

    def _evaluated(self, formula: Formula, place: int) -> Any:
        operands = [self.value(operand, place) for operand in formula.operands]
        self.left -= 1
        if self.left < 0 or any(operand is None for operand in operands):
            return None
        return self.evaluator.value(formula.instruction, operands, self.ids[place])

    def value(self, agreement: Agreement, place: int) -> Any:
        """The value on the device at this position; None if it cannot be computed."""
        formula, label = agreement.formula, agreement.labels[place]
        if formula is None:
            return None
        if label not in formula.values:
            formula.values[label] = self._evaluated(formula, place)
        return formula.values[label]

    def values_on_all(self, agreement: Agreement) -> list[Any] | None:
        """The value on every device; None if it cannot be computed on one of them."""
        if agreement.formula is None:
            return None
        with as_in_a_run():
            values = [self.value(agreement, place) for place in range(len(self.ids))]
        return None if any(value is None for value in values) else values


# ----------------------------------------------------------------------------
# Results of collectives: their labels, by the groups and the labels of the operands

COMMUTATIVE = frozenset({"add", "multiply", "minimum", "maximum", "and", "or", "xor"})
_OPERANDWISE = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "collective_permute",
)  # the n-th result is computed from the n-th operand


@define(eq=False)
class _Arrivals:
    """The devices that arrive at a collective, with their groups.

    Devices of one class of `context` arrive equally often.
    """

    collective: Instruction
    devices: Sequence[int]
    grid: Extent
    context: Labels
    named: Mapping[int, Group]
    places: Mapping[int, int] = field(init=False)
    groups: list[Group] = field(init=False)
    _complete: dict[int, bool] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.places = {device: place for place, device in enumerate(self.devices)}
        self.groups = [self.named.get(device) or (device,) for device in self.devices]

    def is_complete(self, group: Group) -> bool:
        """Whether all participants of a group arrive here, equally often, so that the labels of their operands hold."""
        if id(group) not in self._complete:
            parts = {self.context[self.places[member]] if member in self.places else -1 for member in group}
            self._complete[id(group)] = len(parts) == 1 and -1 not in parts
        return self._complete[id(group)]

    def mark_by_group(self, labels: Labels, is_ordered: bool) -> list[Hashable]:
        """For each device the number of the operands of its group; if they are unknown, the mark of the group."""
        known: dict[int, Hashable] = {}
        numbers: dict[tuple[int, ...], int] = {}
        for group in self.groups:
            if id(group) not in known:
                of_members = [labels[self.places[member]] for member in group] if self.is_complete(group) else []
                row = tuple(of_members if is_ordered else sorted(of_members))
                known[id(group)] = numbers.setdefault(row, 1 + len(numbers)) if row else None
        return [known[id(group)] or self.group_mark(place) for place, group in enumerate(self.groups)]

    def group_mark(self, place: int) -> Hashable:
        """A mark that a device shares with those members of its group that arrive equally often."""
        return "group", id(self.groups[place]), self.context[place]

    def positions_in_groups(self) -> list[int]:
        """The position of each device in its group."""
        known: dict[int, Mapping[int, int]] = {}
        for group in self.groups:
            if id(group) not in known:
                known[id(group)] = {member: n for n, member in enumerate(group)}
        return [known[id(group)][device] for device, group in zip(self.devices, self.groups, strict=True)]

    def label_of_member(self, labels: Labels, source: int, group: Group, else_: Hashable) -> Hashable:
        """The label of the operand of one member of a group; `else_` if it is unknown."""
        is_known = source in self.places and self.is_complete(group)
        return labels[self.places[source]] if is_known else else_


def result_labels(
    collective: Instruction,
    instruction: Instruction,
    operand_labels: Sequence[Labels],
    devices: Sequence[int],
    grid: Extent,
    context: Labels,
    partitions: Partitions,
) -> list[Labels]:
    """The labels of each result of a collective; one entry if all results have the same."""
    arrivals = _Arrivals(collective, devices, grid, context, grouping(collective, *grid).of)
    marks = _MARKING.get(base_of(collective))
    if marks is None or is_in_place(collective):
        return [partitions.nowhere]
    together = [partitions.refine_all(operand_labels)]
    if _is_operandwise(collective, instruction, len(operand_labels)):
        together = [*operand_labels]
    return [partitions.group_by(marks(arrivals, labels)) for labels in together]


def _is_operandwise(collective: Instruction, instruction: Instruction, count: int) -> bool:
    """Whether the n-th result is computed from the n-th operand only."""
    is_plain = instruction.opcode in (*_OPERANDWISE, "all_reduce_start") and base_of(collective) in _OPERANDWISE
    shape = instruction.shape
    return is_plain and count > 1 and isinstance(shape, TupleShape) and len(shape.elements) == count


def _mark_reduced(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """Equal marks for groups with equal operands, in any order if the reduction does not depend on it."""
    return arrivals.mark_by_group(labels, is_ordered=not _is_order_free(arrivals.collective))


def _mark_gathered(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    return arrivals.mark_by_group(labels, is_ordered=True)


def _mark_parts(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """A result of which each member of a group gets a different part."""
    return [*zip(arrivals.mark_by_group(labels, is_ordered=True), arrivals.positions_in_groups(), strict=True)]


def _mark_broadcast(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """The operand of the first member of the group; zeros on a device that no group names."""
    return [
        arrivals.label_of_member(labels, group[0], group, arrivals.group_mark(place))
        if device in arrivals.named
        else "zeros"
        for place, (device, group) in enumerate(zip(arrivals.devices, arrivals.groups, strict=True))
    ]


def _mark_permuted(arrivals: _Arrivals, labels: Labels) -> list[Any]:
    """The operand of the source; zeros on a device without one."""
    sources = {target: source for source, target in pairs_of(arrivals.collective, *arrivals.grid)}
    return [
        arrivals.label_of_member(labels, sources[device], group, ("own", device)) if device in sources else "zeros"
        for device, group in zip(arrivals.devices, arrivals.groups, strict=True)
    ]


def _is_order_free(collective: Instruction) -> bool:
    """Whether a collective folds integers by one op that is commutative and associative."""
    root, parameters = collective.attributes.to_apply.root, collective.attributes.to_apply.parameters
    is_plain = root.opcode in COMMUTATIVE and {*root.operands} == {*parameters}
    shapes = [value.shape for value in (*parameters, *collective.operands)]
    return is_plain and all(isinstance(s, Shape) and s.dtype.kind in ("signed", "unsigned", "pred") for s in shapes)


_MARKING: dict[str, Callable[[_Arrivals, Labels], list[Any]]] = {
    "all_reduce": _mark_reduced,
    "all_gather": _mark_gathered,
    "reduce_scatter": _mark_parts,
    "all_to_all": _mark_parts,
    "ragged_all_to_all": _mark_parts,
    "collective_broadcast": _mark_broadcast,
    "collective_permute": _mark_permuted,
}
SHARED = ("all_reduce", "all_gather", "collective_broadcast")


# ----------------------------------------------------------------------------
# Replication: the analysis
#
# XLA's replication analysis, with partitions of the devices.
#
# A fact about an instruction compares the devices trip by trip. Inside loops and branches it holds for devices that
# execute the instruction equally often, which are those of one class of `context`.

varies = RuleTable("varies")
AnyReplication = TypeVar("AnyReplication", bound="ReplicationAnalysis")
MOST_BY_VALUE = 20_000  # instructions visited; then calls are distinguished by labels alone, and not by values


@define(eq=False)
class ReplicationAnalysis(DataflowAnalysis):
    """The analysis of the program of some devices, in the grid that counts their replicas and partitions.

    Leaves that are one object are one value. `has_equal_trips` says whether all devices are known to run a loop equally
    often; `promised` returns the reading that annotations promise.
    """

    devices: tuple[int, ...]
    num_replicas: int
    num_partitions: int
    is_own: bool = False
    has_equal_trips: Callable[[Instruction], bool] = lambda loop: False
    promised: Callable[[ReplicationAnalysis, Instruction], Reading | None] = lambda of, instruction: None
    partitions: Partitions = field(init=False)
    context: Labels = field(init=False)
    ids: IdValues = field(init=False)
    gave_up: bool = field(default=False, init=False)
    _earlier_runs: dict[Hashable, tuple[list[Agreement], Reading]] = field(factory=dict, init=False)

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

    def fill_shape(self, leaf: Agreement, shape: AnyShape) -> Reading:
        """A new value for each leaf of a shape, all with the labels of this one."""
        return map_leaves(lambda _: Agreement(leaf.labels), shape) if isinstance(shape, TupleShape) else leaf

    def call_context(self, computation: Computation, path: Path) -> Hashable:
        """What distinguishes calls with equal arguments: the call path, if the computation communicates."""
        return path_key(path) if communicates(computation) else ()

    def run(self, computation: Computation, parameters: list[Reading], path: Path = ()) -> Reading:
        """The reading of the root; the result of an earlier call with equal facts about its arguments is reused."""
        if not path:
            return self._run(computation, parameters, path)
        arguments = flatten((*parameters,))
        if self.work > MOST_BY_VALUE and any(leaf.formula for leaf in arguments):
            plain = {id(leaf): Agreement(leaf.labels) for leaf in arguments}
            result = self.run(computation, [map_leaves(lambda leaf: plain[id(leaf)], p) for p in parameters], path)
            return replace_arguments(result, [plain[id(leaf)] for leaf in arguments], arguments)
        form = computation, self.call_context(computation, path), id(self.context), _argument_key(arguments)
        if form in self._earlier_runs:
            before, result = self._earlier_runs[form]
            return replace_arguments(result, before, arguments)
        result = self._run(computation, parameters, path)
        self._earlier_runs[form] = arguments, result
        return result

    def join(self, a: Leaf, b: Leaf) -> Leaf:
        return a if a is b else Agreement(self.partitions.refine(a.labels, b.labels))

    def renew(self, reading: Reading) -> Reading:
        """New values with the labels of these."""
        return map_leaves(lambda leaf: Agreement(leaf.labels), reading)

    def default_fact(self, instruction: Instruction, leaves: list[Leaf]) -> Leaf:
        """The result of an op that is a function of its operands, unless one of its regions uses the device id."""
        if any(map(depends_on_device, instruction.called)):
            return self.nowhere
        return self.ids.combine(instruction, leaves) or Agreement(
            self.partitions.refine_all([each.labels for each in leaves])
        )

    @contextmanager
    def within_decision(self, decides: Labels) -> Iterator[None]:
        """Inside the block, devices of one class of the context also agree on this decision."""
        before = self.context
        self.context = self.partitions.refine(before, decides)
        try:
            yield
        finally:
            self.context = before

    def run_while(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The state after any number of trips; an element that no trip changes keeps its value."""
        condition, body = steps(instruction)
        state = enter_loop(body.computation, operands[0], self.renew)
        decides = self.partitions.everywhere
        while True:
            with self.within_decision(decides):
                holds = self.run(condition.computation, [state], (*path, condition))
                after = self.run(body.computation, [state], (*path, body))
            following = self.join_readings(state, after)
            known = decides if self.has_equal_trips(instruction) else self.partitions.refine(decides, holds.labels)
            if known is decides and _is_unchanged(state, following):
                break
            state, decides = self._next_state(state, following), known
        self.decide(instruction, path, Agreement(decides))
        return self._state_after(operands[0], state, after, decides)

    def _next_state(self, state: Reading, following: Reading) -> Reading:
        """The state of the next round: new values, except for elements that the body returned unchanged."""
        return map_leaves(lambda now, after: now if now is after else Agreement(after.labels), state, following)

    def _state_after(self, before: Reading, state: Reading, after: Reading, decides: Labels) -> Reading:
        """The state after a loop; leaves that a trip changed are refined by the decision about trips."""

        def refine(before: Agreement, state: Agreement, after: Agreement) -> Agreement:
            return before if state is after else Agreement(self.partitions.refine(state.labels, decides))

        return map_leaves(refine, before, state, after)

    def trip_count_fact(self, scan: Instruction, operands: list[Reading]) -> Leaf:
        inputs = flatten((*split_carries(scan, operands)[0],)) if slices_of(scan)[1] else []
        return Agreement(self.partitions.refine_all([leaf.labels for leaf in inputs]))

    def run_scan(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The results after all trips, joined with the fact for their number."""
        (body,) = steps(instruction)
        count = self.trip_count_fact(instruction, operands)
        self.decide(instruction, path, count)
        slices, first = split_carries(instruction, operands)
        slices, state = [*map(self.renew, slices)], [*map(self.renew, first)]
        while True:
            with self.within_decision(count.labels):
                root = self.run(body.computation, [*slices, *state], (*path, body))
            outputs, after = trip_results(instruction, root)
            following = [*map(self.join_readings, state, after)]
            if all(map(_is_unchanged, state, following)):
                break
            state = [*map(self._next_state, state, following)]
        last = [self._state_after(*carry, count.labels) for carry in zip(first, state, after, strict=True)]
        stacked = [map_leaves(lambda leaf: Agreement(self.join(leaf, count).labels), output) for output in outputs]
        return scan_result(instruction, [*stacked, *last])

    def run_conditional(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        """The result of the branch that is taken; if unknown, the join of all results and the fact for the index."""
        index = operands[0]
        self.decide(instruction, path, index)
        results = []
        for step, operand in zip(steps(instruction), operands[1:], strict=True):
            with self.within_decision(index.labels):
                results.append(self.run(step.computation, [operand], (*path, step)))
        branches = self._branches_taken(instruction, index)
        return map_leaves(lambda *leaves: self._select_result(leaves, index.labels, branches), *results)

    def _branches_taken(self, conditional: Instruction, index: Agreement) -> list[int] | None:
        """The branch that each device takes, if it follows from the ids."""
        numbers = self.ids.values_on_all(index)
        return None if numbers is None else [branch_number(conditional, number) for number in numbers]

    def _select_result(self, results: Sequence[Agreement], index: Labels, branches: list[int] | None) -> Agreement:
        """A leaf of the result of a conditional, given the branch that each device takes, if that is known."""
        if all(result is results[0] for result in results):
            return results[0]
        if branches is None:
            return Agreement(self.partitions.refine_all([index, *(result.labels for result in results)]))
        chosen = [results[branch] for branch in branches]
        if all(result is chosen[0] for result in chosen):
            return chosen[0]
        return Agreement(self.partitions.group_by((id(result), result.labels[n]) for n, result in enumerate(chosen)))


def _argument_key(arguments: Sequence[Agreement]) -> Hashable:
    """A key of the facts about arguments: labels, formulas, and which arguments are one value."""
    first: dict[int, int] = {}
    return tuple([(id(a.labels), id(a.formula), first.setdefault(id(a), n)) for n, a in enumerate(arguments)])


def _is_unchanged(state: Reading, following: Reading) -> bool:
    """Whether a round has changed no fact about the state."""
    return all(
        before is after or (before.labels is after.labels and before.formula is None)
        for before, after in zip(flatten(state), flatten(following), strict=True)
    )


def replication_of(
    computation: Computation, devices: tuple[int, ...], num_replicas: int, num_partitions: int, is_own: bool = False
) -> ReplicationAnalysis:
    """The analysis of a program whose parameters differ on all devices."""
    return analyse(ReplicationAnalysis(varies, devices, num_replicas, num_partitions, is_own), computation)


def analyse(walk: AnyReplication, computation: Computation) -> AnyReplication:
    """The analysis, run with parameters that differ on all devices; it has no facts if the program is too large."""
    try:
        walk.run(computation, [walk.fill_shape(walk.nowhere, p.shape) for p in computation.parameters])
    except TooMuchError:
        walk.gave_up = True
        walk.decision_facts.clear()
    return walk


@remembered
def depends_on_device(computation: Computation) -> bool:
    """Whether an instruction of a computation may differ between devices although its operands are equal."""
    return any(i.opcode in varies or any(map(depends_on_device, i.called)) for i in computation.instructions)


@varies
def replica_id(of: ReplicationAnalysis, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [replica for replica, _ in of.ids.ids])


@varies
def partition_id(of: ReplicationAnalysis, instruction: Instruction) -> Reading:
    return of.ids.id_of(instruction, [partition for _, partition in of.ids.ids])


def _differing_result(of: ReplicationAnalysis, instruction: Instruction, *operands: Reading) -> Reading:
    """A result that differs on all devices."""
    return of.fill_shape(of.nowhere, instruction.shape)


def _infeed_result(of: ReplicationAnalysis, instruction: Instruction, *operands: Reading) -> Reading:
    """A result that differs on all devices, unless its annotations promise otherwise."""
    promised = of.promised(of, instruction)
    return _differing_result(of, instruction) if promised is None else promised


def _operand_result(of: ReplicationAnalysis, instruction: Instruction, *operands: Reading) -> Reading:
    return of.fill_shape(
        of.default_fact(instruction, [leaf for operand in operands for leaf in flatten(operand)]), instruction.shape
    )


def _collective_result(of: ReplicationAnalysis, instruction: Instruction, *operands: Reading) -> Reading:
    """The result of a collective; if an asynchronous op wraps anything else, a function of its operands."""
    collective = collective_in(instruction)
    if collective is None:
        return _operand_result(of, instruction, *operands)
    grid = of.num_replicas, of.num_partitions, of.is_own
    operand_labels = [leaf.labels for operand in operands for leaf in flatten(operand)]
    results = result_labels(collective, instruction, operand_labels, of.devices, grid, of.context, of.partitions)
    if len(results) == 1:
        return of.fill_shape(Agreement(results[0]), instruction.shape)
    return tuple(map(Agreement, results))


@varies
def custom_call(of: ReplicationAnalysis, instruction: Instruction, *operands: Reading) -> Reading:
    return (_differing_result if has_side_effect(instruction) else _operand_result)(of, instruction, *operands)


PER_DEVICE = opcodes(lambda op: op.depends_on in ("outside", "random_state"))
varies.enter("infeed", _infeed_result)
for _opcode in sorted(PER_DEVICE - {"infeed"}):
    varies.enter(_opcode, _differing_result)
for _opcode in sorted(MEETING):
    varies.enter(_opcode, _collective_result)


# ----------------------------------------------------------------------------
# Recording: the analysis with its result for every value
#
# For each leaf the labels of the devices.

Labelled: TypeAlias = Mapping[Any, list[Labels]]


@define(eq=False)
class Recording(ReplicationAnalysis):
    """The analysis with the labels of each instruction, leaf by leaf, over all call paths that lead to it.

    Devices with equal labels execute the instruction equally often, with equal values each time. If not `is_joined`,
    the values are equal in those trips that both devices execute.
    """

    is_joined: bool = True
    found: dict[Any, list[Labels]] = field(factory=dict, init=False)

    def key(self, instruction: Instruction, path: Path) -> Hashable:
        return instruction

    def call_context(self, computation: Computation, path: Path) -> Hashable:
        return ()

    def _read(self, instruction: Instruction, operands: list[Reading], path: Path) -> Reading:
        reading = super()._read(instruction, operands, path)
        self.note(instruction, reading, path)
        return reading

    def _run(self, computation: Computation, parameters: list[Reading], path: Path) -> Reading:
        for parameter, reading in zip(computation.parameters, parameters, strict=True):
            self.note(parameter, reading, path)
        return super()._run(computation, parameters, path)

    def note(self, instruction: Instruction, reading: Reading, path: Path) -> None:
        refined, key = self.partitions.refine, self.key(instruction, path)
        context = self.context if self.is_joined else self.partitions.everywhere
        labels = [refined(leaf.labels, context) for leaf in flatten(reading)]
        known = self.found.get(key)
        self.found[key] = labels if known is None else [*map(refined, known, labels)]


@define(eq=False)
class RecordingByPath(Recording):
    """The same with separate labels for each call path; `paths` has the path and the instruction of each key."""

    paths: dict[Any, tuple[Path, Instruction]] = field(factory=dict, init=False)

    def key(self, instruction: Instruction, path: Path) -> Hashable:
        key = site_key(instruction, path)
        self.paths[key] = path, instruction
        return key

    def call_context(self, computation: Computation, path: Path) -> Hashable:
        return path_key(path)


def record_labels(walk: Recording, module: Module, parameters: list[Reading]) -> Labelled:
    """The labels of all instructions, given readings of the parameters; empty if the program is too large."""
    try:
        walk.run(module.entry, parameters)
    except TooMuchError:
        walk.gave_up = True
        walk.found.clear()
    return walk.found


def make_recording(devices: tuple[int, ...], grid: Extent, **known: Any) -> Recording:
    return Recording(varies, devices, *grid, **known)


def make_recording_by_path(devices: tuple[int, ...], grid: Extent) -> RecordingByPath:
    return RecordingByPath(varies, devices, *grid)
