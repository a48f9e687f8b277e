"""Functions over a mesh: each device runs the program on its part of global arrays; types are checked at the exit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from shape_inference import AnyShape, PrimitiveType, Shape, TupleShape, XbuildError, primitive_type, refuse
from shape_inference.types import array_shape

from ..core.builder import Value
from ..core.diagnostics import caller, dressed_text
from ..core.graph import Computation
from ..core.identifiers import is_identifier
from ..core.regions import trace
from ..properties.mesh import Mesh
from ..properties.variances import Type
from .program import Program as Program
from .program import made
from .region import Region, RegionBuilder, entered
from .rules.walk import Casts, Walk
from .specs import P, Specs, mapped, per_leaf, types_of


@frozen(eq=False)
class ShardedFunction:
    """A function with the mesh and the specs that it is to run by; calling it with shapes gives its program.

    Called with global arrays it runs, and gives global arrays.
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

    def program(self, *shapes: AnyShape | PrimitiveType) -> Program:
        """The program for global arrays of these shapes."""
        try:
            for number, each in enumerate(shapes):
                _check_no_value(number, each)
            return self._program([shape[()] if isinstance(shape, PrimitiveType) else shape for shape in shapes])
        except XbuildError as error:
            raise error if error.explained else self._explained(error) from None

    def _program(self, shapes: list[AnyShape]) -> Program:
        specs = self._in_specs(shapes)
        local = [
            _local(self.mesh, spec, shape, f"in_specs[{number}]")
            for number, (spec, shape) in enumerate(zip(specs, shapes, strict=True))
        ]
        types = [types_of(each) for each in specs]
        region, computation = recorded(self.function, self.mesh, local, types, self.casts, self.uses_partitions)
        return made(region, computation, tuple(specs), self.out_specs)

    def _explained(self, error: XbuildError) -> XbuildError:
        """The refusal with what the region was given, and the user's line."""
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
                f"in_specs has {len(given)} entries, and {len(shapes)} arguments are given; one P for all, or an entry "
                "for each, is wanted",
            )
        return [per_leaf(*pair, f"in_specs[{n}]") for n, pair in enumerate(zip(given, shapes, strict=True))]


def recorded(
    function: Callable[..., Any],
    mesh: Mesh,
    shapes: Sequence[AnyShape],
    types: Sequence[Type],
    casts: Casts = "all",
    uses_partitions: bool = True,
) -> tuple[Region, Computation]:
    """The region in which the function is recorded with parameters of these shapes and types, and what it recorded."""
    partitions = mesh.num_devices if uses_partitions else 1
    walk = Walk(mesh, mesh.num_devices // partitions, partitions, casts)
    region = Region(mesh, walk, tuple(types), uses_partitions)
    with entered(region):
        return region, trace(RegionBuilder.of(region, name_of(function)), function, shapes)


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "region").strip("_<>")
    return name if is_identifier(name) else "region"


def _check_no_value(number: int, given: Any) -> None:
    if isinstance(given, Value):
        refuse(
            "foreign_value",
            f"argument {number} is the value %{given.instruction.name} of a program that is being recorded, and "
            "a program on a mesh is made of shapes",
            "call its function itself inside of the one that is given to xb.shard_map",
        )


def _local(mesh: Mesh, specs: Specs, shape: AnyShape, what: str) -> AnyShape:
    def cut(spec: P, leaf: Shape, path: str) -> Shape:
        spec.check(mesh, path)
        return spec.local(mesh, leaf, path)

    found = mapped(cut, specs, shape, what)
    return _shaped(found)


def _shaped(found: Any) -> AnyShape:
    return TupleShape(map(_shaped, found)) if isinstance(found, tuple) else found


def _shape_of(argument: Any) -> AnyShape:
    if isinstance(argument, (Shape, TupleShape, PrimitiveType)):
        refuse("invalid_operand", f"{argument} is a shape among arrays; give shapes alone, or arrays alone")
    if isinstance(argument, tuple):
        return TupleShape(map(_shape_of, argument))
    if isinstance(argument, Value):
        refuse("invalid_operand", f"{argument!r} is a value of a builder; shard_map makes a program of its own")
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
    """The function as a program that every device of a mesh runs on its part of global arrays.

    `in_specs` and `out_specs` have a P for each argument and for each result, nested as these are, or one P for all.
    Inside, collectives by axis name are in `xb.mesh`. Called with shapes of global arrays the result gives a Program,
    called with global arrays it runs. Along an axis that its out_spec does not mention a result has to be invarying.
    `casts` says what is cast unasked: "all"; "operands" of ops alone, as JAX does, so that what a loop carries and what
    branches give have to agree; "none". `devices` are "partitions" or "replicas".

    Raises, when it is called: divisibility where an axis does not divide a dimension; unbound_axis; rank_mismatch;
    out_spec_not_replicated where a result may vary along an axis that its spec does not mention; state_mismatch where
    it is not unreduced or reduced as its spec says; and what the ops of the function refuse.

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
        refuse("invalid_attribute", f"shard_map: mesh is {mesh!r}, and a Mesh is wanted, such as xb.Mesh(i=2)")
    if casts not in ("all", "operands", "none"):
        refuse("invalid_attribute", f"shard_map: casts={casts!r}, and 'all', 'operands' or 'none' is wanted")
    if devices not in ("partitions", "replicas"):
        refuse("invalid_attribute", f"shard_map: devices={devices!r}, and 'partitions' or 'replicas' is wanted")
    return ShardedFunction(function, mesh, in_specs, out_specs, casts, devices == "partitions")
