"""An instruction with a sharding rule: its operands are brought to one assignment of axes, and it runs on the parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve

from shape_inference import Shape, leaves

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ...factors import ShardingRule
from ...sharding import Sharding
from ..reasons import Chosen, Operand, Partial, Result
from .alternatives import other_ways
from .assignments import Assignment, Site
from .choices import TOO_MUCH, Request, partial_axes
from .frame import Frame, Piece
from .layouts import Tree, leaves_of, stated
from .masks import combiner_of, neutral
from .tables import (
    Cut,
    adapted,
    finishing,
    gathered,
    gathering,
    halos,
    joining,
    local_attributes,
    preparing,
    recording,
)


def by_factors(frame: Frame, instruction: Instruction, rule: ShardingRule) -> Tree:
    """The parts of the value of an instruction by its sharding rule."""
    if instruction.opcode in adapted:
        rule = adapted[instruction.opcode](instruction, rule)
    pieces = [frame.values[each] for each in instruction.operands]
    site = Site(frame.mesh, rule, _allowed(instruction, rule), _is_even(instruction))
    wanted = tuple(leaves_of(stated(instruction, frame.mesh)))
    request = _request(site, instruction, pieces, wanted)
    assignment = request.chosen()
    cut = _cut(instruction, site, assignment)
    chosen = Chosen(instruction, frame.mesh, rule, site.allowed, site.is_even, assignment, wanted, other_ways(request))
    operands = [
        _part(frame, piece, sharding, Operand(instruction, number, chosen))
        for number, (piece, sharding) in enumerate(zip(pieces, cut.operands, strict=True))
    ]
    if instruction.opcode in preparing:
        operands = preparing[instruction.opcode](frame, cut, operands)
    values = _recorded(frame, cut, operands)
    return _results(frame, cut, values, wanted, chosen)


def _allowed(instruction: Instruction, rule: ShardingRule) -> frozenset[int]:
    """The factors that may be cut."""
    can_join = _joins(instruction)
    return frozenset(
        number
        for number, factor in enumerate(rule.factors)
        if (factor.kind == "reduction" and (can_join or _is_gathered(instruction, number)))
        or (factor.kind == "pass_through" and _passes(instruction, rule, number))
        or (factor.kind == "permutation" and _slides(instruction, rule, number))
    )


def _joins(instruction: Instruction) -> bool:
    """Whether an op joins partial results."""
    return instruction.opcode in joining and joining[instruction.opcode](instruction) is not None


def _is_gathered(instruction: Instruction, number: int) -> bool:
    """Whether results along a reduction factor are gathered and reduced once more."""
    return instruction.opcode in gathering and bool(gathering[instruction.opcode](instruction, number))


def _slides(instruction: Instruction, rule: ShardingRule, number: int) -> bool:
    """Whether devices can fetch what they lack along a factor: one of the first operand, alone on its dimension."""
    shapes = [each.shape for each in (*instruction.operands[:1], instruction)]
    if instruction.opcode not in halos or len(rule.results) > 1 or any(each.size == 0 for each in shapes):  # type: ignore[union-attr]
        return False
    places = [dim for dim, factors in enumerate(rule.operands[0]) if number in factors]
    is_alone = len(places) == 1 and len(rule.operands[0][places[0]]) == 1
    return is_alone and _has_filler(instruction)


def _has_filler(instruction: Instruction) -> bool:
    """Whether a number leaves the others of a window as they are, so that it can stand where nothing is."""
    by = {"reduce_window": "to_apply", "select_and_scatter": "scatter"}.get(instruction.opcode)
    if by is None:
        return True
    combiner = combiner_of(getattr(instruction.attributes, by))
    return combiner is not None and neutral(combiner, instruction.operands[0].shape.dtype) is not None  # type: ignore[union-attr]


def _is_even(instruction: Instruction) -> bool:
    """Whether padding of one element would change another, or groups have to stay whole."""
    if instruction.opcode == "convolution":
        attributes = instruction.attributes
        return bool(attributes.feature_group_count > 1 or attributes.batch_group_count > 1)
    return instruction.opcode in ("scatter", "custom_call") or any(map(_loops, instruction.called))


def _loops(computation: Computation) -> bool:
    """Whether a computation has a loop, which need not end for the numbers of padding."""
    return any(each.opcode == "while" for called in computation.reachable() for each in called.instructions)


def _passes(instruction: Instruction, rule: ShardingRule, number: int) -> bool:
    """Whether the parts of the results follow from parts of the operands, where a factor is cut."""
    operands = [any(number in each for each in dims) for dims in rule.operands]
    results = [any(number in each for each in dims) for dims in rule.results]
    if instruction.opcode in PASSING:
        return PASSING[instruction.opcode](operands)
    return all(results) and (any(operands) or instruction.opcode == "broadcast")


PASSING: dict[str, Callable[[list[bool]], bool]] = {
    "dynamic_update_slice": lambda operands: operands[0],
    "ragged_dot": lambda operands: operands[2] or not operands[0],
    "scatter": lambda operands: operands[0],
}
"""Ops of which more is asked: which operands have a factor, that its dimension may be cut."""


def _request(
    site: Site, instruction: Instruction, pieces: Sequence[Piece], wanted: tuple[Sharding | None, ...]
) -> Request:
    shapes = [each.shape if isinstance(each.shape, Shape) and each.maker is None else None for each in pieces]
    at_hand = tuple(() if shape is None else each.shardings for shape, each in zip(shapes, pieces, strict=True))
    results = tuple(each if isinstance(each, Shape) else None for each in leaves(instruction.shape))

    def fetched(assignment: Assignment) -> int:
        return _fetched(_cut(instruction, site, assignment))

    extra = fetched if instruction.opcode in halos else None
    return Request(site, tuple(shapes), at_hand, results, wanted, extra, not _joins(instruction))


def _fetched(cut: Cut) -> int:
    """The bytes of what a device fetches of its neighbours for an assignment."""
    total, found = 0, halos[cut.instruction.opcode](cut)
    several = {number: [*cut.operand_dims(number)] for number, _ in found}
    for (number, dim), wanted in found.items():
        if wanted is None:
            return TOO_MUCH
        dims, shape = several[number], cut.instruction.operands[number].shape
        assert isinstance(shape, Shape)
        total += wanted.bytes(max(1, shape.dtype.bits // 8) * math.prod(dims[:dim] + dims[dim + 1 :]))
        dims[dim] = wanted.size
    return total


def _cut(instruction: Instruction, site: Site, assignment: Assignment) -> Cut:
    operands = tuple(
        site.sharding(assignment, dims) if isinstance(each.shape, Shape) else None
        for each, dims in zip(instruction.operands, site.rule.operands, strict=True)
    )
    shapes = leaves(instruction.shape)
    results = tuple(
        site.sharding(assignment, dims) if isinstance(each, Shape) else None
        for each, dims in zip(shapes, site.rule.results, strict=True)
    )
    return Cut(instruction, site, assignment, operands, results)


def _part(frame: Frame, piece: Piece, sharding: Sharding | None, reason: Operand) -> Value:
    return frame.whole(piece, reason) if sharding is None else frame.part(piece, sharding, reason)


def _recorded(frame: Frame, cut: Cut, operands: list[Value]) -> list[Value]:
    """The op on the parts; its results, a tuple taken apart."""
    instruction = cut.instruction
    if instruction.opcode in recording:
        found = recording[instruction.opcode](frame, cut, operands)
        if found is not None:
            return [found]
    attributes = dict(instruction.attribute_values())
    if instruction.opcode in local_attributes:
        attributes |= local_attributes[instruction.opcode](cut)
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    if instruction.opcode in finishing:
        value = finishing[instruction.opcode](frame, cut, operands, value)
    if isinstance(instruction.shape, Shape):
        return [value]
    return [ops.get_tuple_element(value, index=number) for number in range(len(cut.results))]


def _results(frame: Frame, cut: Cut, values: list[Value], wanted: Sequence[Sharding | None], chosen: Chosen) -> Tree:
    """The pieces of the results: partial ones are joined on the way to the sharding that is wanted."""
    instruction, axes = cut.instruction, partial_axes(cut.site, cut.assignment)
    if axes and not _joins(instruction):
        values, axes = gathered[instruction.opcode](frame, cut, values), ()
    found: list[Piece] = []
    shapes: Sequence[Any] = tuple(leaves(instruction.shape))
    for value, sharding, shape, target in zip(values, cut.results, shapes, wanted, strict=True):
        assert sharding is not None
        frame.checked(value, sharding, shape)
        piece = frame.piece(value, sharding, shape, instruction)
        if axes:
            joined = joining[instruction.opcode](instruction)
            end = sharding if target is None else _joined_in(target, joined)
            why = Partial(instruction, frame.mesh, cut.site.rule, cut.assignment, _combiner(joined), piece.uses)
            value = frame.brought(value, evolve(sharding, unreduced=axes), end, piece, why, joined)
            piece = Piece(shape, instruction, {end: value}, uses=piece.uses)
        found.append(frame.settled(piece, target, Result(instruction, len(found), chosen)))
    return found[0] if isinstance(instruction.shape, Shape) else tuple(found)


def _joined_in(target: Sharding, joined: Any) -> Sharding:
    """The sharding in which partial results are joined; where parts of a sum are wanted, sums are left in parts."""
    is_sum = joined is ops.add or (isinstance(joined, Computation) and combiner_of(joined) == "add")
    return target if is_sum else evolve(target, unreduced=())


def _combiner(joined: Any) -> str:
    """The op by which two parts are joined; empty for a computation of several ops."""
    if isinstance(joined, Computation):
        return combiner_of(joined) or ""
    return "or" if joined is ops.or_ else "add"
