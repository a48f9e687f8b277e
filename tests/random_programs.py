"""Random straight-line programs for several devices: transfers and collectives, in orders that may or may not work."""

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
    "missing_done": ("send-done",),
    "shape_mismatch": (),
}
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


@frozen
class Event:
    """A transfer between pairs of devices, or a collective over groups, under a channel id."""

    kind: str
    channel: int
    pairs: tuple[tuple[int, int], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    is_told: bool = True

    @property
    def told_pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs as the instructions name them; where each device has its own program, they need none."""
        return self.pairs if self.is_told else ()

    def steps(self, device: int | None) -> list[Step]:
        """What a device does for it, in order; None stands for a program that all devices run."""
        if self.kind != "transfer":
            return [Step("meet", self)]
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
        return self.event is other.event and (other.word, self.word) in (("send", "send-done"), ("recv", "recv-done"))


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
    fault = str(rng.choice(list(FAULTS))) if rng.random() < 0.1 else None
    channels = [event.channel for event in events if event.kind == "transfer"]
    broken = int(rng.choice(channels)) if fault and channels else None
    lost = FAULTS[fault] if fault and broken else ()
    recorder = _Recorder(rng, broken if fault == "shape_mismatch" else None)
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
    return Program(module, inputs, is_given, float(rng.choice([0, 0, 0, 1, np.inf])), fault if broken else None)


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
        return Event(kind, channel, pairs)
    return Event(kind, channel, groups=_groups(rng, devices, kind))


def _groups(rng: np.random.Generator, devices: int, kind: str) -> tuple[tuple[int, ...], ...]:
    """All devices shared out over groups; of one size, where the op wants that and its parts must divide the array."""
    sizes = [n for n in (1, 2, 4) if devices % n == 0] if kind != "all-reduce" else [int(rng.integers(1, devices + 1))]
    order, size = [int(d) for d in rng.permutation(devices)], int(rng.choice(sizes))
    return tuple(tuple(order[n : n + size]) for n in range(0, devices, size))


def _order(
    rng: np.random.Generator, events: list[Event], device: int | None, lost: tuple[str, ...], broken: int | None
) -> list[Step]:
    """The steps of a device: by event, then stirred a little, more, or not at all; a done stays behind its start."""
    steps = [step for event in events for step in event.steps(device)]
    steps = [step for step in steps if step.event.channel != broken or step.word not in lost]
    for _ in range(int(rng.choice([0, 1, 3, 12]))):
        n = int(rng.integers(0, max(len(steps) - 1, 1)))
        if n + 1 < len(steps) and not steps[n + 1].follows(steps[n]):
            steps[n], steps[n + 1] = steps[n + 1], steps[n]
    if rng.random() < 0.5:  # what only posts comes first, which is what makes most orders work
        steps.sort(key=lambda step: step.word != "recv")
    return steps


@define
class _Recorder:
    """Records the steps of one device after another; a payload or a token is taken from what is there by chance."""

    rng: np.random.Generator
    other_shape: int | None
    value: Any = None
    start: Any = None
    tokens: list[Any] = field(default=Factory(list))
    contexts: dict[tuple[str, int], Any] = field(default=Factory(dict))

    def record(self, name: str, steps: list[Step]) -> xb.Computation:
        builder = xb.Builder(name)
        self.value = self.start = xb.parameter(builder, number=0, shape=SHAPE, name="x")
        self.tokens, self.contexts = [], {}
        for step in steps:
            getattr(self, step.word.replace("-", "_"))(step.event)
        return builder.build(self.value)

    def send(self, event: Event) -> None:
        self.contexts["send", event.channel] = xb.send(
            self._payload(), self._token(), channel_id=event.channel, source_target_pairs=event.told_pairs
        )

    def recv(self, event: Event) -> None:
        shape = xb.f32[5] if event.channel == self.other_shape else SHAPE
        self.contexts["recv", event.channel] = xb.recv(
            self._token(), shape=shape, channel_id=event.channel, source_target_pairs=event.told_pairs
        )

    def send_done(self, event: Event) -> None:
        self.tokens.append(xb.send_done(self.contexts["send", event.channel], channel_id=event.channel))

    def recv_done(self, event: Event) -> None:
        received, token = xb.ops.recv_done(self.contexts["recv", event.channel], channel_id=event.channel)
        self.tokens.append(token)
        if event.channel != self.other_shape:
            self.value = xb.ops.add(self.value, received)

    def meet(self, event: Event) -> None:
        self.value = xb.ops.add(self.value, _collective(event, self._payload()))

    def _token(self) -> Any:
        if self.tokens and self.rng.random() < 0.5:
            return self.tokens[-1]
        return xb.ops.after_all((), builder=self.start.builder)

    def _payload(self) -> Any:
        return self.value if self.rng.random() < 0.4 else self.start


def _collective(event: Event, x: Any) -> Any:
    """The collective on x, its result brought back to the shape of x."""
    size = len(event.groups[0]) if event.groups else 0
    common: dict[str, Any] = {"channel_id": event.channel, "replica_groups": event.groups}
    if event.kind == "all-reduce":
        return xb.ops.all_reduce(x, to_apply=xb.add, **common)
    if event.kind == "all-gather":
        whole = xb.ops.all_gather(x, all_gather_dimension=0, shard_count=size, **common)
        return xb.ops.slice(whole, start_indices=[0], limit_indices=[4], strides=[1])
    if event.kind == "reduce-scatter":
        part = xb.ops.reduce_scatter(x, to_apply=xb.add, scatter_dimension=0, shard_count=size, **common)
        return xb.ops.concatenate([part] * size, dimension=0)
    if event.kind == "all-to-all":
        return xb.ops.all_to_all(x, split_dimension=0, concat_dimension=0, split_count=size, **common)
    return xb.ops.collective_permute(x, source_target_pairs=event.pairs, channel_id=event.channel)
