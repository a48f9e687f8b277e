"""Rules of the StableHLO printer for ops that call computations, and for tuples and tokens.

Sections:

    Loops, branches, calls and fusions
    Tuples and tokens: tuples are flattened, and an op that returns its operand is not written
"""

from __future__ import annotations

from attrs import evolve

from shape_inference import Shape, pred
from shape_inference.trees import unflatten

from ...core.graph import Instruction
from ..spelling import COMPOSITE_NAME, dictionary, flag, generic, symbol
from ..syntax.forms import function_text, printer_of, while_text
from .writer import (
    FunctionWriter,
    Line,
    Tree,
    block_text,
    form_line,
    generic_line,
    lines,
    notes_of,
    notes_text,
    plain_line,
    refuse,
    region_text,
    values,
    write_inline,
)

# ----------------------------------------------------------------------------
# Loops, branches, calls and fusions


@values
def call(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The computation becomes a function; for a composite, this function is its decomposition."""
    function = writer.function_symbol(instruction.attributes.to_apply)
    kept: dict[str, str] = dict(instruction.annotations.get("frontend_attributes", {}))
    if instruction.annotations.get("is_composite") != "true" or COMPOSITE_NAME not in kept:
        writer.define(instruction, *form_line(writer, instruction, {"callee": function}))
        return writer.names[instruction]
    name = kept.pop(COMPOSITE_NAME)
    entries = [
        ("composite_attributes", str(kept.pop("composite.attributes", "{}"))), ("decomposition", symbol(function))
    ]  # fmt: skip
    entries += [("version", f"{kept.pop('composite.version', '0')} : i32")]
    entries += notes_of(evolve(instruction, annotations={**instruction.annotations, "frontend_attributes": kept}))
    head, types = form_line(writer, instruction, {"name": name}, "stablehlo.composite")
    return writer.write_results(instruction, f"{head} {dictionary(entries)} : {types}")


@values
def fusion(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The fused ops are written in place of the fusion."""
    return write_inline(writer, instruction.attributes.calls, [writer.names[each] for each in instruction.operands])


@values
def while_(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """The state has one value for each array and token; both regions use the same names for these values."""
    a = instruction.attributes
    first, types = writer.leaf_names(instruction.operands), writer.types(instruction.operands)
    state = [writer.fresh("iterArg") for _ in first]
    tree = unflatten(instruction.shape, state)
    regions = [block_text(writer, each, [tree]) for each in (a.condition, a.body)]
    pairs = list(zip(state, first, strict=True))
    text = while_text(pairs, types, notes_text(writer, instruction), writer.indent, regions)
    return writer.write_results(instruction, text)


@values
def conditional(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A pred selects with `stablehlo.if`, an index with `stablehlo.case`; branches capture their operands."""
    index, *operands = instruction.operands
    assert isinstance(index.shape, Shape)
    op = "if" if index.shape.dtype is pred else "case"
    branches = zip(instruction.attributes.branch_computations, operands, strict=True)
    regions = [block_text(writer, branch, [writer.names[operand]]) for branch, operand in branches]
    head = generic(f"stablehlo.{op}", [writer.name(index)], None, *regions)
    types = function_text([writer.type(index.shape)], writer.types((instruction,)))
    return writer.write_results(instruction, f"{head}{notes_text(writer, instruction)} : {types}")


@lines
def scan(writer: FunctionWriter, instruction: Instruction) -> Line:
    a = instruction.attributes
    inputs, outputs = (len(writer.types(each)) - a.num_carries for each in (instruction.operands, (instruction,)))
    properties = {
        "dimension": f"{a.dimension} : i64",
        "is_associative": flag(a.is_associative),
        "is_reverse": flag(a.is_reverse),
        "operandSegmentSizes": f"array<i32: {inputs}, {a.num_carries}>",
        "resultSegmentSizes": f"array<i32: {outputs}, {a.num_carries}>",
    }
    return generic_line(writer, instruction, properties, region_text(writer, a.to_apply))


# ----------------------------------------------------------------------------
# Tuples and tokens: tuples are flattened, and an op that returns its operand is not written


@values
def tuple_(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; the elements are separate values."""
    return tuple([writer.names[each] for each in instruction.operands])


@values
def get_tuple_element(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; the element is a separate value."""
    tree = writer.names[instruction.operands[0]]
    if isinstance(tree, str):
        refuse(instruction, "its operand is an operation in progress, which is a single future in StableHLO")
    index: int = instruction.attributes.index
    return tree[index]


@values
def domain(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """No op is written; a domain becomes its operand."""
    return writer.names[instruction.operands[0]]


lines.enter("after_all", plain_line)


@values
def opt_barrier(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """A barrier without values is omitted."""
    if not writer.types(instruction.operands):
        return writer.names[instruction.operands[0]]
    writer.define(instruction, *form_line(writer, instruction))
    return writer.names[instruction]


@values
def add_dependency(writer: FunctionWriter, instruction: Instruction) -> Tree:
    """Becomes a `stablehlo.optimization_barrier` of the operand and the token, which preserves the order."""
    operand, _ = instruction.operands
    names, types = writer.leaf_names(instruction.operands), writer.types(instruction.operands)
    text = printer_of("stablehlo.optimization_barrier").text(names, types, types)
    tree: Tree = unflatten(operand.shape, writer.emit_pack(instruction.name, len(names), text, instruction))
    return tree
