"""Printer of instructions, computations and modules in the HLO text that real XLA reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shape_inference.escaping import hlo_string

from ...core.graph import Computation, Instruction, Module
from ..codecs.header import AFTER_COUNTS, BEFORE_COUNTS, LAYOUT
from ..codecs.sugar import spelled_opcode, threads, unprinted
from ..codecs.table import spellings
from ..spelling.expansion import expansion
from ..spelling.literals import spelled_literal
from ..spelling.notes import IN_NOTES, notes_text
from ..spelling.style import Style, chosen_style
from ..spelling.writer import Writer

_SPELLING: dict[str, str] = {}


def instruction_text(instruction: Instruction, writer: Writer | None = None) -> str:
    """The text of an instruction in its computation."""
    writer = writer or Writer()
    opcode = instruction.opcode
    spelling = _SPELLING.get(opcode) or _spelled(instruction)
    if opcode == "constant":
        operands = spelled_literal(instruction)
    elif opcode == "parameter":
        operands = str(instruction.attributes.number)
    else:
        operands = writer.references(instruction.operands)
    head = f"{writer.reference(instruction)} = {writer.shape_of(instruction)} {spelling}({operands})"
    return head + _attributes(writer, instruction)


def _spelled(instruction: Instruction) -> str:
    """The opcode in text, which for async ops depends on the wrapped op."""
    spelling = spelled_opcode(instruction)
    return spelling if instruction.opcode.startswith("async_") else _SPELLING.setdefault(instruction.opcode, spelling)


def _attributes(writer: Writer, instruction: Instruction) -> str:
    """The text after the operands: the op's attributes, then annotations of any instruction, in XLA's order."""
    text = ""
    if instruction.attributes is not None:
        text = "".join([spelling.text(writer, instruction) for spelling in spellings(instruction.opcode)])
    if instruction.annotations or instruction.control or writer.style.metadata or instruction.opcode in IN_NOTES:
        text += notes_text(writer, instruction)
    return text


def computation_text(computation: Computation, style: str | Style = "short") -> str:
    """The text of a computation as the entry, after the computations that it calls."""
    return "\n\n".join(_blocks(computation.reachable(), computation, Writer(chosen_style(style))))


def module_text(module: Module, style: str | Style = "short") -> str:
    """The text of a module: its header, then the computations, each after its callees, with the entry last."""
    writer = Writer(chosen_style(style))
    return "\n\n".join((_header(module, writer), *_blocks(_ordered(module), module.entry, writer))) + "\n"


def _blocks(computations: Iterable[Computation], entry: Computation, writer: Writer) -> Iterator[str]:
    every = tuple(computations)
    hidden, on = unprinted(every), threads(every)
    ordered = [each for each in every if each is entry or each not in hidden]
    writer.name_all(ordered)
    for each in ordered:
        thread = f", execution_thread={hlo_string(on[each])}" if each in on else ""
        yield _block(each, "ENTRY " if each is entry else "", writer) + thread


def _block(computation: Computation, mark: str, writer: Writer) -> str:
    lines: list[str] = []
    for instruction in computation.instructions:
        *before, last = expansion(instruction)
        lines += [f"  {instruction_text(part, writer)}" for part in before]
        root = "ROOT " if instruction is computation.root else ""
        lines.append(f"  {root}{instruction_text(last, writer)}")
    signature = f" {_signature(computation)}" if writer.style.percent else ""
    return "\n".join((f"{mark}{writer.called(computation)}{signature} {{", *lines, "}"))


def _signature(computation: Computation) -> str:
    """The text of a signature: names and shapes of the parameters and the result, without layouts as in XLA."""
    spell = Writer().shape
    signature = computation.signature
    pairs = zip(computation.parameters, signature.parameters, strict=True)
    parameters = ", ".join(f"{p.name}: {spell(shape)}" for p, shape in pairs)
    return f"({parameters}) -> {spell(signature.result)}"


def _header(module: Module, writer: Writer) -> str:
    words = [f"HloModule {module.name}"]
    if module.is_scheduled:
        words.append("is_scheduled=true")
    if writer.style.entry_layout:
        shapes = ", ".join(writer.shape(p.shape) for p in module.entry.parameters)
        words.append(f"{LAYOUT}={{({shapes})->{writer.shape(module.entry.root.shape)}}}")
    kept = module.annotations
    words += [
        f"{key}={kept[key]}"
        for key in BEFORE_COUNTS
        if key in kept and not (writer.style.entry_layout and key == LAYOUT)
    ]
    for key, count in (("replica_count", module.num_replicas), ("num_partitions", module.num_partitions)):
        if count != 1:
            words.append(f"{key}={count}")
    words += [f"{key}={kept[key]}" for key in AFTER_COUNTS if key in kept]
    tables = f"\n\n{kept['stack_tables']}" if writer.style.metadata and "stack_tables" in kept else ""
    return ", ".join(words) + tables


def _ordered(module: Module) -> tuple[Computation, ...]:
    """The computations in the module's order with the entry last; callees first if a callee would follow its caller."""
    given = (*(c for c in module.computations if c is not module.entry), module.entry)
    seen: set[Computation] = set()
    for computation in given:
        if any(called not in seen for i in computation.instructions for called in i.called):
            return tuple(dict.fromkeys(each for c in given for each in c.reachable()))
        seen.add(computation)
    return given
