"""`shard_map`: records a function as the program that each device of a mesh runs on its part of global arrays.

Sections:

    shard_map: a function, its mesh, and its specs
    ManualRegion: what is known while a region is recorded
    The exit: each result has the type that its out_spec promises
    MeshProgram: the program of a region, and global arrays in and out
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from attrs import define, evolve, field, frozen

from shape_inference import AnyShape, PrimitiveType, Shape, TupleShape, XbuildError, primitive_type, refuse
from shape_inference.trees import flatten
from shape_inference.types import array_shape

from ..core.builder import Builder, Value
from ..core.context import assigned
from ..core.diagnostics import caller, dressed_text
from ..core.graph import Computation, Instruction, Module
from ..core.identifiers import is_identifier
from ..core.regions import trace
from ..properties.mesh import MESH, Mesh
from ..properties.variances import Type, Variance
from .specs import P, Specs, map_specs, per_leaf, types_of
from .types import Casts, Judgement, TypedComputation, TypeWalk, describe_type, typed_text, zeros_in
from .writing import Cast, TypedWriter, casts_in, names_in, remove_casts

# ----------------------------------------------------------------------------
# shard_map: a function, its mesh, and its specs


@frozen(eq=False)
class ShardedFunction:
    """A function with the mesh and the specs by which it runs; called with shapes, it returns its program.

    Called with global arrays, it runs and returns global arrays.
    """

    function: Callable[..., Any]
    mesh: Mesh
    in_specs: Specs
    out_specs: Specs
    casts: Casts
    uses_partitions: bool

    def __call__(self, *given: Any) -> Any:
        if all(isinstance(each, (Shape, TupleShape, PrimitiveType, Value)) for each in given) and given:
            return self.program(*given)
        program = self.program(*map(_shape_of, given))
        return program.run(*given)

    def program(self, *shapes: AnyShape | PrimitiveType) -> MeshProgram:
        """The program for global arrays of these shapes."""
        try:
            for number, each in enumerate(shapes):
                _refuse_value(number, each)
            return self._program([shape[()] if isinstance(shape, PrimitiveType) else shape for shape in shapes])
        except XbuildError as error:
            raise error if error.explained else self._add_specs(error) from None

    def _program(self, shapes: list[AnyShape]) -> MeshProgram:
        specs = self._in_specs(shapes)
        local = [
            _local_shape(self.mesh, spec, shape, f"in_specs[{number}]")
            for number, (spec, shape) in enumerate(zip(specs, shapes, strict=True))
        ]
        types = [types_of(each) for each in specs]
        region, computation = record_region(self.function, self.mesh, local, types, self.casts, self.uses_partitions)
        return make_program(region, computation, tuple(specs), self.out_specs)

    def _add_specs(self, error: XbuildError) -> XbuildError:
        """The refusal with the mesh, the specs, and the user's line."""
        head = f"shard_map of function {name_of(self.function)}: {error.message} [{error.kind}]"
        rows = [("mesh", repr(self.mesh)), ("in_specs", repr(self.in_specs)), ("out_specs", repr(self.out_specs))]
        found = type(error)(error.kind, dressed_text(head, rows, caller(), error.hints), error.hints)
        found.message, found.explained = error.message, True
        return found

    def _in_specs(self, shapes: Sequence[AnyShape]) -> list[Specs]:
        given = (self.in_specs,) * len(shapes) if isinstance(self.in_specs, P) else tuple(self.in_specs)
        if len(given) != len(shapes):
            refuse(
                "arity_mismatch",
                f"in_specs has {len(given)} entries for {len(shapes)} arguments; expected a single P for all "
                "arguments, or an entry for each argument",
            )
        return [per_leaf(*pair, f"in_specs[{n}]") for n, pair in enumerate(zip(given, shapes, strict=True))]


def record_region(
    function: Callable[..., Any],
    mesh: Mesh,
    shapes: Sequence[AnyShape],
    types: Sequence[Type],
    casts: Casts = "all",
    uses_partitions: bool = True,
) -> tuple[ManualRegion, Computation]:
    """Record a function with parameters of these shapes and types; its region and its computation."""
    partitions = mesh.num_devices if uses_partitions else 1
    walk = TypeWalk(mesh, mesh.num_devices // partitions, partitions, casts)
    region = ManualRegion(mesh, walk, tuple(types), uses_partitions)
    with recording(region):
        return region, trace(RegionBuilder.make(region, name_of(function)), function, shapes)


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "region").strip("_<>")
    return name if is_identifier(name) else "region"


def _refuse_value(number: int, given: Any) -> None:
    if isinstance(given, Value):
        refuse(
            "foreign_value",
            f"argument {number} is the value %{given.instruction.name} of a program that is being recorded; "
            "expected a shape or an array",
            "to use this value, call the function directly, inside the function that you pass to xb.shard_map",
        )


def _local_shape(mesh: Mesh, specs: Specs, shape: AnyShape, what: str) -> AnyShape:
    def split(spec: P, leaf: Shape, path: str) -> Shape:
        spec.check(mesh, path)
        return spec.local(mesh, leaf, path)

    found = map_specs(split, specs, shape, what)
    return _as_shape(found)


def _as_shape(found: Any) -> AnyShape:
    return TupleShape(map(_as_shape, found)) if isinstance(found, tuple) else found


def _shape_of(argument: Any) -> AnyShape:
    if isinstance(argument, (Shape, TupleShape, PrimitiveType)):
        refuse(
            "invalid_operand", f"{argument} is a shape, but other arguments are arrays; pass only shapes or only arrays"
        )
    if isinstance(argument, tuple):
        return TupleShape(map(_shape_of, argument))
    if isinstance(argument, Value):
        refuse(
            "invalid_operand",
            f"{argument!r} is a value of a builder, but shard_map builds a program of its own; pass a shape or an "
            "array",
        )
    array = np.asarray(argument)
    return array_shape(primitive_type(array.dtype), array.shape)


def shard_map(
    function: Callable[..., Any],
    mesh: Mesh,
    in_specs: Specs,
    out_specs: Specs,
    *,
    casts: Casts = "all",
    devices: str = "partitions",
) -> ShardedFunction:
    """Turn the function into a program that every device of a mesh runs on its part of global arrays.

    `in_specs` contains a P for each argument and `out_specs` one for each result, nested in the same way; either may
    instead be one P for all. In the function, use the collectives of `xb.mesh`, which take axis names. Call the result
    with shapes of global arrays to get a program, or with global arrays to run it. A result must be invarying along
    every axis that its out_spec does not mention. `casts` says which casts are implicit: "all", "none" or "operands".
    With "operands", only the casts of the operands of ops are implicit, as in JAX: loop-carried values and the results
    of branches must agree. `devices` says whether the devices of the mesh are "partitions" or "replicas".

    A call raises divisibility if an axis does not divide a dimension, and unbound_axis or rank_mismatch if a spec does
    not fit the mesh or its array. It raises out_spec_not_replicated if a result may vary along an axis that its spec
    does not mention, and state_mismatch if the result is not unreduced or reduced as its spec says. It also raises any
    error that the function's ops raise.

    >>> import numpy as np, xbuild as xb
    >>> mesh = xb.Mesh(i=2)
    >>> def loss(x, w):
    ...     return xb.mesh.psum(xb.reduce(x * w, 0.0, xb.add, [0]), "i")
    >>> mapped = xb.shard_map(loss, mesh, (xb.P("i"), xb.P()), xb.P())
    >>> mapped(np.arange(6, dtype=np.float32), np.array([1, 2, 3], np.float32))
    array(34., dtype=float32)
    >>> for cast in mapped(xb.f32[6], xb.f32[3]).casts:
    ...     print(cast)
    pvary(i) of parameter.2: multiply.3 of {V:i} takes rhs parameter.2

    Source: JAX, jax.shard_map.
    """
    if not isinstance(mesh, Mesh):
        refuse("invalid_attribute", f"shard_map: mesh={mesh!r}; expected a Mesh, such as xb.Mesh(i=2)")
    if casts not in ("all", "operands", "none"):
        refuse("invalid_attribute", f"shard_map: casts={casts!r}; expected 'all', 'operands' or 'none'")
    if devices not in ("partitions", "replicas"):
        refuse("invalid_attribute", f"shard_map: devices={devices!r}; expected 'partitions' or 'replicas'")
    return ShardedFunction(function, mesh, in_specs, out_specs, casts, devices == "partitions")


# ----------------------------------------------------------------------------
# ManualRegion: what is known while a region is recorded


@define(eq=False)
class ManualRegion:
    """The state of a region while it is recorded; `builder` is the innermost one, which records now."""

    mesh: Mesh
    walk: TypeWalk
    parameters: tuple[Type, ...] = ()
    uses_partitions: bool = True
    channels: int = 0
    builders: list[Builder] = field(factory=list)
    types: dict[Instruction, Type] = field(factory=dict)

    def channel(self) -> int | None:
        """A channel id that no collective of the region has; None if devices are replicas."""
        if not self.uses_partitions:
            return None
        self.channels += 1
        return self.channels

    @property
    def builder(self) -> Builder:
        return self.builders[-1]


_current: ContextVar[ManualRegion | None] = ContextVar("xbuild_region", default=None)


def current(name: str) -> ManualRegion:
    """The region that is recorded; unbound_axis if there is none."""
    region = _current.get()
    if region is None:
        refuse(
            "unbound_axis",
            f"{name}: no mesh is in scope, so axis names have no meaning here",
            "record the op inside a function that you pass to xb.shard_map",
        )
    return region


def recording(region: ManualRegion) -> AbstractContextManager[ManualRegion | None]:
    """A context in which collectives by axis name refer to this region."""
    return assigned(_current, region)


class RegionBuilder(Builder):
    """Records the program of a region; the outermost builder types each op when it is recorded."""

    __slots__ = ("region",)

    region: ManualRegion

    @classmethod
    def make(cls, region: ManualRegion, name: str, parent: Builder | None = None) -> RegionBuilder:
        builder = cls(name, parent)
        builder.region = region
        region.builders.append(builder)
        return builder

    def sub_builder(self, name: str) -> Builder:
        return RegionBuilder.make(self.region, self._computation_names.unique(name), self)

    def record(self, *given: Any) -> Value:
        value = super().record(*given)
        if self.parent is None:
            try:
                self._type_instruction(value.instruction)
            except XbuildError:
                self._instructions.pop()  # so that a caller that catches the refusal can go on without the op
                raise
        return value

    def _type_instruction(self, instruction: Instruction) -> None:
        region = self.region
        if instruction.opcode == "parameter":
            region.types[instruction] = region.parameters[instruction.attributes.number]
        else:
            operands = [region.types[each] for each in instruction.operands]
            found: Judgement = region.walk.judge(instruction, operands)
            region.types[instruction] = found.result

    def build(self, root: Value | None = None) -> Computation:
        computation = super().build(root)
        self.region.builders.remove(self)
        return computation


def type_of(value: Value) -> Type:
    """The type of a value that a region records: the axes along which it varies, is unreduced, or reduced.

    Inside a loop or a branch, types are unknown until the loop or branch is recorded.
    Raises: unbound_axis outside a region; invalid_operand for a value inside a loop or branch.
    """
    types: Mapping[Instruction, Type] = current("type_of").types
    if value.instruction not in types:
        refuse("invalid_operand", f"type_of: %{value.name} is inside a loop or a branch, where types are not known yet")
    return types[value.instruction]


# ----------------------------------------------------------------------------
# The exit: each result has the type that its out_spec promises


def check_results(mesh: Mesh, specs: Specs, shape: AnyShape, given: Type, free: Sequence[bool] = ()) -> Type:
    """The types to which results are cast; refuses a result that does not have the type that its spec promises.

    `free` says of each leaf whether it is a zero cotangent, which may have any type.
    """
    types = itertools.zip_longest(flatten(given), free)

    def leaf(spec: P, part: Shape, path: str) -> Variance:
        spec.check(mesh, path)
        spec.whole(mesh, part, path)
        found, is_free = next(types)
        return spec.variance if is_free else _check_result(mesh, spec, path, found)

    return map_specs(leaf, specs, shape, "out_specs")


def _check_result(mesh: Mesh, spec: P, path: str, found: Variance) -> Variance:
    wanted = spec.variance
    lacking = mesh.ordered(found.varying - wanted.varying)
    hidden = mesh.ordered(axis for axis in found.unreduced if wanted.state(axis) == "invarying")
    if lacking or hidden:
        _refuse_variation(mesh, spec, path, found, lacking or hidden)
    for axis in mesh.axes:
        states = found.state(axis), wanted.state(axis)
        if states[0] != states[1] and states != ("invarying", "varying"):
            _refuse_state(mesh, spec, path, found, axis)
    return wanted


def _refuse_variation(mesh: Mesh, spec: P, path: str, found: Variance, axes: tuple[str, ...]) -> NoReturn:
    named = ", ".join(map(repr, axes))
    promised = "is the same along" if not found.unreduced & {*axes} else "is not a partial sum along"
    ways = {
        True: ("sum it", f"xb.mesh.psum(..., {axes[0]!r})"),
        False: ("make it equal", f"xb.mesh.psum, xb.mesh.pmax or xb.mesh.all_gather_invariant over {named}"),
    }[bool(found.unreduced & {*axes})]
    refuse(
        "out_spec_not_replicated",
        f"on {mesh}, {path} is {spec}, which promises that the result {promised} mesh "
        f"axis {named}; the inferred type is {describe_type(found, mesh)}",
        f"if the result may differ, mention {named} in the out_spec"
        + (f", or state unreduced={{{named}}}" if found.unreduced & {*axes} else ""),
        f"if the result must not differ, {ways[0]}: {ways[1]}",
    )


def _refuse_state(mesh: Mesh, spec: P, path: str, found: Variance, axis: str) -> NoReturn:
    wanted, came = spec.variance.state(axis), found.state(axis)
    refuse(
        "state_mismatch",
        f"on {mesh}, {path} is {spec}, which promises that the result is {wanted} along mesh "
        f"axis {axis!r}; the inferred type is {describe_type(found, mesh)}, which is {came}",
        "state the inferred type in the out_spec, or cast the result with xb.mesh.pcast",
    )


# ----------------------------------------------------------------------------
# MeshProgram: the program of a region, and global arrays in and out
#
# `typed` has casts to read, `module` has none, to run.


@frozen(eq=False, repr=False)
class MeshProgram:
    """The program of every device of a mesh; `typed` has casts as instructions, `module` has none and is what runs.

    `casts` lists all casts of the program, with the reason if one was inserted.
    """

    name: str
    mesh: Mesh
    in_specs: tuple[Specs, ...]
    out_specs: Specs
    typed: Module
    types: TypedComputation

    @property
    def module(self) -> Module:
        """The program as an ordinary module, for check, run and viz."""
        return evolve(self.typed, entry=remove_casts(self.typed.entry), computations=())

    @property
    def casts(self) -> list[Cast]:
        return casts_in(self.typed.entry)

    @property
    def result(self) -> str:
        """The shape of a device's result, with its type."""
        return typed_text(self.typed.entry.root.shape, self.types.root, self.mesh)

    def region(self) -> ManualRegion:
        """A region for programs derived from this one, whose channels follow those of this one."""
        walk = TypeWalk(self.mesh, self.typed.num_replicas, self.typed.num_partitions, frees_constants=True)
        computations = self.typed.entry.reachable()
        used = [getattr(i.attributes, "channel_id", None) or 0 for c in computations for i in c.instructions]
        is_partitioned = self.typed.num_partitions == self.mesh.num_devices
        return ManualRegion(self.mesh, walk, uses_partitions=is_partitioned, channels=max(used, default=0))

    def arguments(self, *arrays: Any) -> list[list[Any]]:
        """Each device's parts of global arrays; along an unreduced axis, the first device has all and the others zeros.

        Raises: arity_mismatch; dimension_mismatch if an array does not have the shape that the program was made for.
        """
        if len(arrays) != len(self.in_specs):
            refuse("arity_mismatch", f"{self.name} takes {len(self.in_specs)} arrays, got {len(arrays)}")
        shapes = [parameter.shape for parameter in self.typed.entry.parameters]
        given = list(zip(self.in_specs, arrays, shapes, strict=True))
        return [
            [self._part(device, *each, f"argument {n}") for n, each in enumerate(given)]
            for device in range(self.mesh.num_devices)
        ]

    def _part(self, device: int, specs: Specs, array: Any, shape: AnyShape, what: str) -> Any:
        def part(spec: P, leaf: Shape, path: str, given: Any) -> Any:
            return part_of(self.mesh, spec, np.asarray(given, leaf.dtype.dtype), leaf, device, path)

        return map_specs(part, specs, shape, what, array)

    def joined(self, results: Sequence[Any]) -> Any:
        """The global arrays whose parts the devices hold; along an unreduced axis, the parts are added."""
        return join_results(self.mesh, self.out_specs, results)

    def run(self, *arrays: Any, **options: Any) -> Any:
        """The global results for global arrays; `options` are those of `interpreter.execute`."""
        from ..running import execute

        return self.joined(execute(self.module, self.arguments(*arrays), **options))

    __call__ = run

    def __repr__(self) -> str:
        return self.typed.to_hlo(style="typed")

    __str__ = __repr__


def part_of(mesh: Mesh, spec: P, array: Any, shape: Shape, device: int, what: str) -> Any:
    """The part of a global array that a device holds."""
    whole = spec.whole(mesh, shape, what).dims
    if array.shape != whole:
        refuse("dimension_mismatch", f"{what} has dimensions {array.shape}; expected {whole} for {spec} on {mesh}")
    place = mesh.coordinates(device)
    found = array[tuple(_ranges(mesh, spec, shape.dims, place))]
    is_first = all(place[axis] == 0 for axis in spec.unreduced)
    return np.ascontiguousarray(found).reshape(shape.dims) if is_first else np.zeros_like(found)


def _ranges(mesh: Mesh, spec: P, dims: Sequence[int], place: dict[str, int]) -> Iterator[slice]:
    """The range of a device's elements in each named dimension."""
    for cut, extent in zip(spec.cuts, dims, strict=False):
        number = 0
        for axis in cut:
            number = number * mesh.size(axis) + place[axis]
        yield slice(number * extent, (number + 1) * extent)


def join_results(mesh: Mesh, specs: Specs, results: Sequence[Any]) -> Any:
    if not isinstance(specs, P):
        return tuple(join_results(mesh, spec, [each[n] for each in results]) for n, spec in enumerate(specs))
    parts = [np.asarray(each) for each in results]
    first = parts[0]
    shape = [extent * mesh.size(cut) for extent, cut in zip(first.shape, _padded(specs, first.ndim), strict=True)]
    whole = np.zeros(shape, first.dtype)
    for device, part in enumerate(parts):
        place = mesh.coordinates(device)
        if any(place[axis] for axis in mesh.axes if axis not in specs.mentioned | specs.unreduced):
            continue
        where = tuple(_ranges(mesh, specs, first.shape, place))
        whole[where] = part if not specs.unreduced else whole[where] + part
    return whole


def _padded(spec: P, rank: int) -> list[tuple[str, ...]]:
    return [*spec.cuts, *[()] * (rank - len(spec.cuts))]


def make_program(
    region: ManualRegion, computation: Computation, in_specs: tuple[Specs, ...], out_specs: Specs
) -> MeshProgram:
    """The program of a computation that was recorded in a region, after its results are checked."""
    typed = region.walk.computation(computation, region.parameters)
    specs = per_leaf(out_specs, computation.root.shape, "out_specs")
    types = evolve(typed, root=check_results(region.mesh, specs, computation.root.shape, typed.root))
    return MeshProgram(computation.name, region.mesh, in_specs, specs, module_of(region, types), types)


def retype_program(
    program: MeshProgram, computation: Computation, in_specs: tuple[Specs, ...], out_specs: Specs
) -> MeshProgram:
    """A computation that was derived from a program, such as its derivative, as a program on the same mesh.

    Constants and zeros in it get the types that are expected of them.
    """
    region = program.region()
    region.parameters = tuple(map(types_of, in_specs))
    typed = region.walk.computation(computation, region.parameters)
    specs = per_leaf(out_specs, computation.root.shape, "out_specs")
    root = check_results(region.mesh, specs, computation.root.shape, typed.root, zeros_in(computation.root))
    types = evolve(typed, root=root)
    return MeshProgram(computation.name, region.mesh, in_specs, specs, module_of(region, types), types)


def module_of(region: ManualRegion, typed: TypedComputation) -> Module:
    """The typed module, which carries its mesh."""
    entry = TypedWriter(region.mesh, names_in(typed.computation)).write(typed)
    notes = MappingProxyType({"frontend_attributes": f'{{{MESH}="{region.mesh.spelled()}"}}'})
    walk = region.walk
    return Module(
        entry.name, entry, num_replicas=walk.num_replicas, num_partitions=walk.num_partitions, annotations=notes
    )
