"""An elementwise computation recorded on arrays of any extent, each element by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shape_inference import Shape, XbuildError

from .. import ops
from ..core.builder import Builder, Value
from ..core.graph import Computation, Instruction, Module, ModuleGroup
from ..core.op import OPS, opcodes
from .order import ordered
from .sites import reached

_ELEMENTWISE = opcodes(
    lambda op: (
        op.elements == "same_place" and op.calls == "nothing" and op.depends_on == "operands" and op.needs == "nobody"
    )
)
_RESHAPES = frozenset({"broadcast", "reshape", "copy"})


class NotElementwise(Exception):
    """An element of a value depends on more than the elements of the parameters at its place."""


def on_arrays(builder: Builder, computation: Computation, arguments: Sequence[Any], count: int) -> Any:
    """The recorded result of a computation for arrays of `count` elements; a tuple of values if it is a tuple.

    Shapes: each argument is an array of `count` elements, in place of an array or a scalar of the same type. Each
    element of the result is the same function of the elements at its place as before. Calls are inlined.
    Raises NotElementwise if an element depends on elements at other places.

    >>> import xbuild as xb
    >>> function = xb.computation(xb.f32[2, 3], xb.f32[()])(lambda x, y: xb.exp(x) * y)
    >>> builder = xb.Builder("wide")
    >>> x, y = (xb.parameter(builder, number=n, shape=xb.f32[8]) for n in range(2))
    >>> on_arrays(builder, function, (x, y), 8).shape
    f32[8]
    """
    several = reached(computation)
    if len(several) > _MOST_COMPUTATIONS or _inlined_size(computation, {}) > _MOST_INSTRUCTIONS:
        raise NotElementwise
    return _recorded(builder, computation, arguments, count)


_MOST_COMPUTATIONS, _MOST_INSTRUCTIONS = 100, 20_000
"""The largest programs whose calls are inlined."""


def _inlined_size(computation: Computation, known: dict[Computation, int]) -> int:
    """The number of instructions of a computation with all calls inlined."""
    if computation not in known:
        inner = sum(_inlined_size(called, known) for i in computation.instructions for called in i.called)
        known[computation] = len(computation.instructions) + inner
    return known[computation]


def _recorded(builder: Builder, computation: Computation, arguments: Sequence[Any], count: int) -> Any:
    values: dict[Instruction, Any] = dict(zip(computation.parameters, arguments, strict=True))
    for instruction in ordered(computation):
        if instruction not in values:
            values[instruction] = _value(builder, instruction, values, count)
    return values[computation.root]


def _value(builder: Builder, instruction: Instruction, values: Mapping[Instruction, Any], count: int) -> Any:
    opcode, operands = instruction.opcode, [values[operand] for operand in instruction.operands]
    if opcode == "tuple":
        return tuple(operands)
    if opcode == "get_tuple_element":
        return operands[0][instruction.attributes.index]
    if opcode == "call":
        return _recorded(builder, instruction.attributes.to_apply, operands, count)
    if opcode == "constant":
        return _constant(builder, instruction, count)
    if opcode in _RESHAPES and _keeps_places(instruction):
        return operands[0]
    if opcode not in _ELEMENTWISE or not _is_of_one_size(instruction):
        raise NotElementwise
    attributes = dict(instruction.attribute_values())
    return builder.record(OPS[opcode], tuple(operands), instruction.segments, attributes, instruction.name)


def _constant(builder: Builder, instruction: Instruction, count: int) -> Value:
    literal = instruction.attributes.literal
    if not isinstance(literal, np.ndarray | np.generic) or not literal.size:
        raise NotElementwise
    first = np.asarray(literal).reshape(-1)[:1]
    if first.tobytes() * literal.size != np.ascontiguousarray(literal).tobytes():
        raise NotElementwise
    scalar = ops.constant(builder, literal=first.reshape(()))
    return ops.broadcast(scalar, sizes=(count,), dimensions=())


def _keeps_places(instruction: Instruction) -> bool:
    """Whether the elements stay in their order, or the operand is one element."""
    source, target = instruction.operands[0].shape, instruction.shape
    if not isinstance(source, Shape) or not isinstance(target, Shape):
        return False
    if source.size == 1 or instruction.opcode != "broadcast":
        return True
    return source.dims == target.dims and tuple(instruction.attributes.dimensions) == tuple(range(source.rank))


def _is_of_one_size(instruction: Instruction) -> bool:
    """Whether operands have as many elements as the result, or one."""
    shapes = [operand.shape for operand in (instruction, *instruction.operands)]
    return all(isinstance(shape, Shape) and shape.size in (1, instruction.shape.size) for shape in shapes)  # type: ignore[union-attr]


def wider(program: Module | ModuleGroup, count: int) -> Module | None:
    """The program with `count` elements in each array; None if its ops are not all elementwise.

    Each element of a result is the same function of the elements of the parameters at its place as before. Scalars
    become arrays too, so that a scalar parameter has a different value for each element.

    >>> import xbuild as xb
    >>> program = xb.computation(xb.f32[2, 3], xb.f32[()])(lambda x, y: xb.exp(x) * y)
    >>> wider(xb.Module("m", program), 8).entry.program_shape
    (f32[8], f32[8]) -> f32[8]
    >>> wider(xb.Module("m", xb.computation(xb.f32[4])(lambda x: xb.reduce(x, 0.0, xb.add))), 8) is None
    True
    """
    if isinstance(program, ModuleGroup) or program.num_devices != 1:
        return None
    builder = Builder(program.entry.name)
    try:
        given = [_wide_parameter(builder, parameter, count) for parameter in program.entry.parameters]
        root = on_arrays(builder, program.entry, given, count)
        return Module(program.name, builder.build(_nested_tuple(builder, root)))
    except (NotElementwise, XbuildError):
        return None


def _wide_parameter(builder: Builder, parameter: Instruction, count: int) -> Value:
    if not isinstance(parameter.shape, Shape) or parameter.shape.is_dynamic:
        raise NotElementwise
    number = parameter.attributes.number
    return ops.parameter(builder, number=number, shape=parameter.shape.dtype[count], name=parameter.name)


def _nested_tuple(builder: Builder, root: Any) -> Value:
    """A value, or nested values as a tuple."""
    if isinstance(root, Value):
        return root
    return ops.tuple_(tuple(_nested_tuple(builder, each) for each in root), builder=builder)
