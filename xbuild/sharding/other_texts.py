"""Shardings in the text of the shard dialect and in short form (`xb.P`), and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shape_inference import refuse

from ..properties.mesh import Mesh
from ..text.spelling.faults import Fault
from ..text.spelling.scanner import Scanner
from ..variance.specs import P
from .axis import Axis
from .grids import sharding
from .sharding import DimSharding, Sharding

_LISTS = ("halo_sizes", "sharded_dims_offsets")


def dialect_text(sharding: Sharding, grid: str = "grid0") -> str:
    """A sharding as an op of the shard dialect, on the grid of this name.

    Raises invalid_attribute for what the dialect has not: parts of axes, open dimensions, priorities, and axes that are
    unreduced, manual or stated to be replicated.

    >>> import xbuild as xb
    >>> dialect_text(xb.shard.sharding(xb.shard.grid([2, 2]), [[0], [1]], halo_sizes=[1, 1, 0, 2]))
    'shard.sharding @grid0 split_axes = [[0], [1]] halo_sizes = [1, 1, 0, 2] : !shard.sharding'

    Source: MLIR, shard dialect, shard.sharding.
    """
    lists = [[_number(sharding.mesh, axis) for axis in dim.axes] for dim in sharding.dims] or [[]]
    for kind in ("unreduced", "manual", "replicated"):
        if getattr(sharding, kind):
            refuse("invalid_attribute", f"the shard dialect has no {kind} axes, and {kind} is stated here")
    if any(dim.is_open or dim.priority for dim in sharding.dims):
        refuse("invalid_attribute", "the shard dialect has no open dimensions and no priorities")
    given = zip(_LISTS, (sharding.halo_sizes, sharding.offsets), strict=True)
    more = "".join(f" {name} = {[*numbers]}" for name, numbers in given if numbers)
    return f"shard.sharding @{grid} split_axes = {lists}{more} : !shard.sharding"


def _number(mesh: Mesh, axis: Axis) -> int:
    if axis.size != mesh.size(axis.name):
        refuse("invalid_attribute", f"the shard dialect has no parts of axes, and {axis.spelled(mesh)} is one")
    return mesh.axes.index(axis.name)


def dialect_sharding(text: str, mesh: Mesh) -> Sharding:
    """The sharding that an op of the shard dialect states, on a grid.

    Raises invalid_attribute for another text, and the kinds of `xb.shard.sharding`.

    >>> import xbuild as xb
    >>> found = dialect_sharding("shard.sharding @g split_axes = [[], [1, 0]]", xb.shard.grid([2, 3]))
    >>> found.dim(1).parts
    6
    """
    scanner = Scanner(text)
    try:
        for token in ("shard.sharding", "@"):
            scanner.expect(token)
        scanner.scan(re.compile(r"[\w.$-]+"))
        axes = _named(scanner, "split_axes", lambda: scanner.listed(lambda: _integers(scanner), "[", "]"))
        more = {name: _integers_of(scanner, name) for name in _LISTS if scanner.sees(name)}
        if scanner.take(":"):
            scanner.expect("!shard.sharding")
        if scanner.skip() < len(text):
            scanner.expected("the end of the sharding")
    except Fault as fault:
        refuse("invalid_attribute", f"{text[:80]!r}: {fault.message}")
    return sharding(mesh, axes, **more)


def _named(scanner: Scanner, name: str, read: Callable[[], list[list[int]]]) -> list[list[int]]:
    scanner.expect(name)
    scanner.expect("=")
    return read()


def _integers(scanner: Scanner) -> list[int]:
    return scanner.listed(scanner.integer, "[", "]")


def _integers_of(scanner: Scanner, name: str) -> Sequence[int]:
    scanner.expect(name)
    scanner.expect("=")
    return _integers(scanner)


def by_spec(mesh: Mesh, spec: P) -> Sharding:
    """The closed sharding that a short form such as `xb.P("x", None, ("y", "z"))` means on a mesh.

    Raises unbound_axis and duplicate_dimension as xb.P does on a mesh; invalid_attribute for `reduced` axes.

    >>> import xbuild as xb
    >>> found = by_spec(xb.Mesh(x=2, y=4), xb.P(None, "y", unreduced={"x"}))
    >>> print(xb.shard.hlo_text(found))
    {mesh['x'=2,'y'=4], [{}, {'y'}], unreduced={'x'}}

    Source: JAX, jax.sharding.NamedSharding.
    """
    spec.check(mesh, "spec")
    if spec.reduced:
        refuse("invalid_attribute", f"{spec} says reduced, which is said of types and not of shardings")
    dims = tuple(DimSharding(tuple(Axis(name, mesh.size(name)) for name in cut)) for cut in spec.cuts)
    unreduced = tuple(Axis(name, mesh.size(name)) for name in mesh.ordered(spec.unreduced))
    return Sharding(mesh, dims, unreduced=unreduced)


def spec_of(sharding: Sharding) -> P:
    """The short form of a sharding.

    Raises invalid_attribute for what the short form has not: parts of axes, open dimensions, priorities, manual axes,
    halos and offsets.

    >>> import xbuild as xb
    >>> spec_of(xb.shard.shardings("{mesh['x'=2,'y'=4], [{}, {'y', 'x'}]}"))
    P(None, ('y', 'x'))
    """
    if sharding.manual or sharding.halo_sizes or sharding.offsets or sharding.replicated:
        refuse("invalid_attribute", "xb.P has no manual or replicated axes, no halos and no offsets")
    if any(dim.is_open or dim.priority for dim in sharding.dims):
        refuse("invalid_attribute", "xb.P has no open dimensions and no priorities")
    cuts = [tuple(_name(sharding.mesh, axis) for axis in dim.axes) for dim in sharding.dims]
    entries = [(each if len(each) > 1 else each[0]) if each else None for each in cuts]
    return P(*entries, unreduced=[_name(sharding.mesh, axis) for axis in sharding.unreduced])


def _name(mesh: Mesh, axis: Axis) -> str:
    if axis.size != mesh.size(axis.name):
        refuse("invalid_attribute", f"xb.P has no parts of axes, and {axis.spelled(mesh)} is one")
    return axis.name
