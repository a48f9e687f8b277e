"""Shardings with which a collective would not be inserted, each tried by partitioning the program with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from shape_inference import Shape

from ...core.graph import Module
from ..propagation import Propagated
from ..sharding import Sharding
from ..stored import annotated, sharding_of
from .partitioned import Partitioned
from .parts.layouts import bytes_of, local_dims
from .program import partition
from .reasons import Communication, Elements, Operand, Reason, Reduced
from .reasons.words import told


@frozen
class Advice:
    """With `sharding` stated of the value, the collective is not inserted: a device sends `bytes` in place of
    `bytes_before` in all collectives, once each, and holds `held` bytes of the value in place of `held_before`.
    """

    value: str
    sharding: Sharding
    bytes: int
    bytes_before: int
    held: int
    held_before: int

    def __str__(self) -> str:
        sent = f"a device sends {self.bytes} bytes in all in place of {self.bytes_before}"
        held = f"holds {self.held} bytes of {self.value} in place of {self.held_before}"
        return f"with {self.value} stated {told(self.sharding)} it is not inserted: {sent}, and {held}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {**asdict(self, recurse=False), "sharding": told(self.sharding)}


def advise(found: Partitioned, name: str) -> tuple[Advice, ...]:
    """Shardings of a value that the program states with which a collective is not inserted, and less is sent in all.

    Each is tried: the program is propagated and partitioned with it. What does not help is left out, so that the answer
    may be empty; it is empty, too, where shardings were not propagated in Shardy's way.
    Raises undefined_name where no collective was inserted under the name.

    >>> import xbuild as xb
    >>> mesh = xb.Mesh(x=2)
    >>> product = xb.Module("product", xb.computation(xb.f32[8, 4], xb.f32[4, 6])(xb.dot))
    >>> cut = xb.shard.annotated(product, {0: xb.P("x", None), 1: xb.P("x", None)}, mesh=mesh)
    >>> parts = xb.shard.partition(cut)
    >>> for each in advise(parts, parts.communications[0].name):
    ...     print(each)
    with parameter.2 stated whole it is not inserted: a device sends 0 bytes in all in place of 48, and holds 96 bytes of parameter.2 in place of 48
    """  # noqa: E501
    communication, propagated = found.communication(name), found.propagated
    if propagated is None or propagated.strategy != "shardy":
        return ()
    before = sum(each.bytes for each in found.communications)
    tried = (_tried(found, propagated.given, communication, *each) for each in _candidates(communication, propagated))
    return tuple(each for each in tried if each is not None and each.bytes < before)


def _candidates(communication: Communication, propagated: Propagated) -> Iterator[tuple[str, Sharding]]:
    """Values that state a sharding, each with one that might help: as the op takes it, or whole where it is reduced."""
    why = communication.why
    is_stated = propagated.cause(communication.value).kind == "stated"
    if isinstance(why, Operand | Elements) and communication.needed is not None and is_stated:
        yield communication.value, communication.needed
    if isinstance(why, Reduced):
        for factor in why.factors():
            for value, dim in factor.places:
                sharding = propagated.sharding(value.name)
                if propagated.cause(value.name).kind == "stated" and isinstance(sharding, Sharding):
                    yield value.name, _whole_along(sharding, dim)


def _whole_along(sharding: Sharding, dim: int) -> Sharding:
    dims = (evolve(each, axes=()) if number == dim else each for number, each in enumerate(sharding.dims))
    return evolve(sharding, dims=tuple(dims))


def _tried(
    found: Partitioned, given: Module, communication: Communication, value: str, sharding: Sharding
) -> Advice | None:
    """What the program sends with a sharding; None where a collective for the same reason is inserted again."""
    other = partition(annotated(given, {value: sharding}), mesh=found.mesh)
    if any(_is_for(each, communication) for each in other.communications):
        return None
    sent, before = (sum(each.bytes for each in one.communications) for one in (other, found))
    held, held_before = (_held(one, value) for one in (other, found))
    return Advice(value, sharding, sent, before, held, held_before)


def _held(found: Partitioned, name: str) -> int:
    """The bytes of a value that a device holds."""
    every = (each for computation in found.whole.computations for each in computation.instructions)
    value = next(each for each in every if each.name == name)
    sharding = sharding_of(value, found.mesh)
    assert isinstance(sharding, Sharding)
    assert isinstance(value.shape, Shape)
    return bytes_of(value.shape.dtype[local_dims(sharding, value.shape.dims)])


def _is_for(one: Communication, other: Communication) -> bool:
    """Whether two collectives move one value for one user, for a reason of one kind."""
    if not isinstance(one.why, Reason) or not isinstance(other.why, Reason):
        return False
    whys = (one.why, other.why)
    return len({(why.kind, why.user.name, each.value) for why, each in zip(whys, (one, other), strict=True)}) == 1
