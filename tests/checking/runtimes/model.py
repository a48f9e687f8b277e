"""An exhaustive model of programs under a runtime: every interleaving of every device, stream and host, step by step.

It shares no code with the machine of `xbuild.runtimes`: each operation is here a small automaton with its own state.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from attrs import define

import xbuild as xb

from .programs import Group, Op, Programs

ENDS, HANGS, DIFFERS = "ends", "hangs", "differs"
MOST_STATES = 1500


class TooManyStates(Exception):
    pass


class Differs(Exception):
    pass


@define
class Task:
    """A collective on its way: what it is, its turn in its communicator, and what it has done."""

    op: Op
    key: Any
    turn: int
    launch: int
    identity: Any
    stage: str = "order"  # order, room, thread, running, over


@define
class State:
    at: list[int]
    stage: list[str]
    tasks: list[dict[Any, list[Task]]]  # of each device, by stream
    mine: list[Task | None]  # the collective that a device itself runs
    started: list[dict[int, Task]]
    turns: list[dict[Any, int]]
    launches: list[int]
    begun: list[int]
    running: list[int]
    threads: dict[int, int]
    created: list[set[Any]]
    creating: dict[Any, set[int]]
    lock: dict[int, list[Any]]
    arrived: dict[Any, dict[int, Task]]
    posted: dict[Any, int]
    sent: dict[Any, int]
    fits: dict[Any, Op]
    tickets: list[dict[int, int]]


class Model:
    """All runs of some programs under a runtime."""

    def __init__(self, programs: Programs, runtime: xb.Runtime) -> None:
        self.ops, self.runtime = programs.ops, runtime
        self.devices = range(len(self.ops))

    def outcomes(self) -> set[str]:
        """How runs may end: all of ENDS, HANGS and DIFFERS that some run shows."""
        found: set[str] = set()
        first = self._first()
        stack, seen = [pickle.dumps(first)], {self._key(first)}
        while stack:
            here = stack.pop()
            state, moved = pickle.loads(here), False
            for act in self._acts(state):
                after = pickle.loads(here)
                try:
                    if not act(after):
                        continue
                except Differs:
                    found.add(DIFFERS)
                else:
                    key = self._key(after)
                    if key not in seen:
                        seen.add(key)
                        stack.append(pickle.dumps(after))
                moved = True
            if len(seen) > MOST_STATES:
                raise TooManyStates
            if not moved:
                found.add(ENDS if self._is_over(state) else HANGS)
        return found

    def _key(self, s: State) -> str:
        """What states that go on alike have in common: they may differ in the order of their entries."""
        queues = [
            sorted((str(stream), [(task.launch, task.stage) for task in queue]) for stream, queue in streams.items())
            for streams in s.tasks
        ]
        mine = [task and (task.launch, task.stage) for task in s.mine]
        arrived = sorted((str(key), sorted(there)) for key, there in s.arrived.items())
        creating = sorted((str(key), sorted(there)) for key, there in s.creating.items())
        counts = [sorted((str(key), count) for key, count in each.items()) for each in (s.posted, s.sent)]
        return repr((s.at, s.stage, queues, mine, arrived, creating, counts, s.lock, [len(c) for c in s.created]))

    def _first(self) -> State:
        count = len(self.ops)
        hosts = {self.runtime.host_of(device) for device in self.devices}
        return State(
            at=[0] * count, stage=["new"] * count, tasks=[{} for _ in self.devices], mine=[None] * count,
            started=[{} for _ in self.devices], turns=[{} for _ in self.devices], launches=[0] * count,
            begun=[0] * count, running=[0] * count, threads=dict.fromkeys(hosts, 0),
            created=[set() for _ in self.devices], creating={}, lock={host: [] for host in hosts}, arrived={},
            posted={}, sent={}, fits={}, tickets=[{} for _ in self.devices],
        )  # fmt: skip

    def _is_over(self, state: State) -> bool:
        ended = all(state.at[d] == len(self.ops[d]) for d in self.devices)
        return ended and not any(queue for streams in state.tasks for queue in streams.values())

    def _acts(self, state: State) -> Iterator[Any]:
        for device in self.devices:
            if state.at[device] < len(self.ops[device]):
                yield lambda s, d=device: self._step(s, d)
            for stream, queue in state.tasks[device].items():
                if queue:
                    yield lambda s, d=device, k=stream: self._advance_stream(s, d, k)

    # What a device itself does: each returns whether it moved.

    def _step(self, s: State, d: int) -> bool:
        if s.at[d] == 0 and s.stage[d] == "new" and not self._may_begin(s, d):
            return False
        if self.runtime.communicators == "start":
            for group in self._groups(d):
                if group not in s.created[d]:
                    return self._create_one(s, d, group, {*group}, group)
        op = self.ops[d][s.at[d]]
        moved: bool = getattr(self, f"_{op.word}")(s, d, op)
        return moved

    def _groups(self, d: int) -> list[Group]:
        """The groups of the collectives of a device, the largest first."""
        found = {op.group_of(d) for op in self.ops[d] if op.word in ("reduce", "start")}
        return sorted((group for group in found if len(group) > 1), key=lambda group: (-len(group), group))

    def _may_begin(self, s: State, d: int) -> bool:
        if self.runtime.launches == "together":
            return True
        before = [o for o in self.devices if o < d and self.runtime.host_of(o) == self.runtime.host_of(d)]
        return all(s.at[o] == len(self.ops[o]) for o in before)

    def _next(self, s: State, d: int) -> bool:
        s.at[d] += 1
        s.stage[d] = "new"
        return True

    def _reduce(self, s: State, d: int, op: Op) -> bool:
        if self.runtime.streams == "communicator":
            if s.stage[d] == "launched":
                task = s.mine[d]
                assert task is not None
                if task.stage != "over" and self._find(s, d, task) is not None:
                    return False
                s.mine[d] = None
                return self._next(s, d)
            created = self._create(s, d, op)
            if created is not None:
                return created
            task = self._launch(s, d, op)
            s.tasks[d].setdefault(op.group_of(d), []).append(task)
            s.mine[d], s.stage[d] = task, "launched"
            return True
        task = s.mine[d]
        if task is None:
            created = self._create(s, d, op)
            if created is not None:
                return created
            task = s.mine[d] = self._launch(s, d, op)
            self._advance(s, d, task)
            return True
        moved = self._advance(s, d, task)
        if task.stage == "over":
            s.mine[d] = None
            self._next(s, d)
        return moved

    def _find(self, s: State, d: int, task: Task) -> Task | None:
        """The task on the streams of a device that has this launch, if it has not ended."""
        return next((t for queue in s.tasks[d].values() for t in queue if t.launch == task.launch), None)

    def _start(self, s: State, d: int, op: Op) -> bool:
        created = self._create(s, d, op)
        if created is not None:
            return created
        task = self._launch(s, d, op)
        s.started[d][op.number] = task
        kind = {"each": ("own", task.launch), "communicator": op.group_of(d), "one": "one"}[self.runtime.streams]
        s.tasks[d].setdefault(kind, []).append(task)
        return self._next(s, d)

    def _done(self, s: State, d: int, op: Op) -> bool:
        """Wait for a started collective."""
        if self._find(s, d, s.started[d][op.number]) is not None:
            return False
        return self._next(s, d)

    def _launch(self, s: State, d: int, op: Op) -> Task:
        group = op.group_of(d)
        identity = self._identity(d, s.at[d])
        name = {"order": 0, "channel": op.channel, "site": identity}
        key = (name[self.runtime.collectives], group)
        s.turns[d][key] = s.turns[d].get(key, 0) + 1
        s.launches[d] += 1
        return Task(op, key, s.turns[d][key], s.launches[d], identity)

    def _advance_stream(self, s: State, d: int, stream: Any) -> bool:
        task = s.tasks[d][stream][0]
        moved = self._advance(s, d, task)
        if task.stage == "over":
            s.tasks[d][stream].pop(0)
        return moved

    def _advance(self, s: State, d: int, task: Task) -> bool:
        """One step of a collective; what nothing limits is no step of its own."""
        host, runtime = self.runtime.host_of(d), self.runtime
        if task.stage == "order":
            if runtime.launch_order and s.begun[d] != task.launch - 1:
                return False
            task.stage = "room"
            if runtime.launch_order:
                return True
        if task.stage == "room":
            if s.running[d] >= runtime.resident:
                return False
            s.running[d] += 1
            task.stage = "thread"
            if runtime.resident < float("inf"):
                return True
        if task.stage == "thread":
            if s.threads[host] >= runtime.threads:
                return False
            s.threads[host] += 1
            s.begun[d] += 1
            there = s.arrived.setdefault((task.key, task.turn), {})
            for other in there.values():
                self._compare(other, task)
            there[d] = task
            task.stage = "running"
            return True
        if len(s.arrived[task.key, task.turn]) < len(task.op.group_of(d)):
            return False
        s.running[d] -= 1
        s.threads[host] -= 1
        task.stage = "over"
        return True

    def _compare(self, first: Task, second: Task) -> None:
        channels = first.op.channel, second.op.channel
        are_alike = channels[0] == channels[1] if all(channels) else first.identity == second.identity
        if not are_alike or first.op.function != second.op.function:
            raise Differs

    def _identity(self, d: int, index: int) -> Any:
        """What names a collective of a device: a channel that no other of its collectives has, or else its name."""
        op = self.ops[d][index]
        same = [each for each in self.ops[d] if each.word in ("reduce", "start") and each.channel == op.channel]
        return op.channel if op.channel and len(same) == 1 else (op.word, op.number)

    def _create(self, s: State, d: int, op: Op) -> bool | None:
        """Whether the creation of a communicator moved; None if there is none to create."""
        group = op.group_of(d)
        if self.runtime.communicators in ("exist", "start") or len(group) < 2 or group in s.created[d]:
            return None
        is_split = self.runtime.communicators == "split" and len(op.groups) > 1
        key = ("split", frozenset(op.groups)) if is_split else group
        members = {each for one in op.groups for each in one} if is_split else {*group}
        return self._create_one(s, d, key, members, group)

    def _create_one(self, s: State, d: int, key: Any, members: set[int], name: Any) -> bool:
        host = self.runtime.host_of(d)
        if s.stage[d] == "new":
            if self.runtime.creation_lock:
                if any(other != key for other in s.lock[host]):
                    return False
                s.lock[host].append(key)
            s.stage[d] = "creating"
            s.creating.setdefault(key, set()).add(d)
            return True
        if s.creating[key] != members:
            return False
        if self.runtime.creation_lock:
            s.lock[host].remove(key)
        s.created[d].add(name)
        s.stage[d] = "new"
        return True

    def _pair(self, s: State, d: int, op: Op) -> bool | None:
        pair = tuple(sorted((d, op.peer)))
        if not self.runtime.pair_communicators or ("pair", pair) in s.created[d]:
            return None
        return self._create_one(s, d, ("pair", pair), {*pair}, ("pair", pair))

    def _ends(self, op: Op, source: int, target: int) -> Any:
        return (op.channel if self.runtime.transfers == "channel" else 0), source, target

    def _fit(self, s: State, ends: Any, number: int, op: Op) -> None:
        first = s.fits.setdefault((ends, number), op)
        if first.channel != op.channel or first.elements != op.elements:
            raise Differs

    def _send(self, s: State, d: int, op: Op) -> bool:
        created = self._pair(s, d, op)
        if created is not None:
            return created
        ends = self._ends(op, d, op.peer)
        number = s.sent.get(ends, 0) + 1
        is_eager = 4 * op.elements <= self.runtime.eager_bytes
        if not is_eager and s.posted.get(ends, 0) < number:
            return False
        self._fit(s, ends, number, op)
        s.sent[ends] = number
        return self._next(s, d)

    def _recv(self, s: State, d: int, op: Op) -> bool:
        created = self._pair(s, d, op)
        if created is not None:
            return created
        ends = self._ends(op, op.peer, d)
        s.posted[ends] = s.posted.get(ends, 0) + 1
        s.tickets[d][op.channel] = s.posted[ends]
        self._fit(s, ends, s.posted[ends], op)
        return self._next(s, d)

    def _recv_done(self, s: State, d: int, op: Op) -> bool:
        if s.sent.get(self._ends(op, op.peer, d), 0) < s.tickets[d][op.channel]:
            return False
        return self._next(s, d)

    def _call(self, s: State, d: int, op: Op) -> bool:
        host, runtime = self.runtime.host_of(d), self.runtime
        if runtime.synchronizing and s.stage[d] == "new":
            started = [task for task in s.started[d].values() if self._find(s, d, task) is not None]
            if started:
                return False
        held = 0 if s.stage[d] == "new" else int(s.stage[d])
        if held == 1 + runtime.callback_threads:
            s.threads[host] -= held
            return self._next(s, d)
        if s.threads[host] >= runtime.threads:
            return False
        s.threads[host] += 1
        s.stage[d] = str(held + 1)
        return True


__all__ = ["DIFFERS", "ENDS", "HANGS", "Group", "Model", "TooManyStates"]
