"""Random small programs of every kind: what meets is drawn first, then the order of each device."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from attrs import Factory, define, evolve, frozen

from .programs import Decision, Groups, Op, Ops, Program, every

MOST_DATA = 81
TRIPS = (0, 1, 2, 6)  # the last is beyond every number of items, devices and buffers
MORE_TRIPS = (0, 1, 2, 3, 7)
BITS = (0, 1, 42, 85, 127)  # one trip after the other: never, once, by turns, always


@frozen
class Size:
    """How large a program may become."""

    devices: tuple[int, int] = (2, 4)
    events: int = 3
    most_ops: int = 6
    depth: int = 2
    most_data: int = MOST_DATA
    is_wide: bool = False  # more trips, one number that decides in several places, turns, programs that agree
    units: tuple[str, ...] = ("loop", "loop", "choice", "choice", "call")


SMALL = Size()
WIDE = Size(devices=(2, 5), most_data=125, is_wide=True)
SCANS = evolve(WIDE, units=("scan", "scan", "scan", "loop", "choice", "choice", "call"))
LARGE = Size(devices=(2, 8), events=5, most_ops=60, depth=3, most_data=10**9)


def random_program(seed: int, size: Size = SMALL) -> Program:
    """The program of a seed; drawn again where it is too large."""
    rng = random.Random(seed)
    while True:
        program = _Draw(rng, size).program()
        counts = [sum(not op.inside and not op.word.endswith("_done") for op in every(ops)) for ops in program.lists]
        if 0 < max(counts) <= size.most_ops and _combinations(program) <= size.most_data:
            return program


def _combinations(program: Program) -> int:
    return math.prod(map(len, program.domains)) ** program.devices


@define
class _Draw:
    rng: random.Random
    size: Size
    devices: int = 0
    is_one: bool = False
    number: int = 0
    domains: list[tuple[int, ...]] = Factory(list)
    uses: list[tuple[tuple[int, ...], object]] = Factory(list)
    agrees: bool = False

    def program(self) -> Program:
        rng = self.rng
        self.devices, self.is_one = rng.randint(*self.size.devices), rng.random() < 0.4
        self.agrees = (self.is_one or self.size.is_wide) and rng.random() < 0.4
        lists = self._region(self.size.depth)
        if self.agrees:
            everybody = (tuple(range(self.devices)),)
            agree = Op("agree", "agreed", self._next(), groups=everybody)
            lists = [(agree, *map(_agreeing, ops)) for ops in lists]
        is_given = rng.random() < 0.6
        fed = max(sum(op.word == "infeed" for op in every(ops)) for ops in lists)
        infeed = tuple(rng.randint(0, 2) + fed // 2 for _ in lists) if fed and rng.random() < 0.7 else None
        return Program(tuple(lists), self.is_one, is_given, tuple(self.domains), rng.choice((0, 0, 0, 1, 2)), infeed)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _region(self, depth: int) -> list[Ops]:
        """The list of each device: what is drawn for all, then put in an order of its own."""
        chains: list[list[tuple[Op, ...]]] = [[] for _ in range(self.devices)]
        for _ in range(self.rng.randint(1, self.size.events)):
            draws = [self._transfer, self._transfer, self._transfer, self._meeting, self._meeting]
            draws += [self._unit] * 3 * (depth > 0) + [self._feed] * (self.rng.random() < 0.3)
            for mine, drawn in zip(chains, self.rng.choice(draws)(depth), strict=True):
                mine += drawn
        if self.is_one:
            return [*_per_device(self._ordered(self._shared(chains)), chains)]
        return [self._ordered([op for chain in mine for op in chain]) for mine in chains]

    def _shared(self, chains: list[list[tuple[Op, ...]]]) -> list[Op]:
        return [op for chain in chains[0] for op in chain]

    def _ordered(self, ops: list[Op]) -> Ops:
        """The ops stirred, each after what it needs, and sometimes after one more."""
        rng = self.rng
        for _ in range(rng.choice((0, 0, 2, 4, 8))):
            n = rng.randrange(max(len(ops) - 1, 1))
            if n + 1 < len(ops) and ops[n].name not in ops[n + 1].after:
                ops[n], ops[n + 1] = ops[n + 1], ops[n]
        if rng.random() < 0.3:  # what only posts comes first, which is what makes most orders work
            ops.sort(key=lambda op: op.word not in ("recv", "start"))
        share = rng.choice((0, 0.2, 0.6))
        return tuple(
            evolve(op, after=op.after | {rng.choice(ops[:n]).name}) if n and rng.random() < share else op
            for n, op in enumerate(ops)
        )

    def _transfer(self, depth: int) -> list[list[tuple[Op, ...]]]:
        number, order = self._next(), self.rng.sample(range(self.devices), self.devices)
        count = self.rng.randint(1, self.devices) if self.is_one else 1
        pairs = tuple((order[n], order[(n + 1) % self.devices]) for n in range(count))
        sends = _pair(Op("send", f"send{number}", number, pairs), "send_done", f"sent{number}")
        recvs = _pair(Op("recv", f"recv{number}", number, pairs), "recv_done", f"taken{number}")
        if self.is_one:
            return [[sends, recvs]] * self.devices
        ((source, target),) = pairs
        return [[sends] * (d == source) + [recvs] * (d == target) for d in range(self.devices)]

    def _meeting(self, depth: int) -> list[list[tuple[Op, ...]]]:
        number, groups = self._next(), self._groups()
        meet = (Op("meet", f"all{number}", number, groups=groups),)
        begun = _pair(Op("start", f"begin{number}", number, groups=groups), "done", f"end{number}")
        share = self.rng.choice((0, 0, 1, 0.5))
        if self.is_one:
            return [[begun if self.rng.random() < share else meet]] * self.devices
        member = {d for group in groups if len(group) > 1 for d in group}
        chosen = [begun if self.rng.random() < share else meet for _ in range(self.devices)]
        return [[chosen[d]] * (d in member) for d in range(self.devices)]

    def _groups(self) -> Groups:
        """All devices, halves of them, or two that meet and others alone."""
        order = self.rng.sample(range(self.devices), self.devices)
        if self.rng.random() < 0.5 or self.devices == 2:
            return (tuple(range(self.devices)),)
        if self.rng.random() < 0.5 and self.devices % 2 == 0:
            return tuple(tuple(order[n : n + 2]) for n in range(0, self.devices, 2))
        return tuple(order[:2]), *((d,) for d in order[2:])

    def _feed(self, depth: int) -> list[list[tuple[Op, ...]]]:
        feed = (Op("infeed", f"feed{self._next()}"),)
        return [[feed] * (self.is_one or self.rng.random() < 0.6) for _ in range(self.devices)]

    def _unit(self, depth: int) -> list[list[tuple[Op, ...]]]:
        """A loop, a choice or a call around a region; each device may decide in its own way."""
        word = self.rng.choice(self.size.units)
        name = f"{word}{self._next()}"
        inside = self._inside(word, depth - 1)
        decisions = self._decisions(word)
        after = frozenset({"agreed"} if decisions[0] is not None and decisions[0].kind == "agreed" else ())
        found: list[list[tuple[Op, ...]]] = []
        for device in range(self.devices):
            parts = tuple(region[device] for region in inside)
            unit = Op(word, name, after=after, decision=decisions[device], inside=parts)
            empty = not any(parts) and not self.is_one
            found.append([] if empty else self._split(unit) if not self.is_one else [(unit,)])
        return found

    def _split(self, unit: Op) -> list[tuple[Op, ...]]:
        """Sometimes two units share out what one would hold."""
        names = [op.name for op in unit.inside[-1]]
        if self.rng.random() > 0.1 or len(names) < 2 or any(op.after for op in unit.inside[-1]):
            return [(unit,)]
        cut = self.rng.randint(1, len(names) - 1)
        *others, ops = unit.inside
        first = evolve(unit, inside=(*others, ops[:cut]))
        second = evolve(unit, name=f"{unit.name}b", inside=(*((),) * len(others), ops[cut:]))
        return [(first,), (second,)]

    def _inside(self, word: str, depth: int) -> list[list[Ops]]:
        nothing: list[Ops] = [()] * self.devices
        if word in ("call", "scan"):
            return [self._region(depth)]
        both = self.rng.random() < 0.2
        if word == "loop":
            return [self._region(0) if both else nothing, self._region(depth)]
        parts = [self._region(depth), self._region(depth) if both else nothing]
        return parts if self.rng.random() < 0.7 else parts[::-1]

    def _decisions(self, word: str) -> Sequence[Decision | None]:
        if word == "call":
            return [None] * self.devices
        most, rng = (1 if word == "choice" else 2), self.rng
        kind = "known" if word == "scan" else rng.choice(("known", "known", "own", "agreed" if self.agrees else "own"))
        common = rng.choice((0, 1) if word == "choice" else (0, 1, 1, 2))
        differs = rng.random() < 0.2 and not (word == "scan" and self.is_one)
        known = tuple(rng.randint(0, most) if differs else common for _ in range(self.devices))
        slot, turns = len(self.domains) - 1, False
        if self.size.is_wide:
            common = common if word == "choice" else rng.choice((common, common, common, 3))
            known = known if differs else (common,) * self.devices
            turns = word == "choice" and rng.random() < 0.3
        if kind != "known":
            trips = MORE_TRIPS if self.size.is_wide else TRIPS
            slot = self._slot(trips if word == "loop" else BITS if turns else (0, 1), (kind, turns, word))
        decision = Decision(kind, slot, known, turns)
        if self.is_one or rng.random() < 0.8:
            return [decision] * self.devices
        return [rng.choice((decision, Decision("known", 0, known))) for _ in range(self.devices)]

    def _slot(self, domain: tuple[int, ...], use: object) -> int:
        """A new number of the data; of a wide program sometimes one that decides elsewhere, and in the same way."""
        if self.size.is_wide and (domain, use) in self.uses and self.rng.random() < 0.5:
            return self.uses.index((domain, use))
        self.domains.append(domain)
        self.uses.append((domain, use))
        return len(self.domains) - 1


def _agreeing(op: Op) -> Op:
    """Whatever has lists inside is given what all have agreed on, and so comes after that."""
    return evolve(op, after=op.after | {"agreed"}) if op.inside else op


def _pair(start: Op, word: str, name: str) -> tuple[Op, ...]:
    return start, evolve(start, word=word, name=name, after=frozenset({start.name}))


def _per_device(shared: Ops, chains: list[list[tuple[Op, ...]]]) -> list[Ops]:
    """The list that all devices share, with what is inside a unit as each device has it."""
    return [shared for _ in chains]
