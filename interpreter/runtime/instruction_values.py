"""Values of single instructions by the value rules, for the check, which needs some values before the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape
from shape_inference.elided import ElidedArray
from shape_inference.trees import map_leaves
from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import remembered
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import PLAIN_CALLS, STRUCTURE

from ..compiler.emit import kernel
from ..compiler.facts import is_near, product_of
from ..compiler.requests import Request, attributes_of
from ..kernels.values import scalars
from ..rules import compute
from ..rules.limits import LimitReached as LimitReached
from ..rules.region import AppliedComputation
from .meetings import Rendezvous

Rule: TypeAlias = Callable[["DeviceIds", Sequence[Any]], Any]

# Ops whose value is not a function of the operands, or a function that each implementation computes in its own way.
_BY_IMPLEMENTATION = opcodes(lambda op: op.depends_on == "implementation")
_INSIDE = STRUCTURE | PLAIN_CALLS | opcodes(lambda op: op.depends_on == "device")


@frozen
class DeviceIds:
    """The ids of the device on which an instruction is evaluated."""

    replica_id: np.uint32
    partition_id: np.uint32


def rule_of(instruction: Instruction, *, sequential: bool = False) -> Rule | None:
    """The function from operands to value; None if the value depends on the run or a dimension is dynamic."""
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        if isinstance(literal, ElidedArray):
            return None
        return lambda ids, operands: literal if literal.ndim else literal[()]
    if instruction.opcode in ("replica_id", "partition_id"):
        return lambda ids, operands: getattr(ids, instruction.opcode)
    if not is_pure(instruction) or any(map(_is_dynamic, (instruction, *instruction.operands))):
        return None
    return _rule_by_call(instruction, sequential)


def _rule_by_call(instruction: Instruction, sequential: bool) -> Rule:
    rule, unflatten = kernel(instruction) or compute[instruction.opcode], OPS[instruction.opcode].unflatten
    segments, shape, attributes = instruction.segments, instruction.shape, instruction.attribute_values()
    if kernel(instruction) is not None:
        rule = _refuse_unrounded(instruction, rule)
        return lambda ids, operands: scalars(np.asarray(rule(*operands)), shape)
    regions = {
        key: AppliedComputation.of(value, sequential)
        for key, value in attributes.items()
        if isinstance(value, Computation)
    }
    plain = {key: value for key, value in attributes.items() if key not in regions}

    def called(ids: DeviceIds, operands: Sequence[Any]) -> Any:
        inside = {key: region.on(ids) for key, region in regions.items()}
        return scalars(map_leaves(np.asarray, rule(*unflatten(tuple(operands), segments), **plain, **inside)), shape)

    return called


def _refuse_unrounded(instruction: Instruction, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, but raising ArithmeticError if the sum depends on whether a run rounds the product."""
    product = product_of(instruction)
    if product is None:
        return rule
    number = instruction.operands.index(product)

    def careful(*operands: Any) -> Any:
        total = rule(*operands)
        if is_near(total, operands[number]).any():
            raise ArithmeticError("the result depends on whether the run rounds the product")
        return total

    return careful


def is_pure(instruction: Instruction) -> bool:
    """Whether an instruction's value is a function of its operands and of the ids of the device."""
    opcode = instruction.opcode
    if opcode not in compute or opcode in _BY_IMPLEMENTATION:
        return False
    return all(map(_is_pure_region, instruction.called))


@remembered
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
    operands: Mapping[int, tuple[Any, ...]],
    *,
    sequential: bool,
) -> dict[int, Any]:
    """The result of each member of a group, given the operands of the members of a collective."""
    rendezvous = Rendezvous(Request(start, (), attributes_of(start, sequential, flushed=False)), tuple(group), is_named)
    rendezvous.values.update(operands)
    return rendezvous.results()


def result_shape(start: Instruction) -> Any:
    """The shape of a collective's result, for a blocking collective and for a start."""
    return Request(start, (), {}).result_shape


def without_warnings() -> AbstractContextManager[Any]:
    """Inside the block, NumPy does not warn of overflows and invalid operations, as in every run."""
    return np.errstate(all="ignore")
