"""HLO text of instructions, computations and modules, as real XLA reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..graph import Computation, Instruction, Module
from .codecs import attributes_text
from .expansion import expansion
from .literals import literal_text
from .style import Style, chosen_style
from .writer import Writer

_SPELLING: dict[str, str] = {}


def instruction_text(instruction: Instruction, writer: Writer | None = None) -> str:
    """One instruction, as it stands in the text of its computation."""
    writer = writer or Writer()
    opcode = instruction.opcode
    spelling = _SPELLING.get(opcode) or _SPELLING.setdefault(opcode, opcode.replace("_", "-"))
    if opcode == "constant":
        operands = literal_text(instruction.attributes.literal)
    elif opcode == "parameter":
        operands = str(instruction.attributes.number)
    else:
        operands = writer.references(instruction.operands)
    head = f"{writer.reference(instruction)} = {writer.shape(instruction.shape)} {spelling}({operands})"
    return head + attributes_text(writer, instruction)


def computation_text(computation: Computation, style: str | Style = "short") -> str:
    """A computation as the entry, after the computations that it calls."""
    return "\n\n".join(_blocks(computation.reachable(), computation, Writer(chosen_style(style))))


def module_text(module: Module, style: str | Style = "short") -> str:
    """A module: its header, the computations (each after those that it calls), the entry last."""
    writer = Writer(chosen_style(style))
    return "\n\n".join((_header(module, writer), *_blocks(_ordered(module), module.entry, writer))) + "\n"


def _blocks(computations: Iterable[Computation], entry: Computation, writer: Writer) -> Iterator[str]:
    ordered = tuple(computations)
    writer.name_all(ordered)
    return (_block(computation, "ENTRY " if computation is entry else "", writer) for computation in ordered)


def _block(computation: Computation, mark: str, writer: Writer) -> str:
    lines = [
        f"  ROOT {instruction_text(part, writer)}" if part is computation.root else f"  {instruction_text(part, writer)}"
        for instruction in computation.instructions
        for part in expansion(instruction)
    ]
    signature = f" {_signature(computation, writer)}" if writer.style.percent else ""
    return "\n".join((f"{mark}{writer.called(computation)}{signature} {{", *lines, "}"))


def _signature(computation: Computation, writer: Writer) -> str:
    parameters = (f"{p.name}: {writer.shape(p.shape)}" for p in computation.parameters)
    return f"({', '.join(parameters)}) -> {writer.shape(computation.root.shape)}"


def _header(module: Module, writer: Writer) -> str:
    words = [f"HloModule {module.name}"]
    if module.is_scheduled:
        words.append("is_scheduled=true")
    if writer.style.entry_layout:
        shapes = ", ".join(writer.shape(p.shape) for p in module.entry.parameters)
        words.append(f"entry_computation_layout={{({shapes})->{writer.shape(module.entry.root.shape)}}}")
    for key, count in (("replica_count", module.num_replicas), ("num_partitions", module.num_partitions)):
        if count != 1:
            words.append(f"{key}={count}")
    return ", ".join(words)


def _ordered(module: Module) -> tuple[Computation, ...]:
    """The module's own order with the entry last; where a callee would come too late, callees first."""
    given = (*(c for c in module.computations if c is not module.entry), module.entry)
    seen: set[Computation] = set()
    for computation in given:
        if any(called not in seen for i in computation.instructions for called in i.called):
            return tuple(dict.fromkeys(each for c in given for each in c.reachable()))
        seen.add(computation)
    return given
