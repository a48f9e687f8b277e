"""Decides how an instruction is split: `Handler` does it for most ops, and subclasses state what differs.

Sections:

    Handler: how the partitioner handles an op
    HANDLERS, the table of handlers
    Split: how one instruction is split
    Which instructions can be split
    Ops that combine partial results, and their neutral elements
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from attrs import evolve, frozen

from shape_inference import PrimitiveType, Shape, leaves
from shape_inference.rules import Table
from shape_inference.trees import flatten
from shape_inference.types import Dims, s32

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...properties.effects import has_effect
from ...properties.patterns import neutral_element, reducer_of
from ..manual_regions import is_of_partitions, participants_of
from ..resharding_ops import constant, dims_of, spread
from ..rules import ShardingRule, rule_of
from ..sharding import Axis, Sharding, count, index_along
from .assignments import TOO_MUCH, Assignment, ChoiceRequest, SplitOptions, alternatives_of, partial_axes
from .frame import Frame, Piece, Tree, local_dims, read_shardings, run_replicated
from .reasons import Chosen, Operand, Partial, Result, Verbs

# ----------------------------------------------------------------------------
# Handler: how the partitioner handles an op
#
# `partition` comes first, then the methods that differ from op to op, in the order in which they are called.


class Fetch(Protocol):
    """What devices fetch from each other along a dimension: `size` elements each, for `bytes` that a device sends."""

    @property
    def size(self) -> int: ...
    def bytes(self, row: int) -> int: ...


Fetches: TypeAlias = "dict[tuple[int, int], Any]"
"""What devices fetch (a Fetch), by operand and dimension; None if that is too much, or impossible."""

Operands: TypeAlias = list[Value]

Combiner: TypeAlias = "Callable[..., Any] | None"
"""How partial results are combined: an op's function, or a computation; None if they cannot be."""


class Handler:
    """How the partitioner handles an op: on parts of its operands by its sharding rule, or else on replicated ones.

    A subclass states what differs for an op; `handles` enters it in the table.
    """

    verbs: ClassVar[Verbs] = Verbs()
    is_walked: ClassVar[bool] = False
    """Whether the callees of the op are partitioned, and not run unchanged."""
    fetches_elements: ClassVar[bool] = False
    """Whether `fetches` may plan elements to fetch from other devices."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        """A device's parts of an instruction's value."""
        rule = rule_of(instruction) if can_split(frame, instruction) else None
        return run_replicated(frame, instruction) if rule is None else self.partition_by_rule(frame, instruction, rule)

    def partition_by_rule(self, frame: Frame, instruction: Instruction, rule: ShardingRule) -> Tree:
        """A device's parts of an instruction's value, after its operands are resharded to one assignment of axes."""
        rule = self.adapt_rule(instruction, rule)
        pieces = [frame.values[each] for each in instruction.operands]
        options = SplitOptions(
            frame.mesh, rule, self._splittable(instruction, rule), self.needs_equal_parts(instruction)
        )
        stated = tuple(flatten(read_shardings(instruction, frame.mesh)))
        request = self._make_request(options, instruction, pieces, stated)
        assignment = request.choose()
        split = _make_split(instruction, options, assignment)
        chosen = Chosen(
            instruction, self.verbs, frame.mesh, rule, options.allowed, options.is_even, assignment, stated,
            alternatives_of(request),
        )  # fmt: skip
        operands = [
            _reshard(frame, piece, sharding, Operand(instruction, number, chosen))
            for number, (piece, sharding) in enumerate(zip(pieces, split.operands, strict=True))
        ]
        value = self.record(frame, split, operands)
        values = [value] if isinstance(instruction.shape, Shape) else [
            ops.get_tuple_element(value, index=number) for number in range(len(split.results))
        ]  # fmt: skip
        return self._combine(frame, split, values, stated, chosen)

    def adapt_rule(self, instruction: Instruction, rule: ShardingRule) -> ShardingRule:
        """The rule by which the op is split, if it differs from the one that propagates."""
        return rule

    def needs_equal_parts(self, instruction: Instruction) -> bool:
        """Whether padding must not be computed on: by default if a callee loops, which might not end on padding."""
        return any(map(_contains_loop, instruction.called))

    def may_split_passing(self, operands: Sequence[bool], results: Sequence[bool]) -> bool:
        """Whether a pass-through factor may be split, given the operands and the results that have it."""
        return all(results) and any(operands)

    def combiner(self, instruction: Instruction) -> Combiner:
        """How partial results of split reduction factors are combined."""
        return None

    def can_gather(self, instruction: Instruction, factor: int) -> bool:
        """Whether results along a reduction factor that nothing combines can be gathered and reduced again."""
        return False

    def filler(self, instruction: Instruction) -> Any:
        """The value of a window's positions without an element; if there is none (None), nothing is fetched."""
        return None

    def fetches(self, split: Split) -> Fetches:
        """What devices fetch from each other along split dimensions whose elements move."""
        return {}

    def record(self, frame: Frame, split: Split, operands: Operands) -> Value:
        """The op, recorded on the parts of a device."""
        instruction = split.instruction
        attributes = {**instruction.attribute_values(), **self.local_attributes(split)}
        return frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)

    def local_attributes(self, split: Split) -> dict[str, Any]:
        """The attributes that differ in the program of a device."""
        return {}

    def gather(self, frame: Frame, split: Split, values: list[Value]) -> list[Value]:
        """The results, reduced from those that all devices produced; for ops that `can_gather`."""
        raise AssertionError(split.instruction.opcode)

    # The following methods are the same for all ops.

    def _splittable(self, instruction: Instruction, rule: ShardingRule) -> frozenset[int]:
        """The factors that may be split."""
        combines = self.combiner(instruction) is not None
        return frozenset(
            number
            for number, factor in enumerate(rule.factors)
            if (factor.kind == "reduction" and (combines or self.can_gather(instruction, number)))
            or (factor.kind == "pass_through" and self._may_pass(rule, number))
            or (factor.kind == "permutation" and self._may_fetch(instruction, rule, number))
        )

    def _may_pass(self, rule: ShardingRule, number: int) -> bool:
        """Whether parts of the operands determine parts of the results."""
        operands, results = (
            [any(number in each for each in dims) for dims in several] for several in (rule.operands, rule.results)
        )
        return self.may_split_passing(operands, results)

    def _may_fetch(self, instruction: Instruction, rule: ShardingRule, number: int) -> bool:
        """Whether devices can fetch what they lack along a factor: the only one on a dimension of the first operand."""
        shapes = [each.shape for each in (*instruction.operands[:1], instruction)]
        if not self.fetches_elements or len(rule.results) > 1 or any(each.size == 0 for each in shapes):  # type: ignore[union-attr]
            return False
        dims = [dim for dim, factors in enumerate(rule.operands[0]) if number in factors]
        is_only_factor = len(dims) == 1 and len(rule.operands[0][dims[0]]) == 1
        return is_only_factor and self.filler(instruction) is not None

    def _make_request(
        self,
        options: SplitOptions,
        instruction: Instruction,
        pieces: Sequence[Piece],
        stated: tuple[Sharding | None, ...],
    ) -> ChoiceRequest:
        shapes = [each.shape if isinstance(each.shape, Shape) and each.maker is None else None for each in pieces]
        available = tuple(() if shape is None else each.shardings for shape, each in zip(shapes, pieces, strict=True))
        results = tuple(each if isinstance(each, Shape) else None for each in leaves(instruction.shape))

        def count_fetched_bytes(assignment: Assignment) -> int:
            return self._count_fetched_bytes(_make_split(instruction, options, assignment))

        extra = count_fetched_bytes if self.fetches_elements else None
        is_gathered = self.combiner(instruction) is None
        return ChoiceRequest(options, tuple(shapes), available, results, stated, extra, is_gathered)

    def _count_fetched_bytes(self, split: Split) -> int:
        """The bytes that a device sends of the elements that others fetch."""
        total, fetches = 0, self.fetches(split)
        dims_so_far = {number: [*split.operand_dims(number)] for number, _ in fetches}
        for (number, dim), fetch in fetches.items():
            if fetch is None:
                return TOO_MUCH
            dims, dtype = dims_so_far[number], split.operand_shape(number).dtype
            total += fetch.bytes(max(1, dtype.bits // 8) * math.prod(dims[:dim] + dims[dim + 1 :]))
            dims[dim] = fetch.size
        return total

    def _combine(
        self, frame: Frame, split: Split, values: list[Value], stated: Sequence[Sharding | None], chosen: Chosen
    ) -> Tree:
        """The pieces of the results; partial results are combined on the way to the sharding that is needed."""
        instruction, axes = split.instruction, split.reduced_axes
        combiner = self.combiner(instruction)
        if axes and combiner is None:
            values, axes = self.gather(frame, split, values), ()
        pieces: list[Piece] = []
        shapes: Sequence[Any] = tuple(leaves(instruction.shape))
        for value, sharding, shape, target in zip(values, split.results, shapes, stated, strict=True):
            assert sharding is not None
            frame.check_part(value, sharding, shape)
            piece = frame.make_piece(value, sharding, shape, instruction)
            if axes:
                end = sharding if target is None else _sharding_to_combine_in(target, combiner)
                name, uses = _name_combiner(combiner), piece.uses
                why = Partial(instruction, self.verbs, frame.mesh, split.options.rule, split.assignment, name, uses)
                partial = evolve(sharding, unreduced=axes)
                value = frame.record_resharding(value, partial, end, piece, why, combiner)
                piece = Piece(shape, instruction, {end: value}, uses=piece.uses)
            pieces.append(frame.reshard_piece(piece, target, Result(instruction, len(pieces), chosen)))
        return pieces[0] if isinstance(instruction.shape, Shape) else tuple(pieces)


def _reshard(frame: Frame, piece: Piece, sharding: Sharding | None, reason: Operand) -> Value:
    return frame.replicate(piece, reason) if sharding is None else frame.reshard(piece, sharding, reason)


def _contains_loop(computation: Computation) -> bool:
    return any(each.opcode == "while" for called in computation.reachable() for each in called.instructions)


def _sharding_to_combine_in(target: Sharding, combiner: Any) -> Sharding:
    """The sharding in which partial results are combined; sums stay partial if partial sums are needed."""
    is_sum = combiner is ops.add or (isinstance(combiner, Computation) and combiner_of(combiner) == "add")
    return target if is_sum else evolve(target, unreduced=())


def _name_combiner(combiner: Any) -> str:
    """The op that combines two partial results; empty for a computation of several ops."""
    if isinstance(combiner, Computation):
        return combiner_of(combiner) or ""
    return "or" if combiner is ops.or_ else "add"


# ----------------------------------------------------------------------------
# HANDLERS, the table of handlers

HANDLERS: Table[Handler] = Table("handler")
"""opcode -> its handler; an op without one has DEFAULT. The file of each family enters its handlers."""

DEFAULT = Handler()
Class = TypeVar("Class", bound=type[Handler])


def handles(*opcodes: str) -> Callable[[Class], Class]:
    """Enter a class as the handler of ops.

    Raises ValueError for an op that already has a handler.
    """

    def enter(handler: Class) -> Class:
        for opcode in opcodes:
            HANDLERS.enter(opcode, handler())
        return handler

    return enter


def handler_of(instruction: Instruction) -> Handler:
    return HANDLERS.get(instruction.opcode, DEFAULT)


# ----------------------------------------------------------------------------
# Split: how one instruction is split


@frozen
class Split:
    """How an instruction is split: the axes of each factor, and the resulting shardings of operands and results."""

    instruction: Instruction
    options: SplitOptions
    assignment: Assignment
    operands: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]

    @property
    def reduced_axes(self) -> tuple[Axis, ...]:
        """The axes along which devices hold partial results."""
        return partial_axes(self.options, self.assignment)

    def operand_shape(self, number: int) -> Shape:
        """The global shape of an operand that is an array."""
        shape = self.instruction.operands[number].shape
        assert isinstance(shape, Shape)
        return shape

    def operand_sharding(self, number: int) -> Sharding:
        sharding = self.operands[number]
        assert sharding is not None
        return sharding

    def axes(self, number: int, dim: int) -> tuple[Axis, ...]:
        """The axes that split a dimension of an operand."""
        return self.operand_sharding(number).dim(dim).axes

    def operand_dims(self, number: int) -> Dims:
        """The extents of a device's part of an operand."""
        return local_dims(self.operand_sharding(number), self.operand_shape(number).dims)

    def result_dims(self, number: int = 0) -> Dims:
        """The extents of a device's part of a result."""
        shape, sharding = self.instruction.shape, self.results[number]
        one = shape if isinstance(shape, Shape) else shape.elements[number]  # type: ignore[union-attr]
        assert isinstance(one, Shape)
        assert sharding is not None
        return local_dims(sharding, one.dims)

    def kind(self, dim: int) -> str:
        """The kind of the factor along which a dimension of the first operand is split; empty if it is not split."""
        rule = self.options.rule
        return next((rule.factors[f].kind for f in rule.operands[0][dim] if self.assignment[f]), "")

    def count_elements(self, number: int, dim: int) -> tuple[int, ...]:
        """The number of elements of an operand's dimension at each position along its axes, without padding."""
        extent, local = self.operand_shape(number).dims[dim], self.operand_dims(number)[dim]
        return tuple(min(local, max(0, extent - n * local)) for n in range(count(self.axes(number, dim))))

    def padded_reductions(self, number: int) -> list[int]:
        """The reduced dimensions of an operand whose parts have padding at the end."""
        padded = {
            n for n, factor in enumerate(self.options.rule.factors)
            if factor.kind == "reduction" and factor.size % count(self.assignment[n])
        }  # fmt: skip
        return [dim for dim, factors in enumerate(self.options.rule.operands[number]) if padded & {*factors}]

    def fill_padding(self, frame: Frame, number: int, value: Value, dims: Sequence[int], filler: Any) -> Value:
        """A part of an operand with its padding along some dimensions replaced by a scalar."""
        if not dims:
            return value
        wide = spread(constant(frame.builder, filler), dims_of(value))
        return ops.select(self._is_element(frame, number, dims), value, wide)

    def _is_element(self, frame: Frame, number: int, dims: Sequence[int]) -> Value:
        """A pred[] of the part's extents: whether each position holds an element of the array, not padding."""
        local, found = self.operand_dims(number), None
        for dim in dims:
            place = ops.iota(frame.builder, shape=s32[local], iota_dimension=dim)
            start = spread(frame.recorder.place(self.axes(number, dim), local[dim]), local)
            limit = spread(constant(frame.builder, np.int32(self.operand_shape(number).dims[dim])), local)
            inside = ops.compare(ops.add(place, start), limit, direction="LT")
            found = inside if found is None else ops.and_(found, inside)
        assert found is not None
        return found


def _make_split(instruction: Instruction, options: SplitOptions, assignment: Assignment) -> Split:
    operands = tuple(
        options.sharding(assignment, dims) if isinstance(each.shape, Shape) else None
        for each, dims in zip(instruction.operands, options.rule.operands, strict=True)
    )
    shapes = leaves(instruction.shape)
    results = tuple(
        options.sharding(assignment, dims) if isinstance(each, Shape) else None
        for each, dims in zip(shapes, options.rule.results, strict=True)
    )
    return Split(instruction, options, assignment, operands, results)


# ----------------------------------------------------------------------------
# Which instructions can be split


def can_split(frame: Frame, instruction: Instruction) -> bool:
    """Whether an op may run on parts of its operands: arrays of static extents, with elements under each window."""
    properties = OPS[instruction.opcode].properties
    is_own = properties.depends_on == "operands" and properties.needs == "nobody" and not has_effect(instruction)
    if properties.half != "none" or not (is_own or communicates_within_shards(frame, instruction)):
        return False
    shapes = [leaf for each in (*instruction.operands, instruction) for leaf in leaves(each.shape)]
    is_fixed = all(isinstance(each, Shape) and not each.is_dynamic for each in shapes)
    is_fixed &= not (getattr(instruction.attributes, "window", ()) and _is_empty(instruction))
    return is_fixed and all(isinstance(frame.values[each], Piece) for each in instruction.operands)


def _is_empty(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.size == 0


def communicates_within_shards(frame: Frame, instruction: Instruction) -> bool:
    """Whether the participants of a collective hold the same parts along the axes that are not manual."""
    if not is_of_partitions(instruction):
        return False
    place = index_along(frame.mesh, frame.axes)
    return all(len({int(place[device]) for device in group}) == 1 for group in participants_of(instruction, frame.mesh))


# ----------------------------------------------------------------------------
# Ops that combine partial results, and their neutral elements

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def combiner_of(computation: Computation) -> str | None:
    """The opcode of a computation that combines its two parameters by one op; None for other computations."""
    opcode = reducer_of(computation)
    return opcode if opcode in COMBINERS and len(computation.instructions) == 3 else None


def neutral_for_combining(opcode: str, dtype: PrimitiveType) -> Any:
    """The neutral element of an op that combines partial results; None if the op cannot combine this type."""
    is_ordered = dtype.kind == "pred" or (dtype.is_integer and dtype.is_native) or dtype.name in _ORDERED_FLOATS
    return neutral_element(opcode, dtype) if is_ordered or opcode not in ("maximum", "minimum", "and") else None


_ORDERED_FLOATS = ("f16", "bf16", "f32", "f64")
