"""`explain`: why a value is cut as it is, and why the partitioner inserted a collective."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from shape_inference import refuse

from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ..propagation import Explanation, Propagated
from ..propagation import explain as explain_value
from .partitioned import Partitioned
from .reasons import Communication, Reason


@frozen
class ValueExplanation:
    """Why a value of the global program is cut as it is, and the collectives that were inserted for it.

    `sharding` is None where shardings were not propagated. `inserted` are the collectives that move the value, and
    those that bring its operands.
    """

    name: str
    sharding: Explanation | None
    inserted: tuple[Communication, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"%{self.name}: its sharding was not propagated" if self.sharding is None else str(self.sharding)
        yield f"inserted for it ({len(self.inserted)})" if self.inserted else "nothing was inserted for it"
        yield from (f"  {each}" for each in self.inserted)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        sharding = {"value": self.name} if self.sharding is None else self.sharding.to_dict()
        return {**sharding, "inserted": [each.to_dict() for each in self.inserted]}


def explain(
    found: Partitioned | Propagated | Module | Computation, name: str | Instruction | Value, *, leaf: int = 0
) -> Explanation | Communication | ValueExplanation:
    """Why a value has its sharding, and, of what `partition` gives, why collectives were inserted.

    `name` is the name of a value, or the value itself. Of a propagated program, or one that is propagated first, the
    answer is for each dimension the way back to the value whose sharding is stated; `leaf` numbers the arrays of a
    tuple. Of a `Partitioned` a name of a collective gives its `Communication`, with the reason and the bytes; a name of
    a value of the global program its sharding with the collectives that were inserted for it.
    Raises undefined_name for a name that no value, and no inserted collective, has; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{}, {'x'}]}
    ...   b = f32[4,6] parameter(1), sharding={mesh['x'=2], [{'x'}, {}]}
    ...   ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> found = xb.shard.partition(xb.parse_hlo(text))
    >>> print(explain(found, "y"))
    %y f32[8,6] is [{}, {}]: no sharding reached it, so that every device has the whole
    inserted for it (2)
      all-gather.1: all_gather over x, 64 bytes: y (<hlo>:5) takes a (<hlo>:3) whole, and a is cut along dimension 1 over `x`: with dimension 1 cut, y would leave partial results; joining partial results of y over `x` would send 192 bytes in place of 112
      all-gather.2: all_gather over x, 48 bytes: y (<hlo>:5) takes b (<hlo>:4) whole, and b is cut along dimension 0 over `x`: with dimension 0 cut, y would leave partial results; joining partial results of y over `x` would send 192 bytes in place of 112
    """  # noqa: E501
    text = (name if isinstance(name, str) else name.name).lstrip("%")
    if not isinstance(found, Partitioned):
        return explain_value(found, text, leaf=leaf)
    collective = next((each for each in found.communications if each.name == text), None)
    return collective if collective is not None else _of_value(found, text, leaf)


def _of_value(found: Partitioned, name: str, leaf: int) -> ValueExplanation:
    inserted = tuple(each for each in found.communications if name in (each.value, _user(each)))
    if not any(each.name == name for computation in found.whole.computations for each in computation.instructions):
        names = ", ".join(each.name for each in found.communications) or "none"
        what = f"{found.whole.name} has no value {name!r}, and no collective of this name was inserted: {names}"
        refuse("undefined_name", what, "xbuild shard TARGET lists all values")
    propagated = found.propagated
    sharding = None if propagated is None else explain_value(propagated, name, leaf=leaf)
    return ValueExplanation(name, sharding, inserted)


def _user(communication: Communication) -> str:
    return communication.why.user.name if isinstance(communication.why, Reason) else ""
