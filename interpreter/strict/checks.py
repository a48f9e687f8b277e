"""The checks that a strict plan calls after each instruction, which apply its rule and record the findings."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import Shape, leaves
from shape_inference.ops.elementwise import BINARY
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction
from xbuild.properties.effects import COLLECTIVES, base_of
from xbuild.properties.undefined import reads
from xbuild.properties.variances import declared

from ..compiler import emit
from . import rules as rules
from .rules import Evaluation, Spotted, strict


@frozen(eq=False)
class Check:
    """The check of one instruction."""

    instruction: Instruction
    rule: Any

    def guard(self, emitter: emit.Emitter, result: str) -> str:
        """The source of a quick test before a check that only finds NaN and infinity in a native type; else empty."""
        instruction, shape = self.instruction, self.instruction.shape
        births_only = self.rule in rules.OF_FLOATS or instruction.opcode in BINARY
        if not births_only or not isinstance(shape, Shape) or not shape.dtype.is_native or not _has_floats(instruction):
            return ""
        if shape.dims or emitter.options.lifted:
            return f"if {emitter.bind('n', may_be_nonfinite)}({result}): "
        return f"if {result} - {result}: "  # x - x is 0 for finite x and otherwise NaN, which is true

    def __call__(self, device: Any, operands: tuple[Any, ...], result: Any) -> None:
        for spotted in self.rule(Evaluation(self.instruction, operands, result, device)):
            device.ledger.record(device, spotted, sys._getframe(1))


@frozen(eq=False)
class DeclaredCheck:
    """The check of an instruction with a declared variance type, together with the check of its op."""

    instruction: Instruction
    inner: Check | None

    def guard(self, emitter: emit.Emitter, result: str) -> str:
        """The empty string: no test precedes this check, since every value is compared."""
        return ""

    def __call__(self, device: Any, operands: tuple[Any, ...], result: Any) -> None:
        device.ledger.compare(device, self.instruction, result, sys._getframe(1))
        if self.inner is not None:
            for spotted in self.inner.rule(Evaluation(self.instruction, operands, result, device)):
                device.ledger.record(device, spotted, sys._getframe(1))


@frozen(eq=False)
class UndefinedCheck:
    """The check of an instruction with operands that are undefined on some devices, together with its other check."""

    instruction: Instruction
    inner: Check | DeclaredCheck | None
    undefined: tuple[tuple[int, Instruction, frozenset[int]], ...]

    def guard(self, emitter: emit.Emitter, result: str) -> str:
        """The empty string: the device, and a select's predicate, say what is undefined."""
        return ""

    def __call__(self, device: Any, operands: tuple[Any, ...], result: Any) -> None:
        frame = sys._getframe(1)
        for number, operand, devices in self.undefined:
            if device.number in devices and not _selects_nothing(self.instruction, number, operands):
                what = f"reads {operand.name}, which is undefined on this device"
                device.ledger.record(device, Spotted("undefined_read", what, part=number), frame)
        if isinstance(self.inner, DeclaredCheck):
            device.ledger.compare(device, self.instruction, result, frame)
        rule = self.inner.inner if isinstance(self.inner, DeclaredCheck) else self.inner
        for spotted in rule.rule(Evaluation(self.instruction, operands, result, device)) if rule else ():
            device.ledger.record(device, spotted, frame)


def _selects_nothing(instruction: Instruction, number: int, operands: tuple[Any, ...]) -> bool:
    """Whether a select takes no element of the operand."""
    if instruction.opcode != "select" or number == 0:
        return False
    chosen = np.asarray(operands[0]).astype(bool)
    return not (chosen if number == 1 else ~chosen).any()


def may_be_nonfinite(array: Array) -> bool:
    """Whether the array may contain NaN or infinity, which is excluded if its sum is finite."""
    total = np.add.reduce(array, axis=None)
    return bool(total - total != 0)


@emit.check_of.supply
def check_of(instruction: Instruction) -> Check | DeclaredCheck | UndefinedCheck | None:
    """The check of an instruction; None if no finding is possible in its values."""
    inner = _check_of(instruction)
    check = inner if declared(instruction) is None else DeclaredCheck(instruction, inner)
    undefined = tuple(reads(instruction))
    return UndefinedCheck(instruction, check, undefined) if undefined else check


def _check_of(instruction: Instruction) -> Check | None:
    """The check by the rule of the instruction's op; None if the op has no rule for values of this type.

    A collective is checked by the ledger when all its members have arrived.
    """
    rule = None if base_of(instruction) in COLLECTIVES else strict.get(instruction.opcode)
    if rule is None or (rule in rules.OF_FLOATS and not _has_floats(instruction)):
        return None
    return Check(instruction, rule)


def _has_floats(instruction: Instruction) -> bool:
    kinds = {leaf.dtype.kind for leaf in leaves(instruction.shape) if isinstance(leaf, Shape)}
    return bool(kinds & {"float", "complex"})
