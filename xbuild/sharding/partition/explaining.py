"""`explain`: why a value is cut as it is, and why the partitioner inserted a collective."""

from __future__ import annotations

from ...core.graph import Computation, Module
from ..propagation import Explanation, Propagated
from ..propagation import explain as explain_value
from .partitioned import Partitioned
from .reasons import Communication


def explain(
    found: Partitioned | Propagated | Module | Computation, name: str, *, leaf: int = 0
) -> Explanation | Communication:
    """Why a value has its sharding, or, of what `partition` gives, why a collective was inserted.

    Of a propagated program, or one that is propagated first, the answer is for each dimension the way back to the value
    whose sharding is stated; `leaf` numbers the arrays of a tuple. Of a `Partitioned` it is the `Communication` with
    its reason, bytes and line. Raises undefined_name for a name that no value, or no inserted collective, has; and what
    `propagate` raises.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{}, {'x'}]}
    ...   b = f32[4,6] parameter(1), sharding={mesh['x'=2], [{'x'}, {}]}
    ...   ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> found = xb.shard.partition(xb.parse_hlo(text))
    >>> print(explain(found, found.communications[0].name))
    all-gather.1: all_gather over x, 64 bytes: y takes a whole (<hlo>:3 in e)
    """
    if isinstance(found, Partitioned):
        return found.communication(name)
    return explain_value(found, name, leaf=leaf)
