"""Rules of collectives; how their ids are read follows from the channel, as in HLO."""

from __future__ import annotations

from typing import Any

from shape_inference import Shape

from ..reading.operation import Reading
from ..reading.rules import Results, both, rule
from ..syntax.attributes import Record
from .mesh_groups import lists_of


def channel(op: Reading) -> dict[str, Any]:
    """The channel id, where it is one that counts: an id of 0 is none."""
    fields = op.fields("channel_handle", None)
    handle = fields.get("handle", 0) if fields else 0
    if type(handle) is not int:
        op.fail("invalid_attribute", "channel_handle: an integer is wanted as the handle")
    return {"channel_id": handle} if handle > 0 else {}


def groups(op: Reading) -> dict[str, Any]:
    """The groups of ids, each without the -1 that fill it up."""
    found = op.get("replica_groups", None)
    if isinstance(found, Record):
        return {"replica_groups": lists_of(op, found)}
    rows = op.table("replica_groups", ())
    return {"replica_groups": tuple(tuple(each for each in row if each >= 0) for row in rows if len(row))}


def _flagged(op: Reading) -> dict[str, Any]:
    return {"use_global_device_ids": True} if op.flag("use_global_device_ids", False) else {}


def of_all_reduce(op: Reading) -> dict[str, Any]:
    return {"to_apply": op.region(0, "reducer", 2), **groups(op), **channel(op), **_flagged(op)}


def of_all_gather(op: Reading) -> dict[str, Any]:
    dim = op.integer("all_gather_dim")
    ids = {**groups(op), **channel(op), **_flagged(op)}
    shards = _shards(op, op.operands[0].shape if op.operands else None, op.shapes[0] if op.shapes else None, dim)
    return {"all_gather_dimension": dim, "shard_count": shards, **ids}


def of_collective_permute(op: Reading) -> dict[str, Any]:
    return {"source_target_pairs": op.table("source_target_pairs"), **channel(op)}


STARTED = {
    "all_reduce": of_all_reduce,
    "all_gather": of_all_gather,
    "collective_permute": of_collective_permute,
}
"""The collectives that have a start and a done of their own, with what reads their attributes."""


@rule(*both(*STARTED))
def started(op: Reading) -> Results:
    opcode = op.operation.name.partition(".")[2]
    return op.one_or_elements(op.result(opcode, op.operands, **STARTED[opcode](op)))


@rule(*both("reduce_scatter"))
def reduce_scatter(op: Reading) -> Results:
    dim = op.integer("scatter_dimension")
    ids = {**groups(op), **channel(op), **_flagged(op)}
    shards = _shards(op, op.shapes[0] if op.shapes else None, op.operands[0].shape if op.operands else None, dim)
    region = op.region(0, "reducer", 2)
    made = op.result("reduce_scatter", op.operands, to_apply=region, scatter_dimension=dim, shard_count=shards, **ids)
    return op.one_or_elements(made)


def _shards(op: Reading, small: Any, large: Any, dim: int) -> int:
    """How often the large shape holds the small one along a dimension."""
    if isinstance(small, Shape) and isinstance(large, Shape) and 0 <= dim < min(small.rank, large.rank):
        size, whole = small.dims[dim], large.dims[dim]
        if size and whole and not whole % size:
            return whole // size
    return max(len(groups(op)["replica_groups"][0]) if groups(op)["replica_groups"] else 1, 1)


@rule(*both("all_to_all"))
def all_to_all(op: Reading) -> Results:
    """Each operand is exchanged alone, since those of one op of HLO have one shape."""
    dims = {key: op.integer(key) for key in ("split_dimension", "concat_dimension", "split_count")}
    ids = {**groups(op), **channel(op)}
    op.ignore("use_global_device_ids")  # a channel says the same
    if len(op.operands) == 1:
        return op.result("all_to_all", op.operands, **dims, **ids)
    return tuple(op.result("all_to_all", (each,), **dims, **ids) for each in op.operands)


@rule(*both("collective_broadcast"))
def collective_broadcast(op: Reading) -> Results:
    if op.flag("has_dynamic_root", False):
        op.fail("invalid_attribute", "xbuild reads no collective_broadcast whose root is an operand")
    return op.result("collective_broadcast", *op.wants(1), **groups(op), **channel(op))


@rule(*both("replica_id", "partition_id"))
def device_id(op: Reading) -> Results:
    return op.result(op.operation.name.partition(".")[2])
