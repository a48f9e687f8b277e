"""Training programs with groups as real code has them: data, tensor, pipeline and expert parallel, sharded, trees."""

from __future__ import annotations

import random
from collections.abc import Callable

from .jobs import Call, Groups, Job, Phase, Role


def _sizes(rng: random.Random, count: int) -> list[int]:
    """Numbers of elements, all different."""
    return rng.sample(range(8, 600), count)


def _blocks(ranks: int, size: int) -> Groups:
    return [list(range(start, start + size)) for start in range(0, ranks, size)]


def _strides(ranks: int, size: int) -> Groups:
    """The groups across blocks: one rank of each block."""
    return [list(range(start, ranks, size)) for start in range(size)]


def _world(ranks: int) -> Role:
    return Role("default_pg", [list(range(ranks))])


def _rest(rng: random.Random, roles: tuple[str, ...] = ("world",)) -> tuple[Phase, ...]:
    """What follows the steps of an epoch: an evaluation, a checkpoint, or both."""
    role = rng.choice(roles)
    evaluation = Phase("evaluate", rng.choice((1, 1, 2)), (Call("load"), Call("all_reduce", role, rng.randint(2, 6))))
    checkpoint = Phase("save_checkpoint", 1, (Call("barrier", "world"),))
    return rng.choice(((evaluation,), (checkpoint,), (evaluation, checkpoint)))


def _job(
    rng: random.Random, world: int, layout: str, roles: dict[str, Role], step: list[Call], setup: list[Call]
) -> Job:
    train = Phase("train_step", rng.randint(3, 7), (Call("load"), *step))
    first = Phase("setup", 1, tuple(setup)) if setup and rng.random() < 0.7 else None
    names = ("trace_rank_{}", "trace_rank_{}", "nccl_trace_rank_{}", "rank{}/flight_recorder")
    roles = {"world": _world(world), **roles}
    return Job(world, layout, roles, rng.randint(1, 3), first, (train, *_rest(rng)), dump_name=rng.choice(names))


def _log(rng: random.Random) -> list[Call]:
    """A line that logs a mean over all ranks, each step or each few steps."""
    return [Call("all_reduce", "world", 1, every=rng.choice((1, 2, 3)))] if rng.random() < 0.7 else []


def _buckets(rng: random.Random, role: str, count: int) -> list[Call]:
    """Gradients in buckets: one after the other, or all started and then waited for."""
    sizes = _sizes(rng, count) if rng.random() < 0.7 else _sizes(rng, 1) * count
    if rng.random() < 0.5:
        return [Call("all_reduce", role, size) for size in sizes]
    return [*(Call("all_reduce", role, size, later=True) for size in sizes), Call("wait")]


def data_parallel(rng: random.Random) -> Job:
    ranks = rng.randint(2, 8)
    roles = {"dp": Role("DATA_PARALLEL_GROUP", [list(range(ranks))])}
    setup = [*(Call("broadcast", "dp", size) for size in _sizes(rng, 2)), Call("barrier", "world")]
    return _job(rng, ranks, "data", roles, [*_buckets(rng, "dp", rng.randint(1, 4)), *_log(rng)], setup)


def tensor_and_data(rng: random.Random) -> Job:
    ranks, tensor = rng.choice(((4, 2), (6, 2), (6, 3), (8, 2), (8, 4)))
    roles = {
        "tp": Role("TENSOR_MODEL_PARALLEL_GROUP", _blocks(ranks, tensor)),
        "dp": Role("DATA_PARALLEL_GROUP", _strides(ranks, tensor)),
    }
    forward, logits, backward, word = _sizes(rng, 4)
    layers = rng.randint(1, 2)
    step = [
        Call("broadcast", "tp", word),
        *[Call("all_reduce", "tp", forward)] * layers,
        Call("all_reduce", "tp", logits),
        *[Call("all_reduce", "tp", backward, later=rng.random() < 0.3)] * layers,
        Call("wait"),
        *_buckets(rng, "dp", rng.randint(1, 3)),
        *_log(rng),
    ]
    return _job(rng, ranks, "tensor x data", roles, step, [Call("broadcast", "dp", _sizes(rng, 1)[0])])


def sharded(rng: random.Random) -> Job:
    ranks, shard = rng.choice(((2, 2), (3, 3), (4, 4), (4, 2), (6, 3), (8, 4), (8, 2), (5, 5)))
    roles = {"shard": Role("FSDP_SHARD", _blocks(ranks, shard))}
    if shard < ranks:
        roles["replicate"] = Role("FSDP_REPLICATE", _strides(ranks, shard))
    units = _sizes(rng, rng.randint(1, 3))
    step = [Call("all_gather", "shard", size) for size in units]
    for size in reversed(units):
        step += [Call("all_gather", "shard", size), Call("reduce_scatter", "shard", size, later=True)]
        if shard < ranks:
            step += [Call("wait"), Call("all_reduce", "replicate", size)]
    step += [Call("wait"), *_log(rng)]
    return _job(rng, ranks, "sharded", roles, step, [Call("broadcast", "world", 700)])


def experts(rng: random.Random) -> Job:
    ranks, expert = rng.choice(((4, 4), (4, 2), (6, 3), (8, 4), (3, 3), (8, 2)))
    roles = {
        "ep": Role("EXPERT_MODEL_PARALLEL_GROUP", _blocks(ranks, expert)),
        "dp": Role("DATA_PARALLEL_GROUP", [list(range(ranks))]),
    }
    if expert < ranks:
        roles["edp"] = Role("EXPERT_DATA_PARALLEL_GROUP", _strides(ranks, expert))
    counts, dense, hidden = _sizes(rng, 3)
    step = [
        Call("all_gather", "ep", counts),
        Call("all_to_all_uneven", "ep", 4),
        Call("all_to_all_uneven", "ep", 9),
        *([Call("all_to_all", "ep", hidden)] if rng.random() < 0.5 else []),
        *([Call("all_reduce", "edp", hidden, later=True)] if expert < ranks else []),
        Call("all_reduce", "dp", dense, later=True),
        Call("wait"),
        *_log(rng),
    ]
    return _job(rng, ranks, "experts", roles, step, [Call("broadcast", "dp", 700), Call("barrier", "dp")])


def tree(rng: random.Random) -> Job:
    """Sums in each node, then among the leaders of the nodes, then back: groups that overlap in one rank."""
    ranks, node = rng.choice(((4, 2), (6, 3), (6, 2), (8, 4)))
    roles = {
        "node": Role("NODE_LOCAL", _blocks(ranks, node)),
        "leaders": Role("NODE_LEADERS", [list(range(0, ranks, node))]),
    }
    size, metrics = _sizes(rng, 2)
    step = [
        Call("reduce", "node", size),
        Call("all_reduce", "leaders", size),
        Call("broadcast", "node", size),
        *([Call("gather", "node", metrics)] if rng.random() < 0.5 else []),
        *([Call("scatter", "world", metrics + 1)] if rng.random() < 0.3 else []),
        *_log(rng),
    ]
    return _job(rng, ranks, "tree", roles, step, [Call("barrier", "world")])


def pipeline(rng: random.Random) -> Job:
    """Stages that pass activations on by a broadcast in a group of two; the first and the last share the embedding."""
    stages, data = rng.choice(((2, 2), (3, 1), (4, 1), (2, 3), (3, 2), (4, 2)))
    ranks = stages * data
    links = {
        f"link{n}": Role("PIPELINE_LINK", [[n * data + k, (n + 1) * data + k] for k in range(data)])
        for n in range(stages - 1)
    }
    roles = {**links, "embedding": Role("EMBEDDING_GROUP", [[k, (stages - 1) * data + k] for k in range(data)])}
    if data > 1:
        roles["dp"] = Role("DATA_PARALLEL_GROUP", _blocks(ranks, data))
    activation, gradient, word, weights = _sizes(rng, 4)
    batches = rng.randint(1, 3)
    step = [Call("broadcast", link, activation) for _ in range(batches) for link in links]
    step += [Call("broadcast_back", link, gradient) for _ in range(batches) for link in reversed(links)]
    step += [Call("all_reduce", "embedding", word)]
    step += [Call("all_reduce", "dp", weights)] if data > 1 else []
    return _job(rng, ranks, "pipeline", roles, [*step, *_log(rng)], [Call("broadcast", "world", 700)])


def twins(rng: random.Random) -> Job:
    """Two groups of the same ranks, and a group inside them."""
    ranks = rng.randint(3, 7)
    inner = rng.randint(2, ranks - 1)
    roles = {
        "dp": Role("DATA_PARALLEL_GROUP", [list(range(ranks))]),
        "cp": Role("DATA_PARALLEL_GROUP_WITH_CP", [list(range(ranks))]),
        "inner": Role("undefined", [sorted(rng.sample(range(ranks), inner))]),
    }
    a, b, c, d = _sizes(rng, 4)
    step = [
        Call("all_gather", "cp", a),
        *([Call("all_reduce", "inner", b)] if rng.random() < 0.7 else []),
        Call("all_reduce", "dp", c),
        Call("all_gather_list", "cp", d),
        Call("barrier", "dp", every=2),
        *_log(rng),
    ]
    return _job(rng, ranks, "twin groups", roles, step, [Call("broadcast", "dp", 700)])


LAYOUTS: tuple[Callable[[random.Random], Job], ...] = (
    data_parallel,
    tensor_and_data,
    sharded,
    experts,
    tree,
    pipeline,
    twins,
)
