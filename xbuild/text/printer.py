"""The printer of HLO text: instructions, computations, modules, and the skeleton of their communication."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shape_inference.escaping import hlo_string

from ..core.graph import NOTHING, Computation, Instruction, Module
from ..properties.effects import communicates_itself, is_under_way
from .annotations import IN_NOTES, notes_text
from .async_sugar import execution_threads, hidden_computations, spelled_opcode
from .codec_table import spellings
from .expansion import expansion
from .header import AFTER_COUNTS, BEFORE_COUNTS, CONFIGS, LAYOUT
from .literals import spelled_literal
from .spelling import NameWriter, Style, make_style

# ----------------------------------------------------------------------------
# Instructions, computations and modules

_SPELLING: dict[str, str] = {}


def instruction_text(instruction: Instruction, writer: NameWriter | None = None) -> str:
    """The text of an instruction in its computation."""
    writer = writer or NameWriter()
    opcode = instruction.opcode
    spelling = _SPELLING.get(opcode) or _opcode_text(instruction)
    if opcode == "constant":
        operands = spelled_literal(instruction)
    elif opcode == "parameter":
        operands = str(instruction.attributes.number)
    else:
        operands = writer.references(instruction.operands)
    head = f"{writer.reference(instruction)} = {writer.shape_of(instruction)} {spelling}({operands})"
    return head + _attributes(writer, instruction)


def _opcode_text(instruction: Instruction) -> str:
    """The opcode in text; for async ops it depends on the wrapped op."""
    spelling = spelled_opcode(instruction)
    return spelling if instruction.opcode.startswith("async_") else _SPELLING.setdefault(instruction.opcode, spelling)


def _attributes(writer: NameWriter, instruction: Instruction) -> str:
    """The text after the operands: attributes of the op, then annotations, in XLA's order."""
    text = ""
    if instruction.attributes is not None:
        text = "".join([spelling.text(writer, instruction) for spelling in spellings(instruction.opcode)])
    if instruction.annotations or instruction.control or writer.style.metadata or instruction.opcode in IN_NOTES:
        text += notes_text(writer, instruction)
    return text


def computation_text(computation: Computation, style: str | Style = "short") -> str:
    """The text of a computation as the entry, after the computations that it calls."""
    return "\n\n".join(_blocks(computation.reachable(), computation, NameWriter(make_style(style))))


def module_text(module: Module, style: str | Style = "short") -> str:
    """The text of a module: its header, then the computations, each after its callees, with the entry last."""
    writer = NameWriter(make_style(style))
    configs = module.annotations.get(CONFIGS, NOTHING)
    blocks = _blocks(_printing_order(module), module.entry, writer, configs)
    return "\n\n".join((_header(module, writer), *blocks)) + "\n"


def _blocks(
    computations: Iterable[Computation], entry: Computation, writer: NameWriter, configs: Mapping[str, str] = NOTHING
) -> Iterator[str]:
    computations_ = tuple(computations)
    hidden, threads = hidden_computations(computations_), execution_threads(computations_)
    ordered = [each for each in computations_ if each is entry or each not in hidden]
    writer.name_all(ordered)
    for each in ordered:
        thread = f", execution_thread={hlo_string(threads[each])}" if each in threads else ""
        config = f", backend_config={configs[each.name]}" if each.name in configs else ""
        yield _block(each, "ENTRY " if each is entry else "", writer) + thread + config


def _block(computation: Computation, mark: str, writer: NameWriter) -> str:
    lines: list[str] = []
    for instruction in computation.instructions:
        *before, last = expansion(instruction)
        lines += [f"  {instruction_text(part, writer)}" for part in before]
        root = "ROOT " if instruction is computation.root else ""
        lines.append(f"  {root}{instruction_text(last, writer)}")
    signature = f" {_signature(computation)}" if writer.style.percent else ""
    return "\n".join((f"{mark}{writer.computation_name(computation)}{signature} {{", *lines, "}"))


def _signature(computation: Computation) -> str:
    """The text of a signature: names and shapes of the parameters and the result, without layouts as in XLA."""
    spell = NameWriter().shape
    signature = computation.signature
    pairs = zip(computation.parameters, signature.parameters, strict=True)
    parameters = ", ".join(f"{p.name}: {spell(shape)}" for p, shape in pairs)
    return f"({parameters}) -> {spell(signature.result)}"


def _header(module: Module, writer: NameWriter) -> str:
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


def _printing_order(module: Module) -> tuple[Computation, ...]:
    """The computations in the module's order with the entry last; callees first if a callee would follow its caller."""
    given = (*(c for c in module.computations if c is not module.entry), module.entry)
    seen: set[Computation] = set()
    for computation in given:
        if any(called not in seen for i in computation.instructions for called in i.called):
            return tuple(dict.fromkeys(each for c in given for each in c.reachable()))
        seen.add(computation)
    return given


# ----------------------------------------------------------------------------
# Skeletons: communicating instructions are printed, all others are counted


def skeleton_text(program: Computation | Module) -> str:
    """The communicating instructions of each computation in order, with a count such as `... 12 ops` for the others."""
    entry = program.entry if isinstance(program, Module) else program
    communicating: dict[Computation, bool] = {}
    for computation in entry.reachable():
        communicating[computation] = any(_communicates(i, communicating) for i in computation.instructions)
    hidden = hidden_computations(tuple(communicating))
    blocks = [
        _skeleton_block(c, entry, communicating)
        for c, is_communicating in communicating.items()
        if is_communicating and c not in hidden
    ]
    return "\n\n".join(blocks) or f"{entry.name} does not communicate"


def _communicates(instruction: Instruction, communicating: dict[Computation, bool]) -> bool:
    if communicates_itself(instruction) or is_under_way(instruction):
        return True
    return any(communicating[called] for called in instruction.called)


def _skeleton_block(computation: Computation, entry: Computation, communicating: dict[Computation, bool]) -> str:
    mark = "ENTRY " if computation is entry else ""
    return "\n".join((f"{mark}{computation.name} {{", *_skeleton_lines(computation, communicating), "}"))


def _skeleton_lines(computation: Computation, communicating: dict[Computation, bool]) -> Iterator[str]:
    silent, writer = 0, NameWriter()
    for instruction in computation.instructions:
        if not _communicates(instruction, communicating):
            silent += 1
            continue
        yield from _count_line(silent)
        silent = 0
        yield f"  {instruction_text(instruction, writer)}"
    yield from _count_line(silent)


def _count_line(silent: int) -> Iterator[str]:
    if silent:
        yield f"  ... {silent} op{'s' * (silent > 1)}"
