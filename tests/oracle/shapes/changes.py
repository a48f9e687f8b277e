"""Single faults put into a program: in the shape of an operand, the list of operands, or an attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin

import attrs
from attrs import evolve

from shape_inference import PRIMITIVES, PrimitiveType, Shape, TupleShape, token
from shape_inference.convolutions import ConvolutionDimensionNumbers
from shape_inference.types import Layout
from shape_inference.windows import WindowDimension
from xbuild.core import attributes
from xbuild.core.attributes import PaddingDimension
from xbuild.core.builder import Values
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS

from ..chance import UNRUN, Chance
from .program import Program, again, region

Dims = tuple[int, ...]


def slipped(chance: Chance, old: Program) -> Program:
    """The program with one slip."""
    kinds = [operand_shape] * 5 + [attribute] * (6 if old.subject.attributes is not None else 0) + [operand_list] * 2
    return chance.one(kinds)(chance, old)


def operand_shape(chance: Chance, old: Program) -> Program:
    """One parameter has another shape, or all of them have the same change."""
    parameters = list(old.computation.parameters)
    if not parameters:
        return attribute(chance, old)
    change, seed = chance.one(SHAPES), chance.between(0, 2**31)
    chosen = parameters if chance.odds(0.25) else [chance.one(parameters)]

    def changed(instruction: Instruction) -> Instruction:
        if instruction not in chosen or not isinstance(instruction.shape, Shape):
            return instruction
        record = evolve(instruction.attributes, shape=change(Chance(seed), instruction.shape))
        return evolve(instruction, attributes=record)

    return again(old, changed, f"{change.__name__} of {', '.join(each.name for each in chosen)}")


def _dim_near(chance: Chance, shape: Shape) -> Any:
    dims = list(shape.dims)
    if dims:
        n = chance.between(0, len(dims) - 1)
        dims[n] = max(dims[n] + chance.one((-1, 1, 1, 2)), 0)
    return Shape(shape.dtype, dims, shape.dynamic)


def _dim_small(chance: Chance, shape: Shape) -> Any:
    dims = list(shape.dims)
    if dims:
        dims[chance.between(0, len(dims) - 1)] = chance.one((0, 1))
    return Shape(shape.dtype, dims, shape.dynamic)


def _rank_more(chance: Chance, shape: Shape) -> Any:
    dims = list(shape.dims)
    dims.insert(chance.between(0, len(dims)), chance.one((0, 1, 1, 2, 3)))
    return Shape(shape.dtype, dims)


def _rank_less(chance: Chance, shape: Shape) -> Any:
    dims = list(shape.dims)
    if dims:
        del dims[chance.between(0, len(dims) - 1)]
    return Shape(shape.dtype, dims)


def _scalar(chance: Chance, shape: Shape) -> Any:
    return Shape(shape.dtype, ())


def _other_type(chance: Chance, shape: Shape) -> Any:
    return Shape(chance.one([t for t in PRIMITIVES.values() if t.name not in UNRUN]), shape.dims, shape.dynamic)


def _type_of_kind(chance: Chance, shape: Shape) -> Any:
    dtype = chance.one([t for t in PRIMITIVES.values() if t.kind == shape.dtype.kind and t.name not in UNRUN])
    return Shape(dtype, shape.dims, shape.dynamic)


def _dynamic(chance: Chance, shape: Shape) -> Any:
    flags = list(shape.dynamic or (False,) * shape.rank)
    if flags:
        flags[chance.between(0, len(flags) - 1)] = True
    return Shape(shape.dtype, shape.dims, tuple(flags) if any(flags) else ())


def _layout(chance: Chance, shape: Shape) -> Any:
    return Shape(shape.dtype, shape.dims, shape.dynamic, Layout(tuple(chance.shuffled(range(shape.rank)))))


def _tuple(chance: Chance, shape: Shape) -> Any:
    return TupleShape((shape,) * chance.between(0, 2))


def _token(chance: Chance, shape: Shape) -> Any:
    return token


SHAPES: Sequence[Callable[[Chance, Shape], Any]] = (
    _dim_near, _dim_near, _dim_near, _dim_small, _rank_more, _rank_less, _scalar, _other_type, _other_type,
    _type_of_kind, _dynamic, _dynamic, _dynamic, _layout, _tuple, _token,
)  # fmt: skip


def operand_list(chance: Chance, old: Program) -> Program:
    """Two operands in the other order, one in the place of another, or one more or fewer where they are a list."""
    subject, schema = old.subject, OPS[old.subject.opcode]
    operands = list(subject.operands)
    if not operands:
        return attribute(chance, old) if subject.attributes is not None else old
    segments = subject.segments
    a, b = (chance.between(0, len(operands) - 1) for _ in "ab")
    lists = [n for n, kind in enumerate(schema.kinds) if kind is Values]
    if lists and chance.odds(0.6):
        chosen, sizes = chance.one(lists), list(segments or ())
        end = sum(sizes[: chosen + 1])
        if chance.odds(0.5) and sizes[chosen]:
            del operands[end - 1]
            sizes[chosen] -= 1
        else:
            operands.insert(end, operands[a])
            sizes[chosen] += 1
        segments = tuple(sizes)
    elif chance.odds(0.5):
        operands[a], operands[b] = operands[b], operands[a]
    else:
        operands[a] = operands[b]

    def changed(instruction: Instruction) -> Instruction:
        return (
            evolve(instruction, operands=tuple(operands), segments=segments) if instruction is subject else instruction
        )

    return again(old, changed, "operands")


def attribute(chance: Chance, old: Program) -> Program:
    """One attribute of the subject has another value."""
    subject = old.subject
    names = [key for key in attrs.fields_dict(type(subject.attributes)) if key not in ("literal", "number")]
    if subject.attributes is None or not names:
        return old
    key = chance.one(names)
    value = getattr(subject.attributes, key)
    annotation = attrs.fields_dict(type(subject.attributes))[key].type
    try:
        record = evolve(subject.attributes, **{key: other(chance, value, annotation)})
    except (TypeError, ValueError):  # no attribute of this type, which no text spells
        return old
    return again(old, _in_place_of(subject, attributes=record), f"{key}={getattr(record, key)!r}")


def _in_place_of(subject: Instruction, **fields: Any) -> Callable[[Instruction], Instruction]:
    return lambda instruction: evolve(instruction, **fields) if instruction is subject else instruction


def other(chance: Chance, value: Any, annotation: Any) -> Any:
    """Another value for an attribute: near the old one, or past an end."""
    words = get_args(
        next((a for a in (annotation, *get_args(annotation)) if get_args(a) and isinstance(get_args(a)[0], str)), None)
    )
    if words:
        return chance.one(words)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.one((value + 1, value - 1, 0, -1, value + 5))
    if isinstance(value, float):
        return chance.one((0.0, -1.0, 1.0))
    if isinstance(value, PrimitiveType):
        return chance.one([t for t in PRIMITIVES.values() if t.name not in UNRUN])
    if isinstance(value, Shape):
        return chance.one(SHAPES[:-2])(chance, value)
    if isinstance(value, WindowDimension | PaddingDimension):
        return field_changed(chance, value)
    if isinstance(value, ConvolutionDimensionNumbers):
        return roles_changed(chance, value)
    if isinstance(value, Computation):
        return region(chance, value)
    if isinstance(value, tuple):
        return entries_changed(chance, value) if value or annotation is not attributes.Dims else (chance.between(0, 2),)
    if value is None and annotation == int | None:
        return chance.between(0, 2)
    if value is None and annotation == PrimitiveType | None:
        return chance.one([t for t in PRIMITIVES.values() if t.name not in UNRUN])
    return value


def _words(annotation: Any) -> tuple[Any, ...]:
    """Those of an attribute that is one of a few."""
    literal = next((a for a in (annotation, *get_args(annotation)) if get_origin(a) is Literal), None)
    return get_args(literal)


def entries_changed(chance: Chance, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """One entry has another value, is there twice, is missing or is new; or two have changed places."""
    rows = list(value)
    if not rows:
        return value
    a, b = (chance.between(0, len(rows) - 1) for _ in "ab")
    kind = chance.between(0, 6)
    if kind == 0:
        del rows[a]
    elif kind == 1:
        rows.insert(a, rows[b])
    elif kind == 2:
        rows[a], rows[b] = rows[b], rows[a]
    elif kind == 3:
        rows[a] = rows[b]
    else:
        rows[a] = other(chance, rows[a], None)
    return tuple(rows)


def field_changed(chance: Chance, value: Any) -> Any:
    key = chance.one([each.name for each in attrs.fields(type(value))])
    number = getattr(value, key)
    if isinstance(number, bool):
        return evolve(value, **{key: not number})
    return evolve(value, **{key: chance.one((number + 1, number - 1, 0, -1, number + 4, -number))})


def roles_changed(chance: Chance, value: ConvolutionDimensionNumbers) -> ConvolutionDimensionNumbers:
    """Two dimensions of one operand have changed roles."""
    name = chance.one(("lhs", "rhs", "output"))
    spots = list(getattr(value, name))
    a, b = (chance.between(0, len(spots) - 1) for _ in "ab")
    spots[a], spots[b] = spots[b], spots[a]
    first, second, rest = spots[0], spots[1], tuple(spots[2:])
    names = {
        "lhs": ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
        "rhs": ("kernel_output_feature_dimension", "kernel_input_feature_dimension", "kernel_spatial_dimensions"),
        "output": ("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
    }[name]
    return evolve(value, **dict(zip(names, (first, second, rest), strict=True)))
