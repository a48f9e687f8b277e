"""Why results of ops that rearrange, cut or join arrays have their shapes."""

from __future__ import annotations

from itertools import pairwise

from shape_inference import Shape

from ...core.graph import Instruction
from .table import Lines, as_operand, dims_of, entered, product, reasons, row


@reasons
def broadcast(instruction: Instruction) -> Lines:
    operand, at = instruction.operands[0], instruction.attributes.dimensions
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim in at:
            yield row(dim, extent, f"dimension {at.index(dim)} of {operand.name}, as dimensions states")
        else:
            yield row(dim, extent, "which sizes states: each element is repeated along it")
    if not dims_of(instruction.shape):
        yield from as_operand(instruction)


@reasons
def reshape(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    assert isinstance(operand.shape, Shape)
    before, after = operand.shape.dims, dims_of(instruction.shape)
    for old, new in _blocks(before, after):
        yield (
            f"{_product(before, old)} elements of {_dimensions(old)} of {operand.name} are {_dimensions(new)}: "
            f"{_product(after, new)}"
        )
    yield f"{operand.shape.size} elements before and after; new_sizes states the dimensions"


def _product(extents: tuple[int, ...], dims: range) -> str:
    return product(extents[dim] for dim in dims)


def _dimensions(dims: range) -> str:
    if not dims:
        return "no dimension"
    return f"dimension{'s' * (len(dims) > 1)} {', '.join(map(str, dims))}"


def _blocks(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[range, range]]:
    """The shortest runs of dimensions of equal size, of the operand and of the result; none of empty arrays."""
    if 0 in before:
        return []
    cuts = [(0, 0)]
    left = right = old = new = 0
    size, other = 1, 1
    while old < len(before) and new < len(after):
        size, other, old, new = size * before[old], other * after[new], old + 1, new + 1
        while size != other:
            if size < other:
                size, old = size * before[old], old + 1
            else:
                other, new = other * after[new], new + 1
        left, right = old, new
        cuts.append((left, right))
    if cuts[-1] != (len(before), len(after)):
        cuts[-1] = (len(before), len(after))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in pairwise(cuts)]


@reasons
def dynamic_reshape(instruction: Instruction) -> Lines:
    yield "new_size_bounds states the largest extents; dim_sizes, in a run, those that are used"


@reasons
def transpose(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    for dim, source in enumerate(instruction.attributes.permutation):
        yield row(dim, dims_of(instruction.shape)[dim], f"dimension {source} of {operand.name}, as permutation states")


@reasons
def concatenate(instruction: Instruction) -> Lines:
    along = instruction.attributes.dimension
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim != along:
            yield row(dim, extent, "as of each operand")
            continue
        given = [dims_of(each.shape)[dim] for each in instruction.operands]
        total = f"{' + '.join(map(str, given))} = {extent}" if len(given) > 1 else extent
        names = ", ".join(each.name for each in instruction.operands[:8])
        yield row(dim, total, f"of {names}{', ...' * (len(given) > 8)}, one behind the other")


@reasons
def pad(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    pairs = zip(dims_of(operand.shape), instruction.attributes.padding, strict=True)
    for dim, (extent, each) in enumerate(pairs):
        low, high, inner = each.low, each.high, each.interior
        if not (low or high or inner):
            yield row(dim, extent, f"dimension {dim} of {operand.name}, without padding")
            continue
        between = f" + {max(extent - 1, 0)} * {inner}" if inner else ""
        total = f"{low} + {extent}{between} + {high} = {dims_of(instruction.shape)[dim]}"
        inside = f", {inner} between each two elements" if inner else ""
        yield row(dim, total, f"padding low, dimension {dim} of {operand.name}{inside}, padding high")


@reasons
def slice(instruction: Instruction) -> Lines:
    operand, given = instruction.operands[0], instruction.attributes
    strides = given.strides or (1,) * len(given.start_indices)
    rows = zip(given.start_indices, given.limit_indices, strides, dims_of(instruction.shape), strict=True)
    for dim, (start, limit, stride, extent) in enumerate(rows):
        room = (
            f"{limit} - {start} = {extent}" if stride == 1 else f"({limit} - {start}) / {stride} rounded up = {extent}"
        )
        by = f", by stride {stride}" if stride != 1 else ""
        yield row(dim, room, f"{operand.name}[{start}:{limit}]{by}, of {dims_of(operand.shape)[dim]}")


@reasons
def dynamic_slice(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    for dim, extent in enumerate(dims_of(instruction.shape)):
        whole = dims_of(operand.shape)[dim]
        yield row(dim, extent, f"which dynamic_slice_sizes states, of {whole} of {operand.name}")


@entered(("dynamic_update_slice", "scatter", "select_and_scatter", "triangular_solve"))
def as_updated(instruction: Instruction) -> Lines:
    yield from as_operand(instruction, int(instruction.opcode == "triangular_solve"))
    if instruction.opcode != "triangular_solve":
        yield "of which some elements are replaced or combined"


@reasons
def get_dimension_size(instruction: Instruction) -> Lines:
    yield f"one number: the size of dimension {instruction.attributes.dimension} of {instruction.operands[0].name}"


@reasons
def set_dimension_size(instruction: Instruction) -> Lines:
    yield from as_operand(instruction)
    dim = instruction.attributes.dimension
    yield f"of dimension {dim} as many elements are used as {instruction.operands[1].name} says, at most its extent"


@reasons
def gather(instruction: Instruction) -> Lines:
    operand, starts = instruction.operands[:2]
    given = instruction.attributes
    left_out = {*given.collapsed_slice_dims, *given.operand_batching_dims}
    kept = iter([dim for dim in range(len(given.slice_sizes)) if dim not in left_out])
    batch = iter([dim for dim in range(len(dims_of(starts.shape))) if dim != given.index_vector_dim])
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim in given.offset_dims:
            source = next(kept)
            yield row(dim, extent, f"an offset dimension: slice_sizes[{source}] of {operand.name}")
        else:
            yield row(dim, extent, f"a batch dimension: dimension {next(batch)} of {starts.name}, where slices begin")
    if left_out:
        yield f"dimensions {sorted(left_out)} of {operand.name} are left out: a slice takes 1 of each"


@reasons
def fft(instruction: Instruction) -> Lines:
    operand, given = instruction.operands[0], instruction.attributes
    length = given.fft_length[-1] if given.fft_length else 0
    if given.fft_type == "RFFT":
        last = f"{length} / 2 + 1 rounded down = {length // 2 + 1}" if length else "0"
        yield row(len(dims_of(operand.shape)) - 1, last, "the half of the spectrum that a real signal has")
        yield f"the other dimensions of {operand.name}"
    elif given.fft_type == "IRFFT":
        yield row(len(dims_of(operand.shape)) - 1, length, "which fft_length states")
        yield f"the other dimensions of {operand.name}"
    else:
        yield from as_operand(instruction)
