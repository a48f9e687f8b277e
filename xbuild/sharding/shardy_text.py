"""Shardings and meshes in Shardy's text: `#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from attrs import evolve

from shape_inference import refuse

from ..core.graph import Module
from ..properties.mesh import Mesh
from ..text.spelling.faults import Fault
from ..text.spelling.notes import read_frontend_text
from ..text.spelling.scanner import Scanner
from .axis import Axis
from .named_text import check_once, read_axis, read_dim
from .placement import Placement
from .sharding import DimSharding, Sharding

AnyMesh: TypeAlias = "Mesh | int"
"""A mesh, or the number of the one device that a mesh without axes has."""

MESHES = "xla.sdy.meshes"
_ENDS = ("replicated", "unreduced")
_REDUCTIONS = ("sum", "max", "min")
_HEAD = re.compile(r"#sdy\.(?:sharding(?:_per_value)?|mesh)\b|sdy\.sharding(?:_per_value)?\b")
_SYMBOL = re.compile(r'@(?:([A-Za-z_][\w.$-]*)|"([^"]*)")')
Item = TypeVar("Item")


def shardy_meshes(module: Module) -> dict[str, AnyMesh]:
    """The meshes that the header of a module names, by name; none where it names none.

    Raises invalid_attribute where they do not read as meshes.
    """
    header = str(module.annotations.get("frontend_attributes", ""))
    text = read_frontend_text(header).get(MESHES, "") if MESHES in header else ""
    return _read(str(text), _meshes) if text else {}


def _meshes(scanner: Scanner) -> dict[str, AnyMesh]:
    return dict(scanner.listed(lambda: _named_mesh(scanner)))


def _named_mesh(scanner: Scanner) -> tuple[str, AnyMesh]:
    name = scanner.string() if scanner.sees('"') else scanner.word()
    scanner.expect("=")
    return name, _mesh(scanner)


def shardy_mesh(text: str) -> AnyMesh:
    """The mesh in a text such as `<["x"=2, "y"=4]>`; a number of a device for `<[], device_ids=[3]>`.

    >>> shardy_mesh('<["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>')
    Mesh(x=2, y=2, device_ids=[3, 2, 1, 0])
    """
    return _read(text, _mesh)


def _mesh(scanner: Scanner) -> AnyMesh:
    scanner.scan(_HEAD)
    scanner.expect("<")
    sizes = dict(scanner.listed(lambda: _size(scanner), "[", "]"))
    ids = None
    if scanner.take(","):
        scanner.expect("device_ids")
        scanner.expect("=")
        ids = scanner.listed(scanner.integer, "[", "]")
    scanner.expect(">")
    if not sizes:
        return ids[0] if ids else Mesh({"none": 1})
    return Mesh(sizes, device_ids=ids)


def _size(scanner: Scanner) -> tuple[str, int]:
    name = scanner.string()
    scanner.expect("=")
    return name, scanner.integer()


def shardy_shardings(text: str, meshes: Mapping[str, AnyMesh]) -> tuple[Sharding | Placement, ...]:
    """The shardings that a text states: one, or those of several values.

    Raises invalid_attribute for another text, or a mesh that `meshes` has not.

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
        ends[kind] = axes if reduction == "sum" else ()  # a Sharding has sums alone; other reductions are done at once
    scanner.expect(">")
    return check_once(evolve(Sharding(mesh, dims), **ends), scanner)


def _own_mesh(scanner: Scanner, meshes: Mapping[str, AnyMesh]) -> AnyMesh:
    place = scanner.skip()
    if scanner.take_word("mesh"):
        return _mesh(scanner)
    match = scanner.scan(_SYMBOL)
    if match is None:
        scanner.expected("the name of a mesh, such as @mesh,")
    name = match[1] or match[2]
    if name not in meshes:
        scanner.fail("syntax", f"there is no mesh @{name}; {', '.join(meshes) or 'none'} is", place=place)
    return meshes[name]


def shardy_text(sharding: Sharding | Placement, mesh: str = "mesh") -> str:
    """A sharding in Shardy's text, on the mesh of this name.

    Raises invalid_attribute for what Shardy's text has not: manual axes, halos, offsets, a device without a mesh.
    """
    if isinstance(sharding, Placement):
        if sharding.kind != "maximal":
            refuse("invalid_attribute", f"Shardy's text has no {sharding.kind} sharding without a mesh")
        return f"#sdy.sharding<mesh<[], device_ids=[{sharding.device}]>, []>"
    if sharding.manual or sharding.halo_sizes or sharding.offsets:
        refuse("invalid_attribute", "Shardy's text of a sharding has no manual axes, no halo sizes and no offsets")
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
