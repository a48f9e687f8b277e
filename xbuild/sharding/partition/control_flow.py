"""Partitions loops, branches, calls and tuples: the computations that they call become those of a device.

Sections:

    While: the state keeps its shardings in every trip
    Loop invariants that are gathered once, before the loop
    Conditional, call and fusion
    Tuples, and ops that pass values on
    Computations of a device
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, ClassVar

from attrs import evolve, frozen

from shape_inference import Shape
from shape_inference.trees import map_leaves

from ... import ops
from ...core.builder import Value
from ...core.graph import Computation, Instruction
from ...properties.rewriting import Rewriter
from ...properties.trip_counts import known_trips
from ..manual_regions import is_complete
from ..sharding import Sharding, shard_dims
from .devices import EVERY_DECISION, take_from_first
from .frame import (
    Frame,
    PartBuilder,
    Piece,
    Tree,
    count_resharding_bytes,
    local_shape,
    make_pieces,
    reshard_to_annotation,
    run_replicated,
    stated_or_own_shardings,
    stated_or_replicated_shardings,
)
from .handler import Handler, handles
from .program import assemble, needed_instructions, walk
from .reasons import (
    AGREED,
    BEFORE_LOOP,
    BRANCH_RESULT,
    DECIDES,
    FIRST_TRIP,
    NEXT_TRIP,
    Because,
    Communication,
    Reason,
    Result,
)

# ----------------------------------------------------------------------------
# While: the state keeps its shardings in every trip


@handles("while")
class While(Handler):
    """The state keeps its shardings in every trip; the condition has the same value on all devices."""

    is_walked: ClassVar[bool] = True

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        tree = frame.values[instruction.operands[0]]
        shardings = map_leaves(
            lambda sharding: evolve(sharding, unreduced=()), stated_or_own_shardings(frame.mesh, instruction, tree)
        )
        best = _partition_loop(frame, instruction, shardings)
        gathered = _gather_invariants(frame, instruction, tree, shardings)
        if best.bytes and gathered != shardings:
            best = _choose_cheaper(frame, tree, best, _partition_loop(frame, instruction, gathered))
        frame.shared.communications += best.communications
        frame.shared.sent += best.bytes
        init = assemble(frame, tree, best.shardings, _explain_initial(instruction, shardings, best.shardings))
        return _record(frame, instruction, [init], best.regions, best.shardings)


def _explain_initial(instruction: Instruction, usual: Tree, chosen: Tree) -> Tree:
    """Why each element of a state is resharded before the first trip, as reasons."""
    if not isinstance(usual, tuple):
        return Because(FIRST_TRIP, instruction)
    return tuple(
        Because(FIRST_TRIP, instruction) if one == other else Because(BEFORE_LOOP, instruction)
        for one, other in zip(usual, chosen, strict=True)
    )


@frozen(eq=False)
class _Loop:
    """A loop whose state has these shardings: its computations, and the bytes that all trips send, as far as known."""

    shardings: Tree
    regions: dict[str, Computation]
    communications: list[Communication]
    bytes: int


UNKNOWN_TRIPS = 2
"""The trip count that is assumed for a loop whose trip count is unknown."""


def _partition_loop(frame: Frame, instruction: Instruction, shardings: Tree) -> _Loop:
    """The computations of a loop, whose collectives are not added to those of the program yet."""
    attributes, shared = instruction.attributes, frame.shared
    before, sent, times = len(shared.communications), shared.sent, shared.times
    trips = known_trips(instruction)
    shared.times *= UNKNOWN_TRIPS if trips is None else max(1, trips)
    regions = {
        "condition": partition_computation(
            frame, attributes.condition, [shardings], None, Because(DECIDES, instruction)
        ),
        "body": partition_computation(frame, attributes.body, [shardings], shardings, Because(NEXT_TRIP, instruction)),
    }
    loop = _Loop(shardings, regions, shared.communications[before:], shared.sent - sent)
    del shared.communications[before:]
    shared.sent, shared.times = sent, times
    return loop


def _choose_cheaper(frame: Frame, tree: Tree, one: _Loop, other: _Loop) -> _Loop:
    """The second loop, if resharding its state sends fewer bytes than its trips save."""
    once = sum(
        min(count_resharding_bytes(sharding, other_sharding, piece.shape) for sharding in piece.shardings)
        for piece, other_sharding, usual in zip(tree, other.shardings, one.shardings, strict=True)
        if other_sharding != usual and piece.maker is None
    )
    return other if other.bytes + once * frame.shared.times < one.bytes else one


# ----------------------------------------------------------------------------
# Loop invariants that are gathered once, before the loop


def _gather_invariants(frame: Frame, instruction: Instruction, tree: Tree, shardings: Tree) -> Tree:
    """The shardings of a state in which invariants are unsplit along dimensions that trips index at run time.

    An invariant is gathered once before the loop, instead of in part in each trip.
    """
    body = instruction.attributes.body
    if not isinstance(tree, tuple) or any(not isinstance(each, Piece) for each in tree) or body.root.opcode != "tuple":
        return shardings
    (state,) = body.parameters
    shardings = [*shardings]
    for element in _state_elements(body, state):
        number = element.attributes.index
        next_value = body.root.operands[number]
        if isinstance(next_value.shape, Shape) and _is_state_element(next_value, state, number):
            dims = {*_find_indexed_dims(body, element, frame.shared.regions.calls)}
            shardings[number] = _unsplit_dims(shardings[number], dims)
    return tuple(shardings)


def _state_elements(body: Computation, state: Instruction) -> Iterable[Instruction]:
    return (each for each in body.instructions if each.opcode == "get_tuple_element" and each.operands[0] is state)


def _is_state_element(value: Instruction, state: Instruction, number: int) -> bool:
    """Whether a value is an element of the state, unchanged."""
    is_element = value.opcode == "get_tuple_element" and value.operands[0] is state
    return is_element and value.attributes.index == number


def _unsplit_dims(sharding: Sharding, dims: set[int]) -> Sharding:
    axes = [() if number in dims else dim.axes for number, dim in enumerate(sharding.dims)]
    return shard_dims(sharding.mesh, axes)


def _find_indexed_dims(computation: Computation, value: Instruction, regions: Container[Instruction]) -> Iterable[int]:
    """The dimensions of a value that are indexed at run time, also in loops and callees, but not in manual regions."""
    seen = {value}
    stack = [(computation, value)]
    while stack:
        inside, same = stack.pop()
        yield from _find_dims_indexed_in(inside, same)
        for user in inside.instructions:
            for place in [n for n, each in enumerate(user.operands) if each is same and user not in regions]:
                receivers = [pair for pair in _find_receivers(inside, user, place) if pair[1] not in seen]
                seen.update(inner for _, inner in receivers)
                stack += receivers


def _find_dims_indexed_in(computation: Computation, value: Instruction) -> Iterable[int]:
    """The dimensions of a value along which instructions of one computation take slices at run-time indices."""
    for user in computation.instructions:
        for place in [n for n, each in enumerate(user.operands) if each is value]:
            if user.opcode in ("dynamic_slice", "gather") and not place:
                pairs = enumerate(zip(value.shape.dims, _slice_sizes(user), strict=True))  # type: ignore[union-attr]
                yield from (dim for dim, pair in pairs if pair[0] != pair[1])


def _slice_sizes(instruction: Instruction) -> Sequence[int]:
    """The extents of the slices that an op takes."""
    attributes = instruction.attributes
    return attributes.dynamic_slice_sizes if instruction.opcode == "dynamic_slice" else attributes.slice_sizes  # type: ignore[no-any-return]


def _find_receivers(
    computation: Computation, user: Instruction, place: int
) -> Iterable[tuple[Computation, Instruction]]:
    """The computations that an operand is passed to, each with the value that it is there."""
    if user.opcode == "call":
        inner = user.attributes.to_apply
        yield inner, inner.parameters[place]
    if user.opcode == "tuple":
        loops = (each for each in computation.instructions if each.opcode == "while" and each.operands[0] is user)
        for body in (each.attributes.body for each in loops):
            yield from (
                (body, each) for each in _state_elements(body, body.parameters[0]) if each.attributes.index == place
            )


# ----------------------------------------------------------------------------
# Conditional, call and fusion


@handles("conditional")
class Conditional(Handler):
    """Operands of the branches keep their shardings; the results of all branches have one sharding."""

    is_walked: ClassVar[bool] = True

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        index, *operands = instruction.operands
        trees = [frame.values[each] for each in operands]
        taken = [map_leaves(lambda piece: piece.sharding, tree) for tree in trees]
        results = stated_or_replicated_shardings(frame.mesh, instruction)
        why = Because(BRANCH_RESULT, instruction)
        branches = tuple(
            partition_computation(frame, each, [shardings], results, why)
            for each, shardings in zip(instruction.attributes.branch_computations, taken, strict=True)
        )
        values = [assemble(frame, *each, why) for each in zip(trees, taken, strict=True)]
        chosen = replicate_decision(frame, frame.values[index], Because(DECIDES, instruction))
        return _record(frame, instruction, [chosen, *values], {"branch_computations": branches}, results)


@handles("call")
class Call(Handler):
    """The callee is inlined: walked with the pieces of the operands. That of a complete manual region is not."""

    is_walked: ClassVar[bool] = True

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        if instruction in frame.shared.regions.calls and is_complete(frame.manual, frame.mesh):
            callee = _Pruning().program(instruction.attributes.to_apply)
            attributes = evolve(instruction.attributes, to_apply=callee)
            return run_replicated(frame, evolve(instruction, attributes=attributes), is_final=False)
        return inline(frame, instruction, instruction.attributes.to_apply)


@handles("fusion")
class Fusion(Handler):
    """The computation of a fusion is inlined as that of a call."""

    is_walked: ClassVar[bool] = True

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        return inline(frame, instruction, instruction.attributes.calls)


def inline(frame: Frame, instruction: Instruction, computation: Computation) -> Tree:
    """Record a callee in the caller; the pieces of its result."""
    inner = Frame(frame.shared, frame.builder, recorder=frame.recorder, moves=frame.moves)
    for parameter, operand in zip(computation.parameters, instruction.operands, strict=True):
        inner.values[parameter] = frame.values[operand]
    tree = walk(inner, computation)
    frame.builder.part_of = instruction
    return reshard_to_annotation(frame, tree, instruction)


# ----------------------------------------------------------------------------
# Tuples, and ops that pass values on
#
# Their pieces are those of the operands.


@handles("tuple")
class Tuple(Handler):
    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        return reshard_to_annotation(frame, tuple(frame.values[each] for each in instruction.operands), instruction)


@handles("get_tuple_element")
class GetTupleElement(Handler):
    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        (operand,) = instruction.operands
        return reshard_to_annotation(frame, frame.values[operand][instruction.attributes.index], instruction)


@handles("opt_barrier")
class OptBarrier(Handler):
    """The barrier on the parts, in the shardings in which they were produced."""

    def partition(self, frame: Frame, instruction: Instruction) -> Tree:
        (operand,) = instruction.operands
        tree = frame.values[operand]
        shardings = map_leaves(lambda piece: piece.sharding, tree)
        parts = assemble(frame, tree, shardings, Result(instruction))
        value = frame.record(instruction.opcode, [parts], instruction.segments, {}, instruction.name)
        return reshard_to_annotation(
            frame, make_pieces(frame, value, instruction.shape, shardings, instruction), instruction
        )


# ----------------------------------------------------------------------------
# Computations of a device


def partition_computation(
    frame: Frame, computation: Computation, parameters: list[Tree], result: Tree, reason: Reason
) -> Computation:
    """The computation of a device, for the shardings of its parameters and of its result.

    If `result` is None, the result is a scalar that decides, which must be equal on all devices.
    """
    builder = frame.builder.sub_builder(computation.name)
    assert isinstance(builder, PartBuilder)
    inner = Frame(frame.shared, builder)
    for parameter, shardings in zip(computation.parameters, parameters, strict=True):
        value = ops.parameter(
            builder,
            number=parameter.attributes.number,
            shape=local_shape(parameter.shape, shardings),
            name=parameter.name,
        )
        inner.values[parameter] = make_pieces(inner, value, parameter.shape, shardings, parameter)
    tree = walk(inner, computation)
    root = replicate_decision(inner, tree, reason) if result is None else assemble(inner, tree, result, reason)
    return builder.build(root)


def replicate_decision(frame: Frame, piece: Piece, reason: Reason) -> Value:
    """A scalar that decides a loop or branch; if `agreement` requires it, the first device decides for all."""
    value = frame.replicate(piece, reason)
    return (
        take_from_first(frame, value, piece, Because(AGREED, reason.user))
        if frame.shared.agreement >= EVERY_DECISION
        else value
    )


def _record(
    frame: Frame, instruction: Instruction, operands: list[Value], attributes: dict[str, Any], shardings: Tree
) -> Tree:
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    return make_pieces(frame, value, instruction.shape, shardings, instruction)


class _Pruning(Rewriter):
    """The pass that removes the instructions of a complete manual region that nothing needs."""

    def computation(self, computation: Computation) -> Computation:
        needed = needed_instructions(computation)
        instructions = [each for each in computation.instructions if each.opcode == "parameter" or each in needed]
        is_unchanged = len(instructions) == len(computation.instructions)
        return super().computation(
            computation if is_unchanged else Computation(computation.name, instructions, computation.root)
        )
