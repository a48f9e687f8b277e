"""Explains a partitioned program: why a value has its sharding, why a collective was inserted, what would avoid it.

Sections:

    explain: why values are sharded as they are, and why collectives were inserted
    advise: shardings with which a collective would not be inserted
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from shape_inference import Shape, refuse

from ...core.builder import Value
from ...core.graph import Computation, Instruction, Module
from ...properties.effects import name_in_report
from ..propagation import Propagated, ShardingExplanation
from ..propagation import explain as explain_value
from ..sharding import Sharding
from ..stated_shardings import annotated, sharding_of
from .frame import count_array_bytes, local_dims
from .partitioned import Partitioned
from .program import partition
from .reasons import ELEMENTS, Because, Communication, Operand, Reason, Reduced, describe

# ----------------------------------------------------------------------------
# explain: why values are sharded as they are, and why collectives were inserted


@frozen
class ValueExplanation:
    """Why a value of the global program has its sharding, and the collectives that were inserted for it.

    `sharding` is None if shardings were not propagated. `inserted` are the collectives that move the value or its
    operands.
    """

    name: str
    sharding: ShardingExplanation | None
    inserted: tuple[Communication, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"%{self.name}: no sharding was propagated to this value" if self.sharding is None else str(self.sharding)
        count = len(self.inserted)
        yield f"collectives inserted for this value ({count})" if count else "no collectives inserted for this value"
        yield from (f"  {each}" for each in self.inserted)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        sharding = {"value": self.name} if self.sharding is None else self.sharding.to_dict()
        return {**sharding, "inserted": [each.to_dict() for each in self.inserted]}


def explain(
    found: Partitioned | Propagated | Module | Computation, name: str | Instruction | Value, *, leaf: int = 0
) -> ShardingExplanation | Communication | ValueExplanation:
    """Why a value has its sharding, and why collectives were inserted.

    `name` is the name of a value, or the value itself. For a propagated program (any other is propagated first), the
    answer traces each dimension back to the value whose sharding is stated; `leaf` numbers the arrays of a tuple.
    For a `Partitioned`, the name of a collective gives its `Communication`, with the reason and the bytes; the name of
    a value of the global program gives its sharding and the collectives that were inserted for it.
    Raises undefined_name for a name that neither a value nor an inserted collective has; and what `propagate` raises.

    >>> import xbuild as xb
    >>> text = '''HloModule m
    ... ENTRY e {
    ...   a = f32[8,4] parameter(0), sharding={mesh['x'=2], [{}, {'x'}]}
    ...   b = f32[4,6] parameter(1), sharding={mesh['x'=2], [{'x'}, {}]}
    ...   ROOT y = f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }'''
    >>> found = xb.shard.partition(xb.parse_hlo(text))
    >>> print(explain(found, "y"))
    %y f32[8,6] is [{}, {}]: replicated, since no sharding propagated to this value
    collectives inserted for this value (2)
      all-gather.1: all_gather over x, 64 bytes: y (<hlo>:5) takes a (<hlo>:3) replicated, but a is sharded along `x` in dimension 1: with dimension 1 sharded, y would produce partial results; combining partial results of y along `x` would send 192 bytes instead of 112
      all-gather.2: all_gather over x, 48 bytes: y (<hlo>:5) takes b (<hlo>:4) replicated, but b is sharded along `x` in dimension 0: with dimension 0 sharded, y would produce partial results; combining partial results of y along `x` would send 192 bytes instead of 112
    """  # noqa: E501
    text = (name if isinstance(name, str) else name.name).lstrip("%")
    if not isinstance(found, Partitioned):
        return explain_value(found, text, leaf=leaf)
    collective = next((each for each in found.communications if each.name == text), None)
    return collective if collective is not None else _explain_global_value(found, text, leaf)


def _explain_global_value(found: Partitioned, name: str, leaf: int) -> ValueExplanation:
    reported = (each.name for each in found.whole.entry.parameters if name_in_report(each) == name)
    name = next(reported, name)
    inserted = tuple(each for each in found.communications if name in (each.value, _name_user(each)))
    if not any(each.name == name for computation in found.whole.computations for each in computation.instructions):
        names = ", ".join(each.name for each in found.communications) or "none"
        what = (
            f"{found.whole.name} has no value {name!r}, and the partitioner inserted no such collective; it "
            f"inserted {names}"
        )
        refuse("undefined_name", what, "xbuild shard TARGET lists all values")
    propagated = found.propagated
    sharding = None if propagated is None else explain_value(propagated, name, leaf=leaf)
    return ValueExplanation(name, sharding, inserted)


def _name_user(communication: Communication) -> str:
    return communication.why.user.name if isinstance(communication.why, Reason) else ""


# ----------------------------------------------------------------------------
# advise: shardings with which a collective would not be inserted
#
# Each is tried by partitioning the program with it.


@frozen
class Advice:
    """If `sharding` is stated for the value, the collective is not inserted.

    Then a device sends `bytes` instead of `bytes_before` in all collectives, each counted once, and holds `held` bytes
    of the value instead of `held_before`.
    """

    value: str
    sharding: Sharding
    bytes: int
    bytes_before: int
    held: int
    held_before: int

    def __str__(self) -> str:
        sent = f"a device sends {self.bytes} bytes in total instead of {self.bytes_before}"
        held = f"holds {self.held} bytes of {self.value} instead of {self.held_before}"
        if self.held == self.held_before:
            held = f"holds as many bytes of {self.value} as before"
        return (
            f"if {self.value} is stated as {describe(self.sharding)}, this collective is not inserted: {sent}, and "
            f"{held}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {**asdict(self, recurse=False), "sharding": describe(self.sharding)}


def advise(found: Partitioned, name: str) -> tuple[Advice, ...]:
    """Stated shardings to change so that a collective is not inserted and less is sent in total.

    Each one is tried by propagating and partitioning the program with it; those that do not help are omitted, so the
    answer may be empty. It is also empty if shardings were not propagated by the strategy "shardy".
    Raises undefined_name if no inserted collective has the name.

    >>> import xbuild as xb
    >>> mesh = xb.Mesh(x=2)
    >>> product = xb.Module("product", xb.computation(xb.f32[8, 4], xb.f32[4, 6])(xb.dot))
    >>> stated = xb.shard.annotated(product, {0: xb.P("x", None), 1: xb.P("x", None)}, mesh=mesh)
    >>> parts = xb.shard.partition(stated)
    >>> for each in advise(parts, parts.communications[0].name):
    ...     print(each)
    if parameter.2 is stated as replicated, this collective is not inserted: a device sends 0 bytes in total instead of 48, and holds 96 bytes of parameter.2 instead of 48
    """  # noqa: E501
    communication, propagated = found.communication(name), found.propagated
    if propagated is None or propagated.strategy != "shardy":
        return ()
    before = sum(each.bytes for each in found.communications)
    tried = (_try(found, propagated.given, communication, *each) for each in _candidates(communication, propagated))
    return tuple(each for each in tried if each is not None and each.bytes < before)


def _candidates(communication: Communication, propagated: Propagated) -> Iterator[tuple[str, Sharding]]:
    """Stated values with a sharding that might help: the one that the op takes, or unsplit along what is reduced."""
    why = communication.why
    is_stated = propagated.cause(communication.value).kind == "stated"
    if _is_taken_by_op(why) and communication.needed is not None and is_stated:
        yield communication.value, communication.needed
    if isinstance(why, Reduced):
        for factor in why.factors():
            for value, dim in factor.places:
                sharding = propagated.sharding(value.name)
                if propagated.cause(value.name).kind == "stated" and isinstance(sharding, Sharding):
                    yield value.name, _unsplit_dimension(sharding, dim)


def _is_taken_by_op(why: Reason | str) -> bool:
    """Whether an op takes the value, or its elements, in a different sharding."""
    return isinstance(why, Operand) or (isinstance(why, Because) and why.row is ELEMENTS)


def _unsplit_dimension(sharding: Sharding, dim: int) -> Sharding:
    dims = (evolve(each, axes=()) if number == dim else each for number, each in enumerate(sharding.dims))
    return evolve(sharding, dims=tuple(dims))


def _try(
    found: Partitioned, given: Module, communication: Communication, value: str, sharding: Sharding
) -> Advice | None:
    """What the program sends with a sharding; None if a collective is inserted again for the same reason."""
    other = partition(annotated(given, {value: sharding}), mesh=found.mesh)
    if any(_has_same_reason(each, communication) for each in other.communications):
        return None
    sent, before = (sum(each.bytes for each in one.communications) for one in (other, found))
    held, held_before = (_count_held(one, value) for one in (other, found))
    return Advice(value, sharding, sent, before, held, held_before)


def _count_held(found: Partitioned, name: str) -> int:
    """The bytes of a value that a device holds."""
    every = (each for computation in found.whole.computations for each in computation.instructions)
    value = next(each for each in every if each.name == name)
    sharding = sharding_of(value, found.mesh)
    assert isinstance(sharding, Sharding)
    assert isinstance(value.shape, Shape)
    return count_array_bytes(value.shape.dtype[local_dims(sharding, value.shape.dims)])


def _has_same_reason(one: Communication, other: Communication) -> bool:
    """Whether two collectives move the same value for the same user, for a reason of the same kind."""
    if not isinstance(one.why, Reason) or not isinstance(other.why, Reason):
        return False
    whys = (one.why, other.why)
    return len({(why.kind, why.user.name, each.value) for why, each in zip(whys, (one, other), strict=True)}) == 1
