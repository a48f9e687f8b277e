"""Shardings in HLO text, read into records; a program keeps the text and prints it unchanged."""

from __future__ import annotations

import functools
import math
import re
from typing import Any, TypeAlias

from attrs import frozen

from shape_inference import Dims

from .meshes import DeviceIota, StatedMesh, read_iota, read_mesh, read_sizes
from .scanner import NAME, Fault, Scanner

KINDS = ("replicated", "maximal", "manual", "unknown", "unreduced")
_GROUPS = ("shard_as", "shard_like")
_ONE_DEVICE = ("single_device", "maximal_mesh")
"""How newer and older versions of XLA spell a sharding on one device among shardings by axis names."""
_WORDS = (*KINDS, "device", *_GROUPS, "devices", "last_tile_dim_replicate", "last_tile_dims", "metadata", *_ONE_DEVICE)
_BRACED = re.compile(r"\{\s*\{")
# A sharding without strings, comments and inner braces; it ends at the first brace.
_PLAIN = re.compile(r"\{[A-Za-z0-9_=,<\[\]() ]*+\}")


@frozen
class ShardGroup:
    """All values of a group get one sharding (`shard_as`), or this value gets that of the group (`shard_like`)."""

    kind: str
    number: int


@frozen
class StatedSharding:
    """One sharding and its `text`.

    `kind` is a word such as replicated, empty for tiles. `tiles` are the sizes of the tiles; those of `subgroups`, with
    the kinds of `last_tile_dims`, are last. `devices` hold the tiles in row-major order. A sharding by axis names,
    `{mesh['a'=2], [{'a'}]}`, is `named`: only its text is kept, from which its mesh is read when needed.
    """

    text: str
    kind: str = ""
    device: int | None = None
    tiles: Dims | None = None
    devices: DeviceIota | Dims = ()
    subgroups: tuple[str, ...] = ()
    group: ShardGroup | None = None
    named: bool = False

    @property
    def mesh(self) -> StatedMesh | None:
        """The mesh of a sharding by axis names; None for other shardings, or if it cannot be read."""
        scanner = Scanner(self.text)
        try:
            return read_mesh(scanner) if self.named and scanner.take("{") and scanner.take_word("mesh") else None
        except Fault:
            return None

    @property
    def num_devices(self) -> int:
        """The number of devices of the tiles or the mesh; 1 if there are none."""
        if self.tiles is not None:
            return math.prod(self.tiles)
        return self.mesh.count if self.mesh else 1


Stated: TypeAlias = StatedSharding | tuple[StatedSharding, ...]
"""A sharding, or the shardings of a tuple."""


@functools.lru_cache(maxsize=1 << 12)
def stated_sharding(text: str) -> Stated:
    """Read the sharding, or the shardings of a tuple, from a text. Raises Fault if it is not valid."""
    scanner = Scanner(text)
    found = _read_shardings(scanner)
    if scanner.skip() < len(text):
        scanner.expected("the end of the sharding")
    return found


def sharded_devices(text: str) -> int:
    """The largest number of devices of the shardings in a text; 1 if they name none or the text is not valid.

    >>> sharded_devices("{{devices=[2,4]<=[8]}, {replicated}}"), sharded_devices("{mesh['a'=2,'b'=3], [{'a'}]}")
    (8, 6)
    """
    try:
        found = stated_sharding(text)
    except Fault:
        return 1
    return max([1, *(each.num_devices for each in (found if isinstance(found, tuple) else (found,)))])


def read_sharding(scanner: Scanner) -> str:
    """Take a sharding, or the shardings of a tuple, and return its text. Raises Fault if XLA would reject it."""
    place = scanner.skip()
    _read_shardings(scanner)
    return scanner.text[place : scanner.place]


def _read_shardings(scanner: Scanner) -> Stated:
    if not scanner.sees("{"):
        scanner.expected("a sharding in braces, such as {replicated} or {devices=[2,1]<=[2]}")
    if _BRACED.match(scanner.text, scanner.place):
        return tuple(scanner.listed(lambda: _read_one(scanner)))
    if scanner.text.startswith("{}", scanner.place) and scanner.take("{}"):  # of a tuple without elements
        return ()
    return _read_one(scanner)


def _read_one(scanner: Scanner) -> StatedSharding:
    """Read one sharding. Plain ones are cached, since a program repeats a few shardings many times."""
    plain = _PLAIN.match(scanner.text, scanner.skip())
    if plain:
        try:
            found = _read_cached(plain[0])
        except Fault:  # report it at its place in the full text
            return _read_braces(scanner)
        scanner.place = plain.end()
        return found
    return _read_braces(scanner)


@functools.lru_cache(maxsize=1 << 12)
def _read_cached(text: str) -> StatedSharding:
    return _read_braces(Scanner(text))


def _read_braces(scanner: Scanner) -> StatedSharding:
    place = scanner.skip()
    scanner.expect("{")
    if scanner.take_word("mesh"):
        scanner.place = place
        return StatedSharding(scanner.braces(), named=True)
    parts: dict[str, Any] = {}
    while not scanner.take("}"):
        _read_part(scanner, parts)
    found = StatedSharding(scanner.text[place : scanner.place], **parts)
    _check(scanner, found, place)
    return found


def _read_part(scanner: Scanner, parts: dict[str, Any]) -> None:
    place = scanner.skip()
    match = NAME.match(scanner.text, place)
    word = match[0] if match else ""
    if word not in _WORDS:
        scanner.expected("a word of a sharding or '}'", *scanner.near(word, _WORDS))
    scanner.place = place + len(word)
    if word in KINDS:
        parts.setdefault("kind", word)
    elif word == "last_tile_dim_replicate":
        parts["subgroups"] = ("replicated",)
    elif word in _ONE_DEVICE:
        scanner.expect("[")
        scanner.expect("device_id=")
        parts |= {"kind": "maximal", "device": scanner.integer()}
        scanner.expect("]")
        scanner.take(",")
    else:
        _read_value(scanner, parts, word)


def _read_value(scanner: Scanner, parts: dict[str, Any], word: str) -> None:
    if not scanner.text.startswith("=", scanner.place) and word not in _GROUPS:
        scanner.fail("syntax", f"expected '=' right after {word!r}", place=scanner.place)
    scanner.take("=")
    if word == "devices":
        if "tiles" in parts:
            scanner.fail("syntax", "devices= appears twice")
        parts["tiles"] = read_sizes(scanner)
        parts["devices"] = read_iota(scanner) if scanner.take("<=") else _read_devices(scanner)
    elif word == "last_tile_dims":
        parts["subgroups"] = tuple(scanner.listed(lambda: _read_kind(scanner)))
    elif word == "metadata":
        scanner.braces()
    elif word == "device":
        parts["device"] = scanner.integer()
    else:
        parts["group"] = ShardGroup(word, scanner.integer())


def _read_kind(scanner: Scanner) -> str:
    word = scanner.word()
    if word not in KINDS:
        scanner.fail("syntax", f"expected one of {', '.join(KINDS)} in last_tile_dims, got {word[:40]!r}")
    return word


def _read_devices(scanner: Scanner) -> Dims:
    devices = [scanner.integer()]
    while scanner.take(","):
        devices.append(scanner.integer())
    return tuple(devices)


def _check(scanner: Scanner, found: StatedSharding, place: int) -> None:
    """Check the number of devices by XLA's rules for each kind of sharding."""
    is_listed = not isinstance(found.devices, DeviceIota)
    tiled = math.prod(found.devices.dims) if isinstance(found.devices, DeviceIota) else len(found.devices)
    devices = 1 if found.device is not None else tiled or None
    if found.kind == "maximal" and devices != 1:
        scanner.fail("syntax", f"a maximal sharding must specify one device, got {devices or 'none'}", place=place)
    if not found.kind and found.tiles is None:
        scanner.fail(
            "syntax", "a sharding must specify devices=[...], replicated, maximal, manual or unknown", place=place
        )
    if found.kind and found.kind != "maximal" and found.device is not None and found.tiles is None:
        scanner.fail("syntax", f"a {found.kind} sharding cannot specify a device", place=place)
    if found.tiles is not None and not found.kind and is_listed and devices == 1:
        scanner.fail(
            "syntax", "write a sharding for one device as {maximal device=0} or {devices=[1]<=[1]}", place=place
        )
