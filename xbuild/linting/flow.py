"""The users and the sources of values, through tuples, calls and fusions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from attrs import define, field

from ..core.graph import Computation, Instruction
from ..core.op import opcodes
from ..properties.effects import IDENTITIES, PLAIN_CALLS, UNITS

Passed: TypeAlias = Callable[[Instruction], bool]
"""Which values a walk goes through."""

MOVES = IDENTITIES | frozenset(
    {"bitcast", "bitcast_convert", "convert", "get_tuple_element", "reshape", "reverse", "transpose"}
)
"""Ops through which an array is followed: they move or convert its elements and keep all of them."""

ELEMENTWISE = opcodes(
    lambda op: op.elements == "same_place" and op.calls == "nothing" and op.needs == "nobody"
) | frozenset({"broadcast"})  # fmt: skip
"""Ops of which each element depends on elements at its place."""

SUMMING = ("all_reduce", "reduce_scatter")
"""The collectives that combine the values of devices by a computation."""

_RETURNING = PLAIN_CALLS | opcodes(lambda op: op.calls == "wrapped")
"""Callers of which the value, or the value of their done, is the result of the computation that they call."""

IDS = opcodes(lambda op: op.depends_on == "device")
"""The ops that return the number of the device."""


@define(eq=False)
class ValueFlow:
    """The users and callers of all values of a program, and the computation that has each."""

    computations: Sequence[Computation]
    users: dict[Instruction, list[Instruction]] = field(factory=dict, init=False)
    callers: dict[Computation, list[Instruction]] = field(factory=dict, init=False)
    home: dict[Instruction, Computation] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for computation in self.computations:
            for instruction in computation.instructions:
                self.home[instruction] = computation
                for operand in dict.fromkeys(instruction.operands):
                    self.users.setdefault(operand, []).append(instruction)
                for called in instruction.called:
                    self.callers.setdefault(called, []).append(instruction)

    def uses(self, value: Instruction) -> Iterator[tuple[Instruction | None, Instruction]]:
        """The instructions that use a value, each with the operand by which it does; calls and fusions are entered.

        The user is None if the value leaves the program, a loop or a branch.
        """
        stack, seen = [value], {value}
        while stack:
            value = stack.pop()
            passed = []
            for user in self.users.get(value, ()):
                if user.opcode not in PLAIN_CALLS:
                    yield user, value
                    continue
                pairs = zip(user.operands, user.called[0].parameters, strict=False)
                passed += [parameter for operand, parameter in pairs if operand is value]
            home = self.home[value]
            if value is home.root:
                callers = self.callers.get(home, ())
                passed += [caller for caller in callers if caller.opcode in _RETURNING]
                if not callers or any(caller.opcode not in _RETURNING for caller in callers):
                    yield None, value
            for each in passed:
                if each not in seen:
                    seen.add(each)
                    stack.append(each)

    def behind(self, value: Instruction) -> Iterator[Instruction]:
        """The values that a value is computed from in one step, into what is called and out of its parameters.

        Elements of tuples are distinguished, those of tuples in tuples are not.
        """
        if value.opcode == "get_tuple_element":
            yield from self._elements(value.operands[0], value.attributes.index)
        else:
            yield from self._whole(value)

    def _whole(self, value: Instruction) -> Iterator[Instruction]:
        """What a value is computed from; for a value that a call or loop passes, the passed values."""
        if value.opcode == "parameter":
            for caller in self.callers.get(self.home[value], ()):
                if caller.opcode in PLAIN_CALLS:
                    yield caller.operands[value.attributes.number]
                elif caller.opcode == "while":
                    yield caller.operands[0]
                    yield caller.attributes.body.root
                elif caller.opcode == "conditional":
                    numbers = (n for n, called in enumerate(caller.called) if called is self.home[value])
                    yield from (caller.operands[1 + number] for number in numbers)
                elif caller.opcode in UNITS:
                    yield from caller.operands
        elif value.opcode in PLAIN_CALLS:
            yield value.called[0].root
        elif value.opcode == "while":
            yield value.operands[0]
            yield value.attributes.body.root
        else:
            yield from value.operands
            if value.opcode in UNITS:
                yield from (called.root for called in value.called)

    def _elements(self, value: Instruction, index: int) -> Iterator[Instruction]:
        """The values that an element of a tuple is, through calls, loops and branches; else the tuple itself."""
        stack, seen = [value], {value}
        while stack:
            value = stack.pop()
            if value.opcode == "tuple":
                yield value.operands[index]
            elif value.opcode in PLAIN_CALLS | IDENTITIES or value.opcode in ("while", "parameter"):
                passed = [*self._whole(value)]
                if not passed:
                    yield value
                stack += [each for each in passed if each not in seen]
                seen.update(passed)
            else:
                yield value

    def origin(self, value: Instruction, is_passed: Passed) -> Instruction:
        """The first value behind a value that is not passed, along the first operands; calls are entered."""
        seen: set[Instruction] = set()
        while value not in seen:
            seen.add(value)
            if not (is_passed(value) or self._is_of_call(value)):
                return value
            value = next(self.behind(value), value)
        return value

    def _is_of_call(self, value: Instruction) -> bool:
        """Whether a value is that of a call or fusion, or a parameter of one."""
        if value.opcode == "parameter":
            return all(caller.opcode in PLAIN_CALLS for caller in self.callers.get(self.home[value], ()))
        return value.opcode in PLAIN_CALLS

    @cached_property
    def of_data(self) -> frozenset[Instruction]:
        """The values that are computed from more than constants: from parameters of the program, or from outside."""
        outside = {"infeed", "custom_call", "rng"}
        return self._computed_from(
            each
            for each, home in self.home.items()
            if each.opcode in outside or (each.opcode == "parameter" and home not in self.callers)
        )

    @cached_property
    def of_ids(self) -> frozenset[Instruction]:
        """The values that are computed from the number of the device."""
        return self._computed_from(each for each in self.home if each.opcode in IDS)

    @cached_property
    def _ahead(self) -> dict[Instruction, list[Instruction]]:
        """The values that are computed from each value in one step."""
        found: dict[Instruction, list[Instruction]] = {}
        for value in self.home:
            for each in self.behind(value):
                found.setdefault(each, []).append(value)
        return found

    def _computed_from(self, values: Iterable[Instruction]) -> frozenset[Instruction]:
        stack = [*values]
        found = set(stack)
        while stack:
            for each in self._ahead.get(stack.pop(), ()):
                if each not in found:
                    found.add(each)
                    stack.append(each)
        return frozenset(found)

    def depends_on(
        self, values: Sequence[Instruction], is_wanted: Callable[[Instruction], bool], is_passed: Passed | None = None
    ) -> bool:
        """Whether a value is computed from a wanted one, through those that are passed (all, if not stated)."""
        return any(map(is_wanted, self.sources(values, is_passed)))

    def reached(self, value: Instruction, is_passed: Passed) -> Iterator[Instruction]:
        """What a value is used for, nearest first, through the users that are passed; each user once."""
        queue, seen = deque([value]), {value}
        while queue:
            for user, _ in self.uses(queue.popleft()):
                if user is not None and user not in seen:
                    seen.add(user)
                    yield user
                    if is_passed(user):
                        queue.append(user)

    def sources(self, values: Sequence[Instruction], is_passed: Passed | None = None) -> Iterator[Instruction]:
        """These values and all that they are computed from, nearest first, through those that are passed."""
        queue, seen = deque(values), set(values)
        while queue:
            value = queue.popleft()
            yield value
            if is_passed is None or is_passed(value) or self._is_of_call(value):
                for each in self.behind(value):
                    if each not in seen:
                        seen.add(each)
                        queue.append(each)
