"""Calls that have the same result as an earlier call of the same computation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xbuild.core.graph import Computation, Instruction
from xbuild.core.memos import remembered
from xbuild.core.op import opcodes
from xbuild.properties.effects import PLAIN_CALLS, has_effects

_PURE = PLAIN_CALLS | opcodes(lambda op: op.calls == "branch") | {"map", "while"}
"""Ops whose value depends on their operands and computations alone."""


@remembered
def earlier_calls(computation: Computation) -> Mapping[Instruction, Instruction]:
    """For each call, the first one with the same computations and operands, where these computations have no effects.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo('''
    ... f { x = f32[2] parameter(0)
    ...     ROOT y = f32[2] negate(x) }
    ... ENTRY e { p = f32[2] parameter(0)
    ...           a = f32[2] call(p), to_apply=f
    ...           b = f32[2] call(p), to_apply=f
    ...           ROOT c = f32[2] add(a, b) }''')
    >>> [(call.name, first.name) for call, first in earlier_calls(module.entry).items()]
    [('b', 'a')]
    """
    first: dict[Any, Instruction] = {}
    found: dict[Instruction, Instruction] = {}
    for each in computation.instructions:
        if each.opcode in _PURE and not any(map(has_effects, each.called)):
            same = first.setdefault((each.opcode, each.called, each.operands), each)
            if same is not each:
                found[each] = same
    return found
