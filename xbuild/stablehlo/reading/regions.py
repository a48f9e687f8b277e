"""Regions as computations: their arguments become parameters, and values from outside elements of a state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shape_inference import AnyShape, Shape, TupleShape

from ...core.graph import NOTHING, Computation, Instruction
from ..syntax.attributes import Record
from ..syntax.trees import Argument, Operation, Region

if TYPE_CHECKING:
    from .operation import Reading
    from .scope import Scope

SHARDING = "xla.sdy.sharding"


def closed_region(outer: Scope, reading: Reading, number: int, role: str, count: int | None) -> Computation:
    """A region whose arguments are the parameters of its computation; a region is read once where forms share it."""
    reader, operation = outer.reader, reading.operation
    region = _region(reading, number)
    found = reader.closed.get(region)
    if found is not None:
        return found
    if count is not None and len(region.arguments) != count:
        reader.fail(
            "arity_mismatch",
            f"{operation.name}: the region has {len(region.arguments)} arguments, and {count} are wanted",
            place=region.place,
        )
    inner = reader.scope(outer.function, outer)
    for index, argument in enumerate(region.arguments):
        parameter(inner, argument, index, operation)
    root = ended(inner, inner.read(region), operation)
    found = inner.computation(reader.computation_name(outer, reading, role), root)
    reader.closed[region] = found
    return found


def _region(reading: Reading, number: int) -> Region:
    if number >= len(reading.operation.regions):
        reading.fail("arity_mismatch", f"{len(reading.operation.regions)} regions, and {number + 1} are wanted")
    return reading.operation.regions[number]


def parameter(scope: Scope, argument: Argument, number: int, operation: Operation) -> Instruction:
    """The parameter that an argument is, under its name."""
    name = scope.names.argument(argument.name, argument.location.name)
    shape = scope.reader.shape(argument.type, operation)
    where, notes = scope.reader.place_of(argument.location, operation.place, scope)
    made = scope.record("parameter", (), {"number": number, "shape": shape}, name, where, notes, operation)
    if argument.name:
        scope.bind(argument.name, made, operation.place)
    return made


def ended(scope: Scope, given: tuple[Instruction, ...], operation: Operation) -> Instruction:
    """The root of a computation: the only value that is given, or a tuple of all."""
    if len(given) == 1:
        return given[0]
    where, _ = scope.reader.place_of(operation.location, operation.place, scope)
    return scope.record("tuple", (given,), {}, scope.names.fresh("tuple"), where, NOTHING, operation)


def free_names(regions: tuple[Region, ...]) -> dict[str, int]:
    """The names that regions use and do not define, in the order of use, each with its place."""
    found: dict[str, int] = {}
    for region in regions:
        for name, place in _free(region, set()):
            found.setdefault(name, place)
    return found


def _free(region: Region, outer: set[str]) -> Iterator[tuple[str, int]]:
    known = outer | {argument.name for argument in region.arguments}
    for operation in region.operations:
        for name in operation.operands:
            if name not in known and name.removesuffix("#0") not in known and f"{name}#0" not in known:
                yield name, operation.place
        for inner in operation.regions:
            yield from _free(inner, known)
        known.update(operation.results)


class Captured:
    """The values from outside that regions use: those that are passed to them, in the order of use."""

    def __init__(self, outer: Scope, regions: tuple[Region, ...]) -> None:
        self.names: list[str] = []
        self.values: list[Instruction] = []
        for name, place in free_names(regions).items():
            value = outer.value(name, place)
            if not outer.is_copied(value):
                self.names.append(name)
                self.values.append(value)


def state_region(
    reading: Reading,
    region: Region,
    role: str,
    arguments: tuple[Argument, ...],
    captured: Captured,
    returns_captured: bool,
) -> Computation:
    """A region as a computation of one parameter: its arguments and the captured values, as a tuple unless it is one.

    Where the region returns its state, it returns the captured values unchanged after its own.
    """
    outer, operation = reading.scope, reading.operation
    inner = outer.reader.scope(outer.function, outer)
    shapes = [outer.reader.argument_shape(reading, number, each) for number, each in enumerate(arguments)]
    shapes += [each.shape for each in captured.values]
    names = [each.name for each in arguments] + captured.names
    wanted = [each.name for each in arguments] + [each.name for each in captured.values]
    passed = _unpacked(inner, tuple(shapes), wanted, operation)
    for name, value in zip(names, passed, strict=True):
        inner.bind(name, value, operation.place)
    given = inner.read(region)
    root = ended(inner, (*given, *passed[len(arguments) :]) if returns_captured else given, operation)
    return inner.computation(outer.reader.computation_name(outer, reading, role), root)


def _unpacked(
    scope: Scope, shapes: tuple[AnyShape, ...], names: list[str], operation: Operation
) -> tuple[Instruction, ...]:
    """The parameter of a computation as its elements."""
    where, _ = scope.reader.place_of(operation.location, operation.place, scope)
    if len(shapes) == 1:
        name = scope.names.argument(names[0], "")
        return (scope.record("parameter", (), {"number": 0, "shape": shapes[0]}, name, where, NOTHING, operation),)
    state = {"number": 0, "shape": TupleShape(shapes)}
    whole = scope.record("parameter", (), state, scope.names.fresh("state"), where, NOTHING, operation)
    found = []
    for index, wanted in enumerate(names):
        name = scope.names.argument(wanted, "")
        attributes = {"index": index}
        found.append(scope.record("get_tuple_element", (whole,), attributes, name, where, NOTHING, operation))
    return tuple(found)


def packed(reading: Reading, values: tuple[Instruction, ...], wanted: str = "") -> Instruction:
    """Values as the operand of a computation of one parameter: the only one, or a tuple of all."""
    return values[0] if len(values) == 1 else reading.emit("tuple", values, wanted=wanted)


def with_results(scope: Scope, root: Instruction, operation: Operation) -> Instruction:
    """The root with the shardings that the results of a function are written with.

    A root that has another sharding of its own, or that is a parameter, is given the new one by XLA's call for it.
    """
    given = [each.fields.get("sdy.sharding") for each in operation.attributes.get("res_attrs", ())]
    stated = next((each for each in given if isinstance(each, Record)), None)
    if stated is None:
        return root
    shapes = root.shape.elements if isinstance(root.shape, TupleShape) and len(given) > 1 else (root.shape,)
    pairs = zip(given, shapes, strict=True)
    texts = (f"<{each.text if isinstance(each, Record) else _open(stated, shape)}>" for each, shape in pairs)
    text = f"#sdy.sharding_per_value<[{', '.join(texts)}]>"
    notes = root.annotations.get("frontend_attributes", {})
    if notes.get(SHARDING, text) != text or root.opcode == "parameter":
        attributes = {"custom_call_target": "xla.sdy.FuncResultSharding", "shape": root.shape}
        name = scope.names.fresh("custom_call")
        where, _ = scope.reader.place_of(operation.location, operation.place, scope)
        root = scope.record("custom_call", ((root,),), attributes, name, where, NOTHING, operation)
        notes = {}
    object.__setattr__(root, "annotations", {**root.annotations, "frontend_attributes": {**notes, SHARDING: text}})
    return root


def _open(other: Record, shape: AnyShape) -> str:
    """The sharding that says nothing, on the mesh of another one."""
    rank = shape.rank if isinstance(shape, Shape) else 0
    return f"{other.text.partition(', [')[0]}, [{', '.join(['{?}'] * rank)}]"
