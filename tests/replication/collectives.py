"""Random collectives on four elements, their results brought back to four elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xbuild as xb
from tests.replication.drawing import Drawing, Pool

Groups = tuple[tuple[int, ...], ...]


def _named(drawing: Drawing, sizes: tuple[int, ...] | None, is_reducing: bool) -> dict[str, Any]:
    """Groups with the words that say what their ids are; of one size out of these, where sizes are given."""
    how = drawing.rng.choice(("replicas", "channel", "global") if is_reducing else ("replicas", "channel"))
    replicas, partitions = drawing.replicas, drawing.partitions
    if not drawing.is_one:
        how = "channel"
    count = {"replicas": replicas, "global": replicas * partitions}.get(how, replicas if is_reducing else partitions)
    if not drawing.is_one:
        count = replicas
    if how == "channel" and is_reducing and sizes is not None and partitions > 1:
        how, count = "replicas", replicas  # each id stands for all partitions then
    groups = _groups(drawing, count, sizes)
    words: dict[str, Any] = {"replica_groups": groups}
    if how != "replicas":
        words["channel_id"] = drawing.channel()
    if how == "global":
        words["use_global_device_ids"] = True
    return words


def _groups(drawing: Drawing, count: int, sizes: tuple[int, ...] | None) -> Groups:
    order = [*range(count)]
    if drawing.rng.random() < 0.4:
        drawing.rng.shuffle(order)
    if sizes is not None:
        size = drawing.rng.choice([n for n in sizes if count % n == 0])
        return tuple(tuple(order[n : n + size]) for n in range(0, count, size))
    groups, left = [], order
    while left:
        size = drawing.rng.choice((1, 2, 2, 3, len(left)))
        groups.append(tuple(left[:size]))
        left = left[size:]
    return tuple(groups)


def _all_reduce(drawing: Drawing, pool: Pool) -> None:
    kinds = drawing.rng.choice(("v", "v", "i", "f", "vv", "iv"))
    op = drawing.rng.choice((xb.ops.add, xb.ops.maximum, xb.ops.add, xb.ops.minimum))
    words = _named(drawing, None, True)
    operands = [pool.pick(drawing, kind) for kind in kinds]
    if drawing.rng.random() < 0.25:
        result = xb.ops.all_reduce_done(xb.ops.all_reduce_start(operands, to_apply=op, **words))
    else:
        result = xb.ops.all_reduce(operands, to_apply=op, **words)
    pool.take(result, kinds) if len(kinds) > 1 else pool.add(result)


def _gather(drawing: Drawing, pool: Pool) -> None:
    words = _named(drawing, (1, 2, 3, 4), True)
    size, v = len(words["replica_groups"][0]), pool.pick(drawing, "v")
    attributes = {"all_gather_dimension": 0, "shard_count": size, **words}
    if drawing.rng.random() < 0.25:
        gathered = xb.ops.all_gather_done(xb.ops.all_gather_start([v], **attributes))
    else:
        gathered = xb.ops.all_gather([v], **attributes)
    at = drawing.local.randrange(size * 4 - 3)
    pool.add(xb.ops.slice(gathered, start_indices=[at], limit_indices=[at + 4], strides=[1]))


def _scatter(drawing: Drawing, pool: Pool) -> None:
    words = _named(drawing, (1, 2, 4), True)
    size, op = len(words["replica_groups"][0]), drawing.rng.choice((xb.ops.add, xb.ops.maximum))
    part = xb.ops.reduce_scatter([pool.pick(drawing, "v")], to_apply=op, scatter_dimension=0, shard_count=size, **words)
    pool.add(xb.ops.concatenate([part] * size, dimension=0))


def _to_all(drawing: Drawing, pool: Pool) -> None:
    words = _named(drawing, (1, 2, 4), False)
    size = len(words["replica_groups"][0])
    if drawing.rng.random() < 0.5:
        split: dict[str, Any] = {"split_dimension": 0, "concat_dimension": 0, "split_count": size}
        pool.add(xb.ops.all_to_all([pool.pick(drawing, "v")], **split, **words))
    else:
        result = xb.ops.all_to_all([pool.pick(drawing, "v") for _ in range(size)], **words)
        pool.add(xb.ops.get_tuple_element(result, index=drawing.local.randrange(size)))


def _permute(drawing: Drawing, pool: Pool) -> None:
    with_channel = drawing.rng.random() < 0.5 or not drawing.is_one
    count = drawing.partitions if with_channel and drawing.is_one else drawing.replicas
    sources, targets = ([*range(count)] for _ in range(2))
    drawing.rng.shuffle(sources)
    drawing.rng.shuffle(targets)
    kept = drawing.rng.randrange(count + 1)
    pairs = [*zip(sources, targets, strict=True)][kept if drawing.rng.random() < 0.4 else 0 :]
    words: dict[str, Any] = {"channel_id": drawing.channel()} if with_channel else {}
    v = pool.pick(drawing, "v")
    if drawing.rng.random() < 0.25:
        started = xb.ops.collective_permute_start(v, source_target_pairs=pairs, **words)
        pool.add(xb.ops.collective_permute_done(started))
    else:
        pool.add(xb.ops.collective_permute(v, source_target_pairs=pairs, **words))


def _broadcast(drawing: Drawing, pool: Pool) -> None:
    words = _named(drawing, None, False)
    groups = words["replica_groups"]
    if len(groups) > 1 and drawing.rng.random() < 0.4:
        words["replica_groups"] = groups[:-1]
    pool.add(xb.ops.collective_broadcast(pool.pick(drawing, "v"), **words))


def _wrapped(drawing: Drawing, pool: Pool) -> None:
    """A reduce-scatter or all-reduce that an async-start wraps."""
    words = _named(drawing, None, True)

    def inside(v: Any) -> Any:
        return xb.ops.all_reduce([v], to_apply=xb.ops.add, **words)

    pool.add(xb.ops.async_done(xb.ops.async_start([pool.pick(drawing, "v")], calls=inside)))


COLLECTIVES: tuple[Callable[[Drawing, Pool], None], ...] = (
    _all_reduce, _all_reduce, _all_reduce, _gather, _gather, _scatter, _to_all, _permute, _permute, _broadcast,
    _wrapped,
)  # fmt: skip
