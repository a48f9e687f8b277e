"""Why results of elementwise ops, of conversions and of ops without operands have their shapes."""

from __future__ import annotations

from shape_inference import PrimitiveType, Shape

from ...core.graph import Instruction
from ...core.op import OPS
from ..shapes.table import Lines, as_operand, dims_of, entered, row


def elementwise(instruction: Instruction) -> Lines:
    """The reason of ops that have none of their own: element by element, from the same places of the operands."""
    arrays = [each for each in instruction.operands if isinstance(each.shape, Shape) and each.shape.rank]
    if not isinstance(instruction.shape, Shape) or not arrays:
        yield "a scalar, as each operand is"
        return
    names = ", ".join(dict.fromkeys(each.name for each in arrays))
    yield f"elementwise: the dimensions of each operand ({names}), {list(instruction.shape.dims)}"
    yield from _other_type(instruction, arrays)


def _other_type(instruction: Instruction, arrays: list[Instruction]) -> Lines:
    result = instruction.shape
    assert isinstance(result, Shape)
    types = {each.shape.dtype for each in arrays if isinstance(each.shape, Shape)}
    if result.dtype not in types:
        yield f"element type {_name(result.dtype)}, which {OPS[instruction.opcode].spelling} gives for {_names(types)}"


def _name(given: PrimitiveType) -> str:
    return given.name.lower()


def _names(given: set[PrimitiveType]) -> str:
    return " and ".join(sorted(map(_name, given)))


@entered(("convert", "stochastic_convert", "reduce_precision"))
def converted(instruction: Instruction) -> Lines:
    yield from as_operand(instruction)
    assert isinstance(instruction.shape, Shape)
    stated = getattr(instruction.attributes, "new_element_type", None)
    if stated is not None:
        yield f"element type {_name(instruction.shape.dtype)}, which new_element_type states"


@entered(("bitcast_convert",))
def bits(instruction: Instruction) -> Lines:
    operand, result = instruction.operands[0], instruction.shape
    before = operand.shape
    assert isinstance(before, Shape)
    assert isinstance(result, Shape)
    for dim in range(min(before.rank, result.rank)):
        yield row(dim, result.dims[dim], f"dimension {dim} of {operand.name}")
    old, new = f"an element of {_name(before.dtype)}", f"of {_name(result.dtype)}"
    last = f"the last dimension of {operand.name}"
    if result.rank > before.rank:
        yield row(before.rank, result.dims[-1], f"the bits of {old} are those of {result.dims[-1]} {new}")
    elif result.rank < before.rank:
        yield f"{last}, {before.dims[-1]} elements, has the bits of one element {new}"
    else:
        yield f"{old} has as many bits as one {new}"


@entered(("bitcast",))
def bitcast(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    yield f"stated: the same bytes as {operand.name}, {operand.shape}, read as another shape"


@entered(("map",))
def mapped(instruction: Instruction) -> Lines:
    yield from as_operand(instruction)
    (region,) = instruction.called
    yield f"element type of the result of {region.name}, {region.root.shape}, which is applied to each element"


@entered(("parameter",))
def parameter(instruction: Instruction) -> Lines:
    yield f"stated: parameter {instruction.attributes.number} is declared so, and each caller gives such a value"


@entered(("constant",))
def constant(instruction: Instruction) -> Lines:
    yield "that of its literal"


@entered(("iota", "rng", "rng_get_and_update_state", "infeed", "custom_call"))
def stated(instruction: Instruction) -> Lines:
    yield "stated by the attribute shape"
    if instruction.opcode == "infeed":
        yield "and a token behind it, in a tuple"


@entered(("replica_id", "partition_id"))
def own_number(instruction: Instruction) -> Lines:
    yield "one number, whatever the program"


@entered(("reverse", "opt_barrier", "add_dependency", "domain", "cholesky"))
def unchanged(instruction: Instruction) -> Lines:
    yield from as_operand(instruction)


@entered(("sort",))
def sorted_arrays(instruction: Instruction) -> Lines:
    yield "an array for each operand, of its dimensions: sorting moves elements and keeps their number"


@entered(("topk",))
def topk(instruction: Instruction) -> Lines:
    operand, k = instruction.operands[0], instruction.attributes.k
    dims = dims_of(operand.shape)
    yield f"a tuple of values and of their indices, both {[*dims[:-1], k]}"
    yield f"k = {k} of the last dimension of {operand.name}, which is {dims[-1]}; its other dimensions stay"
