"""What all computations of one derivative share: its options, its new channels, and calls that it inlines.

Sections:

    The options of a derivative and its channels
    Inlining
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from attrs import Factory, define, field

from ..core.graph import Computation, Instruction
from ..properties.rewriting import Rewriter, inlined
from ..variance.program import ManualRegion
from .activity import Activity
from .rules import vjp

# ----------------------------------------------------------------------------
# The options of a derivative and its channels


@define(eq=False)
class Channels:
    """New channel numbers; the same use gets the same number in all programs of a group."""

    last: int = 0
    _known: dict[Any, int] = field(factory=dict, init=False)

    @staticmethod
    def unused_in(entries: Iterable[Computation]) -> Channels:
        """Numbers beyond those that the programs use."""
        channels = [
            getattr(i.attributes, "channel_id", None)
            for computation in reachable_computations(entries)
            for i in computation.instructions
        ]
        return Channels(max((number for number in channels if number is not None), default=0))

    def number_for(self, use: Any) -> int:
        """The channel number for a use."""
        if use not in self._known:
            self.last += 1
            self._known[use] = self.last
        return self._known[use]


def reachable_computations(entries: Iterable[Computation]) -> list[Computation]:
    """All computations of some programs, without duplicates."""
    return list(dict.fromkeys(computation for entry in entries for computation in entry.reachable()))


@define(eq=False)
class DerivativeContext:
    """The options of a derivative, and what it has derived from called computations (`known`).

    `checkpoint` is True, or holds the names of the loops and calls whose values the backward pass recomputes.
    `max_trips` bounds the trips of loops of unknown trip count. `channels` provides new channels for the backward pass,
    `calls` counts the call sites of each computation, `is_group` says that each device has its own program. `rules` is
    `vjp` or another table. With a `region`, collectives are transposed by the types that values have on its mesh;
    otherwise for a loss that is the sum of the losses of all devices.
    """

    activity: Activity = field(factory=Activity)
    checkpoint: bool | Container[str] = False
    max_trips: int | None = None
    channels: Channels = Factory(lambda: Channels())
    num_replicas: int | None = None
    num_partitions: int | None = None
    is_group: bool = False
    region: ManualRegion | None = None
    rules: Mapping[str, Callable[..., Any]] = Factory(lambda: vjp)
    calls: Counter[Computation] = field(factory=Counter)
    known: dict[Any, Any] = field(factory=dict, init=False)
    _uses: dict[int, int] = field(factory=dict, init=False)

    def inline(self, computation: Computation) -> Computation:
        """The computation with the calls inlined that are worth it."""
        return inline_calls(computation, self.calls, self.known)

    def inline_all(self, computation: Computation) -> Computation:
        """The computation with every call inlined, so that patterns of reducers are recognized."""
        return inline_calls(computation, Counter(), self.known)

    def recomputes(self, instruction: Instruction) -> bool:
        """Whether the backward pass recomputes the values of a loop or call instead of keeping them."""
        if isinstance(self.checkpoint, bool):
            return self.checkpoint
        return instruction.name in self.checkpoint

    def transfer_channel(self, channel: int) -> int:
        """The channel on which the cotangents of a transfer travel back."""
        return self.channels.number_for(channel)

    def collective_channel(self, channel: int | None) -> int | None:
        """A channel for a collective of the backward pass, if the forward one has a channel."""
        if channel is None or channel <= 0:
            return channel
        uses = self._uses[channel] = self._uses.get(channel, -1) + 1
        return self.channels.number_for((channel, uses))


# ----------------------------------------------------------------------------
# Inlining
#
# Calls of small computations are inlined, and calls of computations that are called once.


_SMALL_ENOUGH = 12
"""The largest number of instructions of a computation that is inlined at each of its calls."""

_LARGEST_INLINED = 1000
"""The largest number with its own calls inlined: 60 nested levels could otherwise grow to 2^60."""


def inline_calls(computation: Computation, calls: Counter[Computation], known: dict[Any, Any]) -> Computation:
    """The computation with calls inlined whose callee is small or has no other call."""
    key = "inlined", computation
    if key not in known:
        chosen = [instruction for instruction in computation.instructions if _should_inline(instruction, calls, known)]
        known[key] = computation
        if chosen:
            known[key] = _Inlining(computation, {*chosen}, calls, known).computation(computation)
    return known[key]  # type: ignore[no-any-return]


def call_counts(entry: Computation) -> Counter[Computation]:
    """The number of call sites of each computation of a program."""
    return Counter(called for computation in entry.reachable() for i in computation.instructions for called in i.called)


def _should_inline(instruction: Instruction, calls: Counter[Computation], known: dict[Any, Any]) -> bool:
    if instruction.opcode not in ("call", "fusion"):
        return False
    (called,) = instruction.called
    if calls[called] <= 1:
        return True
    is_small = len(called.instructions) - len(called.parameters) <= _SMALL_ENOUGH
    return is_small and len(inline_calls(called, calls, known).instructions) <= _LARGEST_INLINED


class _Inlining(Rewriter):
    """The pass that inlines the chosen calls of one computation."""

    def __init__(
        self, computation: Computation, chosen: set[Instruction], calls: Counter[Computation], known: dict[Any, Any]
    ) -> None:
        super().__init__()
        self.chosen, self.calls, self.known = chosen, calls, known
        self.names = {each.name for each in computation.instructions}

    def instruction(self, instruction: Instruction) -> Instruction:
        made = self.rewired(instruction)
        if instruction in self.chosen:
            called = inline_calls(instruction.called[0], self.calls, self.known)
            added, result = inlined(called, made.operands, made.control, lambda name: _unused_name(name, self.names))
            self.kept.update(dict.fromkeys(added))
            return result
        if made.opcode == "get_tuple_element" and made.operands[0].opcode == "tuple" and not made.control:
            return made.operands[0].operands[made.attributes.index]  # type: ignore[no-any-return]
        return self.add(made)


def _unused_name(name: str, names: set[str]) -> str:
    """The name, or the first numbered variant that is not taken, which is taken now."""
    unused, number = name, 0
    while unused in names:
        number += 1
        unused = f"{name}.{number}"
    names.add(unused)
    return unused
