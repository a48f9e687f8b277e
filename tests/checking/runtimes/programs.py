"""Random programs for a few devices, one for each, as lists of operations and as modules."""

from __future__ import annotations

import random
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

import xbuild as xb

Group: TypeAlias = tuple[int, ...]
SIZES = (2, 8)  # elements of a message, of 4 bytes each
TARGET = "tests_checking_runtimes_work"


@frozen
class Op:
    """An operation: reduce, start, done, send, recv, recv_done or call."""

    word: str
    number: int = 0  # of the pair of a start and its done
    groups: tuple[Group, ...] = ()
    channel: int = 0
    peer: int = 0
    elements: int = 2
    function: str = "add"

    def group_of(self, device: int) -> Group:
        return next(group for group in self.groups if device in group)


@frozen
class Programs:
    """The operations of each device."""

    ops: tuple[tuple[Op, ...], ...]
    module: xb.ModuleGroup = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        modules = {n: xb.parse_hlo(text_of(ops)) for n, ops in enumerate(self.ops)}
        object.__setattr__(self, "module", xb.ModuleGroup(modules))

    @property
    def arguments(self) -> list[list[np.ndarray]]:
        return [[np.full(size, device, np.float32) for size in SIZES] for device in range(len(self.ops))]


_HEAD = """HloModule m, is_scheduled=true
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  x2 = f32[2] parameter(0)
  x8 = f32[8] parameter(1)
  t = token[] after-all()
"""


def text_of(ops: tuple[Op, ...]) -> str:
    """The program of one device, in the order of its operations."""
    return (
        _HEAD
        + "".join(f"  {line}\n" for n, op in enumerate(ops) for line in _lines(n, op))
        + ("  ROOT out = f32[2] negate(x2)\n}\n")
    )


def _lines(n: int, op: Op) -> list[str]:
    shape = f"f32[{op.elements}]"
    groups = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in op.groups) + "}"
    channel = f", channel_id={op.channel}" if op.channel else ""
    more = f"replica_groups={groups}, to_apply={op.function}{channel}"
    if op.word == "reduce":
        return [f"o{op.number} = {shape} all-reduce(x{op.elements}), {more}"]
    if op.word == "start":
        return [f"start{op.number} = {shape} all-reduce-start(x{op.elements}), {more}"]
    if op.word == "done":
        return [f"done{op.number} = {shape} all-reduce-done(start{op.number})"]
    context = f"({shape}, u32[], token[])"
    if op.word == "send":
        begun = f"p{op.channel} = {context} send(x{op.elements}, t), channel_id={op.channel}"
        return [begun, f"q{op.channel} = token[] send-done(p{op.channel}), channel_id={op.channel}"]
    if op.word == "recv":
        return [f"r{op.channel} = {context} recv(t), channel_id={op.channel}"]
    if op.word == "recv_done":
        return [f"v{op.channel} = ({shape}, token[]) recv-done(r{op.channel}), channel_id={op.channel}"]
    return [f'c{n} = f32[2] custom-call(x2), custom_call_target="{TARGET}", custom_call_has_side_effect=true']


def draw(seed: int, words: str) -> Programs:
    """Random programs: `words` are the kinds of events that may occur, by their first letters.

    r: a collective that blocks; s: one that is started; t: a transfer; c: a custom call.
    """
    chance = random.Random(seed)
    devices = chance.choice((2, 2, 2, 3))
    every = [partition for partition in _partitions(devices) if max(map(len, partition)) > 1]
    used = chance.sample(every, min(len(every), 2))
    ops: list[list[tuple[float, Op]]] = [[] for _ in range(devices)]
    shuffled = chance.random() < 0.5  # whether devices may order the events differently
    for number in range(chance.choice((2, 3, 3, 4) if devices == 2 else (2, 2, 3))):
        word = chance.choice(words)
        at = [number + (chance.uniform(-1.1, 1.1) if shuffled else 0.0) for _ in range(devices)]
        elements, channel = chance.choice(SIZES) if word == "t" else 2, number + 1
        if word == "t":
            channel += 100
            source, target = chance.sample(range(devices), 2)
            early, late = at[target] - chance.choice((0.0, 1.5)), at[target] + chance.choice((0.0, 1.5))
            ops[source].append((at[source], Op("send", 0, (), channel, target, elements)))
            ops[target].append((early, Op("recv", 0, (), channel, source, elements)))
            ops[target].append((late, Op("recv_done", 0, (), channel, source, elements)))
        elif word == "c":
            device = chance.randrange(devices)
            ops[device].append((at[device], Op("call")))
        else:
            groups = chance.choice(used)
            channel = chance.choice((0, channel, channel, 1))
            function = chance.choice(("add", "add", "add", "maximum"))
            for device in range(devices):
                if chance.random() < 0.03:
                    continue
                if word == "r" or chance.random() < 0.2:
                    ops[device].append((at[device], Op("reduce", number, groups, channel, function=function)))
                else:
                    late = at[device] + chance.choice((0.3, 1.5, 2.5))
                    ops[device].append((at[device], Op("start", number, groups, channel, function=function)))
                    ops[device].append((late, Op("done", number, groups, channel, function=function)))
    return Programs(tuple(tuple(op for _, op in sorted(each, key=lambda pair: pair[0])) for each in ops))


def _partitions(count: int) -> list[tuple[Group, ...]]:
    """The partitions of so many devices into groups."""
    if not count:
        return [()]
    found = []
    for smaller in _partitions(count - 1):
        for place, group in enumerate(smaller):
            found.append((*smaller[:place], (*group, count - 1), *smaller[place + 1 :]))
        found.append((*smaller, (count - 1,)))
    return found
