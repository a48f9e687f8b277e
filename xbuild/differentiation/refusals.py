"""Refusals of derivatives: the op, its operands, its line in the program, and a way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from shape_inference.rules import ShapeError, XbuildError

from ..core.diagnostics import describe, operand_labels
from ..core.graph import Instruction
from ..core.op import OPS
from .rules import REASONS

ELSEWHERE = "where the derivative is not wanted, leave the parameters that reach it out of argnums"


def dressed(error: XbuildError, instruction: Instruction) -> XbuildError:
    """The same error with the instruction in its first line and its operands, attributes and line below it."""
    if error.explained:
        return error
    schema = OPS[instruction.opcode]
    labels = operand_labels(schema, len(instruction.operands), instruction.segments)
    rows = [(label, f"{o.shape}  %{o.name}") for label, o in zip(labels, instruction.operands, strict=True)]
    rows += [(key, describe(value)) for key, value in _given(instruction)]
    width = max((len(label) for label, _ in rows), default=0)
    head = f"derivative of {schema.spelling} %{instruction.name}: {error.message} [{error.kind}]"
    lines = [head, *(f"  {label:<{width}}  {text}" for label, text in rows)]
    if instruction.source is not None:
        lines.append(f"  at {instruction.source}")
    lines += [f"  hint: {hint}" for hint in error.hints]
    found = ShapeError(error.kind, "\n".join(lines), error.hints)
    found.message, found.explained = error.message, True
    return found


def _given(instruction: Instruction) -> Iterator[tuple[str, Any]]:
    """The attributes that are other than their defaults."""
    defaults = OPS[instruction.opcode].defaults
    for key, value in instruction.attribute_values().items():
        if isinstance(value, np.ndarray) or value != defaults.get(key):
            yield key, value


def no_rule(instruction: Instruction) -> NoReturn:
    """Refuse an op that has no derivative, with the reason."""
    spelling = OPS[instruction.opcode].spelling
    reason = REASONS.get(instruction.opcode, f"{spelling} has no rule for its derivative")
    raise dressed(ShapeError("not_differentiable", reason, [ELSEWHERE]), instruction) from None
