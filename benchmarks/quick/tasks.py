"""A child process: checks, records, reads and runs small programs with the xbuild of one tree, on command.

Programs use only the strict ops, whose signatures do not change, so that older commits can run this file.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import interpreter
import xbuild as xb

DEVICES, TRANSFERS = 64, 16


def pipeline() -> Any:
    """A program for each stage, which receives values from the previous stage and passes them on."""
    return xb.ModuleGroup({device: _stage(device) for device in range(DEVICES)})


def _stage(device: int) -> Any:
    builder = xb.Builder(f"stage{device}")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    token = xb.ops.after_all((), builder=builder)
    for turn in range(TRANSFERS):
        if device:
            value = _received(token, turn * DEVICES + device)
        for _ in range(6):
            value = xb.ops.add(value, x)
        if device < DEVICES - 1:
            _send(value, token, turn * DEVICES + device + 1)
    return xb.Module(f"stage{device}", builder.build(value))


def _received(token: Any, channel: int) -> Any:
    done = xb.ops.recv_done(xb.ops.recv(token, shape=xb.f32[4], channel_id=channel), channel_id=channel)
    return xb.ops.get_tuple_element(done, index=0)


def _send(value: Any, token: Any, channel: int) -> None:
    xb.ops.send_done(xb.ops.send(value, token, channel_id=channel), channel_id=channel)


def random_transfers() -> Any:
    """A program for each device, with transfers between random devices in the same order."""
    draw = random.Random(0)
    builders = [xb.Builder(f"device{device}") for device in range(DEVICES)]
    first = [xb.parameter(builder, number=0, shape=xb.f32[4]) for builder in builders]
    tokens = [xb.ops.after_all((), builder=builder) for builder in builders]
    values = list(first)
    for channel in range(1, DEVICES * TRANSFERS // 2):
        source, target = draw.sample(range(DEVICES), 2)
        _send(values[source], tokens[source], channel)
        values[target] = _received(tokens[target], channel)
        for device in (source, target):
            for _ in range(4):
                values[device] = xb.ops.add(values[device], first[device])
    return xb.ModuleGroup(
        {device: xb.Module(f"device{device}", builder.build(values[device])) for device, builder in enumerate(builders)}
    )


def reductions() -> Any:
    """A program for each device, with all-reduces over all devices."""
    return xb.ModuleGroup({device: _reducing(device) for device in range(DEVICES)})


def _reducing(device: int) -> Any:
    builder = xb.Builder(f"member{device}")
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4])
    for turn in range(2 * TRANSFERS):
        value = xb.ops.all_reduce(value, to_apply=adder, replica_groups=(tuple(range(DEVICES)),), channel_id=turn + 1)
        for _ in range(6):
            value = xb.ops.add(value, x)
    return xb.Module(f"member{device}", builder.build(value))


def chain(count: int) -> Any:
    """A chain of elementwise ops in one computation."""
    builder = xb.Builder("chain")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[8])
    for number in range(count // 5):
        value = xb.ops.multiply(xb.ops.add(value, x), x)
        value = xb.ops.maximum(xb.ops.tanh(value), x) if number % 2 else xb.ops.subtract(xb.ops.negate(value), x)
        value = xb.ops.add(value, x)
    return builder.build(value)


def products(count: int) -> Any:
    """Products of matrices with transposes and broadcasts, which have attributes."""
    builder = xb.Builder("products")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[8, 8])
    bias = xb.parameter(builder, number=1, shape=xb.f32[8])
    dims = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "lhs_batch_dims": (), "rhs_batch_dims": ()}
    for _ in range(count // 4):
        value = xb.ops.dot(value, xb.ops.transpose(x, permutation=(1, 0)), **dims)
        value = xb.ops.add(value, xb.ops.broadcast(bias, sizes=(8, 8), dimensions=(1,)))
    return builder.build(value)


def small_sums() -> Callable[[], Any]:
    """A run of many small reductions, products and functions, as in the step of a small replica."""
    builder = xb.Builder("sums")
    x = value = xb.parameter(builder, number=0, shape=xb.f32[4, 48])
    folds = [xb.computation(xb.f32[()], xb.f32[()])(fold) for fold in (xb.ops.add, xb.ops.maximum)]
    zero = xb.ops.constant(builder, literal=np.float32(0.5))
    for number in range(60):
        column = xb.ops.reduce((value,), (zero,), to_apply=folds[number % 2], dimensions=(1,))
        value = xb.ops.subtract(x, xb.ops.broadcast(column, sizes=(4, 48), dimensions=(0,)))
    computation = builder.build(value)
    given = np.random.default_rng(0).standard_normal((4, 48)).astype(np.float32)
    return lambda: interpreter.evaluate(computation, given)


def functions() -> Callable[[], Any]:
    """A run of functions that return small operands unchanged, on large arrays, and a maximum over windows."""
    builder = xb.Builder("functions")
    x = xb.parameter(builder, number=0, shape=xb.f32[256, 512])
    found = [op(x) for op in (xb.ops.tanh, xb.ops.sine, xb.ops.exponential_minus_one)]
    total = xb.ops.add(xb.ops.add(found[0], found[1]), found[2])
    computation = builder.build(total)
    given = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)
    return lambda: interpreter.evaluate(computation, given)


def _checked(make: Callable[[], Any]) -> Callable[[], Callable[[], Any]]:
    """A check of a new program each time, since a program caches its verdict."""

    def fresh() -> Callable[[], Any]:
        made = make()
        return lambda: xb.check(made)

    return fresh


def _read(computation: Any) -> Callable[[], Callable[[], Any]]:
    text = xb.Module("text", computation).to_hlo()
    return lambda: lambda: xb.parse_hlo(text)


def tasks() -> dict[str, Callable[[], Callable[[], Any]]]:
    """For each task a function that prepares a run (not timed) and returns it."""
    sums, function = small_sums(), functions()
    return {
        "check: pipeline": _checked(pipeline),
        "check: random transfers": _checked(random_transfers),
        "check: reductions": _checked(reductions),
        "record: chain": lambda: lambda: chain(6000),
        "record: products": lambda: lambda: products(4000),
        "read: chain": _read(chain(4000)),
        "read: products": _read(products(1500)),
        "run: small sums": lambda: lambda: [sums() for _ in range(40)],
        "run: functions": lambda: lambda: [function() for _ in range(10)],
    }


def main() -> None:
    (tree,) = sys.argv[1:]
    assert Path(xb.__file__).parents[1] == Path(tree), xb.__file__
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known = tasks()
    for line in sys.stdin:
        run = known[json.loads(line)["name"]]()
        gc.collect()
        gc.freeze()
        start = time.process_time()
        kept = run()
        seconds = time.process_time() - start
        del kept, run
        gc.unfreeze()
        out.write(json.dumps(seconds) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
