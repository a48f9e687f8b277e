"""An instruction on the whole and on tiles that are cut along a factor of its rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve

import xbuild as xb
from interpreter import evaluate
from shape_inference import Shape, primitive_type
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS
from xbuild.sharding.rules import FactorMap, ShardingRule, reducer_of

Arrays = list[np.ndarray[Any, Any]]


def values_of(computation: Computation, arguments: Sequence[Any]) -> Iterator[tuple[Instruction, Arrays]]:
    """Each instruction of a computation whose operands are arrays, with their values."""
    known: dict[Instruction, Any] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "parameter":
            known[instruction] = np.asarray(arguments[instruction.attributes.number])
        elif instruction.opcode == "constant":
            known[instruction] = alone(instruction, [])
        elif instruction.operands and all(
            isinstance(known.get(each), np.ndarray | np.generic) for each in instruction.operands
        ):
            given = [np.asarray(known[each]) for each in instruction.operands]
            if instruction.opcode in ("tuple", "get_tuple_element", "call", "fusion"):
                continue
            yield instruction, given
            if not instruction.called or instruction.opcode in ("map", "reduce", "sort", "scatter", "reduce_window"):
                known[instruction] = alone(instruction, given)


def alone(instruction: Instruction, operands: Arrays, **changed: Any) -> Any:
    """The value of an instruction on these operands, with some attributes changed."""
    schema, builder = OPS[instruction.opcode], xb.Builder("alone")
    shapes = [
        Shape(primitive_type(each.dtype), each.shape, (), own.shape.layout)  # type: ignore[union-attr]
        for each, own in zip(operands, instruction.operands, strict=True)
    ]
    parameters = [xb.parameter(builder, number=n, shape=shape) for n, shape in enumerate(shapes)]
    name = instruction.opcode
    call = getattr(xb.ops, name, None) or getattr(xb.ops, f"{name}_")
    attributes = {**instruction.attribute_values(), **changed}
    given = schema.unflatten(tuple(parameters), instruction.segments)
    root = call(*given, **attributes) if operands else call(builder, **attributes)
    return evaluate(builder.build(root), *operands)


def tile(array: np.ndarray[Any, Any], dims: FactorMap, rule: ShardingRule, factor: int, part: int, count: int) -> Any:
    """The part of an array that one of `count` devices has, where a factor is cut; the whole of one without it."""
    for dim, numbers in enumerate(dims):
        if factor in numbers:
            sizes = [rule.factors[n].size for n in numbers]
            split = array.reshape(*array.shape[:dim], *sizes, *array.shape[dim + 1 :])
            cut = np.split(split, count, axis=dim + numbers.index(factor))[part]
            return cut.reshape(*array.shape[:dim], array.shape[dim] // count, *array.shape[dim + 1 :])
    return array


def joined(parts: Arrays, dims: FactorMap, rule: ShardingRule, factor: int) -> Any:
    """The inverse of `tile`: the whole that has these parts; any of them where the factor is of no dimension."""
    for dim, numbers in enumerate(dims):
        if factor in numbers:
            own = numbers.index(factor)
            sizes = [rule.factors[n].size for n in numbers]
            sizes[own] //= len(parts)
            shape = parts[0].shape
            split = [each.reshape(*shape[:dim], *sizes, *shape[dim + 1 :]) for each in parts]
            whole = np.concatenate(split, axis=dim + own)
            return whole.reshape(*shape[:dim], shape[dim] * len(parts), *shape[dim + 1 :])
    return parts[0]


def local_attributes(instruction: Instruction, operands: Arrays, rule: ShardingRule, factor: int, count: int) -> Any:
    """Attributes that state extents, for tiles along a factor."""

    def shrunk(dims: FactorMap, sizes: Sequence[int]) -> list[int]:
        return [size // count if factor in numbers else size for numbers, size in zip(dims, sizes, strict=True)]

    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode in ("broadcast", "reshape"):
        key = "sizes" if opcode == "broadcast" else "new_sizes"
        return {key: shrunk(rule.results[0], getattr(attributes, key))}
    if opcode in ("bitcast", "rng"):
        shape = attributes.shape
        return {"shape": Shape(shape.dtype, shrunk(rule.results[0], shape.dims), (), shape.layout)}
    if opcode == "slice":
        return {"limit_indices": shrunk(rule.results[0], attributes.limit_indices)}
    if opcode == "dynamic_slice":
        return {"dynamic_slice_sizes": shrunk(rule.results[0], attributes.dynamic_slice_sizes)}
    if opcode == "gather":
        return {
            "slice_sizes": [min(size, dim) for size, dim in zip(attributes.slice_sizes, operands[0].shape, strict=True)]
        }
    if opcode == "convolution":
        return {**_of_groups(instruction, rule, factor, count), "window": _kernel(instruction, operands)}
    return {}


def _kernel(convolution: Instruction, operands: Arrays) -> Any:
    """The window, as large as the kernel is here."""
    dims = convolution.attributes.dimension_numbers.kernel_spatial_dimensions
    window = convolution.attributes.window
    return tuple(evolve(each, size=operands[1].shape[dim]) for each, dim in zip(window, dims, strict=True))


def _of_groups(convolution: Instruction, rule: ShardingRule, factor: int, count: int) -> dict[str, int]:
    """The number of groups, where the factor cuts these: it is of input, kernel and result."""
    numbers, attributes = convolution.attributes.dimension_numbers, convolution.attributes
    if not any(factor in each for each in rule.results[0]) or not any(factor in each for each in rule.operands[1]):
        return {}
    if factor in rule.operands[0][numbers.input_batch_dimension]:
        return {"batch_group_count": attributes.batch_group_count // count}
    if factor in rule.operands[0][numbers.input_feature_dimension]:
        return {"feature_group_count": attributes.feature_group_count // count}
    return {}


NEUTRAL = {"add": 0, "multiply": 1, "or": 0, "xor": 0}
COMBINED = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
            "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip


def neutral(opcode: str, like: np.ndarray[Any, Any]) -> Any:
    """An array of the neutral element of a reducer."""
    if opcode in NEUTRAL:
        return np.full_like(like, NEUTRAL[opcode])
    lowest = opcode == "maximum"
    if like.dtype.kind in "iu":
        info = np.iinfo(like.dtype)
        return np.full_like(
            like, -1 if opcode == "and" and like.dtype.kind == "i" else info.min if lowest else info.max
        )
    return np.full_like(like, (not lowest) if like.dtype.kind == "b" else -np.inf if lowest else np.inf)


def combined(instruction: Instruction, parts: list[Any]) -> Any:
    """Parts of a reduction put together: by the reducer where the instruction has one, else as a sum."""
    if instruction.opcode in ("reduce", "scatter"):
        reducer = reducer_of(instruction.attributes.to_apply)
        combine = COMBINED[reducer] if reducer is not None else None
        if combine is not None:
            whole = parts[0]
            for part in parts[1:]:
                whole = combine(whole, part)
            return whole
        return None
    return sum(parts[1:], parts[0])
