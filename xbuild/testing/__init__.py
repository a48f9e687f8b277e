"""Contracts in tests: what a program communicates, holds and computes, and that it cannot hang.

    from xbuild import testing

    def test_step():
        testing.assert_no_deadlock(step, state, batch)
        testing.assert_collectives(step, state, batch, all_reduce=1, all_gather=0)
        testing.assert_memory(step, state, batch, at_most=2 * 2**30)
        testing.contract("step", step, state, batch)  # compares with contracts/step.txt

The first argument is a function of JAX, which is compiled for the arguments that follow, or any program: a Computation,
a Module, a ModuleGroup, a text, a path, or what JAX lowers and compiles. A contract that does not hold raises
`ContractError`, an AssertionError that states both numbers and lists the instructions with the user's lines.

Files, in the order of reading: `contracts.py` (what communicates, and the assertions), `rematerialization.py` (arrays
that are gathered only to be split again), `snapshots.py` (contracts in files), `plugin.py` (what pytest adds).
"""

from __future__ import annotations

from .contracts import (
    Collective,
    Collectives,
    ContractError,
    assert_collectives,
    assert_equivalent,
    assert_flops,
    assert_memory,
    assert_no_deadlock,
    assert_no_rematerialization,
    checked,
    collectives,
)
from .snapshots import contract

__all__ = [
    "Collective",
    "Collectives",
    "ContractError",
    "assert_collectives",
    "assert_equivalent",
    "assert_flops",
    "assert_memory",
    "assert_no_deadlock",
    "assert_no_rematerialization",
    "checked",
    "collectives",
    "contract",
]
