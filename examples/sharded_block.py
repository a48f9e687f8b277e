"""A transformer block on four devices, sharded by batch and heads: gradients with and without mesh types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

import xbuild as xb
from interpreter import execute
from shape_inference import Shape, TupleShape, leaves

MESH = xb.Mesh(batch=2, model=2)
BATCH, LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 4, 6, 8, 4, 16, 64
HEAD = WIDTH // HEADS

# Shardings: the batch along one axis, heads and hidden units along the other, weights of norms replicated.
SPECS = {
    "x": xb.P("batch"),
    "target": xb.P("batch"),
    "query": xb.P(None, "model"),
    "key": xb.P(None, "model"),
    "value": xb.P(None, "model"),
    "out": xb.P("model"),
    "up": xb.P(None, "model"),
    "down": xb.P("model"),
    "scale": xb.P(),
    "shift": xb.P(),
    "words": xb.P(None, "model"),
}
SHAPES = {
    "x": xb.f32[BATCH, LENGTH, WIDTH],
    "target": xb.f32[BATCH, LENGTH, WORDS],
    "query": xb.f32[WIDTH, HEADS, HEAD],
    "key": xb.f32[WIDTH, HEADS, HEAD],
    "value": xb.f32[WIDTH, HEADS, HEAD],
    "out": xb.f32[HEADS, HEAD, WIDTH],
    "up": xb.f32[WIDTH, HIDDEN],
    "down": xb.f32[HIDDEN, WIDTH],
    "scale": xb.f32[WIDTH],
    "shift": xb.f32[WIDTH],
    "words": xb.f32[WIDTH, WORDS],
}
WEIGHTS = range(2, len(SHAPES))


def expand(x: Any, like: Any, dims: tuple[int, ...]) -> Any:
    """The value, broadcast to the shape of another value; its dimensions become these dimensions of the result."""
    return xb.broadcast_in_dim(x, like.shape.dims, dims)


def mean(x: Any) -> Any:
    return xb.reduce(x, 0.0, xb.add, (2,)) / float(WIDTH)


def normed(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - expand(mean(x), x, (0, 1))
    deviation = xb.rsqrt(mean(centred * centred) + 1e-5)
    return centred * expand(deviation, x, (0, 1)) * expand(scale, x, (2,)) + expand(shift, x, (2,))


def softmax(scores: Any) -> Any:
    top = xb.reduce(scores, -np.inf, xb.maximum, (3,))
    weights = xb.exp(scores - expand(top, scores, (0, 1, 2)))
    return weights / expand(xb.reduce(weights, 0.0, xb.add, (3,)), weights, (0, 1, 2))


def attention(x: Any, query: Any, key: Any, value: Any, out: Any) -> Any:
    """The heads of this device; the results are summed along the axis over which heads are sharded."""
    q, k, v = (xb.dot_general(x, w, [2], [0]) for w in (query, key, value))  # batch, length, head, part of a head
    scores = xb.dot_general(q, k, [3], [3], [0, 2], [0, 2]) / float(HEAD) ** 0.5  # batch, head, length, length
    heads = xb.dot_general(softmax(scores), v, [3], [1], [0, 1], [0, 2])  # batch, head, length, part of a head
    return xb.mesh.psum(xb.dot_general(heads, out, [1, 3], [0, 1]), "model")


def perceptron(x: Any, up: Any, down: Any) -> Any:
    """The hidden units of this device; the results are summed over the devices."""
    return xb.mesh.psum(xb.dot_general(xb.tanh(xb.dot_general(x, up, [2], [0])), down, [2], [0]), "model")


def loss(
    x: Any, target: Any, query: Any, key: Any, value: Any, out: Any, up: Any, down: Any, scale: Any, shift: Any,
    words: Any,
) -> Any:  # fmt: skip
    """The mean squared difference between the scores of all words and the target, over the entire batch."""
    x = x + attention(normed(x, scale, shift), query, key, value, out)
    x = x + perceptron(normed(x, scale, shift), up, down)
    own = xb.dot_general(x, words, [2], [0])
    scores = xb.mesh.all_gather_invariant(own, "model", axis=2, tiled=True)
    error = xb.reduce((scores - target) * (scores - target), 0.0, xb.add)
    return xb.mesh.psum(error, "batch") / float(BATCH * LENGTH * WORDS)


def forward() -> Any:
    """The program of the loss on the mesh."""
    return xb.shard_map(loss, MESH, tuple(SPECS.values()), xb.P()).program(*SHAPES.values())


def typed() -> Any:
    """The gradient with mesh types, which communicates only where the types of cotangents require it."""
    return xb.grad(forward(), WEIGHTS)


def untyped() -> xb.Module:
    """The gradient without types, from the plain module: every device holds the loss, so each starts with a share.

    The transpose of a sum is a sum, and gradients of replicated values are summed over the devices that hold them.
    """
    module = forward().module
    back = xb.vjp(module).entry
    builder = xb.Builder("untyped")
    arguments = [
        xb.parameter(builder, number=n, shape=parameter.shape) for n, parameter in enumerate(module.entry.parameters)
    ]
    seed = xb.constant(builder, np.float32(1 / MESH.num_devices))
    gradients = list(xb.call([*arguments, seed], back))
    found = [sum_over_holders(gradients[n], spec, 100 + n) for n, spec in enumerate(SPECS.values()) if n in WEIGHTS]
    return xb.Module("untyped", builder.build(xb.tuple_(found)), num_partitions=MESH.num_devices)


def sum_over_holders(gradient: Any, spec: xb.P, channel: int) -> Any:
    """The sum over the devices that hold the same value."""
    axes = [axis for axis in MESH.axes if axis not in spec.mentioned]
    groups = MESH.groups(axes)
    return xb.all_reduce(gradient, xb.add, groups, channel_id=channel, use_global_device_ids=True)


def communication(module: xb.Module) -> Mapping[str, Counter[str]]:
    """The collectives of a program by opcode: their number, and the bytes that each device contributes."""
    counts, sizes = Counter[str](), Counter[str]()
    for computation in module.entry.reachable():
        for each in computation.instructions:
            if each.opcode.startswith(("all_", "reduce_scatter", "collective_")):
                counts[each.opcode] += 1
                sizes[each.opcode] += sum(bytes_of(operand.shape) for operand in each.operands)
    return {"count": counts, "bytes": sizes}


def bytes_of(shape: Any) -> int:
    parts = leaves(shape) if isinstance(shape, TupleShape) else [shape]
    return sum(part.size * part.dtype.bits // 8 for part in parts if isinstance(part, Shape))


def arguments() -> list[Any]:
    draw = np.random.default_rng(0)
    return [draw.normal(scale=0.5, size=shape.dims).astype(np.float32) for shape in SHAPES.values()]


def compare_gradients() -> tuple[list[Any], list[Any]]:
    """The gradients of both programs, as global arrays."""
    given, by_type = arguments(), typed()
    results = execute(untyped(), by_type.arguments(*given))
    return list(by_type.run(*given)), list(by_type.joined(results))


def main() -> None:
    program = forward()
    print(f"loss: {program.run(*arguments()):.6f} on {MESH}")
    print("\ninserted casts, whose transposes are the sums of the backward pass:")
    for cast in program.casts:
        print(f"  {cast}")
    for name, module in (("forward", program.module), ("by type", typed().module), ("without types", untyped())):
        found = communication(module)
        shown = ", ".join(f"{n} {opcode} of {found['bytes'][opcode]:,} bytes" for opcode, n in found["count"].items())
        total = f"{found['count'].total()} collectives, {found['bytes'].total():,} bytes from each device"
        print(f"\n{name}: {total}: {shown}\n  {str(xb.check(module)).splitlines()[0]}")
    apart = max(np.max(np.abs(a - b)) for a, b in zip(*compare_gradients(), strict=True))
    print(f"\nthe gradients differ by at most {apart:.1e}")


if __name__ == "__main__":
    main()
