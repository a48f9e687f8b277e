"""Rules of elementwise ops: each dimension is a factor of all operands and of the result."""

from __future__ import annotations

from ...core.op import opcodes
from .builder import pointwise
from .table import sharding_rule

for opcode in sorted(opcodes(lambda op: op.elements == "same_place")):
    sharding_rule.enter(opcode, pointwise)
