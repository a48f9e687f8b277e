"""The short table of `replication`: the values at which equality between devices begins or ends, and why.

It lists the arguments and the results, the collectives, the values that differ although their operands are equal, those
that are equal although their operands differ, and the predicates that differ. The others follow from these.
"""

from __future__ import annotations

from collections.abc import Iterator

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..core.graph import Computation, Instruction
from ..properties.effects import FOLLOWED, collective_in, spelling
from ..properties.sources import deciders
from .model.describe import groups_text
from .model.program import devices_text
from .replicated_values import Replication, origin_text, path_of_difference, value_text

_HEADS = ("value", "shape", "on the devices", "why")
_WIDEST = 40
_MOST_OPERANDS = 3


def summary_lines(values: Replication, most: int) -> Iterator[str]:
    """The lines of the table, with at most `most` rows for each program."""
    for number, part in enumerate(values.parts):
        rows = [*_rows(values, part.module.entry, [*part.values()])]
        count = sum(1 for _ in part.values())
        head = f"replication of {in_line(part.module.name)}, on {devices_text(part.devices)}"
        yield f"{chr(10) * bool(number)}{head}: {len(rows)} of {count} values, from which the others follow"
        cells = [_HEADS, *(row for row in rows[:most])]
        widths = [min(max(len(row[place]) for row in cells), _WIDEST) for place in range(3)]
        for row in cells:
            fixed = "  ".join(word.ljust(width) for word, width in zip(row[:3], widths, strict=True))
            yield f"  {fixed}  {row[3]}".rstrip()
        if len(rows) > most:
            yield f"  ... and {len(rows) - most} more; --all shows every value"


def _rows(
    values: Replication, entry: Computation, places: list[tuple[Computation, Instruction]]
) -> Iterator[tuple[str, str, str, str]]:
    decisive = {decider for _, each in places if each.opcode in FOLLOWED for decider, _ in deciders(each)}
    known = {each for _, each in places}
    for home, each in places:
        if reason := _reason(values, each, home is entry, each in decisive, known):
            yield _row(values, in_line(each.name), each, reason)
    results = entry.root.operands if entry.root.opcode == "tuple" else (entry.root,)
    for number, each in enumerate(results):
        reason = "" if _is_equal(values, each) else _origin_text(values, each)
        yield _row(values, f"result {number} ({in_line(each.name)})", each, reason)


def _row(values: Replication, name: str, each: Instruction, reason: str) -> tuple[str, str, str, str]:
    shape = str(each.shape.plain()) if isinstance(each.shape, Shape) else "(...)"
    return name, shape, value_text(values, each), reason


def _reason(values: Replication, each: Instruction, in_entry: bool, is_decisive: bool, known: set[Instruction]) -> str:
    """Why a value differs or is equal; empty if that follows from other values."""
    is_equal = _is_equal(values, each)
    if each.opcode == "parameter":
        if not in_entry:
            return ""
        return "the program states it" if is_equal else _argument_text(values, each)
    behind = [operand for operand in each.operands if operand in known]
    is_equal_behind = all(_is_equal(values, operand) for operand in behind)
    if collective_in(each) is not None and not each.opcode.endswith("_done"):
        return _collective_text(each) if is_equal or not is_equal_behind else origin_text(values, each)
    if each.opcode in FOLLOWED or each.opcode in ("call", "fusion", "tuple", "get_tuple_element"):
        return ""
    if not is_equal and (is_decisive or (is_equal_behind and _begins(each))):
        return ("decides a branch or a loop; " if is_decisive else "") + origin_text(values, each)
    if is_equal and behind and not is_equal_behind:
        names = ", ".join(in_line(operand.name) for operand in behind[:_MOST_OPERANDS])
        return f"computed from {names}: the same on each device"
    return ""


def _argument_text(values: Replication, parameter: Instruction) -> str:
    if all(len(group) == 1 for group in values.groups(parameter)):
        return "each device gets its own"
    return "its sharding splits it: the devices in braces hold the same part"


def _origin_text(values: Replication, each: Instruction) -> str:
    """Where the difference of a value begins."""
    path_back = path_of_difference(values, each)
    if path_back is None or path_back[-1][0].opcode != "parameter":
        return origin_text(values, each)
    return f"computed from {in_line(path_back[-1][0].name)}"


def _begins(each: Instruction) -> bool:
    """Whether a difference can begin here: constants in a branch that only some devices take do not count."""
    return each.opcode != "constant" and not each.operands


def _collective_text(each: Instruction) -> str:
    return f"{spelling(each.opcode)} over {groups_text(each) or 'all devices'}"


def _is_equal(values: Replication, value: Instruction) -> bool:
    return len(values.groups(value)) == 1
