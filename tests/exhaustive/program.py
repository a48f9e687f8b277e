"""What the model judges: computations of named instructions, the grid of devices, and what the data may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field, frozen

from .arithmetic import COMMUNICATES

Values = dict[int, Any]
Groups = tuple[tuple[int, ...], ...]


class Reducer(str):
    """The name of a reducer, which begins with the op that it is: `add.s32`."""

    __slots__ = ()

    @property
    def opcode(self) -> str:
        return self.split(".")[0]


@frozen(eq=False)
class Collective:
    """What a collective (or its start) does: its kind, the devices that meet, what it reduces by, which pairs it joins.

    `channel` is what programs of several modules know it by, where it has one.
    """

    kind: str
    groups: Groups
    reducer: Reducer | None = None
    pairs: Groups = ()
    channel: int = 0

    def group(self, device: int) -> tuple[int, ...]:
        """Who meets this device; nobody else where no group names it."""
        return next((group for group in self.groups if device in group), (device,))


@frozen(eq=False)
class Transfer:
    """A send or a recv (or a done): its channel and the pairs of devices, source first."""

    channel: int
    pairs: Groups

    def peer(self, device: int, *, sends: bool) -> int | None:
        """Whom the device sends to, or receives from."""
        me, other = (0, 1) if sends else (1, 0)
        return next((pair[other] for pair in self.pairs if pair[me] == device), None)


@define(eq=False, repr=False)
class Instruction:
    """One instruction; `given` is what the model needs of its attributes, `inner` are the computations that it runs.

    `values` are its values by device where the generator knows them, `uniform` says that no two devices differ in it.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[Instruction, ...] = ()
    attributes: str = ""
    given: Any = None
    inner: tuple[Computation, ...] = ()
    control: tuple[Instruction, ...] = ()
    index: int = 0
    values: Values | None = None
    uniform: bool = False
    effects: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        """`effects`: whether others see that it runs; computations are finished before they are used."""
        self.effects = self.opcode in COMMUNICATES or any(each.effects for each in self.inner)

    @property
    def type(self) -> str:
        """The element type."""
        return self.shape[: self.shape.index("[")]


@define(eq=False, repr=False)
class Computation:
    """A list of instructions, in the order of the schedule where one is given."""

    name: str
    instructions: list[Instruction] = field(factory=list)
    root: Instruction | None = None
    code: Any = None  # as the machine runs it in this order

    def add(self, instruction: Instruction) -> Instruction:
        instruction.index = len(self.instructions)
        self.instructions.append(instruction)
        return instruction

    def renumber(self) -> None:
        for index, instruction in enumerate(self.instructions):
            instruction.index = index

    @property
    def effects(self) -> bool:
        return any(each.effects for each in self.instructions)

    def reached(self) -> Iterator[Computation]:
        """Those that it runs, and what they run, innermost first; then itself."""
        seen = dict[Computation, None]()
        self._reach(seen)
        yield from seen

    def _reach(self, seen: dict[Computation, None]) -> None:
        for instruction in self.instructions:
            for each in instruction.inner:
                if each not in seen:
                    each._reach(seen)
        seen[self] = None


@define(eq=False)
class Program:
    """Entries by device (of one program for all the same one), on a grid of replicas and partitions.

    Parameter 0 of an entry are numbers that are given to the device. `domains` has for each device and each slot the
    numbers that stand for all that it may hold. `infeed` is how many items each device gets.
    """

    entries: tuple[Computation, ...]
    replicas: int
    partitions: int
    is_given: bool
    domains: tuple[tuple[tuple[int, ...], ...], ...]
    send_buffers: int = 0
    infeed: tuple[int, ...] | None = None
    seed: int = 0

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions

    @property
    def is_one(self) -> bool:
        return len(set(map(id, self.entries))) == 1

    def place(self, device: int) -> tuple[int, int]:
        return divmod(device, self.partitions)
