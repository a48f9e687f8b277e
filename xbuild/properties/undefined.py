"""Values that are undefined on some devices: how instructions are marked, and where such values are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shape_inference import TupleShape

from ..core.graph import Instruction
from .sources import Place, operands_behind

UNDEFINED = "xbuild.undefined"
_HANDED_ON = ("bitcast", "copy", "get_tuple_element", "opt_barrier", "reshape", "transpose", "tuple")

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

    Ops that pass elements on are followed; the result of any other op counts as defined.
    """
    if not isinstance(instruction.shape, TupleShape):
        return (_undefined([(instruction, ())]),)
    return tuple(_undefined([(instruction, (number,))]) for number in range(len(instruction.shape.elements)))


def _undefined(looked_for: list[Place]) -> Devices:
    """The devices on which any of these values or elements of tuples is undefined."""
    found = NOWHERE
    seen: set[Place] = set()
    while looked_for:
        instruction, path = each = looked_for.pop()
        if each in seen:
            continue
        seen.add(each)
        found |= marked_undefined(instruction)
        if instruction.opcode in _HANDED_ON:
            looked_for += operands_behind(instruction, path)
    return found


def reads(instruction: Instruction) -> Iterator[tuple[int, Instruction, Devices]]:
    """The operands that are undefined on devices which read them here: number, operand, devices."""
    if instruction.opcode in _HANDED_ON:
        return
    for number, operand in enumerate(instruction.operands):
        devices = _readers(instruction, _undefined([(operand, ())]))
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
