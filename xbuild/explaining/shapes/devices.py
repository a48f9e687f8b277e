"""Why results of collectives, of their asynchronous halves and of transfers have their shapes."""

from __future__ import annotations

from ...core.graph import Instruction
from .table import Lines, as_operand, dims_of, entered, reasons, row


def operands_text(instruction: Instruction) -> str:
    return ", ".join(f"{each.name} ({each.shape})" for each in instruction.operands[:4])


@entered(("all_reduce", "collective_permute", "collective_broadcast"))
def alike(instruction: Instruction) -> Lines:
    if len(instruction.operands) == 1:
        yield f"{next(as_operand(instruction))}: each member brings such an array, and gets one"
    else:
        yield f"as the operands, {operands_text(instruction)}: each member brings such arrays, and gets them"


def _along(instruction: Instruction, dim: int, sign: str, members: int) -> Lines:
    """The lines of a collective after which one dimension is longer (*) or shorter (/) by the size of the group."""
    operand = instruction.operands[0]
    for each, extent in enumerate(dims_of(operand.shape)):
        if each != dim:
            yield row(each, extent, f"dimension {each} of {operand.name}")
            continue
        size = extent * members if sign == "*" else extent // members
        why = "one part from each of them" if sign == "*" else "a part for each of them"
        group = f"in groups of {members}, {why}"
        yield row(each, f"{extent} {sign} {members} = {size}", f"dimension {each} of {operand.name} {group}")
    if len(instruction.operands) > 1:
        yield f"so for each of the {len(instruction.operands)} operands, in a tuple"


@reasons
def all_gather(instruction: Instruction) -> Lines:
    yield from _along(instruction, instruction.attributes.all_gather_dimension, "*", instruction.attributes.shard_count)


@reasons
def reduce_scatter(instruction: Instruction) -> Lines:
    yield from _along(instruction, instruction.attributes.scatter_dimension, "/", instruction.attributes.shard_count)


@reasons
def all_to_all(instruction: Instruction) -> Lines:
    given = instruction.attributes
    split, joined, count = given.split_dimension, given.concat_dimension, given.split_count
    joined = split if joined is None else joined
    if split is None:
        yield f"a tuple with an array from each of the {len(instruction.operands)} members of a group"
    elif split == joined:
        yield f"{next(as_operand(instruction))}: cut into {count} along dimension {split}, and joined along it again"
    else:
        operand = instruction.operands[0]
        for dim, extent in enumerate(dims_of(instruction.shape)):
            sign = {split: "/", joined: "*"}.get(dim)
            does = "which is cut, a part for each member" if dim == split else "along which the parts are joined"
            of, before = f"dimension {dim} of {operand.name}", dims_of(operand.shape)[dim]
            yield row(dim, f"{before} {sign} {count} = {extent}", f"{of}, {does}") if sign else row(dim, extent, of)


@reasons
def ragged_all_to_all(instruction: Instruction) -> Lines:
    yield from as_operand(instruction, 1)
    yield "into which the rows that come are written"


@entered(("all_gather_start", "collective_permute_start", "async_start", "async_update", "copy_start"))
def under_way(instruction: Instruction) -> Lines:
    yield (
        f"a tuple of what is under way: operands, result and context of {operands_text(instruction)}; "
        "the done takes the result out"
    )


@entered(("all_reduce_start",))
def all_reduce_start(instruction: Instruction) -> Lines:
    yield f"as the all-reduce of {operands_text(instruction)} gives; the done hands it on"


@entered(("all_reduce_done", "all_gather_done", "collective_permute_done", "async_done", "copy_done"))
def done(instruction: Instruction) -> Lines:
    yield f"the result of what {instruction.operands[0].name} has begun"


@entered(("send", "recv"))
def half(instruction: Instruction) -> Lines:
    is_send = instruction.opcode == "send"
    what = f"the value {instruction.operands[0].name}" if is_send else "the value, which the attribute shape states"
    yield f"a tuple of {what}, a context (u32[]) and a token, for {instruction.opcode}-done"


@entered(("send_done", "outfeed", "after_all"))
def token(instruction: Instruction) -> Lines:
    yield "a token: it orders what has an effect, and holds no data"


@entered(("recv_done",))
def received(instruction: Instruction) -> Lines:
    yield f"a tuple of the value that {instruction.operands[0].name} waits for, and a token"
