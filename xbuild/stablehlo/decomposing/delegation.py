"""Operations read by the rule of another one, on other operands, attributes or types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from ...core.graph import Instruction
from ..reading.operation import Reading
from ..reading.rules import RULES, Results, Rule
from ..syntax.trees import Form
from ..syntax.types import Type


def delegated(
    op: Reading,
    name: str,
    operands: tuple[Instruction, ...],
    *,
    attributes: Mapping[str, Any] | None = None,
    results: tuple[Type, ...] | None = None,
    by: Rule | None = None,
) -> Results:
    """What the rule of the operation `name`, or another rule, makes of these operands, attributes and result types."""
    form = Form(
        name,
        op.attributes if attributes is None else attributes,
        tuple([each.shape for each in operands]),
        op.operation.result_types if results is None else results,
    )
    reading = Reading(op.scope, evolve(op.operation, form=form), operands)
    found = (by or RULES[name])(reading)
    op.asked |= reading.asked
    return found
