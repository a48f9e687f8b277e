"""Evaluation of single instructions by the value rules, for the check, which needs some values before the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape
from shape_inference.elided import ElidedArray
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import PLAIN_CALLS, STRUCTURE

from ..compiler.contraction import is_near, product_of
from ..compiler.requests import Request, attributes_of
from ..compiler.spelling import kernel
from ..kernels.values import scalars
from ..rules.region import Region
from ..rules.tables import compute
from .rendezvous import Rendezvous

Rule: TypeAlias = Callable[["DeviceIds", Sequence[Any]], Any]

# Ops whose value is no function of the operands, or a function that each implementation computes in its own way.
_BY_IMPLEMENTATION = opcodes(lambda op: op.depends_on == "implementation")
_INSIDE = STRUCTURE | PLAIN_CALLS | opcodes(lambda op: op.depends_on == "device")


@frozen
class DeviceIds:
    """The ids of the device on which an instruction is evaluated."""

    replica_id: np.uint32
    partition_id: np.uint32


def rule_of(instruction: Instruction, *, sequential: bool = False) -> Rule | None:
    """The function from operands to value; None where the value depends on the run, or a dimension is dynamic."""
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        if isinstance(literal, ElidedArray):
            return None
        return lambda ids, operands: literal if literal.ndim else literal[()]
    if instruction.opcode in ("replica_id", "partition_id"):
        return lambda ids, operands: getattr(ids, instruction.opcode)
    if not is_pure(instruction) or any(map(_is_dynamic, (instruction, *instruction.operands))):
        return None
    return _called(instruction, sequential)


def _called(instruction: Instruction, sequential: bool) -> Rule:
    rule, unflatten = kernel(instruction) or compute[instruction.opcode], OPS[instruction.opcode].unflatten
    segments, shape, attributes = instruction.segments, instruction.shape, instruction.attribute_values()
    if kernel(instruction) is not None:
        rule = _as_rounded(instruction, rule)
        return lambda ids, operands: scalars(np.asarray(rule(*operands)), shape)
    regions = {key: Region.of(value, sequential) for key, value in attributes.items() if isinstance(value, Computation)}
    plain = {key: value for key, value in attributes.items() if key not in regions}

    def called(ids: DeviceIds, operands: Sequence[Any]) -> Any:
        inside = {key: region.on(ids) for key, region in regions.items()}
        return scalars(_arrays(rule(*unflatten(tuple(operands), segments), **plain, **inside)), shape)

    return called


def _as_rounded(instruction: Instruction, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, which raises ArithmeticError where the sum depends on whether a run rounds the product."""
    product = product_of(instruction)
    if product is None:
        return rule
    number = instruction.operands.index(product)

    def careful(*operands: Any) -> Any:
        total = rule(*operands)
        if is_near(total, operands[number]).any():
            raise ArithmeticError("the result depends on whether the product is rounded")
        return total

    return careful


def _arrays(value: Any) -> Any:
    return tuple(map(_arrays, value)) if isinstance(value, tuple) else np.asarray(value)


def is_pure(instruction: Instruction) -> bool:
    """Whether an instruction's value is a function of its operands and of the ids of the device."""
    opcode = instruction.opcode
    if opcode not in compute or opcode in _BY_IMPLEMENTATION:
        return False
    return all(map(_is_pure_region, instruction.called))


def _is_pure_region(computation: Computation) -> bool:
    return all(
        (i.opcode in _INSIDE and all(map(_is_pure_region, i.called))) or is_pure(i) for i in computation.instructions
    )


def _is_dynamic(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.is_dynamic


def folds_floats(instruction: Instruction) -> bool:
    """Whether an instruction folds floating point numbers by a computation, so that the order may change the result."""
    types = (i.shape for called in instruction.called for i in called.parameters)
    return any(isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex") for shape in types)


def collective_results(
    start: Instruction,
    group: Sequence[int],
    is_named: bool,
    brought: Mapping[int, tuple[Any, ...]],
    *,
    sequential: bool,
) -> dict[int, Any]:
    """The result of each member of a group, given the operands that the members bring to a collective."""
    rendezvous = Rendezvous(Request(start, (), attributes_of(start, sequential, flushed=False)), tuple(group), is_named)
    rendezvous.values.update(brought)
    return rendezvous.results()


def result_shape(start: Instruction) -> Any:
    """The shape of a collective's result, for a blocking collective and for a start."""
    return Request(start, (), {}).result_shape


def quietly() -> AbstractContextManager[Any]:
    """Inside the block NumPy gives no warnings for overflows and invalid operations, as in every run."""
    return np.errstate(all="ignore")
