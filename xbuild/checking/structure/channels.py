"""Channels: the sends and recvs of each channel id, the peers of devices, and what tells several sends apart."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from ...core.graph import Instruction
from ...properties.effects import LOOPS, TRANSFERS, start_of
from ...properties.sites import Site

OTHER = {"send": "recv", "recv": "send"}


@frozen(eq=False)
class Half:
    """A send or recv of one program, and the devices that run it."""

    devices: tuple[int, ...]
    site: Site
    on: frozenset[int]
    travels: bool = False

    @property
    def instruction(self) -> Instruction:
        return self.site.instruction

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return self.site.instruction.attributes.source_target_pairs  # type: ignore[no-any-return]


@define(eq=False)
class Channel:
    """The sends and recvs of one channel id, and the peer of each device that takes part, by send or recv."""

    number: int
    halves: dict[str, list[Half]] = field(factory=lambda: {"send": [], "recv": []})
    peers: dict[tuple[Instruction, int], int] = field(factory=dict)

    def only_peer(self, role: str, device: int) -> int | None:
        """The one device that all sends, or all recvs, of a device meet; None where there is none, or several."""
        found = {peer for (half, at), peer in self.peers.items() if at == device and half.opcode == role}
        return found.pop() if len(found) == 1 else None

    def half_on(self, role: str, device: int) -> Half | None:
        for half in self.halves[role]:
            if device in half.on:
                return half
        return None

    @property
    def is_host_transfer(self) -> bool:
        return any(half.instruction.attributes.is_host_transfer for halves in self.halves.values() for half in halves)


@frozen(eq=False)
class Transfers:
    """All channels of a program."""

    channels: Mapping[int, Channel]

    def peer(self, instruction: Instruction, device: int) -> int | None:
        """The device that this send or recv meets when it runs there; None where it takes no part."""
        return self.channels[instruction.attributes.channel_id].peers.get((instruction, device))

    def peer_at(self, instruction: Instruction, role: str, device: int) -> int | None:
        """The same of a send or recv, or of its done; where that has no start of its own, of all of its channel."""
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        if half is not None:
            return self.peer(half, device)
        return self.channels[instruction.attributes.channel_id].only_peer(role, device)


def clash(a: Half, b: Half) -> bool:
    """Whether a device has both, and neither their pairs nor their pipelines nor loops tell them apart.

    The two starts of a pipelined transfer do not clash, nor do a send in a loop and the one that was peeled off it.
    """
    if a.travels and b.travels and a.on == b.on:
        return False
    if a.pairs and b.pairs:
        return bool(a.on & b.on) and share_a_pair(a, b) and _pipeline(a) == _pipeline(b) and _loops(a) == _loops(b)
    return bool(a.on & b.on) or not (a.pairs or b.pairs)


def share_a_pair(a: Half, b: Half) -> bool:
    return bool({*a.pairs} & {*b.pairs})


def _loops(half: Half) -> tuple[Instruction, ...]:
    return tuple(step.instruction for step in half.site.path if step.instruction.opcode in LOOPS)


def _pipeline(half: Half) -> str | None:
    """The number of the pipeline that XLA's decomposer of collective permutes gives a send or recv."""
    given = half.instruction.annotations.get("frontend_attributes", {})
    return given.get("_xla_send_recv_pipeline") if isinstance(given, Mapping) else None
