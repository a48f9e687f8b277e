"""The table of sharding rules, and `rule_of`, which asks it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from shape_inference.rules import RuleTable

from ...core.graph import Instruction
from ...core.op import OPS
from ...core.properties import Properties
from ..factors import ShardingRule

sharding_rule = RuleTable("sharding")
"""opcode -> rule(instruction): the ShardingRule of an instruction, None where this instruction has none."""

Role: TypeAlias = Literal["rule", "edge", "given", "opaque"]
"""What an op is for shardings: it has a rule; its operands and results are the same data, or those of the computations
that it calls, with one sharding; its value is given from outside; or it is a half of an asynchronous pair or a
transfer, whose value keeps the sharding that it is annotated with."""

_FLOWING = ("once", "loop", "branch")


def rule_of(instruction: Instruction) -> ShardingRule | None:
    """The sharding rule of an instruction; None where shardings go along edges of the data flow, or not at all.

    >>> import xbuild as xb
    >>> product = xb.computation(xb.f32[8, 4], xb.f32[4, 6])(xb.dot)
    >>> print(rule_of(product.root))
    ([i, k], [k, j])->([i, j]) {i=8, j=6, k=4} reduction={k}

    Source: Shardy, op sharding rule.
    """
    rule = sharding_rule.get(instruction.opcode)
    return None if rule is None else rule(instruction)


def role_of(opcode: str) -> Role:
    """What an op is for shardings.

    >>> role_of("dot"), role_of("while"), role_of("parameter"), role_of("send")
    ('rule', 'edge', 'given', 'opaque')
    """
    properties = OPS[opcode].properties
    if opcode in sharding_rule:
        return "rule"
    if properties.depends_on == "caller":
        return "given"
    return "edge" if _hands_on(properties) else "opaque"


def _hands_on(properties: Properties) -> bool:
    """Whether values of a whole op are those of its operands, or of the computations that it calls."""
    if properties.half != "none" or properties.needs != "nobody" or properties.elements != "whole":
        return False
    return properties.calls == "nothing" or properties.calls in _FLOWING
