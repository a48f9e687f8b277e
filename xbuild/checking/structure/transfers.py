"""Matching of sends and recvs: the peer of each half of a channel on each device, and the faults of channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shape_inference import compatible

from ...core.graph import Instruction
from ...properties.effects import collective_in, nest, op_and_name, travelling
from ...properties.sites import collectives_of, transfers_of
from ..model.describe import absent_row, calls_text, finding, nest_finding, payload
from ..model.program import DeviceClass, Program, devices_text
from ..model.verdict import Finding
from .channels import OTHER, Channel, Half, Transfers, clash, share_a_pair
from .pairs import pair_faults


def match_transfers(program: Program) -> tuple[Transfers, list[Finding]]:
    """The channels with their peers, and every fault of them."""
    channels: dict[int, Channel] = {}
    classes = program.freed().classes
    for each in classes:
        on, travel = frozenset(each.devices), travelling(each.module.entry)
        for site in transfers_of(each.module.entry):
            number, instruction = site.channel, site.instruction
            if number not in channels:
                channels[number] = Channel(number)
            is_grouped = bool(site.path) and site.path[-1].instruction.opcode == "async_start"
            travels = instruction in (travelling(site.path[-1].computation) if site.path else travel) and not is_grouped
            channels[number].halves[instruction.opcode].append(Half(each.devices, site, on, travels))
    found: list[Finding] = [*_mixed(classes, channels)]
    for channel in channels.values():
        if not _set_plain_peers(channel):
            found += _faults(program, channel)
    return Transfers(channels), found


def _mixed(classes: tuple[DeviceClass, ...], channels: Mapping[int, Channel]) -> Iterator[Finding]:
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
                    repair_text=f"give {instruction.name} a channel of its own",
                )


def _set_plain_peers(channel: Channel) -> bool:
    """Set the peers of a faultless channel of one send and one recv on two devices; False for others."""
    sends, recvs = channel.halves["send"], channel.halves["recv"]
    if len(sends) != 1 or len(recvs) != 1:
        return False
    send, recv = sends[0], recvs[0]
    if send.pairs or recv.pairs or send.travels or recv.travels:
        return False
    if len(send.devices) != 1 or len(recv.devices) != 1 or send.devices == recv.devices:
        return False
    if any(_differing(channel.number, send, recv)):
        return False
    (source,), (target,) = send.devices, recv.devices
    channel.peers = {(send.instruction, source): target, (recv.instruction, target): source}
    return True


def _faults(program: Program, channel: Channel) -> Iterator[Finding]:
    for check in (_bad_pairs, _duplicated, _one_sided):
        faults = [*check(program, channel)]
        yield from faults
        if faults:
            return
    faults = [*_set_peers(program, channel)]
    yield from faults
    if not faults:
        yield from _disagreeing(channel)


def _duplicated(program: Program, channel: Channel) -> Iterator[Finding]:
    """Faults of channels with several sends or recvs on a device, or, without pairs, in all programs."""
    for role, halves in channel.halves.items():
        distinct = list({half.instruction: half for half in halves}.values())
        alike = [half for half in distinct if any(clash(half, o) for o in distinct if o is not half)]
        if alike:
            names = " and ".join(half.site.instruction.name for half in alike)
            yield finding(
                "duplicate_channel",
                f"channel {channel.number} has {len(alike)} {role}s: {names}",
                *((half.devices, half.site) for half in alike),
                cause_text=f"a channel has one {role}, or pairs that tell which of them a {OTHER[role]} meets",
                repair_text=f"give each {role} a channel of its own, with its {OTHER[role]}",
            )


def _one_sided(program: Program, channel: Channel) -> Iterator[Finding]:
    """Faults of channels with one half alone, unless the host has the other."""
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
                cause_text=f"nobody takes what {halves[0].instruction.name} sends"
                if role == "send"
                else f"nobody sends to {halves[0].instruction.name}",
                repair_text=f"add a {other} with its {other}-done on channel {channel.number}, or remove the {role}",
            )


def _bad_pairs(program: Program, channel: Channel) -> Iterator[Finding]:
    for half in (half for halves in channel.halves.values() for half in halves if half.pairs):
        yield from pair_faults(half.devices, half.site, half.pairs, len(program.devices), "device")


def _set_peers(program: Program, channel: Channel) -> Iterator[Finding]:
    """Set the peers of a channel; faults where the two halves do not name each other."""
    seen: set[str] = set()
    for role, place in (("send", 0), ("recv", 1)):
        for half in channel.halves[role]:
            ends = {pair[place]: pair[1 - place] for pair in half.pairs}
            for device in half.devices:
                peer = ends.get(device) if ends else _only_home(channel, OTHER[role])
                if peer is None:
                    continue
                fault = _unfit(program, channel, half, role, device, peer)
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
            yield _peers_differ(channel, instruction, device, peer, back[0] if back else None)
            return


def _only_home(channel: Channel, role: str) -> int | None:
    """The device of the only half of this kind, for a channel without pairs."""
    homes = [device for half in channel.halves[role] for device in half.devices]
    return homes[0] if homes else None


def _unfit(program: Program, channel: Channel, half: Half, role: str, device: int, peer: int) -> Finding | None:
    other = channel.half_on(OTHER[role], peer)
    to = "to" if role == "send" else "from"
    if device == peer:
        places = [(half.devices, half.site), *([(other.devices, other.site)] if other else [])]
        names = " and ".join(site.instruction.name for _, site in places)
        return finding(
            "self_send",
            f"on channel {channel.number} device {device} passes a value to itself: {names}",
            *places,
            cause_text="a send and the recv that it meets run on different devices",
            repair_text=f"use the operand of {half.instruction.name} itself",
        )
    if other is not None:
        return None
    if channel.is_host_transfer and not channel.halves[OTHER[role]]:
        return None
    elsewhere = channel.halves[OTHER[role]][0]
    return finding(
        "peer_mismatch",
        f"{half.instruction.name} of device {device} goes {to} device {peer} on channel {channel.number}, "
        f"and its {OTHER[role]} {elsewhere.instruction.name} sits on {devices_text(elsewhere.devices)}",
        ((device,), half.site),
        (elsewhere.devices, elsewhere.site),
        rows=[absent_row([peer], f"no {OTHER[role]} on channel {channel.number}")],
        repair_text=f"name the same pair of devices in {half.instruction.name} and {elsewhere.instruction.name}",
    )


def _peers_differ(channel: Channel, instruction: Instruction, device: int, peer: int, back: int | None) -> Finding:
    role = instruction.opcode
    mine = next(half for half in channel.halves[role] if half.instruction is instruction and device in half.on)
    other = channel.half_on(OTHER[role], peer)
    assert other is not None
    meets = "no device" if back is None else f"device {back}"
    return finding(
        "peer_mismatch",
        f"on channel {channel.number} {mine.instruction.name} of device {device} meets device {peer}, "
        f"and {other.instruction.name} of device {peer} meets {meets}",
        ((device,), mine.site),
        ((peer,), other.site),
        repair_text=f"give {mine.instruction.name} and {other.instruction.name} the same source_target_pairs",
    )


def _disagreeing(channel: Channel) -> Iterator[Finding]:
    """Faults of halves that differ in shape, host flag or call nest."""
    sends, recvs = channel.halves["send"], channel.halves["recv"]
    for send in sends:
        for recv in recvs:
            ends = ((device, channel.peers.get((send.instruction, device))) for device in send.devices)
            if any(b in recv.on and channel.peers.get((recv.instruction, b)) == a for a, b in ends if b is not None):
                is_peeled = any(_shares(half, halves) for half, halves in ((send, sends), (recv, recvs)))
                faults = [*_differing(channel.number, send, recv, is_peeled=is_peeled)]
                yield from faults
                if faults:
                    return


def _shares(half: Half, halves: list[Half]) -> bool:
    """Whether another send, or recv, of the channel has a pair in common: then nests need not be equal, counts tell."""
    return any(share_a_pair(half, each) for each in halves if each.instruction is not half.instruction)


def _differing(number: int, send: Half, recv: Half, *, is_peeled: bool = False) -> Iterator[Finding]:
    places = (send.devices, send.site), (recv.devices, recv.site)
    first, second = send.site.instruction, recv.site.instruction
    if not compatible(payload(first), payload(second)):
        yield finding(
            "shape_mismatch",
            f"on channel {number} {first.name} sends {payload(first)} and {second.name} wants {payload(second)}",
            *places,
        )
    if first.attributes.is_host_transfer != second.attributes.is_host_transfer:
        one, two = first.attributes.is_host_transfer, second.attributes.is_host_transfer
        text = f"on channel {number} {first.name} has is_host_transfer={one} and {second.name} is_host_transfer={two}"
        yield finding("host_flag_mismatch", text, *places)
    here, there = send.site.path, recv.site.path
    if here != there and nest(here) != nest(there) and not (is_peeled or send.travels or recv.travels):
        yield nest_finding(f"channel {number}", *places)
