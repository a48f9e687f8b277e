"""Loops, branches and calls: the computations are those of a device, and their state is cut as it is annotated."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from shape_inference import Shape

from .... import ops
from ....core.builder import Value
from ....core.graph import Computation, Instruction
from ....properties.trip_counts import noted_trips, trips_of
from ...rebuilding import pruned
from ...regions import is_complete
from ...sharding import Sharding, cut
from ..parts.agreement import EVERY_DECISION, agreed
from ..parts.frame import Frame, PartBuilder, Piece
from ..parts.layouts import Tree, distance, mapped
from ..parts.tables import special
from ..parts.trees import as_annotated, asked, local_shape, pieces_of
from ..parts.walk import needed, put_together, run_whole, settled, walked
from ..reasons import AllAgree, BranchResult, Communication, Decides, Lifted, LoopState, Reason


def region(frame: Frame, computation: Computation, given: list[Tree], result: Tree, reason: Reason) -> Computation:
    """The computation of a device, for parameters in these shardings, with its result in those of `result`.

    A `result` of None stands for a number that decides, which is to be one on all devices.
    """
    builder = frame.builder.sub_builder(computation.name)
    assert isinstance(builder, PartBuilder)
    inner = Frame(frame.shared, builder)
    for parameter, shardings in zip(computation.parameters, given, strict=True):
        value = ops.parameter(
            builder,
            number=parameter.attributes.number,
            shape=local_shape(parameter.shape, shardings),
            name=parameter.name,
        )
        inner.values[parameter] = pieces_of(inner, value, parameter.shape, shardings, parameter)
    tree = walked(inner, computation)
    root = decided(inner, tree, reason) if result is None else put_together(inner, tree, result, reason)
    return builder.build(root)


def decided(frame: Frame, piece: Piece, reason: Reason) -> Value:
    """A number that decides a loop or branch; where the check asks for it, the first device decides for all."""
    value = frame.whole(piece, reason)
    return agreed(frame, value, piece, AllAgree(reason.user)) if frame.shared.agreement >= EVERY_DECISION else value


def _recorded(
    frame: Frame, instruction: Instruction, operands: list[Value], attributes: dict[str, Any], shardings: Tree
) -> Tree:
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    return pieces_of(frame, value, instruction.shape, shardings, instruction)


@special
def while_(frame: Frame, instruction: Instruction) -> Tree:
    """The state keeps its shardings in every trip; the condition is one value on all devices."""
    tree = frame.values[instruction.operands[0]]
    shardings = mapped(lambda each: evolve(each, unreduced=()), as_annotated(frame.mesh, instruction, tree))
    best = _loop(frame, instruction, shardings)
    lifted = _lifted(frame, instruction, tree, shardings)
    if best.bytes and lifted != shardings:
        best = _cheaper(frame, tree, best, _loop(frame, instruction, lifted))
    frame.shared.communications += best.communications
    frame.shared.sent += best.bytes
    init = put_together(frame, tree, best.shardings, _first(instruction, shardings, best.shardings))
    return _recorded(frame, instruction, [init], best.regions, best.shardings)


def _first(instruction: Instruction, usual: Tree, chosen: Tree) -> Tree:
    """Why the elements of a state are brought to its shardings, for each of them."""
    if not isinstance(usual, tuple):
        return LoopState(instruction, "first")
    return tuple(
        LoopState(instruction, "first") if one == other else Lifted(instruction)
        for one, other in zip(usual, chosen, strict=True)
    )


@frozen(eq=False)
class _Loop:
    """A loop whose state has these shardings: its computations, and what all its trips send, as far as it is known."""

    shardings: Tree
    regions: dict[str, Computation]
    communications: list[Communication]
    bytes: int


UNKNOWN_TRIPS = 2
"""How many trips a loop is taken to have where no constants tell."""


def _loop(frame: Frame, instruction: Instruction, shardings: Tree) -> _Loop:
    """The computations of a loop, whose collectives are not counted yet."""
    attributes, shared = instruction.attributes, frame.shared
    before, sent, times = len(shared.communications), shared.sent, shared.times
    shared.times *= _trips(instruction)
    regions = {
        "condition": region(frame, attributes.condition, [shardings], None, Decides(instruction)),
        "body": region(frame, attributes.body, [shardings], shardings, LoopState(instruction, "next")),
    }
    found = _Loop(shardings, regions, shared.communications[before:], shared.sent - sent)
    del shared.communications[before:]
    shared.sent, shared.times = sent, times
    return found


def _trips(instruction: Instruction) -> int:
    counted = trips_of(instruction)
    number = counted.count if counted is not None else noted_trips(instruction)
    return UNKNOWN_TRIPS if number is None else max(1, number)


def _cheaper(frame: Frame, tree: Tree, one: _Loop, other: _Loop) -> _Loop:
    """The second loop, where what its state is brought to sends less than it saves."""
    once = sum(
        min(distance(each, wanted, piece.shape) for each in piece.shardings)
        for piece, wanted, usual in zip(tree, other.shardings, one.shardings, strict=True)
        if wanted != usual and piece.maker is None
    )
    return other if other.bytes + once * frame.shared.times < one.bytes else one


def _lifted(frame: Frame, instruction: Instruction, tree: Tree, shardings: Tree) -> Tree:
    """The shardings of a state in which what no trip changes is whole along dimensions that are chosen from by numbers.

    It is gathered once, before the loop, and not in part in each trip.
    """
    body = instruction.attributes.body
    if not isinstance(tree, tuple) or any(not isinstance(each, Piece) for each in tree) or body.root.opcode != "tuple":
        return shardings
    (state,) = body.parameters
    found = [*shardings]
    for element in _elements(body, state):
        number = element.attributes.index
        kept = body.root.operands[number]
        if isinstance(kept.shape, Shape) and _is_element(kept, state, number):
            found[number] = _whole_along(found[number], {*_chosen_along(body, element, frame.shared.regions.calls)})
    return tuple(found)


def _elements(body: Computation, state: Instruction) -> Iterable[Instruction]:
    return (each for each in body.instructions if each.opcode == "get_tuple_element" and each.operands[0] is state)


def _is_element(value: Instruction, state: Instruction, number: int) -> bool:
    """Whether a value is an element of the state, as it came."""
    is_taken = value.opcode == "get_tuple_element" and value.operands[0] is state
    return is_taken and value.attributes.index == number


def _whole_along(sharding: Sharding, dims: set[int]) -> Sharding:
    kept = [() if number in dims else dim.axes for number, dim in enumerate(sharding.dims)]
    return cut(sharding.mesh, kept)


def _chosen_along(computation: Computation, value: Instruction, regions: Container[Instruction]) -> Iterable[int]:
    """The dimensions of a value of which parts are taken at places that numbers tell, in loops and calls, too.

    Manual regions are left out.
    """
    for user in computation.instructions:
        for place in [n for n, each in enumerate(user.operands) if each is value]:
            if user not in regions:
                for inner, same in _handed_on(computation, user, place):
                    yield from _chosen_along(inner, same, regions)
            if user.opcode in ("dynamic_slice", "gather") and not place:
                pairs = enumerate(zip(value.shape.dims, _sizes(user), strict=True))  # type: ignore[union-attr]
                yield from (dim for dim, pair in pairs if pair[0] != pair[1])


def _sizes(instruction: Instruction) -> Sequence[int]:
    """The extents of the slices that an op takes."""
    attributes = instruction.attributes
    return attributes.dynamic_slice_sizes if instruction.opcode == "dynamic_slice" else attributes.slice_sizes  # type: ignore[no-any-return]


def _handed_on(computation: Computation, user: Instruction, place: int) -> Iterable[tuple[Computation, Instruction]]:
    """The computations that an operand is handed on to, each with the value that it is there."""
    if user.opcode == "call":
        inner = user.attributes.to_apply
        yield inner, inner.parameters[place]
    if user.opcode == "tuple":
        loops = (each for each in computation.instructions if each.opcode == "while" and each.operands[0] is user)
        for body in (each.attributes.body for each in loops):
            yield from ((body, each) for each in _elements(body, body.parameters[0]) if each.attributes.index == place)


@special
def conditional(frame: Frame, instruction: Instruction) -> Tree:
    """Operands of the branches come as they are; results of all branches have one sharding."""
    index, *operands = instruction.operands
    trees = [frame.values[each] for each in operands]
    given = [mapped(lambda piece: piece.sharding, tree) for tree in trees]
    results = asked(frame.mesh, instruction)
    why = BranchResult(instruction)
    branches = tuple(
        region(frame, each, [shardings], results, why)
        for each, shardings in zip(instruction.attributes.branch_computations, given, strict=True)
    )
    values = [put_together(frame, *each, why) for each in zip(trees, given, strict=True)]
    chosen = decided(frame, frame.values[index], Decides(instruction))
    return _recorded(frame, instruction, [chosen, *values], {"branch_computations": branches}, results)


@special
def call(frame: Frame, instruction: Instruction) -> Tree:
    """The called computation is walked with the pieces at hand, as if it stood here; that of a shard stays as it is."""
    if instruction in frame.shared.regions.calls and is_complete(frame.manual, frame.mesh):
        kept = evolve(instruction.attributes, to_apply=pruned(instruction.attributes.to_apply, needed))
        return run_whole(frame, evolve(instruction, attributes=kept), is_settled=False)
    return inlined(frame, instruction, instruction.attributes.to_apply)


@special
def fusion(frame: Frame, instruction: Instruction) -> Tree:
    return inlined(frame, instruction, instruction.attributes.calls)


def inlined(frame: Frame, instruction: Instruction, computation: Computation) -> Tree:
    """The pieces of a computation's result for these operands."""
    inner = Frame(frame.shared, frame.builder, recorder=frame.recorder, reasons=frame.reasons)
    for parameter, operand in zip(computation.parameters, instruction.operands, strict=True):
        inner.values[parameter] = frame.values[operand]
    tree = walked(inner, computation)
    frame.builder.part_of = instruction
    return settled(frame, tree, instruction)
