"""Groups of sends, recvs and collectives in one async-start, and channels with several sends, against a plain model."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from attrs import frozen

import xbuild as xb

DEVICES = 3
SEEDS = 100


@frozen
class Half:
    """A send or recv of a channel from one device to another, or a collective of all devices."""

    kind: str
    channel: int
    ends: tuple[int, int] = (0, 0)

    @property
    def key(self) -> tuple[int, int, int]:
        return (self.channel, *self.ends)


@frozen
class Action:
    """What a device does at one place: `begin` or `end` of some halves together, or of one by itself."""

    what: str
    halves: tuple[Half, ...]
    number: int

    @property
    def is_grouped(self) -> bool:
        return self.what in ("start", "done")


def drawn(seed: int) -> list[list[Action]]:
    """For each device its actions in order: halves alone or in groups, each begun before it is ended."""
    chance = random.Random(seed)
    ends = [(a, b) for a in range(DEVICES) for b in range(DEVICES) if a != b]
    transfers = chance.sample([(channel, pair) for channel in (1, 2) for pair in ends], chance.randint(1, 4))
    meetings = range(10, 10 + chance.randint(0, 2))
    programs = []
    for device in range(DEVICES):
        halves = [Half("send", c, pair) for c, pair in transfers if pair[0] == device]
        halves += [Half("recv", c, pair) for c, pair in transfers if pair[1] == device]
        halves += [Half("meet", channel) for channel in meetings]
        programs.append(list(_program(chance, halves)))
    return programs


def _program(chance: random.Random, halves: list[Half]) -> Iterator[Action]:
    chance.shuffle(halves)
    parts: list[tuple[Half, ...]] = []
    while halves:
        count = chance.choice((1, 1, 2, 3))
        parts.append(tuple(halves[:count]))
        halves = halves[count:]
    waiting: list[Action] = []
    for number, part in enumerate(parts):
        if len(part) > 1:
            yield Action("start", part, number)
            waiting.append(Action("done", part, number))
        else:
            yield Action("begin", part, number)
            if part[0].kind == "recv":
                waiting.append(Action("end", part, number))
        chance.shuffle(waiting)
        while waiting and chance.random() < 0.5:
            yield waiting.pop()
    yield from waiting


def ends(programs: list[list[Action]], buffers: int = 0) -> bool:
    """Whether all devices come to their end; each channel has one send, which a buffer takes."""
    at, posted, sent = [0] * DEVICES, set(), set()
    arrived: set[tuple[int, int]] = set()

    def begins(device: int, half: Half) -> None:
        if half.kind == "meet":
            arrived.add((half.channel, device))
        else:
            (posted if half.kind == "recv" else sent).add(half.key)

    def may_end(half: Half) -> bool:
        if half.kind == "meet":
            return all((half.channel, device) in arrived for device in range(DEVICES))
        return half.key in sent if half.kind == "recv" else bool(buffers) or half.key in posted

    def goes_on(device: int, action: Action) -> bool:
        (half, *_) = action.halves
        if action.what == "start" or (action.what == "begin" and half.kind != "send"):
            for each in action.halves:
                begins(device, each)
            return action.what == "start" or half.kind == "recv" or may_end(half)
        if not all(map(may_end, action.halves)):
            return False
        if action.what == "begin":
            begins(device, half)
        return True

    moved = True
    while moved:
        moved = False
        for device, program in enumerate(programs):
            while at[device] < len(program) and goes_on(device, program[at[device]]):
                at[device] += 1
                moved = True
    return all(here == len(program) for here, program in zip(at, programs, strict=True))


_PAIRS = "_xla_send_recv_source_target_pairs"
_CONTEXT = "(f32[], u32[], token[])"


def _line(half: Half, name: str, operands: str) -> str:
    if half.kind == "meet":
        groups = "replica_groups={{0,1,2}}"
        return f"{name} = f32[] all-reduce({operands}), channel_id={half.channel}, {groups}, to_apply=add"
    pairs = f'frontend_attributes={{{_PAIRS}="{{{{{half.ends[0]},{half.ends[1]}}}}}"}}'
    return f"{name} = {_CONTEXT} {half.kind}({operands}), channel_id={half.channel}, {pairs}"


def text(device: int, program: list[Action]) -> str:
    """The scheduled program of a device as HLO text."""
    groups, lines = [], ["x = f32[] parameter(0)", "t = token[] after-all()"]
    for action in program:
        number, (half, *_) = action.number, action.halves
        plain = {"send": "x, t", "recv": "t", "meet": "x"}[half.kind]
        if action.what == "start":
            inner = {"send": "p0, p1", "recv": "p1", "meet": "p0"}
            rows = [_line(each, f"i{n}", inner[each.kind]) for n, each in enumerate(action.halves)]
            shapes = ", ".join("f32[]" if each.kind == "meet" else _CONTEXT for each in action.halves)
            listed = ", ".join(f"i{n}" for n in range(len(rows)))
            groups.append("\n".join([
                f"g{number} {{", "p0 = f32[] parameter(0)", "p1 = token[] parameter(1)", *rows,
                f"ROOT r = ({shapes}) tuple({listed})", "}",
            ]))  # fmt: skip
            lines.append(f"st{number} = ((f32[], token[]), ({shapes}), s32[]) async-start(x, t), calls=g{number}")
        elif action.what == "done":
            shapes = ", ".join("f32[]" if each.kind == "meet" else _CONTEXT for each in action.halves)
            lines.append(f"dn{number} = ({shapes}) async-done(st{number})")
        elif action.what == "end":
            lines.append(f"rd{number} = (f32[], token[]) recv-done(b{number}), channel_id={half.channel}")
        else:
            lines.append(_line(half, f"b{number}", plain))
            if half.kind == "send":
                lines.append(f"sd{number} = token[] send-done(b{number}), channel_id={half.channel}")
    add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
    header = f"HloModule d{device}, is_scheduled=true, replica_count={DEVICES}"
    return "\n".join([header, add, *groups, "ENTRY e {", *lines, "ROOT out = () tuple()", "}"])


def group_of(programs: list[list[Action]]) -> xb.ModuleGroup:
    return xb.ModuleGroup({n: xb.parse_hlo(text(n, program)) for n, program in enumerate(programs)})


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_the_verdict_is_what_the_model_says(first: int) -> None:
    for seed in range(first, first + 50):
        programs = drawn(seed)
        for buffers in (0, 1):
            verdict = xb.check(group_of(programs), send_buffers=buffers)
            assert verdict.kind == ("ok" if ends(programs, buffers) else "deadlock"), f"seed {seed}:\n{verdict}"


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_an_order_is_found_where_the_recorded_one_runs(first: int) -> None:
    for seed in range(first, first + 50):
        programs = drawn(seed)
        if ends(programs):
            free = {n: text(n, program).replace("is_scheduled=true, ", "") for n, program in enumerate(programs)}
            verdict = xb.check(xb.ModuleGroup({n: xb.parse_hlo(each) for n, each in free.items()}))
            assert verdict.kind == "ok", f"seed {seed}:\n{verdict}"


def test_both_verdicts_and_groups_occur() -> None:
    found = [drawn(seed) for seed in range(SEEDS)]
    assert 0.2 < sum(map(ends, found)) / SEEDS < 0.8
    assert sum(any(action.is_grouped for program in each for action in program) for each in found) > SEEDS / 2
