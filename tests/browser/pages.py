"""The programs of the browser tests, each run once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import xbuild as xb
from examples import pipeline, ring
from examples.deadlocks import data_parallel, infeed_loop, parameter_server
from examples.deadlocks import pipeline as crossed_pipeline
from examples.deadlocks import ring as sending_ring
from examples.digits import refusal
from examples.gallery.deadlocks import exchange
from interpreter import trace
from xbuild.pages import framed, write_page
from xbuild.traces import Trace


def of_ring() -> Trace:
    inputs = np.arange(64, dtype=np.float32).reshape(4, -1)
    return trace(ring.ring_all_reduce(4), [[row] for row in inputs], origins=True)


def scattered() -> Trace:
    """An all-gather, an all-reduce and an all-to-all of two groups."""

    @xb.computation(xb.f32[4])
    def program(x: xb.Value) -> xb.Value:
        groups = [[0, 2], [1, 3]]
        turned = xb.transpose(xb.reshape(x, (2, 2)), (1, 0))
        gathered = xb.all_gather(turned, 0, 2, replica_groups=groups)
        swapped = xb.all_to_all(turned, 0, 0, 2, replica_groups=groups)
        return xb.all_reduce(xb.log(xb.concatenate([gathered, swapped], 0)), xb.add)

    return trace(
        xb.Module("scattered", program, num_replicas=4),
        [[np.arange(4, dtype=np.float32) + 4 * n] for n in range(4)],
        origins=True,
    )


def loop() -> Trace:
    @xb.computation(xb.f32[2])
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        return xb.while_(
            start,
            condition=lambda s: xb.lt(s[0], 3),
            body=lambda s: xb.tuple_((s[0] + 1, xb.all_reduce(s[1] * 2.0, xb.add))),
        )[1]

    return trace(xb.Module("loop", program, num_replicas=2), [[np.ones(2, np.float32)]] * 2, origins=True)


def deadlock() -> Trace:
    return trace(exchange(3, "send recv done"), [[np.zeros(4, np.float32)]] * 3, check=False)


def refused(program: xb.Module | xb.ModuleGroup) -> Trace:
    """A program that the check refuses, up to where it is stuck."""
    modules = [program] * program.num_devices if isinstance(program, xb.Module) else list(program.modules.values())
    inputs = [[np.ones(p.shape.dims, np.float32) for p in module.entry.parameters] for module in modules]
    return trace(program, inputs, check=False, origins=True)


def digits() -> Trace:
    """The training step of the demo, in which arrays are too large for numbers."""
    program = refusal.train_step(2)
    generator = np.random.default_rng(0)
    inputs = [[generator.standard_normal(p.shape.dims).astype(np.float32) for p in program.entry.parameters]] * 2
    return trace(program, inputs, origins=True)


def in_stages() -> Trace:
    """Two stages, the second of which waits for the first."""
    program = pipeline.program()
    inputs = [
        [np.ones(p.shape.dims, np.float32) for p in module.entry.parameters] for module in program.modules.values()
    ]
    return trace(program, inputs, origins=True)


def unlike() -> Trace:
    """A collective and a transfer on one channel: refused, and yet it runs."""
    modules = []
    for number, opcode in enumerate(("send", "recv")):
        builder = xb.Builder(opcode)
        token, x = xb.after_all(builder=builder), xb.parameter(builder, number=0, shape=xb.f32[8], name="x")
        if opcode == "send":
            xb.send_done(xb.send(x, token, channel_id=1, name="send"), channel_id=1, name="sent")
        else:
            x, _ = xb.recv_done(xb.recv(token, shape=xb.f32[8], channel_id=1, name="recv"), channel_id=1)
        total = xb.all_reduce(x, xb.add, [[0, 1]], channel_id=1, use_global_device_ids=False, name="sum")
        modules.append((number, xb.Module(opcode, builder.build(total))))
    return refused(xb.ModuleGroup(dict(modules)))


def starved() -> Trace:
    items = [(True, [1.0, 2.0]), (False, [10.0, 20.0])]
    return trace(infeed_loop.program(), [[], []], infeed=[items, items[:1]], origins=True)


def parted() -> Trace:
    """Replica 2 has no examples, and ends without the gradients' all-reduce."""
    weights, gradient = np.zeros(3, np.float32), np.ones(3, np.float32)
    counts = (8, 8, 0, 8)
    return trace(data_parallel.program(), [[weights, gradient, np.int32(n)] for n in counts], origins=True)


def moved() -> Trace:
    """The ops of which an element of the result is of some elements of the operands, on numbers that all differ."""

    @xb.computation(xb.f32[3, 4], xb.f32[4, 2], xb.s32[2, 1], xb.f32[1, 1, 5], xb.f32[1, 1, 3])
    def program(x: xb.Value, y: xb.Value, rows: xb.Value, signal: xb.Value, kernel: xb.Value) -> xb.Value:
        return xb.tuple_([
            xb.gather(
                x, rows, slice_sizes=(1, 2), offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,),
                index_vector_dim=1, name="picked",
            ),
            xb.reduce_window(x, 0.0, xb.add, (2, 2), name="windows"),
            xb.convolution(signal, kernel, dimension_numbers="bf0_oi0->bf0", window="size=3 pad=1_1", name="filtered"),
            xb.dot(x, y, name="product"),
            xb.broadcast_in_dim(x, (2, 3, 4), (1, 2), name="spread"),
            xb.transpose(x, (1, 0), name="turned"),
            xb.pad(x, -1.0, padding=[(1, 0, 1), (0, 1, 0)], name="padded"),
            xb.ops.scatter(
                (x,), rows, (y,), to_apply=xb.add, update_window_dims=(0,), inserted_window_dims=(0,),
                scatter_dims_to_operand_dims=(0,), index_vector_dim=1, name="spilled",
            ),
        ])  # fmt: skip

    numbers = [np.arange(12), 20 + np.arange(8), [7, 0], 40 + np.arange(5), 50 + np.arange(3)]
    shapes = [each.shape for each in program.parameters]
    given = [np.asarray(each, s.dtype.dtype).reshape(s.dims) for each, s in zip(numbers, shapes, strict=True)]
    return trace(xb.Module("moved", program), [given], origins=True)


def strict() -> Trace:
    """A strict run in which a NaN is born and a start index is moved back into its operand."""

    @xb.computation(xb.f32[4], xb.s32[()])
    def program(x: xb.Value, at: xb.Value) -> xb.Value:
        return xb.dynamic_slice(xb.log(x, name="logarithm"), [at], [2], name="taken")

    inputs = [np.array([1.0, -2.0, 3.0, 4.0], np.float32), np.int32(9)]
    return trace(xb.Module("strict", program), [inputs], strict=True, origins=True)


def large(length: int = 2_000, devices: int = 8) -> Trace:
    """Elementwise work on small arrays, and a meeting now and then."""

    @xb.computation(xb.f32[4, 4])
    def program(x: xb.Value) -> xb.Value:
        for number in range(length // 3):
            x = xb.tanh(x + xb.negate(x))
            if number % 50 == 49:
                x = xb.all_reduce(x, xb.add)
        return x

    inputs = np.random.default_rng(0).standard_normal((devices, 1, 4, 4)).astype(np.float32)
    return trace(xb.Module("large", program, num_replicas=devices), list(inputs), origins=True)


def numerous() -> Trace:
    """A tuple of 40 arrays."""

    @xb.computation(xb.f32[3])
    def program(x: xb.Value) -> xb.Value:
        return xb.tuple_([x + float(number) for number in range(40)], name="all")

    return trace(xb.Module("numerous", program, num_replicas=2), [[np.zeros(3, np.float32)]] * 2, origins=True)


def many() -> Trace:
    """256 devices."""

    @xb.computation(xb.f32[2])
    def program(x: xb.Value) -> xb.Value:
        for _ in range(6):
            x = xb.all_reduce(xb.tanh(x) + x, xb.add)
        return x

    inputs = [[np.full(2, number, np.float32)] for number in range(256)]
    return trace(xb.Module("many", program, num_replicas=256), inputs, origins=True)


def in_scopes() -> Trace:
    """Two micro-batches forward and back, each in a scope."""

    def program(x: xb.Value) -> xb.Value:
        for name in ("F0", "F1", "B0", "B1"):
            with xb.scope(name):
                x = xb.all_reduce(xb.tanh(x) * 2.0, xb.add)
        return x

    module = xb.Module("batches", xb.computation(xb.f32[2])(program), num_replicas=2)
    return xb.trace(module, [[np.ones(2, np.float32)]] * 2)


def ring_of_many() -> Trace:
    """Sixty-four devices, each of which sends before it has posted where it receives."""
    return refused(exchange(64, "send recv done"))


PAGES = {
    "in_scopes": in_scopes,
    "ring_of_many": ring_of_many,
    "ring": of_ring, "scattered": scattered, "loop": loop, "deadlock": deadlock, "large": large, "many": many,
    "moved": moved, "strict": strict, "starved": starved, "parted": parted, "numerous": numerous,
    "digits": digits,
    "pipeline": in_stages,
    "ring_of_ten": lambda: refused(exchange(10, "send recv done")),
    "unlike": unlike,
    "two": lambda: refused(exchange(2, "send recv done")),
    "sending_ring": lambda: refused(sending_ring.program()),
    "crossed_pipeline": lambda: refused(crossed_pipeline.program()),
    "parameter_server": lambda: refused(parameter_server.program()),
}  # fmt: skip


def uneven() -> xb.shard.Partitioned:
    """A product of extents that do not divide, cut over a mesh of eight devices."""
    product = xb.computation(xb.f32[5, 14], xb.f32[14, 6])(lambda x, w: xb.tanh(xb.dot(x, w)))
    specs = {0: xb.P("a", "b"), 1: xb.P("b")}
    return xb.shard.partition(xb.shard.annotated(xb.Module("uneven", product), specs, mesh=xb.Mesh(a=2, b=4)))


def write_partitioned(parts: xb.shard.Partitioned, path: Path) -> None:
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(each.dims).astype(np.float32) for each in parts.shapes]
    write_page(trace(parts.module, parts.arguments(*arrays), origins=True), path, partitioned=parts)


def write(name: str, path: Path) -> None:
    if name == "uneven":
        write_partitioned(uneven(), path)
        return
    if name == "frame":
        path.write_text(f"<!doctype html><title>notebook</title>{framed(loop())}", encoding="utf-8")
    else:
        write_page(PAGES[name](), path)
