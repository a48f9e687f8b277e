"""Channels: the sends and recvs of each, the peer of each half on each device, and their faults.

Sections:

    Channels: the sends and recvs of each id, and what distinguishes several sends
    match_transfers: the peer of each half on each device, and the faults of channels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import define, field, frozen

from shape_inference import compatible

from ...core.graph import Instruction
from ...core.report_text import join_words
from ...process.limits import ask
from ...process.progress import over
from ...properties.effects import LOOPS, TRANSFERS, collective_in, nest, op_and_name, start_of, travelling
from ...properties.sites import Site, collectives_of, transfers_of
from ..model.describe import absent_row, calls_text, finding, nest_finding, payload
from ..model.program import DeviceClass, GridProgram, devices_text
from ..model.verdict import Finding
from .collective_matching import faults_by_themselves, groups_beyond, pair_faults

# ----------------------------------------------------------------------------
# Channels: the sends and recvs of each id, and what distinguishes several sends

OTHER = {"send": "recv", "recv": "send"}


@define(eq=False)
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
    is_plain: bool = False  # whether it has one send and one recv, each on one device

    def only_peer(self, role: str, device: int) -> int | None:
        """The one device that all sends, or all recvs, of a device meet; None if there is none, or several."""
        peers = {peer for (half, at), peer in self.peers.items() if at == device and half.opcode == role}
        return peers.pop() if len(peers) == 1 else None

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
        """The device that this send or recv meets when it runs on a device; None if it does not take part."""
        return self.channels[instruction.attributes.channel_id].peers.get((instruction, device))

    def peer_at(self, instruction: Instruction, role: str, device: int) -> int | None:
        """The same for a send or recv, or for its done; for a done without a start, for its whole channel."""
        half = instruction if instruction.opcode in TRANSFERS else start_of(instruction)
        if half is not None:
            return self.peer(half, device)
        return self.channels[instruction.attributes.channel_id].only_peer(role, device)


def may_clash(a: Half, b: Half) -> bool:
    """Whether a device has both halves, and neither pairs nor pipelines nor loops distinguish them.

    The two starts of a pipelined transfer do not clash, nor do a send in a loop and the one that was peeled off it.
    """
    if a.travels and b.travels and a.on == b.on:
        return False
    if a.pairs and b.pairs:
        return (
            bool(a.on & b.on)
            and share_a_pair(a, b)
            and _pipeline(a) == _pipeline(b)
            and _loops_around(a) == _loops_around(b)
        )
    return bool(a.on & b.on) or not (a.pairs or b.pairs)


def _candidates_near(halves: list[Half]) -> Callable[[Half], Iterator[Half]]:
    """For a half, those that may clash with it: they share a pair, or one of the two has no pairs."""
    unpaired = [half for half in halves if not half.pairs]
    by_pair: dict[tuple[int, int], list[Half]] = {}
    for half in halves:
        for pair in {*half.pairs}:
            by_pair.setdefault(pair, []).append(half)

    def near(half: Half) -> Iterator[Half]:
        ask()
        yield from unpaired if half.pairs else halves
        for pair in {*half.pairs}:
            yield from by_pair[pair]

    return near


def run_in_sequence(a: Half, b: Half) -> bool:
    """Whether one of two halves begins after the other has ended: it, or a call around it, depends on the other."""
    steps = [[*(step.instruction for step in half.site.path), half.instruction] for half in (a, b)]
    first, second = next((pair for pair in zip(*steps, strict=False) if pair[0] is not pair[1]), (None, None))
    if first is None or second is None:
        return False
    return first in _all_dependencies(second) or second in _all_dependencies(first)


def _all_dependencies(instruction: Instruction) -> set[Instruction]:
    """All that an instruction depends on by operands and control edges."""
    dependencies: set[Instruction] = set()
    stack = [instruction]
    while stack:
        last = stack.pop()
        new = [before for before in (*last.operands, *last.control) if before not in dependencies]
        dependencies.update(new)
        stack += new
    return dependencies


def share_a_pair(a: Half, b: Half) -> bool:
    return bool({*a.pairs} & {*b.pairs})


def _loops_around(half: Half) -> tuple[Instruction, ...]:
    return tuple(step.instruction for step in half.site.path if step.instruction.opcode in LOOPS)


def _pipeline(half: Half) -> str | None:
    """The pipeline number that XLA's collective-permute decomposer gives a send or recv."""
    attributes = half.instruction.annotations.get("frontend_attributes", {})
    return attributes.get("_xla_send_recv_pipeline") if isinstance(attributes, Mapping) else None


ABSENT = ("invalid_group", "device_out_of_range")


def find_absent_devices(program: GridProgram) -> tuple[Finding, ...]:
    """Faults of collectives and transfers whose groups or pairs name devices that do not exist: no run can begin."""
    found = [*faults_by_themselves(program), *groups_beyond(program)]
    for device_class in program.without_orders().classes:
        sites = {site.instruction: site for site in transfers_of(device_class.module.entry)}
        for instruction, site in sites.items():
            pairs = instruction.attributes.source_target_pairs
            found += pair_faults(device_class.devices, site, pairs, len(program.devices), "device")
    return tuple([fault for fault in found if fault.kind in ABSENT])


# ----------------------------------------------------------------------------
# match_transfers: the peer of each half on each device, and the faults of channels


def match_transfers(program: GridProgram) -> tuple[Transfers, list[Finding]]:
    """The channels with their peers, and every fault of them."""
    channels: dict[int, Channel] = {}
    classes = program.without_orders().classes
    for each in over(classes, "matching transfers", "programs"):
        on, travel = frozenset(each.devices), travelling(each.module.entry)
        for site in transfers_of(each.module.entry):
            number, instruction = site.channel, site.instruction
            if number not in channels:
                channels[number] = Channel(number)
            is_grouped = bool(site.path) and site.path[-1].instruction.opcode == "async_start"
            travels = instruction in (travelling(site.path[-1].computation) if site.path else travel) and not is_grouped
            channels[number].halves[instruction.opcode].append(Half(each.devices, site, on, travels))
    found: list[Finding] = [*_find_shared_channels(classes, channels)]
    for channel in over(channels.values(), "matching transfers", "channels"):
        if not _set_plain_peers(channel):
            found += _faults(program, channel)
    return Transfers(channels), found


def _find_shared_channels(classes: tuple[DeviceClass, ...], channels: Mapping[int, Channel]) -> Iterator[Finding]:
    """Faults of channel ids that a transfer and a collective share."""
    for each in classes if channels else ():
        for site in collectives_of(each.module.entry):
            instruction = site.instruction
            collective = collective_in(instruction)
            number = getattr(collective and collective.attributes, "channel_id", None)
            if number is not None and number in channels:
                halves = [half for halves in channels[number].halves.values() for half in halves]
                yield finding(
                    "channel_kind_mix",
                    f"channel {number} is used by {op_and_name(instruction)} "
                    f"and by {op_and_name(halves[0].instruction)}",
                    (each.devices, site),
                    (halves[0].devices, halves[0].site),
                    repair_text=f"give {instruction.name} its own channel",
                )


def _set_plain_peers(channel: Channel) -> bool:
    """Set the peers of a faultless channel with one send and one recv on two devices; False for other channels."""
    sends, recvs = channel.halves["send"], channel.halves["recv"]
    if len(sends) != 1 or len(recvs) != 1:
        return False
    send, recv = sends[0], recvs[0]
    first, second = send.site.instruction, recv.site.instruction
    if send.travels or recv.travels or first.attributes.source_target_pairs or second.attributes.source_target_pairs:
        return False
    if len(send.devices) != 1 or len(recv.devices) != 1 or send.devices == recv.devices:
        return False
    if any(_compare_pair(channel.number, sends, recvs)):
        return False
    (source,), (target,) = send.devices, recv.devices
    channel.peers = {(first, source): target, (second, target): source}
    channel.is_plain = True
    return True


def _faults(program: GridProgram, channel: Channel) -> Iterator[Finding]:
    for check in (_check_pairs, _find_duplicates, _find_one_sided):
        faults = [*check(program, channel)]
        yield from faults
        if faults:
            return
    faults = [*_set_peers(program, channel)]
    yield from faults
    if not faults:
        yield from _compare_halves(channel)


def _find_duplicates(program: GridProgram, channel: Channel) -> Iterator[Finding]:
    """Faults of channels with several sends or recvs on a device, or, without pairs, in all programs.

    The host takes and returns values one after the other, so there one half may follow the other.
    """
    for role, halves in channel.halves.items():
        distinct = list({half.instruction: half for half in halves}.values())
        is_host = channel.is_host_transfer and not channel.halves[OTHER[role]]
        near = _candidates_near(distinct)
        alike = [
            half
            for half in distinct
            if any(
                may_clash(half, o) and not (is_host and run_in_sequence(half, o)) for o in near(half) if o is not half
            )
        ]
        if alike:
            names = join_words(half.site.instruction.name for half in alike)
            yield finding(
                "duplicate_channel",
                f"channel {channel.number} has {len(alike)} {role}s: {names}",
                *((half.devices, half.site) for half in alike),
                cause_text=(
                    f"a channel has one {role}, or source-target pairs that match each {role} with a {OTHER[role]}"
                ),
                repair_text=f"give each {role} and its {OTHER[role]} their own channel",
            )


def _find_one_sided(program: GridProgram, channel: Channel) -> Iterator[Finding]:
    """Faults of channels with only one half, unless the host has the other."""
    if channel.is_host_transfer and not (channel.halves["send"] and channel.halves["recv"]):
        return
    for role, other in OTHER.items():
        if channel.halves[role] and not channel.halves[other]:
            halves = channel.halves[role]
            rest = sorted(set(program.devices) - {d for half in halves for d in half.devices}) or list(program.devices)
            calls = calls_text((device, half.instruction) for half in halves for device in half.devices)
            verb = "has" if len(halves) == 1 else "have"
            yield finding(
                f"missing_{other}",
                f"{calls} on channel {channel.number} {verb} no {other}",
                *((half.devices, half.site) for half in halves),
                rows=[absent_row(rest, f"no {other} on channel {channel.number}")],
                cause_text=f"no recv takes the value that {halves[0].instruction.name} sends"
                if role == "send"
                else f"no send provides a value for {halves[0].instruction.name}",
                repair_text=f"add a {other} with its {other}-done on channel {channel.number}, or remove the {role}",
            )


def _check_pairs(program: GridProgram, channel: Channel) -> Iterator[Finding]:
    for half in (half for halves in channel.halves.values() for half in halves if half.pairs):
        yield from pair_faults(half.devices, half.site, half.pairs, len(program.devices), "device")


def _set_peers(program: GridProgram, channel: Channel) -> Iterator[Finding]:
    """Set the peers of a channel; faults if the two halves do not name each other."""
    seen: set[str] = set()
    for role, place in (("send", 0), ("recv", 1)):
        for half in channel.halves[role]:
            ends = {pair[place]: pair[1 - place] for pair in half.pairs}
            for device in half.devices:
                peer = ends.get(device) if ends else _only_device(channel, OTHER[role])
                if peer is None:
                    continue
                fault = _check_peer(program, channel, half, role, device, peer)
                if fault is None:
                    channel.peers[half.instruction, device] = peer
                elif fault.kind not in seen:
                    seen.add(fault.kind)
                    yield fault
    met: dict[tuple[str, int], list[int]] = {}
    for (instruction, device), peer in channel.peers.items():
        met.setdefault((instruction.opcode, device), []).append(peer)
    for (instruction, device), peer in channel.peers.items():
        other = OTHER[instruction.opcode]
        back = met.get((other, peer), [])
        if device not in back and channel.half_on(other, peer) is not None and not seen:
            yield _peer_finding(channel, instruction, device, peer, back[0] if back else None)
            return


def _only_device(channel: Channel, role: str) -> int | None:
    """The device of the only half of this kind, for a channel without pairs."""
    homes = [device for half in channel.halves[role] for device in half.devices]
    return homes[0] if homes else None


def _check_peer(
    program: GridProgram, channel: Channel, half: Half, role: str, device: int, peer: int
) -> Finding | None:
    other = channel.half_on(OTHER[role], peer)
    to = "to" if role == "send" else "from"
    if device == peer:
        places = [(half.devices, half.site), *([(other.devices, other.site)] if other else [])]
        names = join_words(site.instruction.name for _, site in places)
        return finding(
            "self_send",
            f"on channel {channel.number}, device {device} passes a value to itself: {names}",
            *places,
            cause_text="a send and its recv must run on different devices",
            repair_text=f"use the operand of {half.instruction.name} directly",
        )
    if other is not None:
        return None
    if channel.is_host_transfer and not channel.halves[OTHER[role]]:
        return None
    elsewhere = channel.halves[OTHER[role]][0]
    return finding(
        "peer_mismatch",
        f"{half.instruction.name} of device {device} transfers {to} device {peer} on channel {channel.number}, but "
        f"its {OTHER[role]} {elsewhere.instruction.name} is on {devices_text(elsewhere.devices)}",
        ((device,), half.site),
        (elsewhere.devices, elsewhere.site),
        rows=[absent_row([peer], f"no {OTHER[role]} on channel {channel.number}")],
        repair_text=f"name the same pair of devices in {half.instruction.name} and {elsewhere.instruction.name}",
    )


def _peer_finding(channel: Channel, instruction: Instruction, device: int, peer: int, back: int | None) -> Finding:
    role = instruction.opcode
    mine = next(half for half in channel.halves[role] if half.instruction is instruction and device in half.on)
    other = channel.half_on(OTHER[role], peer)
    assert other is not None
    meets = "no device" if back is None else f"device {back}"
    return finding(
        "peer_mismatch",
        f"on channel {channel.number}, {mine.instruction.name} of device {device} is paired with device {peer}, but "
        f"{other.instruction.name} of device {peer} is paired with {meets}",
        ((device,), mine.site),
        ((peer,), other.site),
        repair_text=f"give {mine.instruction.name} and {other.instruction.name} the same source_target_pairs",
    )


def _compare_halves(channel: Channel) -> Iterator[Finding]:
    """Faults of halves that differ in shape, host flag or call nest."""
    sends, recvs = (_by_instruction(channel.halves[role]) for role in ("send", "recv"))
    is_peeled = any(map(_have_common_pairs, (sends, recvs)))
    for mine in sends:
        for theirs in recvs:
            ask()
            if _are_peers(channel, mine[0], theirs[0]):
                faults = [*_compare_pair(channel.number, mine, theirs, is_peeled=is_peeled)]
                yield from faults
                if faults:
                    return


def _by_instruction(halves: list[Half]) -> list[list[Half]]:
    """The halves of each instruction on the same devices: one for each path of calls to it."""
    found: dict[tuple[Instruction, tuple[int, ...]], list[Half]] = {}
    for half in halves:
        found.setdefault((half.instruction, half.devices), []).append(half)
    return [*found.values()]


def _are_peers(channel: Channel, send: Half, recv: Half) -> bool:
    """Whether a device that runs the send and one that runs the recv are peers."""
    ends = ((device, channel.peers.get((send.instruction, device))) for device in send.devices)
    return any(b in recv.on and channel.peers.get((recv.instruction, b)) == a for a, b in ends if b is not None)


def _have_common_pairs(groups: list[list[Half]]) -> bool:
    """Whether several sends, or recvs, have a common pair: then nests may differ, and counts decide."""
    distinct = {group[0].instruction: group[0].pairs for group in groups}
    every = [pair for pairs in distinct.values() for pair in {*pairs}]
    return len(every) > len({*every})


def _compare_pair(number: int, sends: list[Half], recvs: list[Half], *, is_peeled: bool = False) -> Iterator[Finding]:
    """Faults of a send and a recv that meet, given the half of each for every path of calls to it."""
    (send, *_), (recv, *_) = sends, recvs
    places = (send.devices, send.site), (recv.devices, recv.site)
    first, second = send.site.instruction, recv.site.instruction
    if not compatible(payload(first), payload(second)):
        yield finding(
            "shape_mismatch",
            f"on channel {number}, {first.name} sends {payload(first)}, but {second.name} expects {payload(second)}",
            *places,
        )
    if first.attributes.is_host_transfer != second.attributes.is_host_transfer:
        one, two = first.attributes.is_host_transfer, second.attributes.is_host_transfer
        text = (
            f"on channel {number}, {first.name} has is_host_transfer={one}, but {second.name} has "
            f"is_host_transfer={two}"
        )
        yield finding("host_flag_mismatch", text, *places)
    if len(sends) == len(recvs) == 1 and send.site.path == recv.site.path:
        return
    if is_peeled or any(half.travels for half in (*sends, *recvs)):
        return
    nests, others = ({nest(half.site.path): half for half in halves} for halves in (sends, recvs))
    if nests.keys() != others.keys():
        alone = next((half for where, half in nests.items() if where not in others), send)
        apart = next((half for where, half in others.items() if where not in nests), recv)
        yield nest_finding(f"channel {number}", (alone.devices, alone.site), (apart.devices, apart.site))
