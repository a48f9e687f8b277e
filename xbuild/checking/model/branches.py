"""Words for devices that take different branches: the predicate as written, the cause, and the repair."""

from __future__ import annotations

from collections.abc import Sequence

from shape_inference import Shape
from shape_inference.elided import ElidedArray

from ...core.graph import Instruction
from ...properties.effects import Step, collective_in
from ...properties.sites import Site
from .program import devices_text
from .verdict import ReportRow

_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_BY_DEVICE = {"replica_id": "replica-id", "partition_id": "partition-id"}
_THROUGH = ("convert", "copy", "reshape", "opt_barrier")
DEEPEST = 4


def innermost_branch(site: Site) -> Step | None:
    """The innermost branch that a site stands in."""
    return next((step for step in reversed(site.path) if step.instruction.opcode == "conditional"), None)


def predicate_row(step: Step, here: int, missing: tuple[int, ...]) -> ReportRow:
    """`compare.1 = (replica-id == 0)`, `conditional.2: true_computation on device 0, another on device 1`"""
    predicate = step.instruction.operands[0]
    takes = f"{step.branch} on device {here}, another on {devices_text(missing)}"
    return ReportRow(
        (here, *missing), _equation(predicate), f"decides {step.instruction.name}: {takes}", predicate.source
    )


def decider_row(unit: Site, devices: Sequence[int]) -> ReportRow:
    """The row of a predicate: `compare.1 = (n > 0)`, `decides conditional.2`"""
    predicate = unit.instruction.operands[0]
    return ReportRow(tuple(devices), _equation(predicate), f"decides {unit.instruction.name}", predicate.source)


def _equation(instruction: Instruction) -> str:
    expression = expression_text(instruction)
    return instruction.name if expression == instruction.name else f"{instruction.name} = {expression}"


def cause_in_branch(site: Site, step: Step) -> str:
    """The sentence why only some devices come to a site in a branch."""
    decider = deciding_id(step.instruction.operands[0])
    what = "a collective" if collective_in(site.instruction) is not None else site.instruction.opcode.replace("_", "-")
    return f"{what} inside a conditional whose predicate {f'depends on {decider}' if decider else 'differs'}"


def repair_in_branch(site: Site, step: Step) -> str:
    """The sentence which edit brings all devices to a site in a branch."""
    name, conditional = site.instruction.name, step.instruction.name
    if collective_in(site.instruction) is None:
        return f"move {name} and its done out of {conditional}, or put the other half where the same devices come to it"
    return (
        f"move {name} out of {conditional}: give its operand as a result of both branches (of the other branch what "
        f"adds nothing, such as zeros), and come to {name} after {conditional}"
    )


def deciding_id(predicate: Instruction) -> str:
    """The id that a predicate is computed from, such as `replica-id`; empty where it is computed from none."""
    stack, seen = [predicate], set[Instruction]()
    while stack:
        instruction = stack.pop()
        if instruction.opcode in _BY_DEVICE:
            return _BY_DEVICE[instruction.opcode]
        if instruction not in seen:
            seen.add(instruction)
            stack += instruction.operands
    return ""


def expression_text(instruction: Instruction, depth: int = 0) -> str:
    """The expression of a value: `(replica-id == 0)`; operands deeper than `DEEPEST` by name."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _BY_DEVICE:
        return _BY_DEVICE[opcode]
    if opcode == "constant" and isinstance(instruction.shape, Shape) and not instruction.shape.dims:
        literal = instruction.attributes.literal
        return instruction.name if isinstance(literal, ElidedArray) else str(literal[()])
    if depth == DEEPEST:
        return instruction.name
    if opcode in _THROUGH:
        return expression_text(operands[0], depth + 1)
    if opcode == "compare":
        left, right = (expression_text(each, depth + 1) for each in operands)
        return f"({left} {_SIGNS[instruction.attributes.direction]} {right})"
    return (
        instruction.name
        if opcode == "parameter" or not operands
        else f"{opcode.replace('_', '-')}({_parts(operands, depth)})"
    )


def _parts(operands: tuple[Instruction, ...], depth: int) -> str:
    return ", ".join(expression_text(each, depth + 1) for each in operands)
