"""At least five wrong solutions of each puzzle, as learners write them, each with words of the message about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import xbuild as xb

Wrong: TypeAlias = tuple[Callable[..., Any], str]

TYPE, VALUES = "wrong shape or type", "  spec   "


def rows(x: Any, columns: int = 4) -> Any:
    """A vector along the rows of a matrix."""
    return xb.broadcast_in_dim(x, [x.shape.dims[0], columns], [0])


def columns(y: Any, rows: int = 3) -> Any:
    """A vector along the columns of a matrix."""
    return xb.broadcast_in_dim(y, [rows, y.shape.dims[0]], [1])


def constant(x: Any, value: Any) -> Any:
    return xb.constant(x.builder, value)


def numbered(x: Any, dimension: int, *, is_float: bool = False) -> Any:
    return xb.iota(x.builder, (xb.f32 if is_float else xb.s32)[4, 4], dimension)


def gathered(x: Any, starts: Any) -> Any:
    """The elements of a matrix at these places."""
    return xb.gather(
        x, np.int32(starts),
        offset_dims=[], collapsed_slice_dims=[0, 1], start_index_map=[0, 1], slice_sizes=[1, 1],
        index_vector_dim=np.ndim(starts) - 1,
    )  # fmt: skip


def one_hot(x: Any) -> Any:
    return xb.eq(xb.iota(x.builder, xb.s32[5, 4], 1), rows(x))


def argmax(function: Any, start: int = -(2**31), index: int = 8) -> Any:
    places = xb.s32[8]
    return lambda x: xb.reduce([x, xb.iota(x.builder, places, 0)], [np.int32(start), np.int32(index)], function, [0])


def first_of_equal(a: Any, i: Any, b: Any, j: Any) -> Any:
    first = xb.or_(xb.gt(a, b), xb.and_(xb.eq(a, b), xb.lt(i, j)))
    return xb.select(first, a, b), xb.select(first, i, j)


def last_of_equal(a: Any, i: Any, b: Any, j: Any) -> Any:
    last = xb.or_(xb.gt(a, b), xb.and_(xb.eq(a, b), xb.gt(i, j)))
    return xb.select(last, a, b), xb.select(last, i, j)


def convolved(x: Any, kernel: Any, padding: Any = "VALID") -> Any:
    kernel = constant(x, np.float32(kernel).reshape(1, 1, -1))
    return xb.conv(xb.reshape(x, [1, 1, 8]), kernel, [1], padding)


def counted(x: Any, start: Any, ones: Any, combine: Any = xb.add) -> Any:
    return xb.scatter(
        constant(x, start), x, constant(x, ones), combine,
        update_window_dims=[], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1,
    )  # fmt: skip


def euclid(a: Any, b: Any, condition: Any, step: Any) -> Any:
    return xb.while_((a, b), condition, step)


def remainder_step(s: Any) -> Any:
    return s[1], xb.remainder(s[0], s[1])


def ring(x: Any, count: int, shift: int = 1) -> Any:
    return xb.collective_permute(x, [(replica, (replica + shift) % count) for replica in range(count)])


def gathered_by_ring(x: Any, *, steps: int = 3, shift: int = 1) -> Any:
    """An all-gather by permutes around a ring, with a number of steps."""
    me = xb.convert(xb.replica_id(x.builder), xb.s32)
    result = xb.broadcast(constant(x, np.int32(0)), [8])
    for step in range(steps + 1):
        result = xb.dynamic_update_slice(result, x, [xb.remainder(me + (4 - step), 4) * 2])
        x = ring(x, 4, shift) if step < steps else x
    return result


def doubled(x: Any, have: tuple[int, ...] = (1, 2, 4), *, is_cleared: bool = True) -> Any:
    if is_cleared:
        x = xb.select(xb.eq(xb.replica_id(x.builder), np.uint32(0)), x, 0)
    for count in have:
        x = x + xb.collective_permute(x, [(replica, replica + count) for replica in range(count)])
    return x


def halo(x: Any, left: Any, right: Any) -> Any:
    line = xb.concatenate([left, x, right], 0)
    return line[0:3] + line[1:4] + line[2:5]


LEFT, RIGHT = [(0, 1), (1, 2), (2, 3)], [(1, 0), (2, 1), (3, 2)]


def exchanged(x: Any, *, is_recv_first: bool, pairs: Any = ((0, 1), (1, 0)), own: bool = False) -> Any:
    """Send x and receive the other device's number, one after another."""
    pairs, token = [*pairs], xb.after_all(builder=x.builder)
    if is_recv_first:
        taken, token = xb.recv_done(xb.recv(token, x.shape, channel_id=1, source_target_pairs=pairs), channel_id=1)
        xb.send_done(xb.send(x, token, channel_id=1, source_target_pairs=pairs), channel_id=1)
    else:
        token = xb.send_done(xb.send(x, token, channel_id=1, source_target_pairs=pairs), channel_id=1)
        taken = xb.recv_done(xb.recv(token, x.shape, channel_id=1, source_target_pairs=pairs), channel_id=1)[0]
    return x if own else taken


def posted(x: Any, result: Callable[[Any, Any, Any], Any]) -> Any:
    """The right exchange with another result, made of x, what arrived and its token."""
    pairs, token = [(0, 1), (1, 0)], xb.after_all(builder=x.builder)
    early = xb.recv(token, x.shape, channel_id=1, source_target_pairs=pairs)
    xb.send_done(xb.send(x, token, channel_id=1, source_target_pairs=pairs), channel_id=1)
    taken, token = xb.recv_done(early, channel_id=1)
    return result(x, taken, token)


def of_stages(first: list[str], second: list[str] | None = None) -> Callable[[int], list[str]]:
    return lambda number: first if number == 0 or second is None else second


ONE_BY_ONE = ["F0", "B0", "F1", "B1", "F2", "B2", "F3", "B3"]
EAGER = ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"]

WRONG: dict[int, list[Wrong]] = {
    1: [
        (lambda x, y: xb.add(rows(y, 3), columns(x, 4)), TYPE),
        (lambda x, y: xb.add(rows(x), rows(x)), VALUES),
        (lambda x, y: xb.add(columns(y), columns(y)), VALUES),
        (lambda x, y: xb.multiply(rows(x), columns(y)), "does not allow multiply"),
        (lambda x, y: xb.tuple_([xb.add(xb.broadcast(x[n], [4]), y) for n in range(3)]), "does not allow"),
        (lambda x, y: xb.add(x, x), TYPE),
        (lambda x, y: xb.tuple_([xb.add(rows(x), columns(y))]), TYPE),
        (lambda x, y: xb.add(x, y), "add"),
    ],
    2: [
        (lambda x: xb.transpose(x, [1, 0]), "does not allow transpose"),
        (lambda x: gathered(x, [[[i, j] for j in range(4)] for i in range(3)]), TYPE),
        (lambda x: gathered(x, [[[j, i] for i in range(3)] for j in range(4)]), VALUES),
        (lambda x: gathered(x, [[i, j] for j in range(4) for i in range(3)]), TYPE),
        (lambda x: x, TYPE),
        (lambda x: gathered(x, [[[i, 3 - j] for i in range(3)] for j in range(4)]), VALUES),
    ],
    3: [
        (one_hot, TYPE),
        (lambda x: xb.convert(one_hot(x), xb.f32), TYPE),
        (lambda x: xb.convert(xb.eq(xb.iota(x.builder, xb.s32[4, 5], 0), columns(x, 4)), xb.s32), TYPE),
        (lambda x: xb.convert(xb.eq(xb.iota(x.builder, xb.s32[5, 4], 0), rows(x)), xb.s32), VALUES),
        (lambda x: xb.convert(xb.ne(xb.iota(x.builder, xb.s32[5, 4], 1), rows(x)), xb.s32), VALUES),
        (lambda x: xb.convert(xb.eq(xb.iota(x.builder, xb.s32[5, 4], 1), xb.clamp(0, rows(x), 3)), xb.s32),
         "does not allow clamp"),
        (lambda x: xb.convert(xb.le(xb.iota(x.builder, xb.s32[5, 4], 1), rows(x)), xb.s32), VALUES),
    ],
    4: [
        (lambda x: xb.ge(numbered(x, 0), numbered(x, 1)), TYPE),
        (lambda x: xb.select(xb.le(numbered(x, 0), numbered(x, 1)), x, 0), VALUES),
        (lambda x: xb.select(xb.gt(numbered(x, 0), numbered(x, 1)), x, 0), VALUES),
        (lambda x: xb.select(xb.ge(numbered(x, 0), numbered(x, 1)), 0, x), VALUES),
        (lambda x: xb.convert(xb.select(xb.ge(numbered(x, 0), numbered(x, 1)), x, 0), xb.f32),
         "does not allow convert"),
        (lambda x: xb.select(xb.ge(numbered(x, 0), numbered(x, 1)), numbered(x, 0, is_float=True), 0.0), TYPE),
    ],
    5: [
        (lambda x: xb.reduce_window(x, 0, xb.add, [8], padding=[(0, 7)]), VALUES),
        (lambda x: xb.reduce_window(x, 0, xb.add, [8]), TYPE),
        (lambda x: xb.reduce_window(x, 0, xb.add, [7], padding=[(6, 0)]), VALUES),
        (lambda x: xb.reduce_window(x, 1, xb.add, [8], padding=[(7, 0)]), VALUES),
        (lambda x: xb.reduce_window(x, 0, xb.add, [8], padding=[(7, 7)]), TYPE),
        (lambda x: xb.reduce_window(x, 0, xb.maximum, [8], padding=[(7, 0)]), "does not allow maximum"),
        (lambda x: xb.reduce(x, 0, xb.add, [0]), "does not allow reduce"),
    ],
    6: [
        (argmax(first_of_equal), TYPE),
        (lambda x: argmax(first_of_equal)(x)[0], VALUES),
        (lambda x: argmax(last_of_equal)(x)[1], VALUES),
        (lambda x: argmax(first_of_equal, 0)(x)[1], VALUES),
        (lambda x: argmax(lambda a, i, b, j: (xb.maximum(a, b), xb.maximum(i, j)))(x)[1], VALUES),
        (lambda x: argmax(lambda a, i, b, j: (xb.select(xb.ge(a, b), a, b), xb.select(xb.ge(a, b), i, j)))(x)[1], ""),
        (lambda x: xb.reduce(x, np.int32(-(2**31)), xb.maximum, [0]), VALUES),
    ],
    7: [
        (lambda q, k: xb.dot_general(q, k, [3], [3], [0], [0]), TYPE),
        (lambda q, k: xb.dot_general(q, k, [3], [3], [2, 0], [2, 0]), "are wrong; the first is"),
        (lambda q, k: xb.dot_general(k, q, [3], [3], [0, 2], [0, 2]), TYPE),
        (lambda q, k: xb.dot_general(q, k, [2], [2], [0, 3], [0, 3]), TYPE),
        (lambda q, k: xb.transpose(xb.dot_general(q, k, [3], [3], [0, 2], [0, 2]), [0, 1, 3, 2]),
         "does not allow transpose"),
        (lambda q, k: xb.dot_general(q, q, [3], [3], [0, 2], [0, 2]), TYPE),
    ],
    8: [
        (lambda x: convolved(x, [1, 1, 1]), TYPE),
        (lambda x: xb.reshape(convolved(x, [1, 1, 1], "SAME"), [8]), TYPE),
        (lambda x: xb.reshape(convolved(x, [1, 2, 1]), [6]), VALUES),
        (lambda x: xb.reshape(convolved(x, [1, 1]), [7]), TYPE),
        (lambda x: xb.reshape(convolved(x, [0, 1, 1]), [6]), VALUES),
        (lambda x: x[0:6] + x[1:7] + x[2:8], "does not allow"),
    ],
    9: [
        (lambda x: counted(x, np.ones(4, np.int32), np.ones(10, np.int32)), VALUES),
        (lambda x: counted(x, np.zeros(4, np.int32), np.ones(10, np.int32), lambda old, new: new), VALUES),
        (lambda x: counted(x, np.zeros(4, np.float32), np.ones(10, np.float32)), TYPE),
        (lambda x: counted(x, np.zeros(5, np.int32), np.ones(10, np.int32)), TYPE),
        (lambda x: counted(x, np.zeros(3, np.int32), np.ones(10, np.int32)), TYPE),
        (lambda x: counted(xb.clamp(0, x, 3), np.zeros(4, np.int32), np.ones(10, np.int32)), "does not allow clamp"),
        (lambda x: counted(x, np.zeros(4, np.int32), 2 * np.ones(10, np.int32)), VALUES),
    ],
    10: [
        (lambda x, y: xb.pad(y, 0, [(0, 1, 1)]) + xb.pad(x, 0, [(1, 0, 1)]), VALUES),
        (lambda x, y: xb.pad(x, 0, [(0, 4, 0)]) + xb.pad(y, 0, [(4, 0, 0)]), VALUES),
        (lambda x, y: xb.pad(x, 0, [(0, 0, 1)]) + xb.pad(y, 0, [(0, 0, 1)]), TYPE),
        (lambda x, y: xb.pad(x, 1, [(0, 1, 1)]) + xb.pad(y, 0, [(1, 0, 1)]), VALUES),
        (lambda x, y: xb.concatenate([x, y], 0), "does not allow concatenate"),
        (lambda x, y: xb.pad(x, 0, [(0, 1, 1)]), VALUES),
    ],
    11: [
        (lambda a, b: xb.eq(a, a), TYPE),
        (lambda a, b: euclid(a, b, lambda s: xb.ne(s[1], 0), remainder_step), TYPE),
        (lambda a, b: euclid(a, b, lambda s: xb.ne(s[1], 0), remainder_step)[1], VALUES),
        (lambda a, b: xb.remainder(a, b), VALUES),
        (lambda a, b: euclid(a, b, lambda s: xb.ne(s[0], 0), remainder_step)[0], VALUES),
        (lambda a, b: euclid(a, b, lambda s: xb.gt(s[1], 1), remainder_step)[0], VALUES),
        (lambda a, b: a, VALUES),
        (lambda a, b: euclid(a, b, lambda s: xb.ne(s[0], s[1]), lambda s: (s[0] - s[1], s[1]))[0], "does not allow"),
    ],
    12: [
        (lambda x: xb.all_reduce(x, xb.add), VALUES),
        (lambda x: xb.all_reduce(x, xb.add, [(0, 3), (1, 4), (2, 5)]), VALUES),
        (lambda x: xb.all_reduce(x, xb.add, [(0, 1), (2, 3), (4, 5)]), VALUES),
        (lambda x: xb.all_reduce(x, xb.add, [(0, 1, 2)]), "replica"),
        (lambda x: xb.all_reduce(x, xb.maximum, [(0, 1, 2), (3, 4, 5)]), "does not allow maximum"),
        (lambda x: xb.all_gather(x, 0, 3, [(0, 1, 2), (3, 4, 5)]), "does not allow all_gather"),
        (lambda x: x, VALUES),
    ],
    13: [
        (lambda x: gathered_by_ring(x, steps=2), VALUES),
        (lambda x: gathered_by_ring(x, shift=-1), VALUES),
        (lambda x: xb.concatenate([x, ring(x, 4), ring(x, 4, 2), ring(x, 4, 3)], 0), VALUES),
        (lambda x: gathered_by_ring(x, steps=4), "4 steps exceed the limit of 3"),
        (lambda x: xb.all_gather(x, 0, 4), "does not allow all_gather"),
        (lambda x: xb.concatenate([x, ring(x, 4)], 0), TYPE),
        (lambda x: xb.collective_permute(gathered_by_ring(x), [(0, 1)]), VALUES),
    ],
    14: [
        (lambda x: xb.all_reduce(x, xb.add), "does not allow all_reduce"),
        (lambda x: xb.reduce_scatter(x, xb.add, 0, 4), TYPE),
        (lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 4, [(1, 0, 2, 3)]), 0, 4), VALUES),
        (lambda x: xb.reduce(xb.reshape(xb.all_gather(x, 0, 4), [4, 8]), 0, xb.add, [0]), "exceed the limit of 48"),
        (lambda x: xb.all_gather(xb.all_to_all(x, 0, 0, 4), 0, 4), TYPE),
        (lambda x: xb.all_gather(xb.reduce_scatter(x, xb.add, 0, 2, [(0, 1), (2, 3)]), 0, 2, [(0, 1), (2, 3)]), VALUES),
    ],
    15: [
        (lambda x: doubled(x, is_cleared=False), VALUES),
        (lambda x: doubled(x, (1, 2)), VALUES),
        (lambda x: xb.collective_permute(x, [(0, target) for target in range(8)]), "source"),
        (lambda x: x, VALUES),
        (lambda x: xb.all_reduce(xb.select(xb.eq(xb.replica_id(x.builder), np.uint32(0)), x, 0), xb.add),
         "does not allow all_reduce"),
        (lambda x: doubled(x, (1, 1, 2, 4)), VALUES),
        (lambda x: xb.convert(doubled(x), xb.f32), TYPE),
    ],
    16: [
        (lambda x: halo(x, xb.collective_permute(x[2:3], RIGHT), xb.collective_permute(x[0:1], LEFT)), VALUES),
        (lambda x: halo(x, xb.collective_permute(x[0:1], LEFT), xb.collective_permute(x[2:3], RIGHT)), VALUES),
        (lambda x: halo(x, ring(x[2:3], 4), ring(x[0:1], 4, 3)), VALUES),
        (lambda x: x, VALUES),
        (lambda x: xb.concatenate(
            [xb.collective_permute(x[2:3], LEFT), x, xb.collective_permute(x[0:1], RIGHT)], 0), TYPE),
        (lambda x: halo(x, xb.collective_permute(x, LEFT)[2:3], xb.collective_permute(x, RIGHT)[0:1]),
         "exceed the limit of 8"),
        (lambda x: halo(x, x[0:1], x[2:3]), VALUES),
    ],
    17: [
        (lambda x: x, TYPE),
        (lambda x: xb.reshape(x, [4, 1]), VALUES),
        (lambda x: xb.slice(xb.all_gather(x, 0, 4), [0, 0], [4, 1], [1, 1]), VALUES),
        (lambda x: xb.all_gather(x, 0, 4), TYPE),
        (lambda x: xb.all_to_all(x, 1, 0, 4, [(1, 0, 2, 3)]), VALUES),
        (lambda x: xb.dynamic_slice(
            xb.all_gather(x, 0, 4), [0, xb.convert(xb.replica_id(x.builder), xb.s32)], [4, 1]),
         "exceed the limit of 12"),
        (lambda x: xb.convert(xb.all_to_all(x, 1, 0, 4), xb.f32), TYPE),
    ],
    18: [
        (lambda x: exchanged(x, is_recv_first=False), "deadlock"),
        (lambda x: exchanged(x, is_recv_first=True), "deadlock"),
        (lambda x: xb.collective_permute(x, [(0, 1), (1, 0)]), "does not allow collective_permute"),
        (lambda x: x, VALUES),
        (lambda x: posted(x, lambda x, taken, token: x), VALUES),
        (lambda x: posted(x, lambda x, taken, token: xb.tuple_([taken, x])), TYPE),
        (lambda x: posted(x, lambda x, taken, token: taken + x), "does not allow add"),
    ],
    19: [
        (lambda: (0, "send to 1", "send to 2"), "deadlock"),
        (lambda: (1, "send to 0", "recv from 0"), "deadlock"),
        (lambda: (2, "send to 0", "recv from 0"), "deadlock"),
        (lambda: (0, "recv from 1", "recv from 2"), "deadlock"),
        (lambda: (0, "send to 1", "recv from 2"), "is not an edge of device 0"),
        (lambda: (3, "send to 0", "recv from 0"), "device 3 does not exist"),
        (list, "is not an edge"),
        (lambda: {0}, "not JSON serializable"),
    ],
    20: [
        (of_stages(ONE_BY_ONE), "never holds 2"),
        (of_stages(["F0", "F1", "F2", "F3", "B0", "B1", "B2", "B3"]), "at most 2"),
        (of_stages(EAGER, ONE_BY_ONE), "deadlock"),
        (of_stages(EAGER[:-1]), "expected each of"),
        (of_stages(["B0", "F0", *ONE_BY_ONE[2:]], ONE_BY_ONE), "runs a B before its F"),
        (of_stages([*EAGER, "F0"]), "expected each of"),
        (lambda number: None, "expected each of"),
        (lambda number: [1, 2, 3], "expected each of"),
    ],
}  # fmt: skip
