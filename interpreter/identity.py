"""Which collective of one program is which of another: what makes two devices meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from xbuild.graph import Module

from .facts import COLLECTIVES
from .requests import Request


class Identities:
    """In one program for all, the instruction and its call path; across programs, a channel id that each has once, or the names.

    Collectives match by what they are, never by arrival.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        distinct = {id(module): module for module in modules}
        self._alone = len(distinct) == 1
        self._unique = {} if self._alone else {key: _unique_channels(module) for key, module in distinct.items()}

    def of(self, module: Module, request: Request) -> Any:
        if self._alone:
            return request.key
        channel = request.instruction.attributes.channel_id
        if channel in self._unique[id(module)]:
            return channel
        return tuple((place.instruction.name, place.branch) for place in request.path)


def _unique_channels(module: Module) -> frozenset[int]:
    """The channel ids that name one collective of the module."""
    instructions = (i for c in module.computations for i in c.instructions if i.opcode in COLLECTIVES)
    counts = Counter(i.attributes.channel_id for i in instructions)
    return frozenset(channel for channel, count in counts.items() if channel is not None and count == 1)
