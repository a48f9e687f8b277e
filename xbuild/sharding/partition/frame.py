"""The program of a device while it is recorded: its arrays, each in the shardings it has so far.

Sections:

    Shared, Piece and Frame: the program of a device while it is recorded
    Instructions on replicated operands, on every device
    Values of tuples as trees of pieces
    Shardings as the partitioner needs them
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define, field, frozen

from shape_inference import AnyShape, Shape, TupleShape
from shape_inference.trees import map_leaves
from shape_inference.types import Dims

from ... import ops
from ...core.builder import Builder, Value
from ...core.context import annotated
from ...core.graph import Computation, Instruction
from ...core.op import OPS
from ...costs.collectives import algorithms
from ...properties.mesh import Mesh
from ..hlo_text import rest_of
from ..manual_regions import Axes, Regions
from ..resharding import Costs, ReshardingStep, pad_extent, plan_once
from ..resharding_ops import CollectiveRecorder, Reducer, constant, dims_of, spread
from ..sharding import Axis, DimSharding, Placement, Sharding, count, merge_parts, shard_dims
from ..shardy_text import AnyMesh
from ..stated_shardings import sharding_of
from .reasons import WHOLE_OPERAND, ArrayMove, Because, Communication, Reason, Result, Story, Use

AxisParts: TypeAlias = tuple[Axis, ...]
Tree: TypeAlias = Any
"""One thing for an array, or a tuple of trees for a tuple."""

# ----------------------------------------------------------------------------
# Shared, Piece and Frame: the program of a device while it is recorded
#
# Its arrays, each in the shardings it has so far.

CurrentMove: TypeAlias = "tuple[Instruction, Reason | str, Sharding, Sharding]"
"""The resharding that is recorded now: whose data is moved, why, from which sharding, to which."""


@define(eq=False)
class Shared:
    """What all computations of a program share: the mesh, the channels in use, the collectives so far.

    `agreement` says which scalars are made equal on all devices (NOTHING, PARAMETERS or EVERY_DECISION of devices.py);
    `frames` are those of all computations, `resharded` the parts, by name, that were resharded; `device_dependent` are
    the computations that read the number of the device; `regions` says what is manual. `times` is how often the
    computation that is recorded now runs, as far as trip counts are known, and `sent` the bytes that a device sends.
    """

    mesh: Mesh
    agreement: int = 0
    channels: list[int] = field(factory=lambda: [0])
    communications: list[Communication] = field(factory=list)
    meshes: dict[str, AnyMesh] = field(factory=dict)
    frames: list[Frame] = field(factory=list)
    resharded: dict[str, tuple[Piece, Sharding]] = field(factory=dict)
    device_dependent: frozenset[Computation] = frozenset()
    regions: Regions = Factory(Regions)
    story: Story = field(factory=lambda: Story(lambda: None))
    times: int = 1
    sent: int = 0

    def add(self, communication: Communication) -> None:
        """List an inserted collective."""
        self.communications.append(communication)
        self.sent += communication.bytes * self.times


@define(eq=False)
class Piece:
    """An array of the global program: its shape, its instruction, and a device's part in each sharding it has so far.

    `maker` makes the parts of an array that depends on no other, such as a constant, in any sharding. `deferred` says
    how an array is made when it is first used. `uses` are the reasons for which the array is taken, each with the
    sharding in which it is taken.
    """

    shape: AnyShape
    origin: Instruction
    versions: dict[Sharding, Value]
    maker: Callable[[Sharding], Value] | None = None
    deferred: Deferred | None = None
    uses: list[Use] = field(factory=list)

    @property
    def sharding(self) -> Sharding:
        """The sharding in which it was produced."""
        return next(iter(self.shardings))

    @property
    def shardings(self) -> tuple[Sharding, ...]:
        """The shardings that it has so far."""
        return tuple(self.versions) if self.deferred is None or self.versions else (self.deferred.sharding,)

    @property
    def price(self) -> int:
        """The bytes that a device sends to make it, if it is not made yet."""
        return 0 if self.deferred is None or self.versions else self.deferred.price


@frozen(eq=False)
class Deferred:
    """How an array is made when it is first used: in which sharding, and for how many bytes that a device sends.

    `view` says of which elements of other arrays it consists.
    """

    sharding: Sharding
    price: int
    make: Callable[[], Value]
    view: Any


class PartBuilder(Builder):
    """A builder whose instructions have the source line and the scope of the instruction that they are part of."""

    __slots__ = ("effects", "made", "part_of", "received")

    effects: dict[Instruction, list[Instruction]]
    part_of: Instruction | None
    made: dict[Any, Value]
    received: dict[Any, list[Any]]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.effects, self.made, self.received = {}, {}, {}

    @property
    def size(self) -> int:
        """The number of instructions recorded so far."""
        return len(self._instructions)

    def count_from(self, number: int) -> None:
        """Number the names of new instructions from above a number."""
        self._names.count = max(self._names.count, number)

    def record(self, *given: Any) -> Value:
        value = super().record(*given)
        part = getattr(self, "part_of", None)
        if part is not None:
            object.__setattr__(value.instruction, "where", part.where)
        return value

    def sub_builder(self, name: str) -> Builder:
        inner = PartBuilder(self._computation_names.unique(name), self)
        inner.part_of = getattr(self, "part_of", None)
        return inner


@define(eq=False)
class Frame:
    """One computation of the SPMD program while it is recorded.

    Along `manual` axes the computation is already the program of one device. `device_dependent` are the instructions
    whose values depend on the number of the device that computes them.
    """

    shared: Shared
    builder: PartBuilder
    values: dict[Instruction, Tree] = field(factory=dict)
    manual: Axes = ()
    device_dependent: set[Instruction] = field(factory=set)
    recorder: CollectiveRecorder = Factory(lambda self: self._recorder(), takes_self=True)
    moves: list[CurrentMove] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.shared.frames.append(self)

    def _recorder(self) -> CollectiveRecorder:
        return CollectiveRecorder(self.shared.mesh, self.builder, self.shared.channels, self._note_step)

    @property
    def mesh(self) -> Mesh:
        return self.shared.mesh

    @property
    def axes(self) -> Axes:
        """The axes of the mesh that are not manual."""
        return rest_of(self.mesh, self.manual)

    def _note_step(self, value: Value, step: ReshardingStep) -> None:
        origin, reason, had, needed = self.moves[-1]
        self._list_collective(value, step.axes, step.bytes, reason, (origin, had, needed))

    def note_collective(
        self, value: Value, axes: Sequence[Axis], payload: int, origin: Instruction, reason: Reason | str
    ) -> None:
        """List a collective that a handler recorded itself."""
        sent = algorithms(value.instruction.opcode, count(axes), payload)[0].link_bytes
        self._list_collective(value, axes, sent, reason, (origin, None, None))

    def gather_parts(self, value: Value, dim: int, axes: AxisParts, origin: Instruction, reason: Reason) -> Value:
        """The values of all devices along axes, concatenated along a dimension, for an op that needs them."""
        groups = self.recorder.global_groups(axes)
        gathered = ops.all_gather([value], all_gather_dimension=dim, shard_count=count(axes), **groups)
        assert isinstance(gathered.shape, Shape)
        self.note_collective(gathered, axes, count_array_bytes(gathered.shape), origin, reason)
        return gathered

    def _list_collective(self, value: Value, axes: Sequence[Axis], sent: int, reason: Reason | str, moved: Any) -> None:
        origin, had, needed = moved
        move = ArrayMove(value.instruction.opcode, origin, had, needed, self.shared.story)
        self.shared.add(Communication(value.name, tuple(axes), sent, reason, move))

    def make_piece(self, value: Value, sharding: Sharding, shape: AnyShape, origin: Instruction) -> Piece:
        """An array of which each device holds `value` as its part."""
        return Piece(shape, origin, {sharding: value})

    def reshard(self, piece: Piece, target: Sharding, reason: Reason | str) -> Value:
        """A device's part of an array in a sharding; the array is resharded to it at most once."""
        if isinstance(reason, Reason):
            piece.uses.append((reason, target))
        self.materialize(piece)
        if target not in piece.versions:
            assert isinstance(piece.shape, Shape)
            if piece.maker is not None and not target.unreduced:
                piece.versions[target] = piece.maker(target)
                return piece.versions[target]
            source = min(piece.versions, key=lambda each: count_resharding_bytes(each, target, piece.shape))
            piece.versions[target] = self.record_resharding(piece.versions[source], source, target, piece, reason)
        return piece.versions[target]

    def materialize(self, piece: Piece) -> Value:
        """A device's part of an array in the sharding in which it is produced; a deferred array is made now."""
        if piece.deferred is not None and not piece.versions:
            outer = getattr(self.builder, "part_of", None)
            with self.within(piece.origin):
                piece.versions[piece.deferred.sharding] = piece.deferred.make()
            self.builder.part_of = outer
        return next(iter(piece.versions.values()))

    def record_resharding(
        self,
        value: Value,
        source: Sharding,
        target: Sharding,
        piece: Piece,
        reason: Reason | str,
        reducer: Reducer | None = None,
    ) -> Value:
        """A device's part after the cheapest steps from one sharding to another."""
        shape = piece.shape
        assert isinstance(shape, Shape)
        if 0 in shape.dims:  # there are no elements to send
            return spread(constant(self.builder, np.zeros((), shape.dtype.dtype)), local_dims(target, shape.dims))
        plan = plan_once(source, target, shape.dims, shape.dtype)
        self.shared.resharded[value.name] = piece, source
        self.moves.append((piece.origin, reason, source, target))
        value = self.recorder.record_steps(value, plan.steps, plan.start, reducer)
        self.moves.pop()
        return value

    def replicate(self, piece: Piece, reason: Reason | str) -> Value:
        """The array, replicated on every device; a token as it is."""
        if not isinstance(piece.shape, Shape):
            return self.materialize(piece)
        return self.reshard(piece, replicated_sharding(self.mesh, piece.shape.rank), reason)

    def reshard_piece(self, piece: Piece, stated: Sharding | None, reason: Reason | str) -> Piece:
        """The array in the sharding that is stated for it, if any."""
        if stated is None or piece.sharding == stated or not isinstance(piece.shape, Shape):
            return piece
        value = self.reshard(piece, stated, reason)
        return Piece(piece.shape, piece.origin, {stated: value, **piece.versions}, piece.maker, uses=piece.uses)

    def record(self, opcode: str, operands: Sequence[Value], segments: Any, attributes: dict[str, Any],
               name: str | None = None) -> Value:  # fmt: skip
        """Record an op by its opcode and flat operands, with the frontend attributes of the op that it is part of."""
        with annotated(**_keep_frontend_attributes(getattr(self.builder, "part_of", None))):
            return self.builder.record(OPS[opcode], tuple(operands), segments, attributes, name)

    def within(self, instruction: Instruction) -> Any:
        """Inside, recorded instructions carry the scope and the line of this one."""
        self.builder.part_of = instruction
        kept = {key: each for key, each in instruction.annotations.items() if key in _KEPT}
        return annotated(**kept)

    def check_part(self, value: Value, sharding: Sharding, shape: Shape) -> Value:
        """The value, whose extents must be those of a device's part."""
        expected = local_dims(sharding, shape.dims)
        assert dims_of(value) == expected, f"{value!r} is a part of {shape}, expected {expected}"
        return value


_KEPT = ("metadata",)
_GLOBAL_PREFIXES = ("xla.sdy.", "xbuild.")
"""Prefixes of frontend attributes that are shardings, or sharding rules, of the global program."""


def _keep_frontend_attributes(instruction: Instruction | None) -> dict[str, Any]:
    """The frontend attributes that an instruction keeps on each device."""
    notes = instruction.annotations.get("frontend_attributes", {}) if instruction is not None else {}
    kept = {key: each for key, each in notes.items() if not is_global_annotation(key)}
    return {"frontend_attributes": kept} if kept else {}


def is_global_annotation(key: str) -> bool:
    """Whether a frontend attribute is a sharding, or a sharding rule, of the global program."""
    return key.startswith(_GLOBAL_PREFIXES)


# ----------------------------------------------------------------------------
# Instructions on replicated operands, on every device
#
# Their results are split afterwards, which sends nothing.


def run_replicated(frame: Frame, instruction: Instruction, *, is_final: bool = True) -> Tree:
    """The op on replicated operands, on every device; its results are split afterwards, which sends nothing."""
    operands = [
        replicate_tree(frame, frame.values[each], Because(WHOLE_OPERAND, instruction)) for each in instruction.operands
    ]
    attributes = dict(instruction.attribute_values())
    if instruction.opcode in ("bitcast", "custom_call"):
        attributes["shape"] = instruction.shape  # with its layout, by which the op writes its result
    if instruction.opcode == "bitcast":
        operands = [_transpose_to_layout(operands[0], instruction.operands[0].shape)]
    value = frame.record(instruction.opcode, operands, instruction.segments, attributes, instruction.name)
    tree = split_into_pieces(frame, value, instruction)
    return reshard_to_annotation(frame, tree, instruction) if is_final else tree


def _transpose_to_layout(value: Value, shape: AnyShape) -> Value:
    """An array with its dimensions in the order of a layout, so that its elements are in the order of memory."""
    if not isinstance(shape, Shape) or shape.layout is None:
        return value
    order = shape.layout.minor_to_major[::-1]
    return value if order == tuple(range(shape.rank)) else ops.transpose(value, permutation=order)


def reshard_to_annotation(frame: Frame, tree: Tree, instruction: Instruction) -> Tree:
    """The pieces of an instruction's value, resharded to its annotation."""
    if isinstance(tree, Piece) and not isinstance(tree.shape, Shape):
        return tree
    reason, stated = Result(instruction), read_shardings(instruction, frame.mesh)
    return map_leaves(lambda piece, each: frame.reshard_piece(piece, each, reason), tree, stated)


def split_into_pieces(frame: Frame, value: Value, instruction: Instruction) -> Tree:
    """The pieces of a value that is replicated; for a tuple, those of its elements."""
    if isinstance(value.shape, TupleShape) and OPS[instruction.opcode].properties.half in ("none", "done"):
        count = len(value.shape.elements)
        return tuple(split_into_pieces(frame, ops.get_tuple_element(value, index=n), instruction) for n in range(count))
    is_array = isinstance(value.shape, Shape) and OPS[instruction.opcode].properties.half != "start"
    rank = value.shape.rank if isinstance(value.shape, Shape) else 0
    shape = value.shape if is_array else OPAQUE
    return frame.make_piece(value, replicated_sharding(frame.mesh, rank if is_array else 0), shape, instruction)


OPAQUE = TupleShape()
"""The shape of a value that is passed on as it is, such as the start of an asynchronous op."""


def replicate_tree(frame: Frame, tree: Tree, reason: Reason) -> Value:
    """The value, replicated on every device; a tuple is assembled again."""
    if isinstance(tree, tuple):
        return ops.tuple_(tuple(replicate_tree(frame, each, reason) for each in tree), builder=frame.builder)
    assert isinstance(tree, Piece)
    return frame.replicate(tree, reason)


# ----------------------------------------------------------------------------
# Values of tuples as trees of pieces
#
# Shapes of parts, pieces of a value, shardings of all leaves.


def local_shape(shape: AnyShape, shardings: Tree) -> AnyShape:
    """The shape of a device's part of a value."""
    if isinstance(shape, TupleShape):
        return TupleShape(local_shape(*each) for each in zip(shape.elements, shardings, strict=True))
    return shape.dtype[local_dims(shardings, shape.dims)] if isinstance(shape, Shape) else shape


def make_pieces(frame: Frame, value: Value, shape: AnyShape, shardings: Tree, origin: Instruction) -> Tree:
    """The pieces of a value that devices hold in these shardings."""
    if isinstance(shape, TupleShape) and isinstance(shardings, tuple):
        return tuple(
            make_pieces(frame, ops.get_tuple_element(value, index=number), *each, origin)
            for number, each in enumerate(zip(shape.elements, shardings, strict=True))
        )
    return frame.make_piece(value, shardings, shape, origin)


def replicated_shardings(mesh: Mesh, shape: AnyShape) -> Tree:
    """A replicated sharding for each array of a shape."""
    return map_leaves(lambda leaf: replicated_sharding(mesh, leaf.rank if isinstance(leaf, Shape) else 0), shape)


def stated_or_replicated_shardings(mesh: Mesh, instruction: Instruction) -> Tree:
    """The shardings that an instruction is annotated with; replicated for arrays without one."""
    return map_leaves(_choose_stated, read_shardings(instruction, mesh), replicated_shardings(mesh, instruction.shape))


def stated_or_own_shardings(mesh: Mesh, instruction: Instruction, tree: Tree) -> Tree:
    """The shardings that an instruction is annotated with, or those in which the pieces were produced."""
    stated = read_shardings(instruction, mesh)
    return map_leaves(lambda sharding, piece: _choose_stated(sharding, piece.sharding), stated, tree)


def _choose_stated(stated: object, other: object) -> object:
    return other if stated is None else stated


# ----------------------------------------------------------------------------
# Shardings as the partitioner needs them
#
# They are closed and have an entry for each dimension.


@functools.lru_cache(maxsize=1 << 14)
def normalize(sharding: Sharding, rank: int) -> Sharding:
    """The sharding reduced to its axes: no open dimensions, no priorities, no axes of size 1."""
    dims = (merge_parts(_drop_unit_axes(sharding.dim(number).axes)) for number in range(rank))
    return shard_dims(sharding.mesh, dims, sorted(_drop_unit_axes(sharding.unreduced)))


def _drop_unit_axes(axes: Iterable[Axis]) -> Iterator[Axis]:
    return (axis for axis in axes if axis.size > 1)


@functools.lru_cache(maxsize=4096)
def replicated_sharding(mesh: Mesh, rank: int) -> Sharding:
    """The sharding by which every device holds all of an array."""
    return Sharding(mesh, (DimSharding(),) * rank)


def local_dims(sharding: Sharding, dims: Dims) -> Dims:
    """The extents of a device's part, with GSPMD's padding."""
    pairs = zip(dims, sharding.dims, strict=True)
    return tuple(pad_extent(extent, parts := count(dim.axes)) // parts for extent, dim in pairs)


@functools.lru_cache(maxsize=1 << 14)
def count_resharding_bytes(source: Sharding, target: Sharding, shape: Shape) -> int:
    """The bytes that a device sends to reshard an array."""
    return 0 if source == target else plan_once(source, target, shape.dims, shape.dtype, _QUICK).bytes


_QUICK = Costs()


def count_array_bytes(shape: Shape) -> int:
    """The bytes of an array."""
    return math.prod(shape.dims) * max(1, shape.dtype.bits // 8)


def read_shardings(instruction: Instruction, mesh: Mesh) -> Tree:
    """The shardings that an instruction is annotated with, nested as its shape; None for an array without one."""
    stated = sharding_of(instruction, mesh)
    if not isinstance(instruction.shape, TupleShape):
        return _sharding_by_axes(stated, instruction.shape, mesh)
    leaves = iter(stated if isinstance(stated, tuple) else ())
    return map_leaves(lambda leaf: _sharding_by_axes(next(leaves, None), leaf, mesh), instruction.shape)


def _sharding_by_axes(stated: Any, shape: Any, mesh: Mesh) -> Sharding | None:
    """A stated sharding of an array by axes of the mesh; a placement, and any of a dynamic shape, is replicated."""
    if not isinstance(shape, Shape) or stated is None:
        return None
    if isinstance(stated, Placement):
        return replicated_sharding(mesh, shape.rank) if stated.kind != "unknown" else None
    assert isinstance(stated, Sharding)
    return replicated_sharding(mesh, shape.rank) if shape.is_dynamic else normalize(stated, shape.rank)
