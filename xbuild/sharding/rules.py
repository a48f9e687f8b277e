"""Sharding rules: for each op which dimensions of its operands and results are sharded together, as factors.

Sections:

    ShardingRule: the factors of an instruction
    FactorBuilder, with which rules collect factors
    Table of sharding rules, and rule_of, which looks rules up
    Elementwise ops
    Ops without operands, or with scalar operands only
    Common factors of two lists of extents, for reshapes
    Broadcast, reshape, transpose, bitcasts, concatenate, pad
    Slices
    Gather, and the walk over its dimensions that scatter shares
    Scatter
    Reduce and batch normalization
    Products
    Windows
    Sort and topk
    Decompositions, solvers and Fourier transforms
    Collectives that a program states
    Custom calls, by their targets
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from attrs import define, frozen

from shape_inference import Shape, leaves
from shape_inference.ops.contraction import before
from shape_inference.rules import RuleTable
from shape_inference.types import Dims
from shape_inference.windows import WindowDimension

from ..core.graph import Computation, Instruction
from ..core.op import OPS, opcodes
from ..core.properties import Properties
from ..properties.placement import ALIKE

# ----------------------------------------------------------------------------
# ShardingRule: the factors of an instruction

FactorKind: TypeAlias = Literal["pass_through", "reduction", "need_replication", "permutation"]


@frozen
class Factor:
    """A factor of the extents of an instruction.

    If it is sharded, a `pass_through` factor needs no communication; a `reduction` leaves partial results;
    `need_replication` has to be gathered before the instruction; `permutation` needs elements of other devices. A
    factor that `is_blocked` does not propagate.

    Source: Shardy, op sharding rule.
    """

    size: int
    kind: FactorKind = "pass_through"
    is_blocked: bool = False


FactorMap: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension of an array, the numbers of its factors, the outermost first."""


@frozen
class ShardingRule:
    """The factors of an instruction, and the factors of each dimension of its operands and results.

    The product of the sizes of a dimension's factors is its extent, unless one of them is a permutation or needs
    replication: dimensions of different extents may share these (in a pad, slice, window or concatenation). Operands
    and results are arrays, with tuples flattened; an array without dimensions has an empty map.

    Source: Shardy, op sharding rule.
    """

    factors: tuple[Factor, ...]
    operands: tuple[FactorMap, ...]
    results: tuple[FactorMap, ...]

    def __str__(self) -> str:
        maps = (", ".join(map(_write_map, each)) for each in (self.operands, self.results))
        sizes = ", ".join(f"{factor_name(number)}={factor.size}" for number, factor in enumerate(self.factors))
        kinds = "".join(self._of_kind(kind) for kind in ("reduction", "need_replication", "permutation"))
        return "({})->({})".format(*maps) + f" {{{sizes}}}{kinds}"

    def _of_kind(self, kind: FactorKind) -> str:
        names = ", ".join(factor_name(number) for number, factor in enumerate(self.factors) if factor.kind == kind)
        return f" {kind}={{{names}}}" if names else ""


def factor_name(number: int) -> str:
    """i, j, k, ... z, then z_1, z_2, ..., as Shardy names factors."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def _write_map(dims: FactorMap) -> str:
    return f"[{', '.join(''.join(map(factor_name, dim)) for dim in dims)}]"


# ----------------------------------------------------------------------------
# FactorBuilder, with which rules collect factors

Places: TypeAlias = Iterable["int | None"]
"""For each array, the number of the dimension that has a factor, None if none has it."""

KindOf: TypeAlias = Callable[[int], FactorKind]


def pass_through(dim: int) -> FactorKind:
    """The kind of the factors of most dimensions."""
    return "pass_through"


def extents(values: Iterable[Instruction]) -> tuple[Dims, ...]:
    """The extents of all arrays in values, with tuples flattened; a token has none."""
    return tuple(leaf.dims if isinstance(leaf, Shape) else () for value in values for leaf in leaves(value.shape))


class FactorBuilder:
    """Collects the factors of an instruction; `operands` and `results` are the extents of its arrays.

    In `rule`, dimensions without a factor get one of their own, which needs replication and is blocked.
    """

    def __init__(self, instruction: Instruction) -> None:
        self._begin(extents(instruction.operands), extents((instruction,)))

    @classmethod
    def of_extents(cls, operands: tuple[Dims, ...], results: tuple[Dims, ...]) -> FactorBuilder:
        """The same for the extents of an instruction's arrays."""
        builder = cls.__new__(cls)
        builder._begin(operands, results)
        return builder

    def _begin(self, operands: tuple[Dims, ...], results: tuple[Dims, ...]) -> None:
        self.operands, self.results = operands, results
        self._factors: list[Factor] = []
        self._maps: list[list[list[int]]] = [[[] for _ in dims] for dims in (*self.operands, *self.results)]

    def add(
        self,
        size: int,
        operands: Places,
        results: Places,
        kind: FactorKind = "pass_through",
        *,
        is_blocked: bool = False,
    ) -> None:
        """Add a factor of a size, inside those that its dimensions already have."""
        places = [*operands, *[None] * len(self.operands)][: len(self.operands)]
        places += [*results, *[None] * len(self.results)][: len(self.results)]
        for dims, place in zip(self._maps, places, strict=True):
            if place is not None:
                dims[place].append(len(self._factors))
        self._factors.append(Factor(size, kind, is_blocked))

    def alike(
        self, dim: int, size: int, kind: FactorKind = "pass_through", *, is_blocked: bool = False, without: int = 0
    ) -> None:
        """Add a factor of one dimension of all arrays that have dimensions, except the last `without` operands."""
        operands, results = (
            [_dim_if_any(dims, dim) for dims in each]
            for each in (self.operands[: len(self.operands) - without], self.results)
        )
        self.add(size, operands, results, kind, is_blocked=is_blocked)

    def rule(self) -> ShardingRule:
        """The rule, in which every dimension has a factor."""
        for dims, shape in zip(self._maps, (*self.operands, *self.results), strict=True):
            for own, extent in zip(dims, shape, strict=True):
                if not own:
                    own.append(len(self._factors))
                    self._factors.append(Factor(extent, "need_replication", is_blocked=True))
        maps = tuple(tuple(map(tuple, dims)) for dims in self._maps)
        count = len(self.operands)
        return ShardingRule(tuple(self._factors), maps[:count], maps[count:])


def _dim_if_any(dims: Dims, dim: int) -> int | None:
    return dim if dims else None


def pointwise(instruction: Instruction, kind: KindOf = pass_through) -> ShardingRule:
    """A factor for each dimension, which operands and results share; scalars have none.

    If an operand has extent 1 and the result a larger one, that dimension does not share the factor.
    """
    results = extents((instruction,))
    return _share_dims(extents(instruction.operands), results, tuple(map(kind, range(len(results[0])))))


@lru_cache(maxsize=4096)
def _share_dims(operands: tuple[Dims, ...], results: tuple[Dims, ...], kinds: tuple[FactorKind, ...]) -> ShardingRule:
    """The rule of `pointwise`, by the extents of all arrays and the kind of each dimension."""
    builder = FactorBuilder.of_extents(operands, results)
    for dim, size in enumerate(results[0]):
        places = [_matching(dims, dim, size) for dims in operands]
        builder.add(size, places, [_matching(dims, dim, size) for dims in results], kinds[dim])
    return builder.rule()


def _matching(dims: Dims, dim: int, size: int) -> int | None:
    return dim if dim < len(dims) and dims[dim] == size else None


def make_blocked_rule(instruction: Instruction) -> ShardingRule:
    """A rule by which nothing propagates, and no array is sharded."""
    return FactorBuilder(instruction).rule()


def only(number: int, dim: int | None, count: int) -> Sequence[int | None]:
    """The places of a factor that one array of `count` has."""
    return [dim if n == number else None for n in range(count)]


# ----------------------------------------------------------------------------
# Table of sharding rules, and rule_of, which looks rules up

sharding_rule = RuleTable("sharding")
"""opcode -> rule(instruction): the ShardingRule of an instruction, None if it has none."""

Role: TypeAlias = Literal["rule", "edge", "given", "opaque"]
"""How an op passes shardings on: it has a rule; its operands and results, or those of its callees, share one sharding;
its value comes from the caller; or it is half of an asynchronous pair, or a transfer, and keeps its annotation."""

_FLOWING = ("once", "loop", "branch")


def rule_of(instruction: Instruction) -> ShardingRule | None:
    """The sharding rule of an instruction; None if shardings pass along edges of the data flow, or not at all.

    >>> import xbuild as xb
    >>> product = xb.computation(xb.f32[8, 4], xb.f32[4, 6])(xb.dot)
    >>> print(rule_of(product.root))
    ([i, k], [k, j])->([i, j]) {i=8, j=6, k=4} reduction={k}

    Source: Shardy, op sharding rule.
    """
    rule = sharding_rule.get(instruction.opcode)
    return None if rule is None else rule(instruction)


def role_of(opcode: str) -> Role:
    """How an op passes shardings on.

    >>> role_of("dot"), role_of("while"), role_of("parameter"), role_of("send")
    ('rule', 'edge', 'given', 'opaque')
    """
    properties = OPS[opcode].properties
    if opcode in sharding_rule:
        return "rule"
    if properties.depends_on == "caller":
        return "given"
    return "edge" if _passes_values_on(properties) else "opaque"


def _passes_values_on(properties: Properties) -> bool:
    """Whether the values of an op are those of its operands, or of its callees."""
    if properties.half != "none" or properties.needs != "nobody" or properties.elements != "whole":
        return False
    return properties.calls == "nothing" or properties.calls in _FLOWING


# ----------------------------------------------------------------------------
# Elementwise ops
#
# Each dimension is a factor of all operands and of the result.

for opcode in sorted(opcodes(lambda op: op.elements == "same_place")):
    sharding_rule.enter(opcode, pointwise)


# ----------------------------------------------------------------------------
# Ops without operands, or with scalar operands only
#
# The result may be sharded in any way.


def rule_of_result(instruction: Instruction) -> ShardingRule:
    """A factor for each dimension of the result; dimensions of operands are not sharded."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.results[0]):
        builder.add(size, (), (dim,))
    return builder.rule()


for leaf_opcode in sorted(opcodes(lambda op: op.elements == "made" and op.depends_on != "caller")):
    sharding_rule.enter(leaf_opcode, rule_of_result)


@sharding_rule
def rng_bit_generator(instruction: Instruction) -> ShardingRule:
    """The state is passed on and not sharded; the bits may be sharded."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.operands[0]):
        builder.add(size, (dim,), (dim,), "need_replication", is_blocked=True)
    for dim, size in enumerate(builder.results[-1]):
        builder.add(size, (), (None, dim))
    return builder.rule()


# ----------------------------------------------------------------------------
# Common factors of two lists of extents, for reshapes
#
# Both lists have one product.

Common = tuple[int, "int | None", "int | None"]
"""A factor: its size, and the dimensions of the source and of the target that have it, None if one does not."""


@define
class _Side:
    """The dimensions of one side, and how far they are split into factors."""

    dims: Sequence[int]
    dim: int = 0
    rest: int = 1
    taken: int = 1

    def at_unit(self) -> bool:
        """Whether the next dimension, of which no factor is taken yet, has extent 1."""
        return self.rest == 1 and self.dim < len(self.dims) and self.dims[self.dim] == 1

    def enter(self) -> None:
        """Begin the next dimension if the last one is done."""
        if self.rest == 1 and self.dim < len(self.dims):
            self.rest = self.dims[self.dim]

    def take(self, size: int) -> None:
        self.rest //= size
        self.taken *= size
        if self.rest == 1:
            self.dim += 1

    def find_catching_factor(self, other: _Side, common: int) -> int:
        """The factor of this side, which is behind, that makes both products equal, if there is one."""
        if other.taken % self.taken == 0 and self.rest % (other.taken // self.taken) == 0:
            return other.taken // self.taken
        return self.rest // common if self.rest > common else self.rest


def common_factors(source: Sequence[int], target: Sequence[int]) -> Iterator[Common]:
    """The factors of two lists of extents, none 0, from the outermost.

    While the products of the factors so far are equal, the greatest common divisor of the rests of both dimensions is a
    factor of both. If that is 1, each side has factors of its own until the products are equal again.

    >>> list(common_factors([8, 4], [2, 16]))
    [(2, 0, 0), (4, 0, 1), (4, 1, 1)]
    >>> list(common_factors([2, 3], [3, 2]))
    [(2, 0, None), (3, None, 0), (3, 1, None), (2, None, 1)]

    Source: Shardy, op sharding rule of reshape.
    """
    one, other = _Side(source), _Side(target)
    while one.dim < len(source) or other.dim < len(target):
        if one.at_unit():
            yield 1, one.dim, None
            one.dim += 1
        elif other.at_unit():
            yield 1, None, other.dim
            other.dim += 1
        else:
            yield from _next(one, other)


def _next(one: _Side, other: _Side) -> Iterator[Common]:
    one.enter()
    other.enter()
    common = math.gcd(one.rest, other.rest)
    if one.taken == other.taken and common > 1:
        yield common, one.dim, other.dim
        one.take(common)
        other.take(common)
        return
    both = one.taken == other.taken
    is_behind = one.taken < other.taken
    if both or is_behind:
        size = one.rest if both else one.find_catching_factor(other, common)
        yield size, one.dim, None
        one.take(size)
    if both or not is_behind:
        size = other.rest if both else other.find_catching_factor(one, common)
        yield size, None, other.dim
        other.take(size)


# ----------------------------------------------------------------------------
# Broadcast, reshape, transpose, bitcasts, concatenate, pad


@sharding_rule
def broadcast(instruction: Instruction) -> ShardingRule:
    """Dimensions of the operand pass to those of the result; new dimensions have their own factors."""
    builder = FactorBuilder(instruction)
    source = {out: dim for dim, out in enumerate(instruction.attributes.dimensions)}
    for out, size in enumerate(builder.results[0]):
        dim = source.get(out)
        if dim is not None and builder.operands[0][dim] != size:
            dim = None
        builder.add(size, (dim,), (out,))
    return builder.rule()


@sharding_rule
def transpose(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    for out, dim in enumerate(instruction.attributes.permutation):
        builder.add(builder.results[0][out], (dim,), (out,))
    return builder.rule()


@sharding_rule
def reverse(instruction: Instruction) -> ShardingRule:
    turned = instruction.attributes.dimensions
    return pointwise(instruction, lambda dim: "permutation" if dim in turned else "pass_through")


@sharding_rule
def reshape(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    return _relaid(builder, range(len(builder.operands[0])), range(len(builder.results[0])))


@sharding_rule
def dynamic_reshape(instruction: Instruction) -> ShardingRule:
    return make_blocked_rule(instruction)


@sharding_rule
def bitcast(instruction: Instruction) -> ShardingRule:
    """The rule of a reshape in the order of the layouts; blocked if the width of elements changes."""
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if source.size != target.size or source.is_dynamic:
        return make_blocked_rule(instruction)
    return _relaid(FactorBuilder(instruction), _major_to_minor(source), _major_to_minor(target))


def _relaid(builder: FactorBuilder, source: Dims | range, target: Dims | range) -> ShardingRule:
    """The rule of elements that stay in order, with dimensions read in these orders, the outermost first.

    Factors that only one side has are not sharded.
    """
    given, made = builder.operands[0], builder.results[0]
    if math.prod(given):
        for size, dim, out in common_factors([given[d] for d in source], [made[d] for d in target]):
            places = (None if dim is None else source[dim],), (None if out is None else target[out],)
            is_own = size > 1 and (dim is None or out is None)
            builder.add(size, *places, "need_replication" if is_own else "pass_through", is_blocked=is_own)
    return builder.rule()


def _major_to_minor(shape: Shape) -> Dims:
    return shape.layout.minor_to_major[::-1] if shape.layout else tuple(range(shape.rank))


@sharding_rule
def bitcast_convert(instruction: Instruction) -> ShardingRule:
    """Dimensions pass; the one into which an element of the wider type is split needs replication."""
    builder = FactorBuilder(instruction)
    given, made = builder.operands[0], builder.results[0]
    for dim, size in enumerate(given[: len(made)]):
        builder.alike(dim, size)
    for dim in range(len(made), len(given)):
        builder.add(given[dim], (dim,), (), "need_replication")
    for dim in range(len(given), len(made)):
        builder.add(made[dim], (), (dim,), "need_replication")
    return builder.rule()


@sharding_rule
def concatenate(instruction: Instruction) -> ShardingRule:
    """The concatenated dimension needs replication, with the result's extent as its size."""
    builder, joined = FactorBuilder(instruction), instruction.attributes.dimension
    for dim, size in enumerate(builder.results[0]):
        builder.alike(dim, size, "need_replication" if dim == joined else "pass_through")
    return builder.rule()


@sharding_rule
def pad(instruction: Instruction) -> ShardingRule:
    """Padded dimensions are permutations of the operand's extent."""
    builder = FactorBuilder(instruction)
    for dim, (size, padding) in enumerate(zip(builder.operands[0], instruction.attributes.padding, strict=True)):
        is_padded = padding.low or padding.high or padding.interior
        kind: FactorKind = "permutation" if is_padded else "pass_through"
        builder.add(size, (dim,), (dim,), kind)
    return builder.rule()


@sharding_rule
def set_dimension_size(instruction: Instruction) -> ShardingRule:
    bounded = instruction.attributes.dimension
    return pointwise(instruction, lambda dim: "need_replication" if dim == bounded else "pass_through")


# ----------------------------------------------------------------------------
# Slices
#
# Dimensions that are not sliced pass.


@sharding_rule
def slice_(instruction: Instruction) -> ShardingRule:
    """Sliced dimensions are permutations of the operand's extent, since the positions are known."""
    builder = FactorBuilder(instruction)
    for dim, (size, kept) in enumerate(zip(builder.operands[0], builder.results[0], strict=True)):
        kind: FactorKind = "pass_through" if size == kept else "permutation"
        builder.add(size, (dim,), (dim,), kind)
    return builder.rule()


@sharding_rule
def dynamic_slice(instruction: Instruction) -> ShardingRule:
    """Sliced dimensions need replication and are blocked."""
    builder = FactorBuilder(instruction)
    for dim, (size, kept) in enumerate(zip(builder.operands[0], builder.results[0], strict=True)):
        if size == kept:
            builder.add(size, (dim,), (dim,))
        else:
            builder.add(size, (dim,), (dim,), "need_replication", is_blocked=True)
    return builder.rule()


@sharding_rule
def dynamic_update_slice(instruction: Instruction) -> ShardingRule:
    """Operand and result pass, since devices update their own elements; partial updates are not sharded."""
    builder = FactorBuilder(instruction)
    for dim, (size, updated) in enumerate(zip(*builder.operands[:2], strict=True)):
        builder.add(size, (dim, dim if size == updated else None), (dim,))
        if size != updated:
            builder.add(updated, (None, dim), (), "need_replication")
    return builder.rule()


# ----------------------------------------------------------------------------
# Gather, and the walk over its dimensions that scatter shares


@frozen
class Indexing:
    """The dimensions of a gather, or of a scatter by the names of a gather: `slices` is its result, or the updates."""

    operand: Dims
    indices: Dims
    slices: Dims
    index_vector_dim: int
    offset_dims: Dims
    collapsed: Dims
    operand_batching: Dims
    indices_batching: Dims

    def factors(self) -> Iterator[tuple[int, int | None, int | None, int]]:
        """The dimensions of slices in order, as (size, dimension of the operand, of indices, of slices).

        Those that are offsets come with the operand's dimension where they are all of it, and not at all where not.
        Others count index vectors, and have a dimension of the operand where they are batching dimensions of it.
        """
        kept = iter(self._sliced_dims())
        counting = (d for d in range(len(self.indices)) if d != self.index_vector_dim)
        paired = dict(zip(self.indices_batching, self.operand_batching, strict=True))
        for out, size in enumerate(self.slices):
            if out not in self.offset_dims:
                dim = next(counting)
                yield size, paired.get(dim), dim, out
            elif self.operand[own := next(kept)] == size:
                yield size, own, None, out

    def parts(self) -> list[int]:
        """The dimensions of the operand of which a slice has a part of several elements, or of none."""
        sizes = (self.slices[out] for out in sorted(self.offset_dims))
        return [dim for dim, size in zip(self._sliced_dims(), sizes, strict=True) if self.operand[dim] != size]

    def _sliced_dims(self) -> list[int]:
        """The dimensions of the operand that are offsets in the slices."""
        return [d for d in range(len(self.operand)) if d not in self.collapsed and d not in self.operand_batching]


@sharding_rule
def gather(instruction: Instruction) -> ShardingRule:
    """Batch dimensions and full windows pass; a dimension of which one element is selected is a reduction.

    Each device selects the elements that it holds, and zeros elsewhere: the sum is the result. Index vectors are not
    sharded, nor is a dimension of which a part is selected.
    """
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    indexing = Indexing(
        builder.operands[0],
        builder.operands[1],
        builder.results[0],
        attributes.index_vector_dim,
        attributes.offset_dims,
        attributes.collapsed_slice_dims,
        attributes.operand_batching_dims,
        attributes.start_indices_batching_dims,
    )
    for size, own, dim, out in indexing.factors():
        builder.add(size, (own, dim), (out,))
    for dim in indexing.collapsed:
        builder.add(indexing.operand[dim], (dim,), (), "reduction")
    return builder.rule()


# ----------------------------------------------------------------------------
# Scatter

_IN_ANY_ORDER = opcodes(lambda op: op.order == "any")


@sharding_rule
def scatter(instruction: Instruction) -> ShardingRule:
    """Batch dimensions and full windows pass; updates of several index vectors are a reduction if their order is free.

    A dimension that index vectors select from passes between operand and result: a device applies the updates of its
    own elements. Index vectors are not sharded, nor is a dimension of which a window has a part.
    """
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    count = len(builder.results)
    indexing = Indexing(
        builder.operands[0],
        builder.operands[count],
        builder.operands[-1],
        attributes.index_vector_dim,
        attributes.update_window_dims,
        attributes.inserted_window_dims,
        attributes.input_batching_dims,
        attributes.scatter_indices_batching_dims,
    )
    free: FactorKind = "reduction" if reducer_of(attributes.to_apply) is not None else "need_replication"
    for size, own, dim, update in indexing.factors():
        kind = free if own is None else "pass_through"
        builder.add(size, _operands(count, own, dim, update), [own] * count, kind)
    for dim in indexing.parts():
        builder.add(indexing.operand[dim], _operands(count, dim, None, None), [dim] * count, "need_replication")
    for dim in indexing.collapsed:
        builder.add(indexing.operand[dim], _operands(count, dim, None, None), [dim] * count)
    return builder.rule()


def _operands(count: int, own: int | None, index: int | None, update: int | None) -> Sequence[int | None]:
    return [*[own] * count, index, *[update] * count]


def reducer_of(computation: Computation) -> str | None:
    """The opcode of a computation that combines its two parameters by one op, in any order; else None."""
    root = computation.root
    taken = set(root.operands) == set(computation.parameters) and len(computation.parameters) == 2
    return root.opcode if taken and root.opcode in _IN_ANY_ORDER else None


# ----------------------------------------------------------------------------
# Reduce and batch normalization


@sharding_rule
def reduce(instruction: Instruction) -> ShardingRule:
    """Reduced dimensions are reductions, the others pass; initial values have no dimensions."""
    builder, dimensions = FactorBuilder(instruction), instruction.attributes.dimensions
    count, out = len(builder.operands) // 2, 0
    for dim, size in enumerate(builder.operands[0]):
        if dim in dimensions:
            builder.add(size, [dim] * count, (), "reduction")
        else:
            builder.add(size, [dim] * count, [out] * len(builder.results))
            out += 1
    return builder.rule()


def rule_of_normalization(instruction: Instruction, kind: FactorKind) -> ShardingRule:
    """The features pass in all arrays, the other dimensions in those of full rank."""
    builder, feature = FactorBuilder(instruction), instruction.attributes.feature_index
    whole = builder.operands[0]
    for dim, size in enumerate(whole):
        small = 0 if dim == feature else None
        given, made = ([dim if dims == whole and n in full else small for n, dims in enumerate(arrays)]
                       for arrays, full in ((builder.operands, (0, 4)), (builder.results, (0,))))  # fmt: skip
        builder.add(size, given, made, "pass_through" if dim == feature else kind)
    return builder.rule()


@sharding_rule
def batch_norm_inference(instruction: Instruction) -> ShardingRule:
    return rule_of_normalization(instruction, "pass_through")


@sharding_rule
def batch_norm_training(instruction: Instruction) -> ShardingRule:
    return rule_of_normalization(instruction, "need_replication")


@sharding_rule
def batch_norm_grad(instruction: Instruction) -> ShardingRule:
    return rule_of_normalization(instruction, "need_replication")


# ----------------------------------------------------------------------------
# Products
#
# Batch dimensions and free ones pass; contracted ones are reductions.

Meeting: TypeAlias = tuple["int | None", "int | None", "int | None"]
"""The dimensions of lhs, rhs and result that share one factor."""


def _meetings(attributes: Any, lhs: Dims, rhs: Dims, out: int = 0, group: Dims = ()) -> Iterator[Meeting]:
    """The factors of a product: those of the result's dimensions from `out` on, then the contracted ones."""
    batch = list(zip(attributes.lhs_batch_dims, attributes.rhs_batch_dims, strict=True))
    contracted = list(zip(attributes.lhs_contracting_dims, attributes.rhs_contracting_dims, strict=True))
    rows = [dim for dim in range(len(lhs)) if dim not in attributes.lhs_batch_dims + attributes.lhs_contracting_dims]
    paired = attributes.rhs_batch_dims + attributes.rhs_contracting_dims + group
    columns = [dim for dim in range(len(rhs)) if dim not in paired]
    free: list[tuple[int | None, int | None]] = [*batch, *((dim, None) for dim in rows), *((None, d) for d in columns)]
    for place, (left, right) in enumerate(free, out):
        yield left, right, place
    for left, right in contracted:
        yield left, right, None


@sharding_rule
def dot(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    lhs, rhs = builder.operands
    for left, right, out in _meetings(instruction.attributes, lhs, rhs):
        builder.add(_size(lhs, left, rhs, right), (left, right), (out,), _kind(out))
    return builder.rule()


def _size(lhs: Dims, left: int | None, rhs: Dims, right: int | None) -> int:
    return lhs[left] if left is not None else rhs[right or 0]


def _kind(out: int | None) -> FactorKind:
    return "reduction" if out is None else "pass_through"


@sharding_rule
def ragged_dot(instruction: Instruction) -> ShardingRule:
    """The ragged dimension and the groups are not sharded, since group sizes count rows of the global array."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    (ragged,), (lhs, rhs, groups) = attributes.lhs_ragged_dims, builder.operands
    outer = before(len(lhs), ragged, attributes.lhs_batch_dims, attributes.lhs_contracting_dims)
    rows = {dim: place for place, dim in enumerate(outer)} if len(groups) > 1 else {}
    first = 1 if ragged in attributes.lhs_contracting_dims else 0
    for left, right, out in _meetings(attributes, lhs, rhs, first, attributes.rhs_group_dims):
        kind: FactorKind = "need_replication" if left == ragged else _kind(out)
        builder.add(_size(lhs, left, rhs, right), (left, right, rows.get(-1 if left is None else left)), (out,), kind)
    return builder.rule()


@sharding_rule
def scaled_dot(instruction: Instruction) -> ShardingRule:
    """The rule of a product; a scale has the factors of its operand along dimensions of the same extent."""
    builder = FactorBuilder(instruction)
    lhs, rhs, left_scale, right_scale = builder.operands
    for left, right, out in _meetings(instruction.attributes, lhs, rhs):
        sides = ((left, lhs, left_scale), (right, rhs, right_scale))
        scaled = [(dim, own, scale) for dim, own, scale in sides if dim is not None and scale]
        is_split = any(scale[dim] not in (1, own[dim]) for dim, own, scale in scaled)
        places = [dim if dim is not None and scale and scale[dim] == own[dim] else None for dim, own, scale in sides]
        kind: FactorKind = "need_replication" if is_split else _kind(out)
        builder.add(_size(lhs, left, rhs, right), (left, right, *places), (out,), kind)
    return builder.rule()


# ----------------------------------------------------------------------------
# Windows
#
# Dimensions over which a window slides need elements of neighbours.

_STILL = WindowDimension(1)


def kind_of_window(window: WindowDimension) -> FactorKind:
    """pass_through for a window of one element at that element, else permutation."""
    still = (window.size, window.stride, window.padding_low, window.padding_high, window.base_dilation)
    return "pass_through" if still == (1, 1, 0, 0, 1) else "permutation"


@sharding_rule
def reduce_window(instruction: Instruction) -> ShardingRule:
    """A factor for each dimension, whose size is the number of windows; initial values have no dimensions."""
    builder = FactorBuilder(instruction)
    for dim, window in enumerate(instruction.attributes.window or [_STILL] * len(builder.results[0])):
        builder.alike(dim, builder.results[0][dim], kind_of_window(window))
    return builder.rule()


@sharding_rule
def select_and_scatter(instruction: Instruction) -> ShardingRule:
    """A factor for each dimension; the source is not sharded along dimensions in which its extent differs."""
    builder = FactorBuilder(instruction)
    base, source = builder.operands[:2]
    for dim, window in enumerate(instruction.attributes.window or [_STILL] * len(base)):
        is_apart = base[dim] != source[dim]
        builder.add(base[dim], (dim, None if is_apart else dim), (dim,), kind_of_window(window))
        if is_apart:
            builder.add(source[dim], (None, dim), (), "need_replication")
    return builder.rule()


@sharding_rule
def convolution(instruction: Instruction) -> ShardingRule:
    """Batch, groups and output features pass; input features are reductions; for the others see below."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    numbers, (_, kernel), out = attributes.dimension_numbers, builder.operands, builder.results[0]
    groups, batches = attributes.feature_group_count, attributes.batch_group_count
    batch, features = numbers.output_batch_dimension, numbers.output_feature_dimension
    inner, outer = numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension
    if batches > 1:
        builder.add(batches, (numbers.input_batch_dimension, outer), (features,))
    builder.add(out[batch], (numbers.input_batch_dimension, None), (batch,))
    _add_spatial_factors(builder, instruction)
    if groups > 1:
        builder.add(groups, (numbers.input_feature_dimension, outer), (features,))
    builder.add(kernel[inner], (numbers.input_feature_dimension, inner), (), "reduction")
    builder.add(out[features] // (groups * batches), (None, outer), (features,))
    return builder.rule()


def _add_spatial_factors(builder: FactorBuilder, instruction: Instruction) -> None:
    """Add two factors for each spatial dimension of the input: for the windows, and for positions inside a window.

    The larger one is outside; the input has both as far as its extent allows, and a factor of size 1 is omitted.
    """
    numbers, (base, kernel) = instruction.attributes.dimension_numbers, builder.operands
    for (left, right, result), window in zip(numbers.spatial, instruction.attributes.window, strict=True):
        room, many, size = base[left], builder.results[0][result], kernel[right]
        for is_inside in (False, True) if many >= size else (True, False):
            factor = min(room, size if is_inside else many)
            if factor <= 1:
                continue
            if is_inside:
                kind: FactorKind = "reduction" if covers_all(window, base[left], many, size) else "permutation"
                builder.add(factor, (left, right), (), kind)
            else:
                builder.add(factor, (left, None), (result,), "permutation")
            room //= factor


def covers_all(window: WindowDimension, extent: int, places: int, size: int) -> bool:
    """Whether one window covers all of a dimension, so that it is contracted."""
    return places == 1 and extent == size and window == WindowDimension(size, stride=window.stride)


# ----------------------------------------------------------------------------
# Sort and topk
#
# The dimension that is ordered must not be sharded.


@sharding_rule
def sort(instruction: Instruction) -> ShardingRule:
    """The sorted dimension needs replication; it is blocked if no other dimension could be sharded instead."""
    builder, sorted_dim = FactorBuilder(instruction), instruction.attributes.dimension
    dims = builder.operands[0]
    is_alone = all(size <= 1 for dim, size in enumerate(dims) if dim != sorted_dim)
    for dim, size in enumerate(dims):
        if dim == sorted_dim:
            builder.alike(dim, size, "need_replication", is_blocked=is_alone)
        else:
            builder.alike(dim, size)
    return builder.rule()


@sharding_rule
def topk(instruction: Instruction) -> ShardingRule:
    builder = FactorBuilder(instruction)
    last = len(builder.operands[0]) - 1
    for dim, size in enumerate(builder.operands[0][:last]):
        builder.alike(dim, size)
    builder.alike(last, builder.operands[0][last], "need_replication", is_blocked=True)
    return builder.rule()


# ----------------------------------------------------------------------------
# Decompositions, solvers and Fourier transforms
#
# Batch dimensions pass; the others must not be sharded.


@sharding_rule
def cholesky(instruction: Instruction) -> ShardingRule:
    batch = instruction.shape.rank - 2  # type: ignore[union-attr]
    return pointwise(instruction, lambda dim: "pass_through" if dim < batch else "need_replication")


@sharding_rule
def triangular_solve(instruction: Instruction) -> ShardingRule:
    """The dimension of `a` that contracts with `b`, the one that the result has, and the free one of `b`."""
    builder, attributes = FactorBuilder(instruction), instruction.attributes
    a, b = builder.operands
    rows, columns = len(a) - 2, len(a) - 1
    for dim, size in enumerate(a[:rows]):
        builder.alike(dim, size)
    is_turned = (attributes.transpose_a != "NO_TRANSPOSE") == attributes.left_side
    meeting, solved = (columns, rows) if is_turned else (rows, columns)
    own, free = (rows, columns) if attributes.left_side else (columns, rows)
    builder.add(a[meeting], (meeting, own), (), "need_replication")
    builder.add(b[free], (None, free), (free,), "need_replication")
    builder.add(a[solved], (solved, None), (own,), "need_replication")
    return builder.rule()


@sharding_rule
def fft(instruction: Instruction) -> ShardingRule:
    """Transformed dimensions need replication; the last is blocked if the transform changes its extent."""
    builder = FactorBuilder(instruction)
    first = len(builder.operands[0]) - len(instruction.attributes.fft_length)
    for dim, size in enumerate(builder.operands[0]):
        kind: FactorKind = "pass_through" if dim < first else "need_replication"
        builder.alike(dim, size, kind, is_blocked=size != builder.results[0][dim])
    return builder.rule()


# ----------------------------------------------------------------------------
# Collectives that a program states
#
# The dimensions that they gather or split must not be sharded.


def _but(instruction: Instruction, dims: tuple[int, ...]) -> ShardingRule:
    """Each operand passes to its result; the dimensions `dims` of both have separate factors and are not sharded."""
    builder = FactorBuilder(instruction)
    if len(builder.operands) != len(builder.results):
        return builder.rule()
    for number, (given, result) in enumerate(zip(builder.operands, builder.results, strict=True)):
        before = [None] * number
        for dim, size in enumerate(given):
            if dim in dims:
                builder.add(size, (*before, dim), (), "need_replication")
                builder.add(result[dim], (), (*before, dim), "need_replication")
            else:
                builder.add(size, (*before, dim), (*before, dim))
    return builder.rule()


@sharding_rule
def all_reduce(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def collective_permute(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def collective_broadcast(instruction: Instruction) -> ShardingRule:
    return _but(instruction, ())


@sharding_rule
def all_gather(instruction: Instruction) -> ShardingRule:
    return _but(instruction, (instruction.attributes.all_gather_dimension,))


@sharding_rule
def reduce_scatter(instruction: Instruction) -> ShardingRule:
    return _but(instruction, (instruction.attributes.scatter_dimension,))


@sharding_rule
def all_to_all(instruction: Instruction) -> ShardingRule:
    cut, grown = instruction.attributes.split_dimension, instruction.attributes.concat_dimension
    return _but(instruction, () if cut is None else (cut, grown))


@sharding_rule
def ragged_all_to_all(instruction: Instruction) -> ShardingRule:
    """Rows are not sharded; the other dimensions of operand, output and result pass."""
    builder = FactorBuilder(instruction)
    for dim, size in enumerate(builder.results[0]):
        if dim:
            builder.add(size, (dim, dim), (dim,))
        else:
            builder.add(size, (None, dim), (dim,), "need_replication")
    return builder.rule()


# ----------------------------------------------------------------------------
# Custom calls, by their targets

_ALIKE = ALIKE | {"X64Combine", "mhlo.erf"}
"""Targets of elementwise calls: the result has the extents of each operand."""

_ALONG_LAST = frozenset({"ApproxTopK", "PartialReduce", "TopK", "mhlo.topk"})
"""Targets that select along the last dimension; the others are batch dimensions."""

_OF_MATRICES = ("lapack_", "Cholesky", "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "InvertDiagBlocks")
"""Prefixes of targets on matrices, which are the last two dimensions; the others are batch dimensions."""


@sharding_rule
def custom_call(instruction: Instruction) -> ShardingRule | None:
    """The rule of a known target; None for others, through which nothing propagates."""
    target = instruction.attributes.custom_call_target
    if target in _ALIKE:
        return pointwise(instruction)
    if target in _ALONG_LAST:
        return make_batch_rule(instruction, len(FactorBuilder(instruction).operands[0]) - 1)
    if target.startswith(_OF_MATRICES):
        return make_batch_rule(instruction, len(FactorBuilder(instruction).operands[0]) - 2)
    return None


def make_batch_rule(instruction: Instruction, count: int) -> ShardingRule:
    """The first `count` dimensions pass in all arrays that have them; the others are not sharded."""
    builder = FactorBuilder(instruction)
    first = builder.operands[0]
    for dim, size in enumerate(first[: max(count, 0)]):
        given, made = (
            [dim if dims[: dim + 1] == first[: dim + 1] else None for dims in arrays]
            for arrays in (builder.operands, builder.results)
        )
        builder.add(size, given, made)
    return builder.rule()
