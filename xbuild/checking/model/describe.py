"""Words of reports for instructions: name, call path, channel, groups and shape; and the makers of findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from shape_inference import AnyShape, TupleShape

from ...core.graph import Instruction
from ...properties.effects import START_OF, Path, collective_in, spelling, start_of, where
from ...properties.sites import Site
from .program import devices_text
from .verdict import Finding, ReportRow

SHOWN = 4


def payload(instruction: Instruction) -> AnyShape:
    """The shape of the value that an instruction passes: the operand of a send or collective, the result of a recv."""
    if instruction.opcode == "recv":
        return instruction.attributes.shape  # type: ignore[no-any-return]
    return instruction.operands[0].shape if instruction.operands else instruction.shape


def fact(instruction: Instruction, device: int | None = None, peer: int | None = None) -> str:
    """`channel 1 -> device 1, f32[4]`, `f32[128], groups {0,1},{2,3}`"""
    collective = collective_in(instruction)
    if collective is not None:
        return _collective_fact(collective)
    start = start_of(instruction) if instruction.opcode in START_OF else None
    if start is not None and collective_in(start) is not None:
        return fact(start)
    if not hasattr(instruction.attributes, "channel_id"):
        return "" if isinstance(instruction.shape, TupleShape) else str(instruction.shape)
    channel = f"channel {instruction.attributes.channel_id}"
    if instruction.opcode not in ("send", "recv"):
        return channel
    arrow = "->" if instruction.opcode == "send" else "<-"
    host = ", host transfer" if instruction.attributes.is_host_transfer else ""
    target = "" if peer is None else f" {arrow} device {peer}"
    return f"{channel}{target}, {payload(instruction)}{host}"


def _collective_fact(collective: Instruction) -> str:
    attributes = collective.attributes
    shape, channel = payload(collective), getattr(attributes, "channel_id", None)
    parts = [str(shape), groups_text(collective)]
    return ", ".join([*parts, *([f"channel {channel}"] if channel is not None else [])])


def groups_text(collective: Instruction) -> str:
    """`groups {0,1},{2,3}`, `all devices`, `pairs {0,1}`"""
    pairs = getattr(collective.attributes, "source_target_pairs", None)
    lists = getattr(collective.attributes, "replica_groups", ()) if pairs is None else pairs
    if not lists and pairs is None:
        return "one group of all"
    return f"{'groups' if pairs is None else 'pairs'} {','.join(braces(each) for each in lists) or '{}'}"


def braces(ids: Iterable[int]) -> str:
    return f"{{{','.join(map(str, ids))}}}"


def named(instruction: Instruction, path: Path = ()) -> str:
    """`send send.1 in while w`"""
    return f"{spelling(instruction.opcode)} {instruction.name}{where(path)}"


def calls_text(standing: Iterable[tuple[int, Instruction]]) -> str:
    """`send.1 of device 0 and send.2 of device 1`, in the order of the devices; of many calls the first."""
    devices: dict[str, set[int]] = {}
    for device, instruction in sorted(standing, key=lambda each: each[0]):
        devices.setdefault(instruction.name, set()).add(device)
    told = [f"{name} of {devices_text(found)}" for name, found in devices.items()]
    if len(told) > SHOWN:
        told = [*told[: SHOWN - 1], f"{len(told) - SHOWN + 1} more"]
    return f"{', '.join(told[:-1])} and {told[-1]}" if len(told) > 1 else told[0]


def untying_text(ties: Sequence[tuple[Instruction, Instruction, int]]) -> str:
    """The sentence that names the dependencies by which an order is fixed, and asks to remove one of them."""
    told = [f"{late.name} from {early.name} on device {device}" for late, early, device in ties[:SHOWN]]
    return f"untie one of these (by a token of its own, or an operand that does not hang on it): {', '.join(told)}"


def row(devices: Iterable[int], site: Site, peer: int | None = None) -> ReportRow:
    """The row of a site: the devices, its name, its facts, its line."""
    found = tuple(devices)
    return ReportRow(found, str(site), fact(site.instruction, found[0], peer), site.instruction.source)


def absent_row(devices: Iterable[int], text: str) -> ReportRow:
    """The row of devices that lack the other half of a transfer, or a collective."""
    return ReportRow(tuple(devices), text)


def finding(
    kind: str,
    message: str,
    *places: tuple[Iterable[int], Site],
    rows: Iterable[ReportRow] = (),
    facts: Sequence[str] = (),
    **more: str,
) -> Finding:
    """A finding about these sites: a row for each, with its fact if `facts` are given, then the other rows."""
    listed = [(tuple(devices), site) for devices, site in places]
    told = [row(devices, site) for devices, site in listed]
    if facts:
        told = [evolve(each, fact=said) for each, said in zip(told, facts, strict=True)]
    return Finding(
        kind,
        message,
        (*told, *rows),
        instructions=tuple(dict.fromkeys(site.instruction for _, site in listed)),
        devices=tuple(sorted({device for devices, _ in listed for device in devices})),
        **more,  # type: ignore[arg-type]
    )


def nest_finding(what: str, *places: tuple[tuple[int, ...], Site]) -> Finding:
    """The finding that two sites which should meet stand under different calls."""
    (_, a), (_, b) = places
    return finding(
        "nest_mismatch",
        f"the two sides of {what} stand under different calls: {_placed(a)}, {_placed(b)}",
        *places,
        cause_text="they would run a different number of times, or wait for a part of the program that may not run",
        repair_text=f"put {a.instruction.name} and {b.instruction.name} under the same kinds of calls",
    )


def _placed(site: Site) -> str:
    return str(site) if site.path else f"{site} in the entry"
