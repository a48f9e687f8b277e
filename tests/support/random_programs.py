"""Random straight-line programs for several devices: transfers, collectives, begun and not, in orders that may work."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import Factory, define, field, frozen

import xbuild as xb

SHAPE = xb.f32[4]
# A fault of structure by the kind that its verdict must name, and the steps of one channel that are lost for it.
FAULTS: dict[str, tuple[str, ...]] = {
    "missing_recv": ("recv", "recv-done"),
    "missing_send": ("send", "send-done"),
    "missing_done": ("send-done", "done"),
    "shape_mismatch": (),
    "duplicate_done": (),
    "start_misused": (),
}
OF_STARTED = ("missing_done", "duplicate_done", "start_misused")
OF_TRANSFERS = ("missing_recv", "missing_send", "missing_done", "shape_mismatch")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
OF_TWO_HALVES = ("all-reduce", "all-gather", "collective-permute")


@frozen
class Event:
    """A transfer between pairs of devices, or a collective over groups, under a channel id.

    `starters` are the devices that start the collective and wait for it later, `is_wrapped` by an async-start.
    """

    kind: str
    channel: int
    pairs: tuple[tuple[int, int], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    is_told: bool = True
    starters: frozenset[int] = frozenset()
    is_wrapped: bool = False

    @property
    def told_pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs as the instructions name them; where each device has its own program, they need none."""
        return self.pairs if self.is_told else ()

    def steps(self, device: int | None) -> list[Step]:
        """What a device does for it, in order; None stands for a program that all devices run."""
        if self.kind != "transfer":
            is_started = bool(self.starters) if device is None else device in self.starters
            return [Step("start", self), Step("done", self)] if is_started else [Step("meet", self)]
        sends = device is None or device in {source for source, _ in self.pairs}
        receives = device is None or device in {target for _, target in self.pairs}
        return [Step(word, self) for word in ("send", "send-done") if sends] + [
            Step(word, self) for word in ("recv", "recv-done") if receives
        ]


@frozen
class Step:
    word: str
    event: Event

    def follows(self, other: Step) -> bool:
        pairs = (("send", "send-done"), ("recv", "recv-done"), ("start", "done"))
        return self.event is other.event and (other.word, self.word) in pairs


@frozen
class Program:
    """A program, its inputs, whether the recorded order binds, and the fault that was built in, if any."""

    module: xb.Module | xb.ModuleGroup
    inputs: list[list[Any]]
    is_given: bool
    send_buffers: float
    fault: str | None

    @property
    def form(self) -> str:
        return f"{'MPMD' if isinstance(self.module, xb.ModuleGroup) else 'SPMD'} {'given' if self.is_given else 'free'}"


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    devices = int(rng.integers(2, 7))
    is_given, is_one_program = rng.random() < 0.6, rng.random() < 0.35
    events = [_event(rng, channel, devices, is_one_program) for channel in range(1, int(rng.integers(2, 7)))]
    fault, broken = _fault(rng, events) if rng.random() < 0.1 else (None, None)
    lost = FAULTS[fault] if fault else ()
    recorder = _Recorder(rng, fault, broken)
    module: xb.Module | xb.ModuleGroup
    orders = {d: _order(rng, events, d, lost, broken) for d in ([None] if is_one_program else range(devices))}
    if is_one_program:
        module = xb.Module("spmd", recorder.record("every", orders[None]), num_replicas=devices, is_scheduled=is_given)
    else:
        computations = {d: recorder.record(f"d{d}", orders[d]) for d in range(devices)}
        declared = devices if rng.random() < 0.5 else 1
        module = xb.ModuleGroup(
            {d: xb.Module(f"d{d}", c, num_replicas=declared, is_scheduled=is_given) for d, c in computations.items()}
        )
    inputs = [[rng.integers(-3, 4, 4).astype(np.float32)] for _ in range(devices)]
    return Program(module, inputs, is_given, float(rng.choice([0, 0, 0, 1, np.inf])), fault)


def _fault(rng: np.random.Generator, events: list[Event]) -> tuple[str, int] | tuple[None, None]:
    """A fault, and the channel that has it; none where no event can."""
    kind = str(rng.choice(list(FAULTS)))
    able = [
        event.channel
        for event in events
        if (event.kind == "transfer" and kind in OF_TRANSFERS) or (event.starters and kind in OF_STARTED)
    ]
    return (kind, int(rng.choice(able))) if able else (None, None)


def _event(rng: np.random.Generator, channel: int, devices: int, is_one_program: bool) -> Event:
    if rng.random() < 0.6:
        order = [int(d) for d in rng.permutation(devices)]
        count = int(rng.integers(1, devices + 1)) if is_one_program else 1
        pairs = tuple((order[n], order[(n + 1) % devices]) for n in range(count))
        return Event("transfer", channel, pairs, is_told=is_one_program)
    kind = str(rng.choice(COLLECTIVES))
    if kind == "collective-permute":
        count = int(rng.integers(1, devices + 1))
        pairs = tuple(zip(map(int, rng.permutation(devices)[:count]), map(int, rng.permutation(devices)), strict=False))
        return Event(kind, channel, pairs, is_told=is_one_program, **_started(rng, kind, devices))
    groups = _groups(rng, devices, kind)
    return Event(kind, channel, groups=groups, is_told=is_one_program, **_started(rng, kind, devices))


def _started(rng: np.random.Generator, kind: str, devices: int) -> dict[str, Any]:
    """Nobody starts it, all do, or (where each has its own program) some."""
    share = rng.choice([0, 0, 1, 1, 1, 0.5])
    starters = [device for device in range(devices) if rng.random() < share]
    return {"starters": frozenset(starters), "is_wrapped": kind not in OF_TWO_HALVES or rng.random() < 0.4}


def _groups(rng: np.random.Generator, devices: int, kind: str) -> tuple[tuple[int, ...], ...]:
    """All devices shared out over groups; of one size, where the op wants that and its parts must divide the array."""
    may_differ = kind in ("all-reduce", "collective-broadcast")
    sizes = [int(rng.integers(1, devices + 1))] if may_differ else [n for n in (1, 2, 4) if devices % n == 0]
    order, size = [int(d) for d in rng.permutation(devices)], int(rng.choice(sizes))
    groups = tuple(tuple(order[n : n + size]) for n in range(0, devices, size))
    return groups[:-1] if kind == "collective-broadcast" and len(groups) > 1 and rng.random() < 0.3 else groups


def _order(
    rng: np.random.Generator, events: list[Event], device: int | None, lost: tuple[str, ...], broken: int | None
) -> list[Step]:
    """The steps of a device: by event, then stirred a little, more, or not at all; a done stays behind its start."""
    steps = [step for event in events for step in event.steps(device)]
    steps = [step for step in steps if step.event.channel != broken or step.word not in lost]
    for _ in range(int(rng.choice([0, 2, 8, 16]))):
        n = int(rng.integers(0, max(len(steps) - 1, 1)))
        if n + 1 < len(steps) and not steps[n + 1].follows(steps[n]):
            steps[n], steps[n + 1] = steps[n + 1], steps[n]
    if rng.random() < 0.3:  # what only posts comes first, which is what makes most orders work
        posts = ("recv", "start") if rng.random() < 0.5 else ("recv",)
        steps.sort(key=lambda step: step.word not in posts)
    return steps


@define
class _Recorder:
    """Records the steps of one device after another; a payload or a token is taken from what is there by chance."""

    rng: np.random.Generator
    fault: str | None
    broken: int | None
    value: Any = None
    first: Any = None
    tokens: list[Any] = field(default=Factory(list))
    contexts: dict[tuple[str, int], Any] = field(default=Factory(dict))

    def record(self, name: str, steps: list[Step]) -> xb.Computation:
        builder = xb.Builder(name)
        self.value = self.first = xb.parameter(builder, number=0, shape=SHAPE, name="x")
        self.tokens, self.contexts = [], {}
        for step in steps:
            getattr(self, step.word.replace("-", "_"))(step.event)
        return builder.build(self.value)

    def send(self, event: Event) -> None:
        self.contexts["send", event.channel] = xb.send(
            self._payload(), self._token(), channel_id=event.channel, source_target_pairs=event.told_pairs
        )

    def recv(self, event: Event) -> None:
        shape = xb.f32[5] if self._has("shape_mismatch", event) else SHAPE
        self.contexts["recv", event.channel] = xb.recv(
            self._token(), shape=shape, channel_id=event.channel, source_target_pairs=event.told_pairs
        )

    def send_done(self, event: Event) -> None:
        self.tokens.append(xb.send_done(self.contexts["send", event.channel], channel_id=event.channel))

    def recv_done(self, event: Event) -> None:
        received, token = xb.ops.recv_done(self.contexts["recv", event.channel], channel_id=event.channel)
        self.tokens.append(token)
        if not self._has("shape_mismatch", event):
            self.value = xb.ops.add(self.value, received)

    def meet(self, event: Event) -> None:
        self.value = xb.ops.add(self.value, _collective(event, self._payload()))

    def start(self, event: Event) -> None:
        started = _begun(event, self._payload())
        if event.is_wrapped and self.rng.random() < 0.4:
            started = xb.async_update(started)
        if self._has("start_misused", event):
            xb.tuple_(started, self.first)
        self.contexts["start", event.channel] = started

    def done(self, event: Event) -> None:
        for _ in range(2 if self._has("duplicate_done", event) else 1):
            result = _done(event, self.contexts["start", event.channel])
        self.value = xb.ops.add(self.value, _as_before(event, result))

    def _has(self, fault: str, event: Event) -> bool:
        return self.fault == fault and self.broken == event.channel

    def _token(self) -> Any:
        if self.tokens and self.rng.random() < 0.5:
            return self.tokens[-1]
        return xb.ops.after_all((), builder=self.first.builder)

    def _payload(self) -> Any:
        return self.value if self.rng.random() < 0.4 else self.first


def _collective(event: Event, x: Any) -> Any:
    """The collective on x, its result brought back to the shape of x."""
    return _as_before(event, _recorded(event, x))


def _recorded(event: Event, x: Any, half: str = "") -> Any:
    """The op of a collective on x."""
    # With a channel the ids of these are partitions; in one program all devices are replicas.
    of_replicas = event.is_told and event.kind in ("all-to-all", "collective-broadcast", "collective-permute")
    channel = None if of_replicas else event.channel
    common: dict[str, Any] = {"channel_id": channel, "replica_groups": event.groups}
    size = len(event.groups[0]) if event.groups else 0
    own: dict[str, dict[str, Any]] = {
        "all-reduce": {**common, "to_apply": xb.add},
        "all-gather": {**common, "all_gather_dimension": 0, "shard_count": size},
        "reduce-scatter": {**common, "to_apply": xb.add, "scatter_dimension": 0, "shard_count": size},
        "all-to-all": {**common, "split_dimension": 0, "concat_dimension": 0, "split_count": size},
        "collective-broadcast": common,
        "collective-permute": {"channel_id": channel, "source_target_pairs": event.pairs},
    }
    return getattr(xb.ops, event.kind.replace("-", "_") + half)(x, **own[event.kind])


def _as_before(event: Event, result: Any) -> Any:
    if event.kind == "all-gather":
        return xb.ops.slice(result, start_indices=[0], limit_indices=[4], strides=[1])
    if event.kind == "reduce-scatter":
        return xb.ops.concatenate([result] * len(event.groups[0]), dimension=0)
    return result


def _begun(event: Event, x: Any) -> Any:
    return xb.async_start(x, lambda y: _recorded(event, y)) if event.is_wrapped else _recorded(event, x, "_start")


def _done(event: Event, started: Any) -> Any:
    if event.is_wrapped:
        return xb.async_done(started)
    return getattr(xb.ops, f"{event.kind.replace('-', '_')}_done")(started)
