"""One instruction by itself: its value by the rules that run programs, for who asks before there is a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import Shape
from xbuild.core.graph import Computation, Instruction
from xbuild.core.op import OPS

from ..compiler.contraction import is_near, product_of
from ..compiler.requests import Request, attributes_of
from ..compiler.spelling import kernel
from ..kernels.values import scalars
from ..rules.region import Region
from ..rules.tables import compute
from .rendezvous import Rendezvous

Rule: TypeAlias = Callable[["Who", Sequence[Any]], Any]

# Not a function of the operands, or one that each implementation computes in its own way.
_OF_CHANCE = frozenset({"rng_bit_generator", "stochastic_convert"})
_INSIDE = frozenset({"parameter", "constant", "tuple", "get_tuple_element", "call", "replica_id", "partition_id"})


@frozen
class Who:
    """The ids of the device for which a value is asked."""

    replica_id: np.uint32
    partition_id: np.uint32


def rule_of(instruction: Instruction, *, sequential: bool = False) -> Rule | None:
    """The function from operands to value; None where only a run can tell, or the sizes are not fixed."""
    if instruction.opcode == "constant":
        literal = instruction.attributes.literal
        return lambda who, operands: literal if literal.ndim else literal[()]
    if instruction.opcode in ("replica_id", "partition_id"):
        return lambda who, operands: getattr(who, instruction.opcode)
    if not is_pure(instruction) or any(map(_is_dynamic, (instruction, *instruction.operands))):
        return None
    return _called(instruction, sequential)


def _called(instruction: Instruction, sequential: bool) -> Rule:
    rule, unflatten = kernel(instruction) or compute[instruction.opcode], OPS[instruction.opcode].unflatten
    segments, shape, attributes = instruction.segments, instruction.shape, instruction.attribute_values()
    if kernel(instruction) is not None:
        rule = _as_rounded(instruction, rule)
        return lambda who, operands: scalars(np.asarray(rule(*operands)), shape)
    regions = {key: Region.of(value, sequential) for key, value in attributes.items() if isinstance(value, Computation)}
    plain = {key: value for key, value in attributes.items() if key not in regions}

    def called(who: Who, operands: Sequence[Any]) -> Any:
        inside = {key: region.on(who) for key, region in regions.items()}
        return scalars(_arrays(rule(*unflatten(tuple(operands), segments), **plain, **inside)), shape)

    return called


def _as_rounded(instruction: Instruction, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, which gives nothing where a run may add a product that it has not rounded, and that would show."""
    product = product_of(instruction)
    if product is None:
        return rule
    number = instruction.operands.index(product)

    def careful(*operands: Any) -> Any:
        total = rule(*operands)
        if is_near(total, operands[number]).any():
            raise ArithmeticError("how the product is rounded would show")
        return total

    return careful


def _arrays(value: Any) -> Any:
    return tuple(map(_arrays, value)) if isinstance(value, tuple) else np.asarray(value)


def is_pure(instruction: Instruction) -> bool:
    """Whether its value is a function of its operands and of the ids of its device."""
    opcode = instruction.opcode
    if opcode not in compute or opcode in _OF_CHANCE:
        return False
    return all(map(_is_pure_region, instruction.called))


def _is_pure_region(computation: Computation) -> bool:
    return all(
        (i.opcode in _INSIDE and all(map(_is_pure_region, i.called))) or is_pure(i) for i in computation.instructions
    )


def _is_dynamic(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.is_dynamic


def folds_floats(instruction: Instruction) -> bool:
    """Whether it folds floating point numbers by a computation, so that the order of the folding may be seen."""
    types = (i.shape for called in instruction.called for i in called.parameters)
    return any(isinstance(shape, Shape) and shape.dtype.kind in ("float", "complex") for shape in types)


def met(
    start: Instruction,
    group: Sequence[int],
    is_named: bool,
    brought: Mapping[int, tuple[Any, ...]],
    *,
    sequential: bool,
) -> dict[int, Any]:
    """What each member of a group gets of a collective to which these values are brought."""
    meeting = Rendezvous(Request(start, (), attributes_of(start, sequential, flushed=False)), tuple(group), is_named)
    meeting.values.update(brought)
    return meeting.results()


def result_shape(start: Instruction) -> Any:
    """What a collective gives in the end, whether it is started or waited for at once."""
    return Request(start, (), {}).result_shape


def quietly() -> AbstractContextManager[Any]:
    """As every run is: overflows and invalid operations of floating point are values, and no warnings."""
    return np.errstate(all="ignore")
