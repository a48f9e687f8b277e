"""A small program as a module of xbuild: each op is one instruction, `after` a control edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

import xbuild as xb

from .programs import Data, Decision, Op, Ops, Program

SHAPE = xb.f32[2]


@frozen
class Written:
    """The module, or one for each device, and what its devices are given for some data."""

    module: xb.Module | xb.ModuleGroup
    program: Program

    def inputs(self, data: Data) -> list[list[Any]]:
        return [
            [np.array([*row, 0], np.int32), np.array([device + 1, 2**device], np.float32)]
            for device, row in enumerate(data)
        ]

    def infeed(self) -> dict[int, list[np.int32]]:
        counts = self.program.infeed or (100,) * self.program.devices
        return {device: [np.int32(0)] * count for device, count in enumerate(counts)}


def written(program: Program) -> Written:
    count = program.devices
    if program.is_one:
        entry = _entry(program, 0)
        return Written(xb.Module("one", entry, num_replicas=count, is_scheduled=program.is_given), program)
    modules = {
        d: xb.Module(f"d{d}", _entry(program, d), num_replicas=count, is_scheduled=program.is_given)
        for d in range(count)
    }
    return Written(xb.ModuleGroup(modules), program)


def _entry(program: Program, device: int) -> xb.Computation:
    builder = xb.Builder(f"device{device}")
    data = xb.ops.parameter(builder, number=0, shape=xb.s32[len(program.domains) + 1], name="data")
    x = xb.ops.parameter(builder, number=1, shape=SHAPE, name="x")
    writer = _Writer(program, device, data, data, x, xb.ops.constant(builder, literal=np.int32(0)))
    return builder.build(writer.ops(program.lists[device]))


@define
class _Writer:
    """Records one list; what comes of it is the sum of all that has arrived."""

    program: Program
    device: int
    data: Any
    agreed: Any
    x: Any
    trip: Any
    known: dict[str, Any] = field(factory=dict)
    parts: list[Any] = field(factory=list)

    def ops(self, ops: Ops) -> Any:
        for op in ops:
            before = [self.known[name] for name in op.after if name in self.known]
            with xb.control(after=before):
                self.known[op.name] = getattr(self, f"_{op.word}")(op)
        total = self.x
        for part in self.parts:
            total = xb.ops.add(total, part)
        return total

    def _constant(self, number: int) -> Any:
        return xb.ops.constant(self.x.builder, literal=np.int32(number))

    def _token(self) -> Any:
        return xb.ops.after_all((), builder=self.x.builder)

    def _send(self, op: Op) -> Any:
        pairs = op.pairs if self.program.is_one else ()
        return xb.ops.send(self.x, self._token(), channel_id=op.number, source_target_pairs=pairs, name=op.name)

    def _recv(self, op: Op) -> Any:
        pairs = op.pairs if self.program.is_one else ()
        return xb.ops.recv(self._token(), shape=SHAPE, channel_id=op.number, source_target_pairs=pairs, name=op.name)

    def _send_done(self, op: Op) -> Any:
        return xb.ops.send_done(self._start_of(op, "send"), channel_id=op.number, name=op.name)

    def _recv_done(self, op: Op) -> Any:
        result = xb.ops.recv_done(self._start_of(op, "recv"), channel_id=op.number, name=op.name)
        self.parts.append(xb.ops.get_tuple_element(result, index=0))
        return result

    def _start_of(self, op: Op, word: str) -> Any:
        return self.known[f"{word}{op.number}"]

    def _meet(self, op: Op) -> Any:
        return self._arrived(self._sum(xb.ops.all_reduce, self.x, op))

    def _start(self, op: Op) -> Any:
        if op.number % 2:
            return self._sum(xb.ops.all_reduce_start, self.x, op)
        return xb.async_start(self.x, lambda y: self._sum(xb.ops.all_reduce, y, op), name=op.name)

    def _done(self, op: Op) -> Any:
        started = self._start_of(op, "begin")
        if op.number % 2:
            return self._arrived(xb.ops.all_reduce_done(started, name=op.name))
        return self._arrived(xb.async_done(started, name=op.name))

    def _arrived(self, value: Any) -> Any:
        self.parts.append(value)
        return value

    def _sum(self, function: Callable[..., Any], x: Any, op: Op, reducer: Any = None) -> Any:
        return function(x, to_apply=reducer or xb.add, channel_id=op.number, replica_groups=op.groups, name=op.name)

    def _agree(self, op: Op) -> Any:
        self.agreed = self._sum(xb.ops.all_reduce, self.data, op, xb.maximum)
        return self.agreed

    def _infeed(self, op: Op) -> Any:
        return xb.ops.infeed(self._token(), shape=xb.s32[()], name=op.name)

    def _number(self, decision: Decision) -> Any:
        """The number that decides, in each trip the same or by turns."""
        first = self._first(decision)
        if not decision.turns:
            return first
        if decision.kind == "known":  # by what op differs, so that only who computes it sees that it is the same
            number, is_even = xb.ops.add(first, self.trip), self.device % 2 == 0
            return xb.ops.remainder(number, self._constant(2)) if is_even else xb.ops.and_(number, self._constant(1))
        return xb.ops.and_(xb.ops.shift_right_logical(first, self.trip), self._constant(1))

    def _first(self, decision: Decision) -> Any:
        """A constant, looked up by replica-id, or out of the data."""
        if decision.kind == "known":
            return self._known(decision)
        vector = self.agreed if decision.kind == "agreed" else self.data
        one = xb.ops.slice(vector, start_indices=(decision.slot,), limit_indices=(decision.slot + 1,), strides=(1,))
        return xb.ops.reshape(one, new_sizes=())

    def _known(self, decision: Decision) -> Any:
        if not self.program.is_one or len(set(decision.known)) == 1:
            return self._constant(decision.known[self.device])
        me, chosen = xb.ops.replica_id(self.x.builder), self._constant(decision.known[0])
        for replica, number in enumerate(decision.known[1:], 1):
            this = xb.ops.constant(self.x.builder, literal=np.uint32(replica))
            chosen = xb.ops.select(xb.ops.compare(me, this, direction="EQ"), self._constant(number), chosen)
        return chosen

    def _call(self, op: Op) -> Any:
        return self._arrived(xb.ops.call(self._state, to_apply=self._inner(op.inside[0])))

    @property
    def _state(self) -> list[Any]:
        return [self.data, self.agreed, self.x, self.trip]

    def _inner(self, ops: Ops) -> Callable[..., Any]:
        return lambda data, agreed, x, trip: _Writer(self.program, self.device, data, agreed, x, trip).ops(ops)

    def _choice(self, op: Op) -> Any:
        assert op.decision is not None
        operands = xb.ops.tuple_(self._state)
        branches = [self._branch(ops) for ops in op.inside]
        index = self._number(op.decision)
        return self._arrived(
            xb.ops.conditional(index, [operands] * len(branches), branch_computations=branches, name=op.name)
        )

    def _branch(self, ops: Ops) -> Callable[..., Any]:
        return lambda state: self._inner(ops)(*_elements(state))

    def _loop(self, op: Op) -> Any:
        """A counter up to a limit; x takes up what arrives."""
        assert op.decision is not None
        condition, body = op.inside
        state = xb.ops.tuple_([self._constant(0), self._number(op.decision), self.data, self.agreed, self.x])

        def holds(state: Any) -> Any:
            counter, limit, *rest = _elements(state)
            self._inner(condition)(*rest, counter)
            return xb.ops.compare(counter, limit, direction="LT")

        def following(state: Any) -> Any:
            counter, limit, data, agreed, x = _elements(state)
            one = xb.ops.constant(counter.builder, literal=np.int32(1))
            return xb.ops.tuple_(
                [xb.ops.add(counter, one), limit, data, agreed, self._inner(body)(data, agreed, x, counter)]
            )

        result = xb.ops.while_(state, condition=holds, body=following, name=op.name)
        self.parts.append(xb.ops.get_tuple_element(result, index=4))
        return result

    def _scan(self, op: Op) -> Any:
        """A slice a trip; a carried counter tells which it is, or the slice itself, from either end."""
        assert op.decision is not None
        count, how = op.decision.known[self.device], sum(map(ord, op.name)) % 3
        numbers = np.arange(count, dtype=np.int32)[:: -1 if how == 1 else 1]
        slices = xb.ops.constant(self.x.builder, literal=numbers)

        def body(number: Any, counter: Any, data: Any, agreed: Any, x: Any) -> Any:
            after = self._inner(op.inside[0])(data, agreed, x, counter if how == 2 else number)
            one = xb.ops.constant(x.builder, literal=np.int32(1))
            return xb.ops.tuple_([after, xb.ops.add(counter, one), data, agreed, after])

        operands = (slices, self._constant(0), self.data, self.agreed, self.x)
        result = xb.ops.scan(operands, dimension=0, num_carries=4, is_reverse=how == 1, to_apply=body, name=op.name)
        self.parts.append(xb.ops.get_tuple_element(result, index=4))
        return result


def _elements(state: Any) -> Sequence[Any]:
    return [xb.ops.get_tuple_element(state, index=n) for n in range(len(state.shape.elements))]
