"""A search by a reader of the documents alone: deeply nested programs, whose check has to end in time and be right.

`python -m tests.nested.blind --seed N --programs M` draws programs of loops in loops in branches in calls, down to a
depth of 12, with trips of 0 to 5 that constants, counters, ids of devices or data decide, with computations that are
called many times, states of many leaves, collectives (in conditions, too), sends and recvs, and sometimes another
program on one device. Each is checked with `max_seconds=0.5`. A program disagrees

- where the check takes more than `MOST_SECONDS` of the processor, or raises anything but an XbuildError;
- where it is small, the verdict is `ok`, and a run stops;
- where it is small, the verdict is `deadlock`, and the recorded order runs to completion.

What `docs/checker.md` says is what has to hold; nothing here is taken from the checker or from another generator.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import xbuild as xb

MOST_SECONDS = 2.5
MOST_SITES_RUN = 12
RUN_LIMITS = xb.Limits(trips=40, seconds=3)

State = list[Any]
Block = Callable[[State], State]


@dataclass
class Draw:
    """The state of drawing one program: the state's leaves are a counter, a number, an array, and more of all three."""

    rng: random.Random
    devices: int
    by_partition: bool
    shapes: list[Any]
    has_data: bool
    twist: int = -1
    channel: int = 0
    sites: int = 0
    constants: int = 0
    transfers: int = 0
    most: int = 24
    containers: int = 0
    shared: list[Any] = field(default_factory=list)

    def fresh(self) -> int:
        """The next channel; sometimes one that is taken already."""
        if self.channel and self.rng.random() < 0.02:
            return self.rng.randint(1, self.channel)
        self.channel += 1
        return self.channel

    def number(self, low: int, high: int) -> int:
        """A number in the text; on the twisted device one of them is another."""
        found = self.rng.randint(low, high)
        self.constants += 1
        return found + 1 if self.constants == self.twist else found


def whole(like: Any, literal: int) -> Any:
    return xb.constant(like.builder, literal=np.int32(literal))


def of_kind(draw: Draw, state: State, is_array: bool) -> int:
    """The place of a leaf: an array, or a number."""
    return draw.rng.choice([n for n, shape in enumerate(draw.shapes) if (shape.rank == 1) == is_array])


def device_id(draw: Draw, like: Any) -> Any:
    own = (xb.partition_id if draw.by_partition else xb.replica_id)(like.builder)
    return xb.convert(own, xb.s32)


def groups(draw: Draw) -> list[tuple[int, ...]] | tuple[()]:
    """Groups of a collective: all, halves, or one apart."""
    if draw.rng.random() < 0.7:
        return () if not draw.by_partition else [tuple(range(draw.devices))]
    at = draw.rng.randint(1, draw.devices - 1)
    return [tuple(range(at)), tuple(range(at, draw.devices))]


def pairs(draw: Draw) -> list[tuple[int, int]]:
    source = draw.rng.randrange(draw.devices)
    target = (source + draw.rng.randint(1, draw.devices - 1)) % draw.devices
    if draw.rng.random() < 0.4:
        return [(d, (d + target - source) % draw.devices) for d in range(draw.devices)]
    return [(source, target)]


def collective(draw: Draw, state: State) -> State:
    """One meeting, of a number or an array."""
    draw.sites += 1
    state = list(state)
    is_array = draw.rng.random() < 0.6
    at = of_kind(draw, state, is_array)
    x = state[at]
    channel = draw.fresh() if draw.by_partition or draw.rng.random() < 0.2 else None
    form = draw.rng.random()
    if form < 0.65:
        fold = draw.rng.choice([xb.maximum, xb.minimum]) if not is_array else draw.rng.choice([xb.add, xb.maximum])
        use = {"use_global_device_ids": True} if channel is not None and draw.by_partition else {}
        state[at] = xb.all_reduce(x, fold, groups(draw), channel, **use)
    elif form < 0.85 or not is_array:
        state[at] = xb.collective_permute(x, pairs(draw), channel if draw.by_partition else None)
    else:
        use = {"use_global_device_ids": True} if channel is not None and draw.by_partition else {}
        every = [tuple(range(draw.devices))]
        gathered = xb.all_gather(x, 0, draw.devices, every, channel, **use)
        state[at] = xb.slice(gathered, [0], [2])
    return state


def transfer(draw: Draw, state: State) -> State:
    """A send and its recv, in either order, tied by tokens or free."""
    draw.sites += 2
    draw.transfers += 1
    state = list(state)
    at = of_kind(draw, state, draw.rng.random() < 0.6)
    x, between, channel = state[at], pairs(draw), draw.fresh()
    builder, shape = x.builder, draw.shapes[at]
    form = draw.rng.random()
    if form < 0.35:
        token = xb.send_sync(x, channel, between)
        if draw.rng.random() < 0.5:
            got = xb.recv_sync(shape, channel, between, token=token)
        else:
            got = xb.recv_sync(shape, channel, between, builder=builder)
    elif form < 0.5:
        got = xb.recv_sync(shape, channel, between, builder=builder)
        xb.send_sync(x, channel, between)
    elif form < 0.6:
        got = xb.recv_sync(shape, channel, between, builder=builder)
        xb.send_sync(got, channel, between)
    else:
        posted = xb.recv(builder, shape, channel_id=channel, source_target_pairs=between)
        begun = xb.send(x, channel_id=channel, source_target_pairs=between)
        got = xb.get_tuple_element(xb.recv_done(posted, channel_id=channel), index=0)
        xb.send_done(begun, channel_id=channel)
    if draw.rng.random() < 0.7:
        state[at] = got
    return state


def arithmetic(draw: Draw, state: State) -> State:
    """Counters that count, double, wrap around, or take another's place."""
    state = list(state)
    at, other = of_kind(draw, state, False), of_kind(draw, state, False)
    n, m = state[at], state[other]
    form = draw.rng.randrange(9)
    if form == 0:
        state[at] = n + whole(n, draw.number(-1, 3))
    elif form == 1:
        state[at] = xb.remainder(n * whole(n, 3) + whole(n, 1), whole(n, 7))
    elif form == 2:
        state[at] = m
    elif form == 3:
        state[at], state[other] = m, n
    elif form == 4:
        state[at] = whole(n, draw.number(0, 5))
    elif form == 5:
        state[at] = device_id(draw, n) if draw.rng.random() < 0.4 else n - m
    elif form == 6:
        state[at] = xb.select(xb.compare(n, m, "LT"), n + whole(n, 1), m)
    elif form == 7:
        at = of_kind(draw, state, True)
        state[at] = state[at] * state[of_kind(draw, state, True)] + 1.0
    else:
        at, to = of_kind(draw, state, True), of_kind(draw, state, False)
        if draw.rng.random() < 0.3:
            total = xb.reduce(state[at], 0.0, xb.add, (0,))
            state[to] = xb.convert(xb.clamp(0.0, total, 3.0), xb.s32)
    return state


def decider(draw: Draw, state: State, high: int) -> Any:
    """A number from 0 to `high` that decides."""
    rng = draw.rng
    like = state[0]
    form = rng.random()
    if form < 0.4:
        return whole(like, draw.number(0, high))
    if form < 0.52:
        return xb.remainder(device_id(draw, like) + whole(like, draw.number(0, 2)), whole(like, rng.randint(1, high)))
    n = state[of_kind(draw, state, False)]
    return xb.clamp(whole(like, 0), n, whole(like, high))


def loop(draw: Draw, state: State, inner: Block) -> State:
    """A loop over the state: it counts up, down, in steps, by doubling, or up to an inner number."""
    rng = draw.rng
    bound = decider(draw, state, rng.choice([1, 2, 3, 5]))
    like = state[0]
    form = rng.randrange(6)
    meets = rng.random() < 0.08
    if meets:
        draw.sites += 1

    def body(s: Any) -> Any:
        parts = [xb.get_tuple_element(s, index=n) for n in range(len(state) + 2)]
        i, until, rest = parts[0], parts[1], parts[2:]
        after = inner(rest)
        if form in (0, 1, 5):
            i = i + whole(i, 1)
        elif form == 2:
            until = until - whole(i, 1)
        elif form == 3:
            i = i + whole(i, 2)
        else:
            i = i + i + whole(i, 1)
        if form == 5:
            after = [i if n == counter else each for n, each in enumerate(after)]
        return (i, until, *after)

    counter = of_kind(draw, state, False)

    def condition(s: Any) -> Any:
        i, until = xb.get_tuple_element(s, index=0), xb.get_tuple_element(s, index=1)
        if meets:
            channel = draw.fresh() if draw.by_partition else None
            use = {"use_global_device_ids": True} if draw.by_partition else {}
            every = [tuple(range(draw.devices))] if draw.by_partition else ()
            until = xb.all_reduce(until, xb.maximum, every, channel, **use)
        if form == 1:
            return xb.and_(xb.compare(i, until, "LT"), xb.compare(i, whole(i, 4), "LT"))
        return xb.compare(i, until, "LT")

    found = xb.while_((whole(like, 0), bound, *state), condition, body)
    return [xb.get_tuple_element(found, index=2 + n) for n in range(len(state))]


def traced(inner: Block) -> Callable[[Any], Any]:
    """A function of one tuple."""

    def of(given: Any) -> Any:
        count = len(given.shape)
        return xb.tuple_(inner([xb.get_tuple_element(given, index=n) for n in range(count)]))

    return of


def apart(value: Any, state: State) -> State:
    return [xb.get_tuple_element(value, index=n) for n in range(len(state))]


def branch(draw: Draw, state: State, blocks: Sequence[Block]) -> State:
    """A conditional by number, or by a predicate."""
    rng = draw.rng
    given = xb.tuple_(state)
    if len(blocks) == 2 and rng.random() < 0.6:
        n = decider(draw, state, 3)
        chooser = xb.compare(n, whole(n, draw.number(0, 3)), rng.choice(["LT", "EQ", "GE"]))
    else:
        chooser = decider(draw, state, 3)
    found = xb.conditional(
        chooser, branch_operands=[given] * len(blocks), branch_computations=[traced(each) for each in blocks]
    )
    return apart(found, state)


def block(draw: Draw, depth: int) -> Block:
    """A function of the state, whose containers nest `depth` deep."""

    def of(state: State) -> State:
        rng = draw.rng
        for _ in range(rng.randint(0, 2)):
            state = arithmetic(draw, state)
        site = rng.random()
        if site < (0.25 if depth else 0.6):
            state = (collective if rng.random() < 0.65 else transfer)(draw, state)
        for _ in range(0 if depth <= 0 else 1 if rng.random() < (0.8 if draw.most < 25 else 0.5) else 2):
            if draw.containers > draw.most:
                break
            draw.containers += 1
            form = rng.random()
            inner = block(draw, depth - 1 if rng.random() < 0.85 else min(depth - 1, 1))
            if form < 0.4:
                state = loop(draw, state, inner)
            elif form < 0.7:
                others = [block(draw, min(depth - 1, rng.choice([0, 0, 1]))) for _ in range(rng.choice([1, 1, 2]))]
                blocks = [inner, *others]
                rng.shuffle(blocks)
                state = branch(draw, state, blocks)
            elif form < 0.85 or not draw.shared:
                before = draw.transfers
                computation = xb.computation(xb.TupleShape(tuple(draw.shapes)))(traced(inner))
                # Calls of one transfer from different places are refused, so that most are called once.
                once = draw.transfers > before and rng.random() < 0.9
                if not once:
                    draw.shared.append(computation)
                for _ in range(1 if once else rng.choice([1, 1, 2, 3])):
                    state = apart(xb.call(xb.tuple_(state), computation), state)
            else:
                computation = rng.choice(draw.shared)
                state = apart(xb.call(xb.tuple_(state), computation), state)
            if rng.random() < 0.3:
                state = arithmetic(draw, state)
        return state

    return of


@dataclass
class Program:
    """A program with arguments for each device."""

    module: Any
    arguments: list[list[Any]]
    sites: int
    depth: int


def program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    devices = rng.choice([2, 2, 3, 3, 4])
    is_heavy = rng.random() < 0.06
    leaves = rng.choice([0, 0, 1, 3, 12]) if not is_heavy else rng.choice([3, 40])
    shapes = [xb.s32[()], xb.s32[()], xb.f32[2], *(rng.choice([xb.s32[()], xb.f32[2]]) for _ in range(leaves))]
    depth = rng.choice([1, 1, 2, 2, 3, 4, 6, 8, 10, 12]) if not is_heavy else rng.choice([8, 12])
    by_partition, has_data = rng.random() < 0.5, rng.random() < 0.4
    drawn = rng.randrange(2**40)

    def module(twist: int) -> tuple[xb.Module, Draw]:
        draw = Draw(random.Random(drawn), devices, by_partition, shapes, has_data, twist)
        draw.most = 90 if is_heavy else 24
        builder = xb.Builder("nested")
        state = []
        for n, shape in enumerate(shapes):
            if has_data or shape.rank:
                state.append(xb.parameter(builder, number=len(state), shape=shape, name=f"arg{n}"))
            else:
                state.append(None)
        numbers = [n for n, each in enumerate(state) if each is not None]
        builder = xb.Builder("nested")
        for at, n in enumerate(numbers):
            state[n] = xb.parameter(builder, number=at, shape=shapes[n], name=f"arg{n}")
        for n, each in enumerate(state):
            if each is None:
                state[n] = xb.constant(builder, literal=np.int32(draw.number(0, 5)))
        for _ in range(draw.rng.choice([1, 1, 2])):
            state = block(draw, depth)(state)
        counts = {"num_partitions" if by_partition else "num_replicas": devices}
        return xb.Module("nested", builder.build(xb.tuple_(state)), **counts), draw

    found, draw = module(-1)
    if rng.random() < 0.15 and draw.constants:
        other, _ = module(rng.randint(1, draw.constants))
        odd = rng.randrange(devices)
        found = xb.ModuleGroup([other if d == odd else found for d in range(devices)])
    arguments = []
    for _ in range(devices):
        own: list[Any] = []
        for shape in shapes:
            if shape.rank:
                own.append(np.array([rng.randint(-2, 3), 1], np.float32))
            elif has_data:
                own.append(np.int32(rng.randint(-1, 5)))
        arguments.append(own)
    if rng.random() < 0.5:
        arguments = [arguments[0]] * devices
    return Program(found, arguments, draw.sites, depth)


def outcome(found: Program, *, check: bool) -> str:
    """How a run ends: `ok`, `limit`, or what stopped it."""
    try:
        xb.execute(found.module, found.arguments, check=check, limits=RUN_LIMITS)
    except xb.Stopped as stopped:
        kind = stopped.report.kind
        return "limit" if kind.startswith("limit") else f"stopped: {kind}"
    except xb.Refused as refused:
        return f"refused: {refused.verdict.kind}"
    return "ok"


def judged(found: Program, counts: Counter[str]) -> str | None:
    """What the check does wrong, in words, or None."""
    begun = time.process_time()
    try:
        verdict = xb.check(found.module, max_seconds=0.5)
    except xb.XbuildError as error:
        counts[f"refused {error.kind}"] += 1
        return None
    taken = time.process_time() - begun
    counts[verdict.kind] += 1
    if verdict.kind == "error":
        counts[f"error {verdict.findings[0].kind}"] += 1
    if taken > MOST_SECONDS:
        return f"the check takes {taken:.1f} s of the processor ({verdict.kind})"
    begun = time.process_time()
    str(verdict)
    if time.process_time() - begun > MOST_SECONDS:
        return f"the report takes {time.process_time() - begun:.1f} s of the processor"
    if found.sites <= MOST_SITES_RUN and verdict.kind == "error" and "range" not in verdict.findings[0].kind:
        counts["error, though one order runs with these data"] += outcome(found, check=False) == "ok"
    if found.sites > MOST_SITES_RUN or verdict.kind not in ("ok", "deadlock"):
        return None
    if verdict.kind == "ok":
        ended = outcome(found, check=True)
        counts["ok, run"] += ended == "ok"
        counts["too long to run"] += ended == "limit"
        if ended not in ("ok", "limit"):
            return f"the verdict is ok ({verdict.scope}), and the run is {ended}"
        return None
    ended = outcome(found, check=False)
    counts["deadlock, run"] += ended == "stopped: deadlock"
    if ended == "ok":
        return f"the verdict is deadlock ({verdict.scope}), and the recorded order ends\n{verdict}"
    return None


def texts(module: Any) -> str:
    """The text of a module or of each of a group."""
    if isinstance(module, xb.ModuleGroup):
        parts = module.modules.items() if hasattr(module.modules, "items") else enumerate(module.modules)
        return "\n".join(f"// device {device}\n{each.to_hlo()}" for device, each in parts)
    return str(module.to_hlo())


def tried(seed: int, counts: Counter[str]) -> tuple[str | None, float]:
    """The disagreement of a seed, in words, with the program's text, or None; and the seconds of the processor."""
    found = None
    begun = time.process_time()
    try:
        found = program(seed)
        counts[f"depth {found.depth}"] += 1
        begun = time.process_time()
        said = judged(found, counts)
    except Exception as error:
        if isinstance(error, xb.XbuildError) and found is None:
            counts[f"not drawn: {error.kind}"] += 1
            return None, 0.0
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__} at {os.path.basename(where.filename)}:{where.lineno}: {str(error)[:400]}"
    taken = time.process_time() - begun
    if said is None:
        return None, taken
    text = texts(found.module) if found else ""
    given = [[np.asarray(each).tolist() for each in row] for row in found.arguments] if found else []
    return f"seed {seed}: {said}\n{text}\n  arguments {given}".replace("\n", "\n    "), taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and check; the exit status says whether anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this long")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    begun, finds, done, slowest = time.monotonic(), 0, 0, (0.0, -1)
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() - begun > options.seconds:
            break
        said, taken = tried(seed, counts)
        slowest = max(slowest, (taken, seed))
        done += 1
        if said:
            finds += 1
            print(said, flush=True)
    rows = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{done} programs from seed {options.seed} on: {finds} disagreements; {rows}; slowest {slowest}")
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(main())
