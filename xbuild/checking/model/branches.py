"""Devices that part at a conditional: its predicate as the reader wrote it, what to say of it, and what mends it."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import Shape

from ...core.graph import Instruction
from ...properties.effects import Step, collective_in
from ...properties.sites import Site
from .program import devices_text
from .verdict import ReportRow

_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_BY_DEVICE = {"replica_id": "replica-id", "partition_id": "partition-id"}
_THROUGH = ("convert", "copy", "reshape", "opt_barrier")
DEEPEST = 4


def parted(site: Site) -> Step | None:
    """The innermost branch that a place stands in."""
    return next((step for step in reversed(site.path) if step.instruction.opcode == "conditional"), None)


def predicate_row(step: Step, here: int, missing: tuple[int, ...]) -> ReportRow:
    """`compare.1 = (replica-id == 0)`, `conditional.2: true_computation on device 0, another on device 1`"""
    predicate = step.instruction.operands[0]
    takes = f"{step.branch} on device {here}, another on {devices_text(missing)}"
    return ReportRow(
        (here, *missing), _equation(predicate), f"decides {step.instruction.name}: {takes}", predicate.source
    )


def decider_row(unit: Site, devices: Sequence[int]) -> ReportRow:
    """What decides in a conditional: `compare.1 = (n > 0)`, `decides conditional.2`"""
    predicate = unit.instruction.operands[0]
    return ReportRow(tuple(devices), _equation(predicate), f"decides {unit.instruction.name}", predicate.source)


def _equation(instruction: Instruction) -> str:
    expression = spelled(instruction)
    return instruction.name if expression == instruction.name else f"{instruction.name} = {expression}"


def cause_of(site: Site, step: Step) -> str:
    """Why only some devices come to a place in a branch."""
    decider = decides(step.instruction.operands[0])
    what = "a collective" if collective_in(site.instruction) is not None else site.instruction.opcode.replace("_", "-")
    return f"{what} inside a conditional whose predicate {f'depends on {decider}' if decider else 'differs'}"


def repair_of(site: Site, step: Step) -> str:
    """The edit that brings all devices to a place in a branch."""
    name, conditional = site.instruction.name, step.instruction.name
    if collective_in(site.instruction) is None:
        return f"move {name} and its done out of {conditional}, or put the other half where the same devices come to it"
    return (
        f"move {name} out of {conditional}: give its operand as a result of both branches (of the other branch what "
        f"adds nothing, such as zeros), and come to {name} after {conditional}"
    )


def decides(predicate: Instruction) -> str:
    """What a predicate is computed from that no two devices share: `replica-id`; nothing where that is not seen."""
    stack, seen = [predicate], set[Instruction]()
    while stack:
        instruction = stack.pop()
        if instruction.opcode in _BY_DEVICE:
            return _BY_DEVICE[instruction.opcode]
        if instruction not in seen:
            seen.add(instruction)
            stack += instruction.operands
    return ""


def spelled(instruction: Instruction, depth: int = 0) -> str:
    """A small expression: `(replica-id == 0)`; deeper parts by name."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _BY_DEVICE:
        return _BY_DEVICE[opcode]
    if opcode == "constant" and isinstance(instruction.shape, Shape) and not instruction.shape.dims:
        return str(instruction.attributes.literal[()])
    if depth == DEEPEST:
        return instruction.name
    if opcode in _THROUGH:
        return spelled(operands[0], depth + 1)
    if opcode == "compare":
        left, right = (spelled(each, depth + 1) for each in operands)
        return f"({left} {_SIGNS[instruction.attributes.direction]} {right})"
    return (
        instruction.name
        if opcode == "parameter" or not operands
        else f"{opcode.replace('_', '-')}({_parts(operands, depth)})"
    )


def _parts(operands: tuple[Instruction, ...], depth: int) -> str:
    return ", ".join(spelled(each, depth + 1) for each in operands)
