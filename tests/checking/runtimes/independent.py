"""A second model of runtimes, written from the documents alone, and a campaign of each rule against check and run.

The model reads the fields in docs/checker.md as a transition system. A state has, for each device, its position in its
program, the phase of the instruction there, and the progress of each collective that it has launched; and, for each
host, the communicator that holds its lock. All interleavings are explored, each state once.

    python -m tests.checking.runtimes.independent --feature streams --programs 20000 --seed 1
"""

import argparse
import functools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attrs import evolve

import xbuild as xb

MOST_STATES = 200_000

# The targets of custom calls: one with a side effect, and one without.
CALL, SYNCHRONIZE = "tests_independent_call", "tests_independent_synchronize"

# The progress of a collective of a device.
WAITING, LAUNCHED, PLACED, BEGUN, ENDED = range(5)


@dataclass(frozen=True)
class Collective:
    """An all-reduce over groups, or a permute, whose pairs each device states for itself."""

    channel: int
    groups: tuple[tuple[int, ...], ...]
    elements: int = 2
    pairs: tuple[tuple[tuple[int, int], ...], ...] | None = None

    def group_of(self, device: int) -> frozenset[int]:
        """Return the devices that take part together with this one."""
        return next(frozenset(group) for group in self.groups if device in group)


@dataclass(frozen=True)
class Transfer:
    """A send from one device and its recv on another."""

    channel: int
    source: int
    target: int
    elements: int = 2


# ("sync", Collective), ("start", Collective), ("done", Collective), ("send", Transfer), ("recv", Transfer),
# ("recv-done", Transfer), ("call", target)
Instruction = tuple[str, Any]


@dataclass(frozen=True)
class Launch:
    """One run of a program on a device; `number` counts the earlier launches of this name there."""

    name: str
    number: int
    body: tuple[Instruction, ...]


@dataclass(frozen=True)
class Program:
    """What each device runs: its launches, in order."""

    devices: tuple[tuple[Launch, ...], ...]
    send_buffers: int = 0


# -- The model --


class Model:
    """The transition system of one program under one runtime.

    Only a move that takes a place (a lock, a place of a device, a thread) makes another one impossible. All other moves
    come first, in one order. With `is_full`, they come in every order, too.
    """

    def __init__(self, program: Program, runtime: xb.Runtime, *, is_full: bool = False) -> None:
        self.runtime, self.is_full = runtime, is_full
        self.send_buffers = program.send_buffers
        self.count = len(program.devices)
        self.hosts = [device // (runtime.devices_per_host or self.count) for device in range(self.count)]
        self.steps: list[list[tuple[Any, ...]]] = []  # what the host of each device does for it, in order
        self.launched: list[list[tuple[Any, ...]]] = []  # the collectives of each device, in order
        for device, launches in enumerate(program.devices):
            self._compile(device, launches)
        self._match()

    def _compile(self, device: int, launches: tuple[Launch, ...]) -> None:
        """List the steps of a device. A communicator has a step of its own before the step that needs it."""
        runtime, steps, launched = self.runtime, [], []
        made: set[Any] = set()
        arrivals: Counter[Any] = Counter()

        def create(key: Any, members: frozenset[int]) -> None:
            if key not in made and len(members) > 1:
                made.add(key)
                steps.append(("create", key, members))

        if runtime.communicators == "start":
            groups = {what.group_of(device) for one in launches for kind, what in one.body if kind in ("sync", "start")}
            for group in sorted(groups, key=lambda group: (-len(group), sorted(group))):
                create(group, group)
        for launch in launches:
            begun: dict[Collective, int] = {}
            own = (launch.name, launch.number)
            for kind, what in launch.body:
                if kind in ("sync", "start"):
                    group = what.group_of(device)
                    if runtime.communicators == "first_use":
                        create(group, group)
                    elif runtime.communicators == "split" and group not in made and len(group) > 1:
                        made.add(group)
                        if len(what.groups) == 1:
                            create(("created", group), group)
                        else:
                            create(("split", what.groups), frozenset(member for one in what.groups for member in one))
                    key = (group,) if runtime.collectives == "order" else (own, what.channel, group)
                    identity = (
                        own,
                        what.channel,
                        what.elements,
                        None if runtime.own_pairs or not what.pairs else what.pairs[device],
                    )
                    begun[what] = len(launched)
                    steps.append((kind, len(launched)))
                    launched.append((key, arrivals[key], group, identity, kind == "start"))
                    arrivals[key] += 1
                elif kind == "done":
                    steps.append((kind, begun[what]))
                elif kind == "call":
                    steps.append((kind, what))
                else:
                    if kind != "recv-done" and runtime.pair_communicators:
                        pair = frozenset([what.source, what.target])
                        create(("pair", pair), pair)
                    key = ("transfer", what.source, what.target) + (
                        () if runtime.transfers == "order" else (own, what.channel)
                    )
                    if kind != "recv-done":
                        arrivals[key, kind] += 1
                        begun[what] = arrivals[key, kind] - 1
                    eager = what.elements * 4 <= runtime.eager_bytes
                    steps.append(
                        (kind, key, begun[what], what.source, what.target, eager, (own, what.channel, what.elements))
                    )
        self.steps.append(steps)
        self.launched.append(launched)

    def _match(self) -> None:
        """Find the partner of each step on each other device; None if it has none there."""
        where = [{(entry[0], entry[1]): number for number, entry in enumerate(launched)} for launched in self.launched]
        self.partners = [
            [{member: where[member].get((key, n)) for member in group} for key, n, group, *_ in launched]
            for launched in self.launched
        ]
        self.creations = [
            {step[1]: place for place, step in enumerate(steps) if step[0] == "create"} for steps in self.steps
        ]
        self.transfers: list[dict[Any, tuple[int, Any]]] = [
            {
                (step[0], step[1], step[2]): (place, step[6])
                for place, step in enumerate(steps)
                if step[0] in ("send", "recv")
            }
            for steps in self.steps
        ]

    def explore(self) -> set[str]:
        """Return how the program may come out: "ends", "hangs", "mispaired"; "large" if there are too many states."""
        # For each device: position, phase, progress of its collectives; for each host: its lock.
        first = (tuple((0, 0, (0,) * len(launched)) for launched in self.launched), (None,) * (self.hosts[-1] + 1))
        seen, todo, outcomes = {first}, [first], set()
        while todo:
            state = todo.pop()
            found = self.successors(state)
            if found is None:
                outcomes.add("mispaired")
            elif not found:
                outcomes.add(
                    "ends"
                    if all(one[0] == len(steps) for one, steps in zip(state[0], self.steps, strict=True))
                    else "hangs"
                )
            else:
                fresh = [one for one in found if one not in seen]
                seen.update(fresh)
                todo += fresh
                if len(seen) > MOST_STATES:
                    return {"large"}
        return outcomes

    def successors(self, state: Any) -> list[Any] | None:
        """Return the states that follow; None if two calls that differ form one collective or transfer."""
        devices, locks = state
        result, inf = [], float("inf")
        for device, (place, phase, progress) in enumerate(devices):
            moves: list[tuple[bool, Any, Any]] = []  # whether it takes a place; the device and the locks after it
            if place < len(self.steps[device]) and self._may_launch(device, devices):
                step = self.steps[device][place]
                ways = getattr(self, "_" + step[0].replace("-", "_"))(device, step, phase, progress, devices, locks)
                if ways is None:
                    return None
                for new_place, new_phase, new_progress, lock in ways:
                    is_taking = new_place == 0 and step[0] in ("create", "call")
                    moves.append((is_taking, (place + new_place, new_phase, new_progress), lock))
            for number, status in enumerate(progress):
                after = status
                if status == LAUNCHED and self._has_room(device, number, progress):
                    after = BEGUN if self.runtime.threads == inf else PLACED
                elif status == PLACED and self._free_threads(device, devices) >= 1:
                    after = BEGUN
                elif status == BEGUN and self._may_end(device, number, devices):
                    after = ENDED
                if after == BEGUN and status != BEGUN and self._is_mispaired(device, number, devices):
                    return None
                if after != status:
                    is_taking = (status == LAUNCHED and self.runtime.resident < inf) or status == PLACED
                    moves.append((is_taking, (place, phase, _with(progress, number, after)), locks))
            for is_taking, move, lock in moves:
                follower = (*devices[:device], move, *devices[device + 1 :]), lock
                if not is_taking and not self.is_full:
                    return [follower]
                result.append(follower)
        return result

    def _may_launch(self, device: int, devices: Any) -> bool:
        """launches="in_turn": the programs of the devices before it, on the same host, have ended."""
        if self.runtime.launches == "together":
            return True
        earlier = (other for other in range(device) if self.hosts[other] == self.hosts[device])
        return all(devices[other][0] == len(self.steps[other]) for other in earlier)

    # A collective on its device: it takes a place of the device, then a thread of the host, begins, and gives both
    # back at its end.

    def _stream(self, device: int, number: int) -> Any:
        """The stream of a collective. A synchronous one is on that of its communicator, or on none."""
        _, _, group, _, is_started = self.launched[device][number]
        if self.runtime.streams == "communicator":
            return group
        return "one" if self.runtime.streams == "one" and is_started else number

    def _has_room(self, device: int, number: int, progress: tuple[int, ...]) -> bool:
        stream = self._stream(device, number)
        for before in range(number):
            if progress[before] != ENDED and self._stream(device, before) == stream:
                return False  # a stream runs its collectives in the order of their launches
            if self.runtime.launch_order and progress[before] < BEGUN:
                return False  # they begin in the order of their launches, on whatever streams
        return progress.count(PLACED) + progress.count(BEGUN) < self.runtime.resident

    def _free_threads(self, device: int, devices: Any) -> float:
        taken = 0
        for other, (place, phase, progress) in enumerate(devices):
            if self.hosts[other] == self.hosts[device]:
                taken += progress.count(BEGUN)
                if place < len(self.steps[other]) and self.steps[other][place][0] == "call":
                    taken += phase
        return self.runtime.threads - taken

    def _may_end(self, device: int, number: int, devices: Any) -> bool:
        partners = self.partners[device][number]
        return all(partner is not None and devices[member][2][partner] >= BEGUN for member, partner in partners.items())

    def _is_mispaired(self, device: int, number: int, devices: Any) -> bool:
        mine = self.launched[device][number][3]
        return any(
            partner is not None and devices[member][2][partner] >= BEGUN and self.launched[member][partner][3] != mine
            for member, partner in self.partners[device][number].items()
        )

    # The steps of a device. Each returns the ways on: how far, the new phase, the new progress and the locks.

    def _create(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any]:
        _, key, members = step
        host = self.hosts[device]
        if phase == 0:
            if not self.runtime.creation_lock:
                return [(0, 1, progress, locks)]
            if locks[host] in (None, key):  # one communicator at a time, for all devices of the host
                return [(0, 1, progress, (*locks[:host], key, *locks[host + 1 :]))]
            return []
        for member in members:
            at = self.creations[member].get(key)
            if at is None or devices[member][0] < at or (devices[member][0] == at and devices[member][1] == 0):
                return []
        return [(1, 0, progress, (*locks[:host], None, *locks[host + 1 :]) if locks[host] == key else locks)]

    def _start(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any]:
        return [(1, 0, _with(progress, step[1], LAUNCHED), locks)]

    def _sync(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any]:
        if progress[step[1]] == WAITING:
            return [(0, 0, _with(progress, step[1], LAUNCHED), locks)]
        return [(1, 0, progress, locks)] if progress[step[1]] == ENDED else []

    def _done(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any]:
        return [(1, 0, progress, locks)] if progress[step[1]] == ENDED else []

    def _call(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any]:
        """A custom call; its phase is the number of threads that it holds.

        One that has no side effect and does not synchronize holds none.
        """
        if (
            step[1] in self.runtime.synchronizing
            and phase == 0
            and any(LAUNCHED <= status < ENDED for status in progress)
        ):
            return []
        holds = step[1] == CALL or step[1] in self.runtime.synchronizing
        if holds and self.runtime.threads < float("inf") and phase <= self.runtime.callback_threads:
            return [(0, phase + 1, progress, locks)] if self._free_threads(device, devices) >= 1 else []
        return [(1, 0, progress, locks)]

    def _other_half(self, device: int, step: Any, kind: str, devices: Any, earlier: int = 0) -> bool | None:
        """Return whether the other half has happened; None if it differs."""
        _, key, number, source, target, _, identity = step
        there = target if kind == "recv" else source
        found = self.transfers[there].get((kind, key, number - earlier))
        if found is None or devices[there][0] <= found[0]:
            return False
        return None if found[1] != identity and earlier == 0 else True

    def _send(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any] | None:
        posted = self._other_half(device, step, "recv", devices)
        if posted is None:
            return None
        free = (
            step[5] or step[2] < self.send_buffers or self._other_half(device, step, "recv", devices, self.send_buffers)
        )
        return [(1, 0, progress, locks)] if posted or free else []

    def _recv(self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any) -> list[Any] | None:
        return None if self._other_half(device, step, "send", devices) is None else [(1, 0, progress, locks)]

    def _recv_done(
        self, device: int, step: Any, phase: int, progress: Any, devices: Any, locks: Any
    ) -> list[Any] | None:
        sent = self._other_half(device, step, "send", devices)
        return None if sent is None else [(1, 0, progress, locks)] if sent else []


def _with(progress: tuple[int, ...], number: int, status: int) -> tuple[int, ...]:
    """The progress after one collective has got this far."""
    return (*progress[:number], status, *progress[number + 1 :])


# -- Programs --


@xb.custom_call_target(CALL)
def _call(value: Any) -> Any:
    return value


@xb.custom_call_target(SYNCHRONIZE)
def _synchronize(value: Any) -> Any:
    return value


_HEADER = """HloModule {name}, is_scheduled=true, replica_count={count}
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[2] constant({{1, 2}})  y = f32[8] constant({{1, 2, 3, 4, 5, 6, 7, 8}})
"""


def write_program(program: Program) -> xb.ModuleGroup:
    """Return the program in HLO."""
    count = len(program.devices)
    modules = [[_module(one, device, count) for one in launches] for device, launches in enumerate(program.devices)]
    if all(len(launches) == 1 and launches[0].name == "m" for launches in program.devices):
        return xb.ModuleGroup([one[0] for one in modules])
    return xb.in_flight(dict(enumerate(modules)))


@functools.lru_cache(maxsize=256)
def _module(launch: Launch, device: int, count: int) -> xb.Module:
    """The program of a launch; programs that differ only in their order have the same instructions."""
    calls: Counter[str] = Counter()
    groups = []
    for kind, what in launch.body:
        calls[what] += kind == "call"
        groups.append((kind, what, calls[what] if kind == "call" else 0))
    module = _read(launch.name, frozenset(groups), device, count)
    entry, constants = module.entry, [module.entry["x"], module.entry["y"]]
    ordered = [entry[name] for group in groups for name, _ in _lines(*group, device)]
    entry = evolve(entry, instructions=(*constants, *ordered, entry.root))
    return evolve(module, entry=entry, computations=(*module.computations[:-1], entry))


@functools.lru_cache(maxsize=64)
def _read(name: str, groups: frozenset[tuple[str, Any, int]], device: int, count: int) -> xb.Module:
    """A program with these instructions, the starts before the dones."""
    rank = {"done": 1, "recv-done": 1}
    ordered = sorted(groups, key=lambda group: (rank.get(group[0], 0), str(group)))
    lines = [line for group in ordered for line in _lines(*group, device)]
    # The second call of a target, the fourth and so on have no user.
    results = {"x": 2} | {
        f"{kind}{what.channel}": what.elements for kind, what, _ in ordered if kind in ("sync", "done")
    }
    results |= {_lines(*group, device)[0][0]: 2 for group in ordered if group[0] == "call" and group[2] % 2}
    shapes = ", ".join(f"f32[{elements}]" for elements in results.values())
    body = "\n".join(f"{name} = {text}" for name, text in lines)
    root = f"ROOT out = ({shapes}) tuple({', '.join(results)})"
    return xb.parse_hlo(f"{_HEADER.format(name=name, count=count)}{body}\n{root} }}\n")


def _lines(kind: str, what: Any, number: int, device: int) -> list[tuple[str, str]]:
    """The instructions of HLO for one instruction of a program, each with its name."""
    if kind == "call":
        effect = ", custom_call_has_side_effect=true" if what == CALL else ""
        return [(f"call_{what[-4:]}{number}", f'f32[2] custom-call(x), custom_call_target="{what}"{effect}')]
    shape, value, channel = f"f32[{what.elements}]", "x" if what.elements == 2 else "y", what.channel
    if isinstance(what, Transfer):
        ends = f'"{{{{{what.source},{what.target}}}}}"'
        rest = f"channel_id={channel}, frontend_attributes={{_xla_send_recv_source_target_pairs={ends}}}"
        token, done = (f"token{channel}", "token[] after-all()"), f"channel_id={channel}"
        if kind == "send":
            send = f"({shape}, u32[], token[]) send({value}, token{channel}), {rest}"
            return [token, (f"send{channel}", send), (f"sent{channel}", f"token[] send-done(send{channel}), {done}")]
        if kind == "recv":
            return [token, (f"recv{channel}", f"({shape}, u32[], token[]) recv(token{channel}), {rest}")]
        return [(f"got{channel}", f"({shape}, token[]) recv-done(recv{channel}), {done}")]
    if what.pairs is None:
        opcode = "all-reduce"
        groups = ",".join("{" + ",".join(map(str, group)) + "}" for group in what.groups)
        rest = f"to_apply=add, channel_id={channel}, replica_groups={{{groups}}}"
    else:
        opcode = "collective-permute"
        pairs = ",".join(f"{{{source},{target}}}" for source, target in what.pairs[device])
        rest = f"channel_id={channel}, source_target_pairs={{{pairs}}}"
    if kind == "sync":
        return [(f"sync{channel}", f"{shape} {opcode}({value}), {rest}")]
    if kind == "start":
        started = shape if what.pairs is None else f"({shape}, {shape})"
        return [(f"start{channel}", f"{started} {opcode}-start({value}), {rest}")]
    return [(f"done{channel}", f"{shape} {opcode}-done(start{channel})")]


class Drawing:
    """Draws programs: a list of collectives, transfers and calls; on each device, a few neighbours change places."""

    def __init__(self, draw: random.Random, count: int, **weights: float) -> None:
        self.draw, self.count, self.weights = draw, count, weights
        self.channels = 0

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Draw a partition of the devices."""
        draw, devices = self.draw, list(range(self.count))
        if draw.random() < 0.5:
            return (tuple(devices),)
        draw.shuffle(devices)
        cut = draw.randint(1, self.count - 1)
        return tuple(sorted((tuple(sorted(devices[:cut])), tuple(sorted(devices[cut:])))))

    def bodies(self, size: int) -> list[tuple[Instruction, ...]]:
        """Draw what each device does."""
        draw, weights = self.draw, self.weights
        bodies: list[list[Instruction]] = [[] for _ in range(self.count)]
        pending: list[list[Instruction]] = [[] for _ in range(self.count)]

        def flush(device: int, chance: float) -> None:
            for one in list(pending[device]):
                if draw.random() < chance:
                    pending[device].remove(one)
                    bodies[device].append(one)

        for _ in range(size):
            kind = draw.choices(list(weights), list(weights.values()))[0]
            self.channels += kind not in ("call", "synchronize")
            elements = 8 if draw.random() < 0.2 else 2
            if kind in ("sync", "start", "permute", "permute-start"):
                groups = self.groups() if kind in ("sync", "start") else (tuple(range(self.count)),)
                pairs = None
                if kind.startswith("permute"):
                    ring = tuple(sorted((device, (device + 1) % self.count) for device in range(self.count)))
                    back = tuple(sorted((b, a) for a, b in ring))
                    pairs = tuple(draw.choices([ring, back], [6, 1])[0] for _ in range(self.count))
                what = Collective(self.channels, groups, elements, pairs)
                missing = draw.randrange(self.count) if draw.random() < 0.03 else None
                for device in range(self.count):
                    if device == missing or (len(what.group_of(device)) == 1 and draw.random() < 0.3):
                        continue
                    bodies[device].append(("start" if kind.endswith("start") else "sync", what))
                    if kind.endswith("start"):
                        pending[device].append(("done", what))
            elif kind == "transfer":
                source, target = draw.sample(range(self.count), 2)
                transfer = Transfer(self.channels, source, target, elements)
                bodies[source].append(("send", transfer))
                bodies[target].append(("recv", transfer))
                pending[target].append(("recv-done", transfer))
            else:
                for device in range(self.count):
                    if draw.random() < 0.6:
                        bodies[device].append(("call", CALL if kind == "call" else SYNCHRONIZE))
            for device in range(self.count):
                flush(device, 0.4)
        for device in range(self.count):
            flush(device, 1)
            self.perturb(bodies[device])
        return [tuple(body) for body in bodies]

    def perturb(self, body: list[Instruction]) -> None:
        """Let a few neighbours change places."""
        for _ in range(self.draw.choice([0, 1, 1, 1, 2])):
            swap(self.draw, body)

    def program(self, size: int, send_buffers: int = 0) -> Program:
        """Draw a program that each device launches once."""
        return Program(tuple((Launch("m", 0, body),) for body in self.bodies(size)), send_buffers)

    def flight(self, size: int) -> Program:
        """Draw two programs and the order in which each device launches them."""
        draw = self.draw
        programs = {}
        for name in ("p", "q"):
            if name == "q" and draw.random() < 0.3:
                self.channels = 0  # two programs may use one channel id
            programs[name] = self.bodies(draw.randint(1, size))
        order = draw.choice([["p", "q"], ["p", "q"], ["p", "p", "q"], ["q"]])
        devices = []
        for device in range(self.count):
            mine = list(order)
            if draw.random() < 0.4:
                draw.shuffle(mine)
            numbers: Counter[str] = Counter()
            launches = []
            for name in mine:
                launches.append(Launch(name, numbers[name], programs[name][device]))
                numbers[name] += 1
            devices.append(tuple(launches))
        return Program(tuple(devices))


def swap(draw: random.Random, body: list[Instruction]) -> None:
    """Let two neighbours change places, but no start and its done."""
    if len(body) > 1:
        at = draw.randrange(len(body) - 1)
        if body[at][0] == "call" or body[at][1] != body[at + 1][1]:
            body[at], body[at + 1] = body[at + 1], body[at]


def vary(name: str, program: Program, device: int, variant: int) -> tuple[Launch, ...]:
    """Let neighbours in the programs of a device change places; the first variant is the program as it was drawn."""
    changed: dict[str, tuple[Instruction, ...]] = {}
    for one in program.devices[device]:
        if one.name not in changed:
            draw, body = random.Random(f"{name} {device} {variant} {one.name}"), list(one.body)
            for _ in range(draw.choice([1, 1, 2, 3, 4]) if variant else 0):
                swap(draw, body)
            changed[one.name] = tuple(body)
    return tuple(Launch(one.name, one.number, changed[one.name]) for one in program.devices[device])


Drawn = tuple[Program, xb.Runtime]


def _draw_order(draw: random.Random) -> Drawn:
    fields = draw.choice(
        [{"collectives": "order"}, {"transfers": "order"}, {"collectives": "order", "transfers": "order"}]
    )
    return Drawing(draw, draw.choice([2, 2, 3]), sync=3, start=2, transfer=4).program(draw.randint(3, 5)), xb.Runtime(
        name="r", **fields
    )


def _draw_site(draw: random.Random) -> Drawn:
    return Drawing(draw, draw.choice([2, 3]), sync=3, start=3, transfer=2).program(draw.randint(3, 5)), xb.Runtime(
        name="r"
    )


def _draw_channel(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(name="r", collectives="channel", own_pairs=draw.random() < 0.6)
    weights = {"sync": 2, "start": 2, "permute": 3, "permute-start": 2, "transfer": 1}
    return Drawing(draw, draw.choice([2, 3]), **weights).program(draw.randint(3, 5)), runtime


def _draw_communicators(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r",
        collectives=draw.choice(["site", "channel", "channel"]),
        communicators=draw.choice(["exist", "first_use", "split", "start"]),
        pair_communicators=draw.random() < 0.4,
        creation_lock=draw.random() < 0.5,
        devices_per_host=draw.choice([None, 1, 2]),
    )
    count = draw.choice([2, 3, 3, 4])
    return Drawing(draw, count, sync=3, start=2, transfer=2).program(draw.randint(3, 5 if count < 4 else 3)), runtime


def _draw_streams(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r",
        collectives=draw.choice(["site", "channel"]),
        streams=draw.choice(["each", "communicator", "one"]),
        resident=draw.choice([float("inf"), 1, 1, 2]),
        launch_order=draw.random() < 0.3,
    )
    return Drawing(draw, draw.choice([2, 2, 3]), sync=1, start=4, transfer=0.5).program(draw.randint(3, 5)), runtime


def _draw_synchronizing(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r",
        collectives="channel",
        synchronizing=(SYNCHRONIZE,),
        streams=draw.choice(["each", "each", "communicator", "one"]),
    )
    return Drawing(draw, draw.choice([2, 3]), sync=1, start=3, transfer=1, synchronize=3).program(
        draw.randint(2, 4)
    ), runtime


def _draw_pools(draw: random.Random) -> Drawn:
    count = draw.choice([2, 2, 3])
    runtime = xb.Runtime(
        name="r",
        collectives="channel",
        threads=draw.choice([1, 1, 2, 2, 3]),
        callback_threads=draw.choice([0, 1, 1, 2]),
        devices_per_host=draw.choice([None, None, 1, 2]),
    )
    return Drawing(draw, count, sync=3, start=1, transfer=1, call=3).program(draw.randint(3, 4)), runtime


def _draw_eager(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r", eager_bytes=draw.choice([0, 7, 8, 31, 32, 1000]), transfers=draw.choice(["channel", "order"])
    )
    program = Drawing(draw, draw.choice([2, 2, 3]), sync=1, transfer=5).program(
        draw.randint(2, 4), draw.choice([0, 0, 0, 1, 2])
    )
    return program, runtime


def _draw_in_flight(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r",
        collectives=draw.choice(["site", "channel", "channel", "order"]),
        launches=draw.choice(["together", "together", "in_turn"]),
        devices_per_host=draw.choice([None, 1]),
    )
    return Drawing(draw, draw.choice([2, 2, 3]), sync=3, start=2, transfer=2).flight(2), runtime


def _draw_host_waits(draw: random.Random) -> Drawn:
    runtime = xb.Runtime(
        name="r",
        collectives=draw.choice(["site", "channel"]),
        launches="in_turn",
        devices_per_host=draw.choice([None, 1, 2]),
        eager_bytes=draw.choice([0, 8]),
    )
    drawing = Drawing(draw, draw.choice([2, 3, 3]), sync=1, start=1, transfer=4)
    return drawing.program(draw.randint(3, 4)) if draw.random() < 0.7 else drawing.flight(2), runtime


def _draw_mixed(draw: random.Random) -> Drawn:
    inf = float("inf")
    runtime = xb.Runtime(
        name="r",
        collectives=draw.choice(["site", "channel", "channel", "order"]),
        transfers=draw.choice(["channel", "channel", "order"]),
        eager_bytes=draw.choice([0, 0, 8]),
        communicators=draw.choice(["exist", "exist", "first_use", "split", "start"]),
        pair_communicators=draw.random() < 0.3,
        creation_lock=draw.random() < 0.3,
        streams=draw.choice(["each", "communicator", "one"]),
        resident=draw.choice([inf, inf, 1, 2]),
        launch_order=draw.random() < 0.3,
        synchronizing=(SYNCHRONIZE,),
        threads=draw.choice([inf, inf, 2, 3, 4]),
        callback_threads=draw.choice([0, 1]),
        devices_per_host=draw.choice([None, 1, 2]),
        launches=draw.choice(["together", "together", "together", "in_turn"]),
    )
    drawing = Drawing(draw, draw.choice([2, 2, 3]), sync=2, start=3, transfer=1, call=1, synchronize=1)
    return drawing.program(draw.randint(3, 4)) if draw.random() < 0.8 else drawing.flight(2), runtime


def _draw_presets(draw: random.Random) -> Drawn:
    runtime = xb.RUNTIMES[draw.choice(sorted(xb.RUNTIMES))]
    drawing = Drawing(draw, draw.choice([2, 3]), sync=2, start=2, permute=1, transfer=3)
    return (drawing.program(draw.randint(3, 5)), runtime)


FEATURES: dict[str, Callable[[random.Random], Drawn]] = {
    "order": _draw_order,
    "site": _draw_site,
    "channel": _draw_channel,
    "communicators": _draw_communicators,
    "streams": _draw_streams,
    "synchronizing": _draw_synchronizing,
    "pools": _draw_pools,
    "eager": _draw_eager,
    "in_flight": _draw_in_flight,
    "host_waits": _draw_host_waits,
    "presets": _draw_presets,
    "mixed": _draw_mixed,
}


# -- The campaign --


def run_program(module: xb.ModuleGroup, runtime: xb.Runtime, send_buffers: int) -> str:
    """Return how a run without the check comes out."""
    try:
        xb.execute(
            module, [[] for _ in range(module.num_devices)], runtime=runtime, send_buffers=send_buffers, check=False
        )
    except xb.Stopped as stop:
        return "mispaired" if "mismatch]" in str(stop).splitlines()[0] else "hangs"
    return "ends"


FAMILY, VARIANTS = 64, 8


def draw_program(feature: str, seed: int) -> Drawn:
    """Draw a program and a runtime.

    The seeds of a family share the runtime, and each device has a few variants of its program, which are read once.
    """
    name = f"{feature} {seed // FAMILY}"
    program, runtime = _family(feature, name)
    draw = random.Random(f"{feature} {seed} varied")
    variants = [draw.randrange(VARIANTS) if seed % FAMILY else 0 for _ in program.devices]
    devices = tuple(vary(name, program, device, variant) for device, variant in enumerate(variants))
    return Program(devices, program.send_buffers), runtime


@functools.lru_cache(maxsize=1)
def _family(feature: str, name: str) -> Drawn:
    return FEATURES[feature](random.Random(name))


def judge(
    program: Program, runtime: xb.Runtime, *, is_run: bool = True, is_full: bool = True
) -> tuple[str, str, str, set[str]]:
    """Return the judgement, the verdict, the run's outcome and the outcomes that the model finds."""
    outcomes = Model(program, runtime, is_full=is_full).explore()
    module = write_program(program)
    verdict = xb.check(module, runtime=runtime, send_buffers=program.send_buffers)
    ran = run_program(module, runtime, program.send_buffers) if is_run else ""
    calls = any(what == CALL for launches in program.devices for launch in launches for _, what in launch.body)
    kind = "ok" if calls and verdict.kind == "depends" else verdict.kind  # it depends on the return of the function
    return compare(kind, ran, outcomes), kind, ran, outcomes


def compare(kind: str, ran: str, outcomes: set[str]) -> str:
    """Compare a verdict, a run and the outcomes of all interleavings."""
    if "large" in outcomes:
        return "large"
    if kind == "ok" and outcomes != {"ends"}:
        return "unsound"
    if ran and ran not in outcomes:
        return "impossible run"
    if kind == "ok" and ran not in ("", "ends"):
        return "unsound run"
    if kind == "deadlock" and ran == "ends":
        return "run ends"
    if kind != "ok" and outcomes == {"ends"}:
        return "false alarm"
    if kind == "deadlock" and "hangs" not in outcomes:
        return "wrong kind"
    return "agree"


def main() -> int:
    """Run one feature, or each in turn; return 1 if anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feature", choices=sorted(FEATURES), default=None)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--run-every", type=int, default=1, help="run one program of this many, as well")
    parser.add_argument(
        "--full-every", type=int, default=20, help="in one of this many, try moves that take no place in every order"
    )
    parser.add_argument("--show", type=int, default=10, help="how many disagreements are listed")
    options = parser.parse_args()
    failed = False
    for feature in [options.feature] if options.feature else FEATURES:
        judged, kinds, seen, runs, begun = Counter[str](), Counter[str](), set[int](), 0, time.process_time()
        seed = options.seed
        while len(seen) < options.programs:
            program, runtime = draw_program(feature, seed)
            seed += 1
            if hash((program, runtime)) in seen:
                continue
            seen.add(hash((program, runtime)))
            is_run = seed % options.run_every == 0
            runs += is_run
            is_full = seed % options.full_every == 0
            what, kind, ran, outcomes = judge(program, runtime, is_run=is_run, is_full=is_full)
            judged[what] += 1
            kinds[f"{kind}/{min(outcomes - {'ends'}, default='ends')}"] += 1
            if what not in ("agree", "large"):
                failed = True
                if judged.total() - judged["agree"] <= options.show:
                    told = f"verdict {kind}, run {ran or 'none'}, model {sorted(outcomes)}"
                    print(f"{feature} {seed - 1}: {what}: {told}", flush=True)
        counts = ", ".join(f"{count} {name}" for name, count in judged.most_common())
        shares = ", ".join(f"{count} {name}" for name, count in kinds.most_common())
        took = time.process_time() - begun
        print(
            f"{feature}: seeds {options.seed} to {seed - 1}, {len(seen)} programs, {runs} runs, {took:.0f} s: "
            f"{counts} ({shares})",
            flush=True,
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
