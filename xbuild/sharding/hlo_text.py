"""Shardings of HLO text, read into records and printed back."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

import numpy as np
from attrs import frozen

from shape_inference import refuse

from ..properties.mesh import Mesh
from ..text.spelling.faults import Fault
from ..text.spelling.scanner import Scanner
from ..text.spelling.shardings import read_sharding
from .axis import Axis
from .named_text import named, spelled
from .placement import Placement
from .sharding import Sharding
from .tiles import MOST_DEVICES, Tiles, common_mesh

Stated: TypeAlias = "Sharding | Placement | Tiles"
AnySharding: TypeAlias = "Sharding | Placement | tuple[Sharding | Placement, ...]"

_KINDS = ("replicated", "maximal", "manual", "unreduced", "unknown")


@frozen
class ShardGroup:
    """The values of one group have one sharding (`shard_as`), or this value that of the group (`shard_like`)."""

    kind: str
    number: int


@frozen
class Parsed:
    """One sharding of a text: what it says, and its group."""

    stated: Stated
    group: ShardGroup | None = None


def parsed(text: str) -> Parsed | tuple[Parsed, ...]:
    """What a sharding in HLO text says; a tuple for the shardings of a tuple; invalid_attribute for another text.

    >>> parsed("{devices=[2,1]<=[2]}").stated
    Tiles(dims=(2, 1), kinds=(), subgroups=(), devices=(0, 1))
    """
    scanner = Scanner(text)
    try:
        read_sharding(scanner)
        if scanner.skip() < len(text):
            scanner.expected("the end of the sharding")
        scanner.place = 0
        if not re.match(r"\{\s*(\{|\}$)", text):
            return _one(scanner)
        return tuple(scanner.listed(lambda: _one(scanner)))
    except Fault as fault:
        refuse("invalid_attribute", f"sharding {text[:80]!r}: {fault.message}")


def shardings(text: str, mesh: Mesh | None = None) -> AnySharding:
    """The sharding, or the shardings of a tuple, that HLO text states.

    Tiles are cut by the axes of `mesh`, or of a mesh that is inferred from them. `{replicated}`, `{manual}` and
    `{unreduced}` are a Placement where no mesh is given. Raises invalid_attribute for a text that is no sharding, or
    whose tiles the axes of the mesh do not give.

    >>> import xbuild as xb
    >>> shardings("{devices=[4,1,2]<=[8] last_tile_dim_replicate}").mesh
    Mesh(axis_0=4, axis_1=2)
    >>> shardings("{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}]}").dim(1)
    DimSharding(axes=(Axis(name='b', size=2, pre_size=1),), is_open=True, priority=0)

    Source: XLA, HloSharding and NamedSharding.
    """
    found = parsed(text)
    if isinstance(found, tuple):
        return tuple(placed(each.stated, mesh) for each in found)
    return placed(found.stated, mesh)


def placed(stated: Stated, mesh: Mesh | None) -> Sharding | Placement:
    """What a text states, with tiles and words as axes of the mesh."""
    if isinstance(stated, Tiles):
        found = stated.on(mesh or common_mesh([stated]))
        if found is None:
            tiles = [*stated.dims, *stated.subgroups]
            refuse("invalid_attribute", f"a sharding of tiles {tiles} is not cut by axes of {mesh}")
        return found
    if not isinstance(stated, Placement) or mesh is None or stated.kind in ("maximal", "unknown"):
        return stated
    every = tuple(Axis(name, size) for name, size in mesh.sizes)
    if stated.kind == "replicated":
        return Sharding(mesh)
    return Sharding(mesh, manual=every) if stated.kind == "manual" else Sharding(mesh, unreduced=every)


def _one(scanner: Scanner) -> Parsed:
    scanner.expect("{")
    if scanner.sees("mesh") or scanner.sees("maximal_mesh"):
        return Parsed(named(scanner))
    kind, device, group = "", None, None
    kinds: tuple[str, ...] = ()
    tiles: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    while not scanner.take("}"):
        word = scanner.word()
        scanner.take("=")
        if word in _KINDS:
            kind = kind or word
        elif word == "device":
            device = scanner.integer()
        elif word == "devices":
            tiles = _assignment(scanner)
        elif word == "last_tile_dim_replicate":
            kinds = ("replicated",)
        elif word == "last_tile_dims":
            kinds = tuple(scanner.listed(scanner.word))
        elif word == "metadata":
            scanner.braces()
        else:
            group = ShardGroup(word, scanner.integer())
    return Parsed(_stated(scanner, kind, device, tiles, kinds), group)


def _stated(
    scanner: Scanner,
    kind: str,
    device: int | None,
    tiles: tuple[tuple[int, ...], tuple[int, ...]] | None,
    kinds: tuple[str, ...],
) -> Stated:
    if kind or tiles is None:
        device = tiles[1][0] if device is None and tiles is not None and kind == "maximal" else device
        return Placement(kind, device)  # type: ignore[arg-type]  # read_sharding has checked the word
    sizes, devices = tiles
    count = len(sizes) - len(kinds)
    if count < 0 or math.prod(sizes) != len(devices):
        scanner.fail("syntax", f"tiles {[*sizes]} are not as many as the {len(devices)} devices")
    if wrong := {*kinds} & {"maximal", "unknown"}:
        scanner.fail("syntax", f"tiles along {', '.join(sorted(wrong))} dimensions are not cut by axes")
    return Tiles(sizes[:count], kinds, sizes[count:], devices)


def _assignment(scanner: Scanner) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of tiles, and the devices row by row."""
    sizes = scanner.listed(scanner.integer, "[", "]")
    if max(sizes) > MOST_DEVICES or math.prod(sizes) > MOST_DEVICES or min(sizes) < 1:
        scanner.fail("syntax", f"tiles {sizes} are not of 1 to {MOST_DEVICES} devices")
    if not scanner.take("<="):
        devices = [scanner.integer()]
        while scanner.take(","):
            devices.append(scanner.integer())
        return tuple(sizes), tuple(devices)
    shape = scanner.listed(scanner.integer, "[", "]")
    if math.prod(shape) != math.prod(sizes):
        scanner.fail("syntax", f"tiles {sizes} are not as many as devices {shape}")
    order = scanner.listed(scanner.integer, "(", ")") if scanner.take("T") else [*range(len(shape))]
    if sorted(order) != [*range(len(shape))]:
        scanner.fail("syntax", f"T({order}) is no order of {len(shape)} dimensions")
    numbers = np.arange(math.prod(shape)).reshape(shape).transpose(order).reshape(-1)
    return tuple(sizes), tuple(numbers.tolist())


def hlo_text(sharding: AnySharding, rank: int | None = None, group: ShardGroup | None = None) -> str:
    """A sharding as HLO text: by names of axes, as XLA prints a NamedSharding; `tiled_text` has no names.

    Raises invalid_attribute for halos and offsets, which HLO text does not have.
    """
    if isinstance(sharding, tuple):
        return f"{{{', '.join(hlo_text(each) for each in sharding)}}}"
    if isinstance(sharding, Sharding) and (sharding.halo_sizes or sharding.offsets):
        refuse("invalid_attribute", "HLO text has no halo sizes and no offsets; the text of the shard dialect has")
    text = str(sharding) if isinstance(sharding, Placement) else spelled(sharding, rank)
    return f"{text[:-1]} {group.kind} {group.number}}}" if group else text
