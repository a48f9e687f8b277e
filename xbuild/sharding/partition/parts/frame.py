"""A computation of a device's program while it is recorded: its arrays, each in the shardings it was brought to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define, field, frozen

from shape_inference import AnyShape, Shape

from ....core.builder import Builder, Value
from ....core.context import annotated
from ....core.graph import Computation, Instruction
from ....core.op import OPS
from ....costs.algorithms import algorithms
from ....properties.mesh import Mesh
from ...axis import Axis, count
from ...planning.plan import planned
from ...planning.record import Recorder, Reducer, constant, dims_of, spread
from ...planning.states import Step
from ...regions import Axes, Regions
from ...sharding import Sharding
from ...shardy_text import AnyMesh
from ...tiles import rest_of
from ..reasons import Communication, Move, Reason, Story, Use
from .layouts import Tree, distance, local_dims, whole_on

Asked: TypeAlias = "tuple[Instruction, Reason | str, Sharding, Sharding]"
"""What is moved now: whose data, why, from which sharding, to which."""


@define(eq=False)
class Shared:
    """What all computations of a program share: the mesh, the channels taken, the collectives so far.

    `agreement` says which numbers are made one on all devices, in the words of agreement.py; `frames` are those of all
    computations, `brought` the parts, by name, that were brought from a sharding to another; `numbered` are the
    computations that read the number of the device, `regions` say what is manual. `times` is how often what is recorded
    now runs, as far as trips of loops are known, and `sent` the bytes that a device sends in all of it.
    """

    mesh: Mesh
    agreement: int = 0
    channels: list[int] = field(factory=lambda: [0])
    communications: list[Communication] = field(factory=list)
    meshes: dict[str, AnyMesh] = field(factory=dict)
    frames: list[Frame] = field(factory=list)
    brought: dict[str, tuple[Piece, Sharding]] = field(factory=dict)
    numbered: frozenset[Computation] = frozenset()
    regions: Regions = Factory(Regions)
    story: Story = field(factory=lambda: Story(lambda: None))
    times: int = 1
    sent: int = 0

    def add(self, made: Communication) -> None:
        """Note a collective."""
        self.communications.append(made)
        self.sent += made.bytes * self.times


@define(eq=False)
class Piece:
    """An array of the global program: its shape, who made it, and its parts in each sharding that it was brought to.

    `maker` makes the parts of an array that depends on no other, such as a constant, in any sharding. `later` is an
    array that is made when it is first used. `uses` are those who take the array, each with the sharding in which it is
    taken.
    """

    shape: AnyShape
    origin: Instruction
    versions: dict[Sharding, Value]
    maker: Callable[[Sharding], Value] | None = None
    later: Later | None = None
    uses: list[Use] = field(factory=list)

    @property
    def sharding(self) -> Sharding:
        """The sharding that it was made in."""
        return next(iter(self.shardings))

    @property
    def shardings(self) -> tuple[Sharding, ...]:
        """Those in which it is at hand."""
        return tuple(self.versions) if self.later is None or self.versions else (self.later.sharding,)

    @property
    def price(self) -> int:
        """The bytes that a device sends to have it, where it is not made yet."""
        return 0 if self.later is None or self.versions else self.later.price


@frozen(eq=False)
class Later:
    """How an array is made when it is first used: in which sharding, for how many bytes that a device sends.

    `view` says of which elements of other arrays it is made.
    """

    sharding: Sharding
    price: int
    made: Callable[[], Value]
    view: Any


class PartBuilder(Builder):
    """Records instructions with the source line and the scope of the instruction that they are part of."""

    __slots__ = ("made", "part_of", "received")

    part_of: Instruction | None
    made: dict[Any, Value]
    received: dict[Any, list[Any]]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.made, self.received = {}, {}

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
    """One computation of the SPMD program under recording.

    Along `manual` axes the computation is a program of one device already. `numbered` are the instructions whose values
    depend on the number of the device that computes them.
    """

    shared: Shared
    builder: PartBuilder
    values: dict[Instruction, Tree] = field(factory=dict)
    manual: Axes = ()
    numbered: set[Instruction] = field(factory=set)
    recorder: Recorder = Factory(lambda self: self._recorder(), takes_self=True)
    reasons: list[Asked] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.shared.frames.append(self)

    def _recorder(self) -> Recorder:
        return Recorder(self.shared.mesh, self.builder, self.shared.channels, self._note)

    @property
    def mesh(self) -> Mesh:
        return self.shared.mesh

    @property
    def axes(self) -> Axes:
        """The axes of the mesh along which the program is still one."""
        return rest_of(self.mesh, self.manual)

    def _note(self, value: Value, step: Step) -> None:
        origin, reason, had, needed = self.reasons[-1]
        self._listed(value, step.axes, step.bytes, reason, (origin, had, needed))

    def note(self, value: Value, axes: Sequence[Axis], payload: int, origin: Instruction, reason: Reason | str) -> None:
        """Note a collective that an op recorded by itself."""
        sent = algorithms(value.instruction.opcode, count(axes), payload)[0].link_bytes
        self._listed(value, axes, sent, reason, (origin, None, None))

    def _listed(self, value: Value, axes: Sequence[Axis], sent: int, reason: Reason | str, moved: Any) -> None:
        origin, had, needed = moved
        move = Move(value.instruction.opcode, origin, had, needed, self.shared.story)
        self.shared.add(Communication(value.name, tuple(axes), sent, reason, move))

    def piece(self, value: Value, sharding: Sharding, shape: AnyShape, origin: Instruction) -> Piece:
        """The array of which devices hold these parts."""
        return Piece(shape, origin, {sharding: value})

    def part(self, piece: Piece, target: Sharding, reason: Reason | str) -> Value:
        """The part of an array in a sharding; it is brought there once."""
        if isinstance(reason, Reason):
            piece.uses.append((reason, target))
        self.ready(piece)
        if target not in piece.versions:
            assert isinstance(piece.shape, Shape)
            if piece.maker is not None and not target.unreduced:
                piece.versions[target] = piece.maker(target)
                return piece.versions[target]
            source = min(piece.versions, key=lambda each: distance(each, target, piece.shape))
            piece.versions[target] = self.brought(piece.versions[source], source, target, piece, reason)
        return piece.versions[target]

    def ready(self, piece: Piece) -> Value:
        """The parts of an array in the sharding that it is made in, made now where it was left for later."""
        if piece.later is not None and not piece.versions:
            outer = getattr(self.builder, "part_of", None)
            with self.within(piece.origin):
                piece.versions[piece.later.sharding] = piece.later.made()
            self.builder.part_of = outer
        return next(iter(piece.versions.values()))

    def brought(
        self,
        value: Value,
        source: Sharding,
        target: Sharding,
        piece: Piece,
        reason: Reason | str,
        reducer: Reducer | None = None,
    ) -> Value:
        """A part after the cheapest steps from one sharding to another."""
        shape = piece.shape
        assert isinstance(shape, Shape)
        if 0 in shape.dims:  # nothing is sent of no elements
            return spread(constant(self.builder, np.zeros((), shape.dtype.dtype)), local_dims(target, shape.dims))
        found = planned(source, target, shape.dims, shape.dtype)
        self.shared.brought[value.name] = piece, source
        self.reasons.append((piece.origin, reason, source, target))
        value = self.recorder.steps(value, found.steps, found.start, reducer)
        self.reasons.pop()
        return value

    def whole(self, piece: Piece, reason: Reason | str) -> Value:
        """The whole array on every device; a token as it is."""
        if not isinstance(piece.shape, Shape):
            return self.ready(piece)
        return self.part(piece, whole_on(self.mesh, piece.shape.rank), reason)

    def settled(self, piece: Piece, wanted: Sharding | None, reason: Reason | str) -> Piece:
        """The array in the sharding that is wanted of it."""
        if wanted is None or piece.sharding == wanted or not isinstance(piece.shape, Shape):
            return piece
        value = self.part(piece, wanted, reason)
        return Piece(piece.shape, piece.origin, {wanted: value, **piece.versions}, piece.maker, uses=piece.uses)

    def record(self, opcode: str, operands: Sequence[Value], segments: Any, attributes: dict[str, Any],
               name: str | None = None) -> Value:  # fmt: skip
        """Record an op by its opcode with flat operands, and the frontend attributes of the op that it is part of."""
        with annotated(**_frontend(getattr(self.builder, "part_of", None))):
            return self.builder.record(OPS[opcode], tuple(operands), segments, attributes, name)

    def within(self, instruction: Instruction) -> Any:
        """Inside, recorded instructions carry the scope and the line of this one."""
        self.builder.part_of = instruction
        kept = {key: each for key, each in instruction.annotations.items() if key in _KEPT}
        return annotated(**kept)

    def checked(self, value: Value, sharding: Sharding, shape: Shape) -> Value:
        """The value, whose extents have to be those of a part."""
        wanted = local_dims(sharding, shape.dims)
        assert dims_of(value) == wanted, f"{value!r} is a part of {shape}, and {wanted} is wanted"
        return value


_KEPT = ("metadata",)
_OF_THE_GLOBAL = ("xla.sdy.", "xbuild.")
"""How the frontend attributes begin that are shardings, or rules of sharding, of the global program."""


def _frontend(instruction: Instruction | None) -> dict[str, Any]:
    """The frontend attributes that an instruction keeps on each device."""
    notes = instruction.annotations.get("frontend_attributes", {}) if instruction is not None else {}
    kept = {key: each for key, each in notes.items() if not is_of_the_global(key)}
    return {"frontend_attributes": kept} if kept else {}


def is_of_the_global(key: str) -> bool:
    """Whether a frontend attribute is a sharding, or a rule of sharding, of the global program."""
    return key.startswith(_OF_THE_GLOBAL)
