"""Shardings and meshes in Shardy's text, in the text of the shard dialect, and in short form (`xb.P`).

Sections:

    Shardings and meshes in Shardy's text
    Shardings in the text of the shard dialect and in short form
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from attrs import evolve

from shape_inference import refuse

from ..core.graph import Module
from ..properties.mesh import Mesh
from ..properties.placement import MESHES
from ..text.annotations import read_frontend_text
from ..text.meshes import StatedMesh, read_shardy_mesh, read_shardy_meshes
from ..text.scanner import Fault, Scanner
from ..variance.specs import P
from .grids import sharding
from .hlo_text import check_once, mesh_from, read_axis, read_dim
from .sharding import Axis, DimSharding, Placement, Sharding

# ----------------------------------------------------------------------------
# Shardings and meshes in Shardy's text
#
# Such as `#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>`.

AnyMesh: TypeAlias = "Mesh | int"
"""A mesh, or the number of the only device of a mesh without axes."""

_ENDS = ("replicated", "unreduced")
_REDUCTIONS = ("sum", "max", "min")
_HEAD = re.compile(r"#sdy\.(?:sharding(?:_per_value)?)\b|sdy\.sharding(?:_per_value)?\b")
_SYMBOL = re.compile(r'@(?:([A-Za-z_][\w.$-]*)|"([^"]*)")')
Item = TypeVar("Item")


def shardy_meshes(module: Module) -> dict[str, AnyMesh]:
    """The meshes that the header of a module names, by name.

    Raises invalid_attribute if the text does not state meshes.
    """
    header = str(module.annotations.get("frontend_attributes", ""))
    text = read_frontend_text(header).get(MESHES, "") if MESHES in header else ""
    return _read(str(text), _meshes) if text else {}


def _meshes(scanner: Scanner) -> dict[str, AnyMesh]:
    return {name: _mesh_of(stated) for name, stated in read_shardy_meshes(scanner).items()}


def _mesh_of(stated: StatedMesh) -> AnyMesh:
    return stated.ids[0] if stated.ids and not stated.sizes else mesh_from(stated)


def shardy_mesh(text: str) -> AnyMesh:
    """The mesh in a text such as `<["x"=2, "y"=4]>`; the number of a device for `<[], device_ids=[3]>`.

    >>> shardy_mesh('<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>')
    Mesh(x=2, y=2, device_ids=[3, 2, 1, 0])
    """
    return _read(text, lambda scanner: _mesh_of(read_shardy_mesh(scanner)))


def shardy_shardings(text: str, meshes: Mapping[str, AnyMesh]) -> tuple[Sharding | Placement, ...]:
    """The shardings that a text states: one, or those of several values.

    Raises invalid_attribute for other text, or for a mesh that is not in `meshes`.

    >>> import xbuild as xb
    >>> text = '#sdy.sharding<@m, [{"x":(1)2}, {?}p1], unreduced={"y"}>'
    >>> (found,) = shardy_shardings(text, {"m": xb.Mesh(x=4, y=2)})
    >>> shardy_text(found, "m") == text
    True

    Source: Shardy, sharding representation.
    """
    return _read(text, lambda scanner: _shardings(scanner, meshes))


def _read(text: str, read: Callable[[Scanner], Item]) -> Item:
    scanner = Scanner(text)
    try:
        found = read(scanner)
        if scanner.skip() < len(text):
            scanner.expected("the end of the text")
    except Fault as fault:
        refuse("invalid_attribute", f"Shardy's text {text[:80]!r}: {fault.message}")
    return found


def _shardings(scanner: Scanner, meshes: Mapping[str, AnyMesh]) -> tuple[Sharding | Placement, ...]:
    place = scanner.skip()
    scanner.scan(_HEAD)
    scanner.expect("<")
    if scanner.sees("<") or scanner.sees("#"):  # the list of a computation of a shard
        scanner.place -= 1
        return tuple(scanner.listed(lambda: _sharding(scanner, meshes), "<", ">"))
    if not scanner.sees("["):
        scanner.place = place
        return (_sharding(scanner, meshes),)
    found = scanner.listed(lambda: _sharding(scanner, meshes), "[", "]")
    scanner.expect(">")
    return tuple(found)


def _sharding(scanner: Scanner, meshes: Mapping[str, AnyMesh]) -> Sharding | Placement:
    scanner.scan(_HEAD)
    scanner.expect("<")
    mesh = _own_mesh(scanner, meshes)
    scanner.expect(",")
    if isinstance(mesh, int):
        scanner.listed(lambda: scanner.braces(), "[", "]")
        scanner.expect(">")
        return Placement("maximal", mesh)
    dims: tuple[DimSharding, ...] = tuple(scanner.listed(lambda: read_dim(scanner, mesh), "[", "]"))
    ends: dict[str, Any] = {}
    while scanner.take(","):
        kind = scanner.word()
        if kind not in _ENDS:
            scanner.expected(f"{' or '.join(_ENDS)}")
        scanner.expect("=")
        reduction = next((each for each in _REDUCTIONS if scanner.take_word(each)), "sum")
        axes = tuple(scanner.listed(lambda: read_axis(scanner, mesh)))
        ends[kind] = axes if reduction == "sum" else ()  # a Sharding has only sums; other reductions are done at once
    scanner.expect(">")
    return check_once(evolve(Sharding(mesh, dims), **ends), scanner)


def _own_mesh(scanner: Scanner, meshes: Mapping[str, AnyMesh]) -> AnyMesh:
    place = scanner.skip()
    if scanner.take_word("mesh"):
        return _mesh_of(read_shardy_mesh(scanner))
    match = scanner.scan(_SYMBOL)
    if match is None:
        scanner.expected("the name of a mesh, such as @mesh,")
    name = match[1] or match[2]
    if name not in meshes:
        scanner.fail(
            "syntax", f"the text defines no mesh @{name}; it defines {', '.join(meshes) or 'none'}", place=place
        )
    return meshes[name]


def shardy_text(sharding: Sharding | Placement, mesh: str = "mesh") -> str:
    """A sharding in Shardy's text, on the mesh of this name.

    Raises invalid_attribute for what Shardy's text cannot express: manual axes, halos, offsets, no mesh.
    """
    if isinstance(sharding, Placement):
        if sharding.kind != "maximal":
            refuse("invalid_attribute", f"Shardy's text cannot express a {sharding.kind} sharding without a mesh")
        return f"#sdy.sharding<mesh<[], device_ids=[{sharding.device}]>, []>"
    if sharding.manual or sharding.halo_sizes or sharding.offsets:
        refuse("invalid_attribute", "Shardy's text cannot express manual axes, halo sizes or offsets")
    dims = ", ".join(_dim_text(dim, sharding.mesh) for dim in sharding.dims)
    ends = ((kind, getattr(sharding, kind)) for kind in _ENDS)
    rest = "".join(f", {kind}={{{_axes_text(axes, sharding.mesh)}}}" for kind, axes in ends if axes)
    return f"#sdy.sharding<@{mesh}, [{dims}]{rest}>"


def _dim_text(dim: DimSharding, mesh: Mesh) -> str:
    words = [*(axis.spelled(mesh) for axis in dim.axes), *(["?"] if dim.is_open else [])]
    return f"{{{', '.join(words)}}}" + (f"p{dim.priority}" if dim.priority else "")


def _axes_text(axes: tuple[Axis, ...], mesh: Mesh) -> str:
    return ", ".join(axis.spelled(mesh) for axis in axes)


def shardy_mesh_text(mesh: Mesh) -> str:
    """A mesh in Shardy's text.

    >>> import xbuild as xb
    >>> shardy_mesh_text(xb.Mesh(x=2, y=4))
    '#sdy.mesh<["x"=2, "y"=4]>'
    """
    order = f", device_ids=[{', '.join(map(str, mesh.device_ids))}]" if mesh.device_ids else ""
    sizes = ", ".join(f'"{name}"={size}' for name, size in mesh.sizes)
    return f"#sdy.mesh<[{sizes}]{order}>"


# ----------------------------------------------------------------------------
# Shardings in the text of the shard dialect and in short form

_LISTS = ("halo_sizes", "sharded_dims_offsets")


def dialect_text(sharding: Sharding, grid: str = "grid0") -> str:
    """A sharding as an op of the shard dialect, on the grid of this name.

    Raises invalid_attribute for what the dialect cannot express: parts of axes, open dimensions, priorities, and axes
    that are unreduced, manual or stated to be replicated.

    >>> import xbuild as xb
    >>> dialect_text(xb.shard.sharding(xb.shard.grid([2, 2]), [[0], [1]], halo_sizes=[1, 1, 0, 2]))
    'shard.sharding @grid0 split_axes = [[0], [1]] halo_sizes = [1, 1, 0, 2] : !shard.sharding'

    Source: MLIR, shard dialect, shard.sharding.
    """
    lists = [[_axis_number(sharding.mesh, axis) for axis in dim.axes] for dim in sharding.dims] or [[]]
    for kind in ("unreduced", "manual", "replicated"):
        if getattr(sharding, kind):
            refuse("invalid_attribute", f"the shard dialect cannot express {kind} axes")
    if any(dim.is_open or dim.priority for dim in sharding.dims):
        refuse("invalid_attribute", "the shard dialect cannot express open dimensions or priorities")
    given = zip(_LISTS, (sharding.halo_sizes, sharding.offsets), strict=True)
    more = "".join(f" {name} = {[*numbers]}" for name, numbers in given if numbers)
    return f"shard.sharding @{grid} split_axes = {lists}{more} : !shard.sharding"


def _axis_number(mesh: Mesh, axis: Axis) -> int:
    if axis.size != mesh.size(axis.name):
        refuse("invalid_attribute", f"the shard dialect cannot express parts of axes, such as {axis.spelled(mesh)}")
    return mesh.axes.index(axis.name)


def dialect_sharding(text: str, mesh: Mesh) -> Sharding:
    """The sharding that an op of the shard dialect states, on a grid.

    Raises invalid_attribute for other text, and the kinds of `xb.shard.sharding`.

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
        axes = _read_list(scanner, "split_axes", lambda: scanner.listed(lambda: _integers(scanner), "[", "]"))
        more = {name: _integers_of(scanner, name) for name in _LISTS if scanner.sees(name)}
        if scanner.take(":"):
            scanner.expect("!shard.sharding")
        if scanner.skip() < len(text):
            scanner.expected("the end of the sharding")
    except Fault as fault:
        refuse("invalid_attribute", f"{text[:80]!r}: {fault.message}")
    return sharding(mesh, axes, **more)


def _read_list(scanner: Scanner, name: str, read: Callable[[], list[list[int]]]) -> list[list[int]]:
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
        refuse("invalid_attribute", f"{spec} has reduced axes, which a type can have but a sharding cannot")
    dims = tuple(DimSharding(tuple(Axis(name, mesh.size(name)) for name in cut)) for cut in spec.cuts)
    unreduced = tuple(Axis(name, mesh.size(name)) for name in mesh.ordered(spec.unreduced))
    return Sharding(mesh, dims, unreduced=unreduced)


def spec_of(sharding: Sharding) -> P:
    """The short form of a sharding.

    Raises invalid_attribute for what the short form cannot express: parts of axes, open dimensions, priorities, manual
    axes, halos and offsets.

    >>> import xbuild as xb
    >>> spec_of(xb.shard.shardings("{mesh['x'=2,'y'=4], [{}, {'y', 'x'}]}"))
    P(None, ('y', 'x'))
    """
    if sharding.manual or sharding.halo_sizes or sharding.offsets or sharding.replicated:
        refuse("invalid_attribute", "xb.P cannot express manual or replicated axes, halos or offsets")
    if any(dim.is_open or dim.priority for dim in sharding.dims):
        refuse("invalid_attribute", "xb.P cannot express open dimensions or priorities")
    names = [tuple(_axis_name(sharding.mesh, axis) for axis in dim.axes) for dim in sharding.dims]
    entries = [(each if len(each) > 1 else each[0]) if each else None for each in names]
    return P(*entries, unreduced=[_axis_name(sharding.mesh, axis) for axis in sharding.unreduced])


def _axis_name(mesh: Mesh, axis: Axis) -> str:
    if axis.size != mesh.size(axis.name):
        refuse("invalid_attribute", f"xb.P cannot express parts of axes, such as {axis.spelled(mesh)}")
    return axis.name
