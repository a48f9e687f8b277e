"""Computations written in place: as lines, as regions of an op, as the short word for a reducer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shape_inference import PrimitiveType, Shape, leaves, pred

from ....core.graph import Computation, Instruction
from ....core.op import OPS
from ....properties.effects import HALVES, TRANSFERS
from ....properties.effects import START_OF as ENDS
from ...spelling.op_names import OP_NAMES
from .refusals import NoElementType, naming, refuse
from .tables import lines, values
from .writer import Tree, Writer, flat, shaped

MOST_LINES = 5_000_000


def write_instructions(writer: Writer, computation: Computation) -> None:
    """Write every instruction but the parameters, which have their names already."""
    names, before = writer.names, writer.awaited
    writer.awaited = _awaited(computation)
    count_lines(writer, computation)
    for instruction in computation.instructions:
        opcode = instruction.opcode
        if opcode == "parameter":
            continue
        try:
            if opcode in lines:
                writer.define(instruction, *lines[opcode](writer, instruction))
            else:
                names[instruction] = values[opcode](writer, instruction)
        except NoElementType as error:
            refuse(instruction, error.message)
    writer.awaited = before


def count_lines(writer: Writer, computation: Computation) -> None:
    """Refuse a program whose computations, written at each of their uses, would be endless."""
    writer.functions.written += len(computation.instructions)
    if writer.functions.written > MOST_LINES:
        refuse(
            computation.root,
            f"written out at each of its uses, the program has more than {MOST_LINES:,} ops",
            "a computation that is called by call is written once",
        )


def _awaited(computation: Computation) -> frozenset[Instruction]:
    """The sends and receives that only their dones in the same computation use; other starts must all be such."""
    begun = {i for i in computation.instructions if i.opcode in HALVES and i.opcode not in ENDS}
    if not begun:
        return frozenset()
    others = {o for i in computation.instructions if i.opcode not in HALVES for o in i.operands}
    completed = {o for i in computation.instructions if i.opcode in HALVES for o in i.operands}
    found = begun & (completed - others) - {computation.root}
    for each in computation.instructions:
        if each in begun and each not in found and each.opcode not in TRANSFERS:
            refuse(each, "what it begins is not awaited in its own computation alone, and a future stays there")
    return frozenset(found)


def inlined(writer: Writer, computation: Computation, arguments: Sequence[Tree]) -> Tree:
    """Write a computation in place, and give the names of its result."""
    for parameter, tree in zip(computation.parameters, arguments, strict=True):
        writer.names[parameter] = tree
    write_instructions(writer, computation)
    return writer.names[computation.root]


def named_parameters(writer: Writer, computation: Computation) -> Iterator[tuple[Tree, list[str]]]:
    """For each parameter its tree of new names, and each of these with its type."""
    for parameter in computation.parameters:
        parts = list(leaves(parameter.shape))
        alone = parts == [parameter.shape]
        names = [writer.fresh(parameter.name if alone else f"{parameter.name}.{n}") for n in range(len(parts))]
        with naming(parameter):
            typed = [f"{name}: {writer.type(part)}" for name, part in zip(names, parts, strict=True)]
        yield shaped(parameter.shape, names), typed


@contextmanager
def nested(writer: Writer) -> Iterator[list[str]]:
    """Lines written inside stand in the list that is given, two columns further in."""
    before, indent = writer.lines, writer.indent
    writer.lines, writer.indent = [], f"{indent}  "
    try:
        yield writer.lines
    finally:
        writer.lines, writer.indent = before, indent


def body(writer: Writer, computation: Computation, arguments: Sequence[Tree], header: str = "") -> str:
    """A computation in braces, with its result returned; `header` names the block's arguments."""
    with nested(writer) as written:
        tree = inlined(writer, computation, arguments)
        writer.line(returned(writer, tree, computation.root))
    text = "\n".join([f"{writer.indent}{header}"] * bool(header) + written)
    return f"{{\n{text}\n{writer.indent}}}"


def returned(writer: Writer, tree: Tree, root: Instruction, op: str = "stablehlo.return") -> str:
    names = flat(tree)
    return f"{op} {', '.join(names)} : {', '.join(writer.types((root,)))}" if names else op


def region(writer: Writer, computation: Computation) -> str:
    """A computation as a region whose arguments are its parameters."""
    parameters = list(named_parameters(writer, computation))
    arguments = ", ".join(each for _, typed in parameters for each in typed)
    return body(writer, computation, [tree for tree, _ in parameters], f"^bb0({arguments}):" if arguments else "")


def applied(computation: Computation, types: set[PrimitiveType]) -> str | None:
    """The op that a reducer of two scalars of the one type is, in the order of its parameters; None for others."""
    root, parameters = computation.root, computation.parameters
    if len(computation.instructions) != 3 or root.operands != parameters or len(types) != 1:
        return None
    if OPS[root.opcode].properties.order != "any" or not isinstance(root.shape, Shape) or {root.shape.dtype} != types:
        return None
    same = all(p.shape == root.shape for p in parameters)
    return op_name(root) if same and not root.annotations else None


def op_name(instruction: Instruction) -> str:
    """The op's name; XLA's add of pred is an or, as StableHLO's verifier and folding do not agree on it."""
    if instruction.opcode == "add" and getattr(instruction.shape, "dtype", None) is pred:
        return OP_NAMES["or"]
    return OP_NAMES[instruction.opcode]
