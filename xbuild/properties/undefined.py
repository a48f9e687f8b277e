"""Values that are undefined on some devices: the mark of instructions that leave them so, and where they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shape_inference import TupleShape

from ..core.graph import Instruction

UNDEFINED = "xbuild.undefined"
_HANDED_ON = ("bitcast", "copy", "opt_barrier", "reshape", "transpose")

Devices = frozenset[int]
NOWHERE: Devices = frozenset()


def undefined_text(devices: Iterable[int]) -> str:
    """The mark of an instruction whose result is undefined on these devices."""
    return ",".join(map(str, sorted(devices)))


def marked_undefined(instruction: Instruction) -> Devices:
    """The devices on which the instruction itself leaves its result undefined."""
    given = instruction.annotations.get("frontend_attributes", {}).get(UNDEFINED, "")
    words = str(given).split(",") if given else []
    return frozenset(int(word) for word in words if word.isdecimal() and word.isascii())


def undefined_on(instruction: Instruction) -> tuple[Devices, ...]:
    """For each element of a tuple, or for the value, the devices on which it is undefined.

    Followed through what hands elements on; whatever else uses an undefined value gives one that counts as defined.
    """
    while instruction.opcode in _HANDED_ON and not marked_undefined(instruction):
        instruction = instruction.operands[0]
    if instruction.opcode == "tuple":
        return tuple(frozenset().union(*undefined_on(each)) for each in instruction.operands)
    if instruction.opcode == "get_tuple_element":
        return (undefined_on(instruction.operands[0])[instruction.attributes.index],)
    count = len(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else 1
    return (marked_undefined(instruction),) * count


def reads(instruction: Instruction) -> Iterator[tuple[int, Instruction, Devices]]:
    """The operands that are undefined on devices which read them here: number, operand, devices."""
    if instruction.opcode in (*_HANDED_ON, "tuple", "get_tuple_element"):
        return
    for number, operand in enumerate(instruction.operands):
        devices = frozenset().union(*undefined_on(operand)) & _readers(
            instruction, frozenset().union(*undefined_on(operand))
        )
        if devices:
            yield number, operand, devices


def _readers(instruction: Instruction, devices: Devices) -> Devices:
    """Those of the devices whose operand an instruction reads: senders, and the first of a group that broadcasts."""
    pairs = getattr(instruction.attributes, "source_target_pairs", ())
    if instruction.opcode in ("collective_permute", "send"):
        return frozenset(source for source, _ in pairs) & devices if pairs else devices
    if instruction.opcode == "collective_broadcast":
        return frozenset(group[0] for group in instruction.attributes.replica_groups if group) & devices
    return devices
