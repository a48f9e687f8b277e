"""Draws of ops in two halves: the whole op's instance, begun and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

import xbuild as xb
from shape_inference import PrimitiveType

from ..chance import Chance
from ..instance import Instance, leaves, recorder
from .collectives import all_gather, all_reduce, all_to_all, collective_permute
from .draw import Draw
from .elementwise import unary


def halves(opcode: str, whole: Draw) -> dict[str, Draw]:
    """Draws for the start and for the done of an op."""
    names = f"{opcode}_start", f"{opcode}_done"
    start, done = map(recorder, names)

    def record(attributes: Any) -> Callable[..., Any]:
        return lambda builder, *operands: done(start(*operands, **attributes))

    return {name: _as(name, whole, record) for name in names}


def _as(name: str, whole: Draw, record: Callable[[Any], Callable[..., Any]]) -> Draw:
    def draw(chance: Chance, dtype: PrimitiveType) -> Instance:
        instance = whole(chance, dtype)
        while not _is_plain(name, instance):
            instance = whole(chance, dtype)
        return evolve(instance, opcode=name, record=record(instance.attributes))

    return draw


def _is_plain(name: str, instance: Instance) -> bool:
    """One array that is not empty, and of an exchange, one that XLA:CPU need not rewrite: no more has halves there."""
    arrays, attributes = list(leaves(instance.operands)), instance.attributes
    if len(arrays) != 1 or arrays[0].size == 0:
        return False
    is_rewritten = attributes.get("split_dimension") != attributes.get("concat_dimension")
    return not name.startswith("async") or (instance.num_partitions == 1 and not is_rewritten)


def _wrapped(attributes: Any) -> Callable[..., Any]:
    """An exchange between the halves of an async op."""

    def record(builder: xb.Builder, operands: Any) -> Any:
        return xb.ops.async_done(_started(operands, attributes))

    return record


def _updated(attributes: Any) -> Callable[..., Any]:
    """The same with an update on the way."""

    def record(builder: xb.Builder, operands: Any) -> Any:
        return xb.ops.async_done(xb.ops.async_update(_started(operands, attributes)))

    return record


def _started(operands: Any, attributes: Any) -> xb.Value:
    return xb.ops.async_start(operands, calls=lambda *given: xb.ops.all_to_all(given, **attributes))


DRAWS: dict[str, Draw] = {
    **halves("all_gather", all_gather),
    **halves("all_reduce", all_reduce),
    **halves("collective_permute", collective_permute),
    **halves("copy", unary("copy")),
    **{name: _as(name, all_to_all, _wrapped) for name in ("async_done", "async_start")},
    "async_update": _as("async_update", all_to_all, _updated),
}
