"""Calls of the TPU functions, drawn by chance: most are right, the rest break one rule or several."""

from __future__ import annotations

import random
from typing import Any

Call = dict[str, Any]
FLOATS = ["float32", "float64", "float16", "int32", "uint32"]
TYPES = [*FLOATS, "int64", "int8", "bool", "complex64"]


def _array(chance: random.Random, dims: list[int] | None = None, dtype: str | None = None) -> Any:
    dims = [chance.choice([1, 2, 4, 6]) for _ in range(chance.randint(0, 2))] if dims is None else dims
    numbers: Any = chance.randint(0, 3)
    for size in reversed(dims):
        numbers = [numbers] * size
    return {"array": numbers, "dtype": dtype or chance.choice(["float32", "int32", "float64"])}


def _leaf(chance: random.Random) -> Any:
    kind = chance.random()
    return 1.5 if kind < 0.15 else 2 if kind < 0.25 else None if kind < 0.35 else _array(chance)


def _tree(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if depth > 1 or kind < 0.7:
        return _leaf(chance)
    inner = [_tree(chance, depth + 1) for _ in range(chance.randint(1, 2))]
    return inner if kind < 0.8 else {"tuple": inner} if kind < 0.9 else {"dict": dict(zip("ba", inner, strict=False))}


def _returns(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    leaf = chance.choice(
        ["d0", "d1", "s0", "s1", "const", "d0", "op", None, "text"][: 8 if chance.random() < 0.95 else 9]
    )
    if kind < (0.35 if depth == 0 else 0.75):
        return leaf
    inner = [_returns(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return inner if kind < 0.6 else {"tuple": inner} if kind < 0.85 else {"dict": dict(zip("cab", inner, strict=False))}


def replicate(chance: random.Random) -> Call:
    row = [_tree(chance) for _ in range(chance.randint(0, 3))]
    rows: Any = [list(row) for _ in range(chance.randint(1, 3))]
    slip = chance.random()
    if slip < 0.05:
        rows = []
    elif slip < 0.1:
        rows = {"tuple": rows}
    elif slip < 0.15:
        rows[-1] = {"array": [1.0], "dtype": "float32"}
    elif slip < 0.25:
        rows[-1] = [*row, 1.0]
    elif slip < 0.4 and row:
        rows[-1] = [_tree(chance), *row[1:]]
    elif slip < 0.45:
        rows = None
    arity = len(row) if chance.random() < 0.85 and rows is not None else chance.choice([0, 1, 2, -1])
    return {"kind": "replicate", "inputs": rows, "arity": arity, "returns": _returns(chance)}


def rewrite(chance: random.Random) -> Call:
    row = [_tree(chance) for _ in range(chance.randint(0, 3))]
    return {"kind": "rewrite", "inputs": row, "arity": len(row), "returns": _returns(chance)}


def shard(chance: random.Random) -> Call:
    count, shards = chance.randint(0, 2), chance.choice([1, 2, 2, 2, 4, 3, 0, -1])
    inputs: Any = [
        _array(chance, [chance.choice([4, 4, 12, 6]) for _ in range(chance.choice([1, 2]))]) for _ in range(count)
    ]
    options: dict[str, Any] = {"num_shards": shards}
    if chance.random() < 0.4:
        options["input_shard_axes"] = [chance.choice([0, 0, 1]) for _ in range(count + (chance.random() < 0.2))]
    if chance.random() < 0.3:
        options["output_shard_axes"] = [chance.choice([0, 0, 1]) for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.3:
        options["outputs_from_all_shards"] = chance.choice([True, False, [True], [False], [True, False]])
    if chance.random() < 0.05:
        inputs = {"tuple": inputs}
    returns = chance.choice(
        ["d0", ["d0"], {"tuple": ["d0", "s0"]}, "s0", "const", None, "op", ["d0", "op"], ["d0", "d1"]]
    )
    return {"kind": "shard", "inputs": inputs, "arity": count, "options": options, "returns": returns}


def _groups(chance: random.Random, replicas: int) -> Any:
    slip = chance.random()
    ids = [*range(replicas)]
    chance.shuffle(ids)
    size = chance.choice([n for n in range(1, replicas + 1) if replicas % n == 0])
    groups: Any = [ids[n : n + size] for n in range(0, replicas, size)]
    if slip < 0.05:
        return ids
    if slip < 0.1:
        return [*groups, [0, 1, 2][: size + 1]]
    if slip < 0.15:
        return [[0] * size, *groups[1:]]
    if slip < 0.2:
        return groups[1:] or [[replicas]]
    return None if slip < 0.3 else groups


def _values(chance: random.Random, replicas: int, dims: list[int]) -> Any:
    return [_array(chance, dims, "float32")["array"] for _ in range(replicas)]


def total(chance: random.Random) -> Call:
    replicas = chance.randint(1, 4)
    values = _values(chance, replicas, [2])
    return {"kind": "sum", "values": values, "dtype": chance.choice(TYPES), "groups": _groups(chance, replicas)}


def permute(chance: random.Random) -> Call:
    replicas = chance.randint(1, 4)
    ids = [*range(replicas)]
    chance.shuffle(ids)
    pairs: Any = [[n, ids[n]] for n in range(chance.randint(1, replicas))]
    slip = chance.random()
    pairs = [*pairs, [0, 0]] if slip < 0.1 else [[0, 1, 2]] if slip < 0.2 else [[0]] if slip < 0.25 else pairs
    return {"kind": "permute", "values": _values(chance, replicas, [2]), "dtype": chance.choice(TYPES), "pairs": pairs}


def exchange(chance: random.Random) -> Call:
    replicas = chance.randint(1, 4)
    groups = _groups(chance, replicas)
    size = replicas if groups is None else len(groups[0]) if groups and isinstance(groups[0], list) else 1
    options = {
        "concat_dimension": chance.choice([0, 0, 1, 1, 2, -1]),
        "split_dimension": chance.choice([0, 0, 0, 1, 1, 2, -1]),
        "split_count": chance.choice([size, size, size, size, 0, size + 1]),
    }
    dims = [chance.choice([12, 12, 5]), 12]
    dtype = chance.choice(TYPES)
    values = _values(chance, replicas, dims)
    return {"kind": "exchange", "values": values, "dtype": dtype, "groups": groups, "options": options}


def optimizer(chance: random.Random) -> Call:
    replicas = chance.randint(1, 4)
    reduction = chance.choice(["weighted_mean", "weighted_mean", "weighted_sum", "mean"])
    return {"kind": "optimizer", "replicas": replicas, "reduction": reduction, "groups": _groups(chance, replicas)}


def infeed(chance: random.Random) -> Call:
    shapes = [[chance.choice([4, 12, 6, 3]), *[2] * chance.randint(0, 1)] for _ in range(chance.randint(1, 2))]
    options = {"shard_dimensions": [0] * len(shapes)} if chance.random() < 0.3 else {}
    return {"kind": "infeed", "shapes": shapes, "replicas": chance.randint(1, 4), "options": options}


def padding(chance: random.Random) -> Call:
    ranks = [chance.choice([1, 1, 2]) for _ in range(chance.randint(1, 2))]
    base = [[chance.randint(0, 5) for _ in range(rank)] for rank in ranks]
    rows = []
    for _ in range(chance.randint(1, 3)):
        shapes = [[chance.choice([size, size, chance.randint(0, 5)]) for size in dims] for dims in base]
        rows.append([[[*range(1, 1 + _count(dims))], dims] for dims in shapes])
    maxima = [
        None if chance.random() < 0.1 else [chance.choice([None, None, 5, 9, 2]) for _ in range(rank)] for rank in ranks
    ]
    unknown, spec = chance.random() < 0.3, chance.choice([0, 1])
    return {"kind": "padding", "rows": rows, "maxima": maxima, "unknown": unknown, "spec": spec}


def _count(dims: list[int]) -> int:
    return dims[0] * (dims[1] if len(dims) > 1 else 1)


KINDS = (
    replicate,
    replicate,
    replicate,
    rewrite,
    shard,
    shard,
    total,
    permute,
    exchange,
    optimizer,
    infeed,
    padding,
    padding,
)


def drawn(seed: int, count: int) -> list[Call]:
    """So many calls of a seed."""
    chance = random.Random(seed)
    return [chance.choice(KINDS)(chance) for _ in range(count)]
