"""`Node`, a place where shardings propagate: an instruction with a rule, or an edge of the data flow."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import define

from ...core.graph import Instruction
from ..factors import ShardingRule
from .tensors import Tensor

Direction: TypeAlias = Literal["none", "forward", "backward", "both"]

NodeKind: TypeAlias = Literal["alike", "slice", "broadcast", "other"]
"""When a node takes its turn: `alike` nodes (elementwise ones, reshapes, transposes, edges) first."""


@define(eq=False)
class Node:
    """A rule with the arrays that it relates, operands first, and what decides when its turn comes.

    `what` says in a word what an edge is; of an instruction it is the opcode.
    """

    rule: ShardingRule
    tensors: tuple[Tensor, ...]
    num_operands: int
    kind: NodeKind
    instruction: Instruction
    what: str
    is_elementwise: bool = False
    is_single_use: bool = True
    number: int = 0
    seen: tuple[object, ...] = ()

    @property
    def maps(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        return self.rule.operands + self.rule.results

    def directions(self, level: int) -> tuple[Direction, ...]:
        """Where each factor's axes may go at a level of op priorities.

        0: elementwise, reshape, transpose and edges of values with one use; dynamic slices and updates of such forward,
        which is from operands to all arrays; 1: with any number of uses; 2: factors that pass, of all ops, but of
        broadcasts backward only; 3: all factors, broadcasts backward only; 4: everything.

        Source: Shardy, op priority propagation.
        """
        early: Direction = "none"
        if self.kind in ("alike", "slice") and (level >= 1 or self.is_single_use):
            early = "both" if self.kind == "alike" else "forward"
        late: Direction = "backward" if self.kind == "broadcast" and level < 4 else "both"
        return tuple(
            "none" if factor.is_blocked else
            late if level >= 3 or (level == 2 and factor.kind == "pass_through") else early
            for factor in self.rule.factors
        )  # fmt: skip
