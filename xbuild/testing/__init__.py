"""Assert in tests what a program communicates, holds in memory and computes, and that it cannot hang.

For example, a test can call `testing.assert_no_deadlock(step, state, batch)`. The first argument is a JAX function,
which is compiled for the remaining arguments, or any program: a Computation, a Module, a ModuleGroup, program text, a
path, or a lowered or compiled JAX function. If a contract does not hold, the assertion raises `ContractError`, an
AssertionError that states the expected and the actual number and lists the instructions with the user's lines.

Read the files in this order: `contracts.py` (communication and assertions), `instructions.py` (ops, donated arguments
and host callbacks), `snapshots.py` (contracts stored in files) and `plugin.py` (the pytest plug-in).

    >>> import xbuild as xb
    >>> total = xb.Module("total", xb.computation(xb.f32[8])(xb.cross_replica_sum), num_replicas=2)
    >>> xb.testing.assert_no_deadlock(total).kind
    'ok'
    >>> len(xb.testing.assert_collectives(total, all_reduce=1, all_gather=0))
    1
"""

from __future__ import annotations

from .contracts import (
    CollectiveRow,
    Collectives,
    ContractError,
    DataDependentWarning,
    assert_collectives,
    assert_equivalent,
    assert_flops,
    assert_memory,
    assert_no_deadlock,
    assert_no_rematerialization,
    at_least,
    checked,
    collectives,
)
from .instructions import assert_donated, assert_no_callbacks, assert_ops
from .snapshots import contract

__all__ = [
    "CollectiveRow",
    "Collectives",
    "ContractError",
    "DataDependentWarning",
    "assert_collectives",
    "assert_donated",
    "assert_equivalent",
    "assert_flops",
    "assert_memory",
    "assert_no_callbacks",
    "assert_no_deadlock",
    "assert_no_rematerialization",
    "assert_ops",
    "at_least",
    "checked",
    "collectives",
    "contract",
]
