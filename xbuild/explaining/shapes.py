"""Why an instruction has its shape, in numbers: a reason for each op.

Sections:

    Table of reasons
    Elementwise ops, conversions and ops without operands
    Ops that rearrange, slice or join arrays
    Reductions, products, convolutions and windows
    Collectives, their asynchronous halves, and transfers
    Tuples, and ops that call computations
    The rule of every other elementwise op
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from shape_inference import AnyShape, PrimitiveType, RuleTable, Shape, TupleShape
from shape_inference.types import Dims
from shape_inference.windows import WindowDimension

from ..core.graph import Instruction
from ..core.op import OPS, opcodes
from ..core.report_text import join_words

# ----------------------------------------------------------------------------
# Table of reasons
#
# For each op a function that says, in numbers, why an instruction has its shape.

Lines: TypeAlias = Iterator[str]
Reason: TypeAlias = Callable[[Instruction], Lines]

reasons = RuleTable("reason of its shape")


def explains(opcodes: Iterable[str]) -> Callable[[Reason], Reason]:
    """A decorator that enters one function for several ops."""

    def enter(reason: Reason) -> Reason:
        for opcode in opcodes:
            reasons.enter(opcode, reason)
        return reason

    return enter


def dims_of(shape: AnyShape) -> Dims:
    assert isinstance(shape, Shape)
    return shape.dims


def row(dim: int, extent: object, why: str) -> str:
    """The line of one dimension: its extent, with the sum that results in it if there is one, and its origin."""
    return f"dimension {dim}: {extent}, {why}"


def same_as_operand(instruction: Instruction, number: int = 0) -> Lines:
    """The lines of an op whose result has the dimensions of an operand."""
    operand = instruction.operands[number]
    yield f"the dimensions of {operand.name}, {operand.shape}"


def product(extents: Iterable[int]) -> str:
    """The text of a product with its value, as `2 * 3 = 6`."""
    attributes, total = list(extents), 1
    for each in attributes:
        total *= each
    return f"{' * '.join(map(str, attributes))} = {total}" if len(attributes) > 1 else str(total)


# ----------------------------------------------------------------------------
# Elementwise ops, conversions and ops without operands


def elementwise(instruction: Instruction) -> Lines:
    """The reason of ops without one of their own: element by element, from the same places of the operands."""
    arrays = [operand for operand in instruction.operands if isinstance(operand.shape, Shape) and operand.shape.rank]
    if not isinstance(instruction.shape, Shape) or not arrays:
        yield "a scalar, like each operand"
        return
    names = ", ".join(dict.fromkeys(each.name for each in arrays))
    yield f"elementwise: the dimensions of each operand ({names}), {list(instruction.shape.dims)}"
    yield from _other_type(instruction, arrays)


def _other_type(instruction: Instruction, arrays: list[Instruction]) -> Lines:
    result = instruction.shape
    assert isinstance(result, Shape)
    types = {each.shape.dtype for each in arrays if isinstance(each.shape, Shape)}
    if result.dtype not in types:
        op = OPS[instruction.opcode].spelling
        yield f"element type {_name(result.dtype)}, which {op} returns for {_names(types)}"


def _name(attributes: PrimitiveType) -> str:
    return attributes.name.lower()


def _names(attributes: set[PrimitiveType]) -> str:
    return join_words(sorted(map(_name, attributes)))


@explains(("convert", "stochastic_convert", "reduce_precision"))
def converted(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction)
    assert isinstance(instruction.shape, Shape)
    stated = getattr(instruction.attributes, "new_element_type", None)
    if stated is not None:
        yield f"element type {_name(instruction.shape.dtype)}, which new_element_type states"


@explains(("bitcast_convert",))
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
        yield row(before.rank, result.dims[-1], f"the bits of {old} make {result.dims[-1]} elements {new}")
    elif result.rank < before.rank:
        yield f"{last}, with {before.dims[-1]} elements, holds the bits of one element {new}"
    else:
        yield f"{old} has as many bits as an element {new}"


@explains(("bitcast",))
def bitcast(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    yield f"stated: the same bytes as {operand.name}, {operand.shape}, read as a different shape"


@explains(("map",))
def mapped(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction)
    (region,) = instruction.called
    yield f"the element type of the result of {region.name}, {region.root.shape}, which is applied to each element"


@explains(("parameter",))
def parameter(instruction: Instruction) -> Lines:
    yield f"stated by parameter {instruction.attributes.number}; each caller passes a value of this shape"


@explains(("constant",))
def constant(instruction: Instruction) -> Lines:
    yield "the shape of its literal"


@explains(("iota", "rng", "rng_get_and_update_state", "infeed", "custom_call"))
def stated(instruction: Instruction) -> Lines:
    yield "stated by the attribute shape"
    if instruction.opcode == "infeed":
        yield "a tuple that also holds a token"


@explains(("replica_id", "partition_id"))
def own_number(instruction: Instruction) -> Lines:
    yield "a scalar in every program"


@explains(("reverse", "opt_barrier", "add_dependency", "domain", "cholesky"))
def unchanged(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction)


@explains(("sort",))
def sorted_arrays(instruction: Instruction) -> Lines:
    yield (
        "an array for each operand, with the dimensions of that operand: sorting moves elements and keeps their number"
    )


@explains(("topk",))
def topk(instruction: Instruction) -> Lines:
    operand, k = instruction.operands[0], instruction.attributes.k
    dims = dims_of(operand.shape)
    yield f"a tuple of the values and their indices, both {[*dims[:-1], k]}"
    yield (
        f"k = {k} of the {dims[-1]} elements along the last dimension of {operand.name}; its other dimensions stay "
        "the same"
    )


# ----------------------------------------------------------------------------
# Ops that rearrange, slice or join arrays


@reasons
def broadcast(instruction: Instruction) -> Lines:
    operand, at = instruction.operands[0], instruction.attributes.dimensions
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim in at:
            yield row(dim, extent, f"dimension {at.index(dim)} of {operand.name}, as dimensions states")
        else:
            yield row(dim, extent, "stated by sizes: each element is repeated along this dimension")
    if not dims_of(instruction.shape):
        yield from same_as_operand(instruction)


@reasons
def reshape(instruction: Instruction) -> Lines:
    operand = instruction.operands[0]
    assert isinstance(operand.shape, Shape)
    before, after = operand.shape.dims, dims_of(instruction.shape)
    for old, new in _blocks(before, after):
        yield (
            f"{_product(before, old)} elements of {_dimensions(old)} of {operand.name} become {_dimensions(new)}: "
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
    edges = [(0, 0)]
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
        edges.append((left, right))
    if edges[-1] != (len(before), len(after)):
        edges[-1] = (len(before), len(after))
    return [(range(a, c), range(b, d)) for (a, b), (c, d) in pairwise(edges)]


@reasons
def dynamic_reshape(instruction: Instruction) -> Lines:
    yield "new_size_bounds states the largest extents; dim_sizes states the extents that a run uses"


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
            yield row(dim, extent, "the same for every operand")
            continue
        attributes = [dims_of(operand.shape)[dim] for operand in instruction.operands]
        total = f"{' + '.join(map(str, attributes))} = {extent}" if len(attributes) > 1 else extent
        names = ", ".join(operand.name for operand in instruction.operands[:8])
        yield row(dim, total, f"the sum of the extents of {names}{', ...' * (len(attributes) > 8)}")


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
        inside = f", {inner} between neighbouring elements" if inner else ""
        yield row(dim, total, f"padding low, dimension {dim} of {operand.name}{inside}, padding high")


@reasons
def slice(instruction: Instruction) -> Lines:
    operand, attributes = instruction.operands[0], instruction.attributes
    strides = attributes.strides or (1,) * len(attributes.start_indices)
    rows = zip(attributes.start_indices, attributes.limit_indices, strides, dims_of(instruction.shape), strict=True)
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
        operand_extent = dims_of(operand.shape)[dim]
        yield row(dim, extent, f"stated by dynamic_slice_sizes, of {operand_extent} in {operand.name}")


@explains(("dynamic_update_slice", "scatter", "select_and_scatter", "triangular_solve"))
def same_as_updated(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction, int(instruction.opcode == "triangular_solve"))
    if instruction.opcode != "triangular_solve":
        yield "some elements are replaced or combined"


@reasons
def get_dimension_size(instruction: Instruction) -> Lines:
    yield f"a scalar: the size of dimension {instruction.attributes.dimension} of {instruction.operands[0].name}"


@reasons
def set_dimension_size(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction)
    dim = instruction.attributes.dimension
    yield f"dimension {dim} uses as many elements as {instruction.operands[1].name} says, at most its extent"


@reasons
def gather(instruction: Instruction) -> Lines:
    operand, starts = instruction.operands[:2]
    attributes = instruction.attributes
    left_out = {*attributes.collapsed_slice_dims, *attributes.operand_batching_dims}
    remaining = iter([dim for dim in range(len(attributes.slice_sizes)) if dim not in left_out])
    batch = iter([dim for dim in range(len(dims_of(starts.shape))) if dim != attributes.index_vector_dim])
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim in attributes.offset_dims:
            source = next(remaining)
            yield row(dim, extent, f"an offset dimension: slice_sizes[{source}] of {operand.name}")
        else:
            yield row(dim, extent, f"a batch dimension: dimension {next(batch)} of {starts.name}, where slices begin")
    if left_out:
        yield f"dimensions {sorted(left_out)} of {operand.name} are omitted: a slice has extent 1 along each of them"


@reasons
def fft(instruction: Instruction) -> Lines:
    operand, attributes = instruction.operands[0], instruction.attributes
    length = attributes.fft_length[-1] if attributes.fft_length else 0
    if attributes.fft_type == "RFFT":
        last = f"{length} / 2 + 1 rounded down = {length // 2 + 1}" if length else "0"
        yield row(len(dims_of(operand.shape)) - 1, last, "half of the spectrum, which determines a real signal")
        yield f"the other dimensions of {operand.name}"
    elif attributes.fft_type == "IRFFT":
        yield row(len(dims_of(operand.shape)) - 1, length, "stated by fft_length")
        yield f"the other dimensions of {operand.name}"
    else:
        yield from same_as_operand(instruction)


# ----------------------------------------------------------------------------
# Reductions, products, convolutions and windows


@reasons
def reduce(instruction: Instruction) -> Lines:
    operand, folded = instruction.arguments()[0][0], instruction.attributes.dimensions
    dims = dims_of(operand.shape)
    remaining = [dim for dim in range(len(dims)) if dim not in folded]
    for dim, source in enumerate(remaining):
        yield row(dim, dims[source], f"dimension {source} of {operand.name}")
    folded_dims = ", ".join(f"{dim} (of {dims[dim]})" for dim in folded)
    yield f"reduced: dimension{'s' * (len(folded) != 1)} {folded_dims or 'none'} of {operand.name}"
    yield from _results(len(instruction.arguments()[0]))


def _results(count: int) -> Lines:
    if count > 1:
        yield f"a tuple of {count} such arrays, one for each operand"


@explains(("dot", "scaled_dot"))
def dot(instruction: Instruction) -> Lines:
    lhs, rhs = instruction.operands[:2]
    attributes = instruction.attributes
    extents = iter(enumerate(dims_of(instruction.shape)))
    for left, right in zip(attributes.lhs_batch_dims, attributes.rhs_batch_dims, strict=True):
        yield row(*next(extents), f"batch: dimension {left} of {lhs.name} and {right} of {rhs.name}")
    yield from _free(extents, lhs, (*attributes.lhs_batch_dims, *attributes.lhs_contracting_dims))
    yield from _free(extents, rhs, (*attributes.rhs_batch_dims, *attributes.rhs_contracting_dims))
    for left, right in zip(attributes.lhs_contracting_dims, attributes.rhs_contracting_dims, strict=True):
        yield (
            f"contracted, summed over {dims_of(lhs.shape)[left]}: dimension {left} of {lhs.name} "
            f"with {right} of {rhs.name}"
        )


def _free(extents: Iterator[tuple[int, int]], operand: Instruction, taken: Sequence[int]) -> Lines:
    for dim in range(len(dims_of(operand.shape))):
        if dim not in taken:
            yield row(*next(extents), f"free: dimension {dim} of {operand.name}")


@reasons
def ragged_dot(instruction: Instruction) -> Lines:
    lhs, rhs, sizes = instruction.operands[:3]
    yield "the batch dimensions, then the free dimensions of both operands:"
    yield f"{lhs.name} is {lhs.shape}, {rhs.name} is {rhs.shape}"
    (ragged,) = instruction.attributes.lhs_ragged_dims
    yield f"dimension {ragged} of {lhs.name} is split into groups, whose sizes {sizes.name} holds"
    if ragged in instruction.attributes.lhs_contracting_dims:
        yield f"it is contracted group by group: dimension 0 counts the {dims_of(sizes.shape)[-1]} groups"


@reasons
def convolution(instruction: Instruction) -> Lines:
    lhs, rhs = instruction.operands
    attributes, numbers = instruction.attributes, instruction.attributes.dimension_numbers
    places = {dim: number for number, dim in enumerate(numbers.output_spatial_dimensions)}
    for dim, extent in enumerate(dims_of(instruction.shape)):
        if dim == numbers.output_batch_dimension:
            yield _batch(dim, extent, lhs, numbers.input_batch_dimension, attributes.batch_group_count)
        elif dim == numbers.output_feature_dimension:
            yield row(dim, extent, f"features: dimension {numbers.kernel_output_feature_dimension} of {rhs.name}")
        else:
            number = places[dim]
            source = numbers.input_spatial_dimensions[number]
            yield _positions(
                dim, dims_of(lhs.shape)[source], attributes.window[number], extent, f"{source} of {lhs.name}"
            )
    inner = dims_of(rhs.shape)[numbers.kernel_input_feature_dimension]
    yield f"summed over {inner} input features and the window"


def _batch(dim: int, extent: int, lhs: Instruction, source: int, groups: int) -> str:
    operand_extent = dims_of(lhs.shape)[source]
    text = extent if groups == 1 else f"{operand_extent} / {groups} = {extent}"
    return row(dim, text, f"batch: dimension {source} of {lhs.name}{', by batch_group_count' * (groups != 1)}")


def _positions(dim: int, extent: int, window: WindowDimension, result: int, of: str) -> str:
    """The line of a dimension along which a window slides."""
    base = str(extent) if window.base_dilation == 1 else f"({extent} - 1) * {window.base_dilation} + 1"
    span = str(window.size) if window.window_dilation == 1 else f"(({window.size} - 1) * {window.window_dilation} + 1)"
    padding = "".join(f" {'-+'[pad > 0]} {abs(pad)}" for pad in (window.padding_low, window.padding_high) if pad)
    rounded = " rounded down" * bool((window.places(extent) - 1) * window.stride != _room(window, extent))
    text = f"({base}{padding} - {span}) / {window.stride} + 1{rounded} = {result}" if result else "0"
    words = [f"dimension {of}", "padding" * bool(padding), f"a window of {window.size}", f"stride {window.stride}"]
    if not result:
        words.append("the window is longer than the padded dimension")
    return row(dim, text, ", ".join(filter(None, words)))


def _room(window: WindowDimension, extent: int) -> int:
    return window.padding_low + window.base(extent) + window.padding_high - window.span


@reasons
def reduce_window(instruction: Instruction) -> Lines:
    operands = instruction.arguments()[0]
    attributes = zip(dims_of(operands[0].shape), instruction.attributes.window, strict=True)
    for dim, (extent, window) in enumerate(attributes):
        yield _positions(dim, extent, window, window.places(extent), f"{dim} of {operands[0].name}")
    yield "each window is reduced to one element"
    yield from _results(len(operands))


@explains(("batch_norm_training", "batch_norm_grad", "batch_norm_inference"))
def batch_norm(instruction: Instruction) -> Lines:
    operand, feature = instruction.operands[0], instruction.attributes.feature_index
    yield f"the dimensions of {operand.name}, {operand.shape}"
    if instruction.opcode != "batch_norm_inference":
        count = dims_of(operand.shape)[feature]
        yield f"a tuple that also holds two vectors of {count} elements, one for each feature (dimension {feature})"


# ----------------------------------------------------------------------------
# Collectives, their asynchronous halves, and transfers


def operands_text(instruction: Instruction) -> str:
    return ", ".join(f"{operand.name} ({operand.shape})" for operand in instruction.operands[:4])


@explains(("all_reduce", "collective_permute", "collective_broadcast"))
def alike(instruction: Instruction) -> Lines:
    if len(instruction.operands) == 1:
        yield f"{next(same_as_operand(instruction))}: each participant passes such an array and receives one"
    else:
        yield (
            f"the shapes of the operands, {operands_text(instruction)}: each participant passes such arrays and "
            "receives such arrays"
        )


def _along(instruction: Instruction, dim: int, sign: str, members: int) -> Lines:
    """The lines of a collective after which one dimension is longer (*) or shorter (/) by the size of the group."""
    operand = instruction.operands[0]
    for each, extent in enumerate(dims_of(operand.shape)):
        if each != dim:
            yield row(each, extent, f"dimension {each} of {operand.name}")
            continue
        size = extent * members if sign == "*" else extent // members
        why = "one part from each participant" if sign == "*" else "a part for each participant"
        group = f"in groups of {members}, {why}"
        yield row(each, f"{extent} {sign} {members} = {size}", f"dimension {each} of {operand.name} {group}")
    if len(instruction.operands) > 1:
        yield f"the same for each of the {len(instruction.operands)} operands, in a tuple"


@reasons
def all_gather(instruction: Instruction) -> Lines:
    yield from _along(instruction, instruction.attributes.all_gather_dimension, "*", instruction.attributes.shard_count)


@reasons
def reduce_scatter(instruction: Instruction) -> Lines:
    yield from _along(instruction, instruction.attributes.scatter_dimension, "/", instruction.attributes.shard_count)


@reasons
def all_to_all(instruction: Instruction) -> Lines:
    attributes = instruction.attributes
    split, joined, count = attributes.split_dimension, attributes.concat_dimension, attributes.split_count
    joined = split if joined is None else joined
    if split is None:
        yield f"a tuple with an array from each of the {len(instruction.operands)} participants of a group"
    elif split == joined:
        operand_line = next(same_as_operand(instruction))
        yield f"{operand_line}: split into {count} parts along dimension {split}, which are joined along it again"
    else:
        operand = instruction.operands[0]
        for dim, extent in enumerate(dims_of(instruction.shape)):
            sign = {split: "/", joined: "*"}.get(dim)
            does = (
                "which is split into a part for each participant"
                if dim == split
                else "along which the parts are joined"
            )
            of, before = f"dimension {dim} of {operand.name}", dims_of(operand.shape)[dim]
            yield row(dim, f"{before} {sign} {count} = {extent}", f"{of}, {does}") if sign else row(dim, extent, of)


@reasons
def ragged_all_to_all(instruction: Instruction) -> Lines:
    yield from same_as_operand(instruction, 1)
    yield "into which the received rows are written"


@explains(("all_gather_start", "collective_permute_start", "async_start", "async_update", "copy_start"))
def under_way(instruction: Instruction) -> Lines:
    yield (
        f"a tuple with the operands, the result and the context of {operands_text(instruction)}; the done returns "
        "the result"
    )


@explains(("all_reduce_start",))
def all_reduce_start(instruction: Instruction) -> Lines:
    yield f"the shape of the all-reduce of {operands_text(instruction)}; the done returns the result"


@explains(("all_reduce_done", "all_gather_done", "collective_permute_done", "async_done", "copy_done"))
def done(instruction: Instruction) -> Lines:
    yield f"the result of the op that {instruction.operands[0].name} started"


@explains(("send", "recv"))
def half(instruction: Instruction) -> Lines:
    is_send = instruction.opcode == "send"
    what = (
        f"the value {instruction.operands[0].name}"
        if is_send
        else "the value, whose shape is stated by the attribute shape"
    )
    yield f"a tuple of {what}, a context (u32[]) and a token, for {instruction.opcode}-done"


@explains(("send_done", "outfeed", "after_all"))
def token(instruction: Instruction) -> Lines:
    yield "a token, which orders effects and holds no data"


@explains(("recv_done",))
def received(instruction: Instruction) -> Lines:
    yield f"a tuple of the value that {instruction.operands[0].name} waits for, and a token"


# ----------------------------------------------------------------------------
# Tuples, and ops that call computations


@reasons
def tuple_(instruction: Instruction) -> Lines:
    yield f"an element for each of the {len(instruction.operands)} operands"


@reasons
def get_tuple_element(instruction: Instruction) -> Lines:
    operand_extent, index = instruction.operands[0], instruction.attributes.index
    assert isinstance(operand_extent.shape, TupleShape)
    yield f"element {index} of {operand_extent.name}, a tuple of {len(operand_extent.shape.elements)}"


@explains(("call", "fusion"))
def called(instruction: Instruction) -> Lines:
    (region,) = instruction.called
    yield f"the result of {region.name}, which is its root {region.root.name}"


@explains(("while",))
def loop(instruction: Instruction) -> Lines:
    init = instruction.operands[0]
    yield f"the shape of {init.name}: the condition and the body take a value of this shape, and the body returns one"


@reasons
def conditional(instruction: Instruction) -> Lines:
    names = ", ".join(region.root.name for region in instruction.called)
    yield f"the result of each branch (roots {names}); all branches return the same shape"


@reasons
def scan(instruction: Instruction) -> Lines:
    attributes, (region,) = instruction.attributes, instruction.called
    root = region.root.shape
    yield f"the result of {region.name}, {root}"
    yield f"the final values of its {attributes.num_carries} carries"
    yield f"its other results for each trip, stacked along dimension {attributes.dimension}"


@reasons
def rng_bit_generator(instruction: Instruction) -> Lines:
    state = instruction.operands[0]
    yield (
        f"a tuple of the next state, shaped like {state.name} ({state.shape}), and the bits, whose shape is stated "
        "by the attribute shape"
    )


# ----------------------------------------------------------------------------
# The rule of every other elementwise op

for opcode in sorted(opcodes(lambda op: op.elements == "same_place") - reasons.keys()):
    reasons.enter(opcode, elementwise)
