"""Shardings in HLO text, which are checked by XLA's grammar and kept as text."""

from __future__ import annotations

import math
import re

from attrs import define

from .scanner import NAME, Scanner

_KINDS = ("replicated", "maximal", "manual", "unknown", "unreduced")
_NUMBERED = ("device", "shard_as", "shard_like")
_WORDS = (*_KINDS, *_NUMBERED, "devices", "last_tile_dim_replicate", "last_tile_dims", "metadata")
_BRACED = re.compile(r"\{\s*\{")


@define
class _Tiling:
    """The parsed part of a sharding; `devices` is the number of devices that it names, or None."""

    kind: str = ""
    devices: int | None = None
    has_tiles: bool = False


def read_sharding(scanner: Scanner) -> None:
    """Skip a sharding or the shardings of a tuple, in braces; raises Fault where XLA accepts none."""
    if not scanner.sees("{"):
        scanner.expected("a sharding in braces, such as {replicated} or {devices=[2,1]<=[2]},")
    if _BRACED.match(scanner.text, scanner.place):
        scanner.listed(lambda: _one(scanner))
    elif not (scanner.text.startswith("{}", scanner.place) and scanner.take("{}")):  # of a tuple without elements
        _one(scanner)


def _one(scanner: Scanner) -> None:
    place = scanner.skip()
    scanner.expect("{")
    if scanner.take_word("mesh"):
        scanner.place = place
        scanner.braces()
        return
    parsed = _Tiling()
    while not scanner.take("}"):
        _part(scanner, parsed)
    _check(scanner, parsed, place)


def _part(scanner: Scanner, parsed: _Tiling) -> None:
    place = scanner.skip()
    match = NAME.match(scanner.text, place)
    word = match[0] if match else ""
    if word not in _WORDS:
        scanner.expected("a word of a sharding, or '}',", *scanner.near(word, _WORDS))
    scanner.place = place + len(word)
    if word in _KINDS:
        parsed.kind = parsed.kind or word
    elif word != "last_tile_dim_replicate":
        _value(scanner, parsed, word)


def _value(scanner: Scanner, parsed: _Tiling, word: str) -> None:
    if not scanner.text.startswith("=", scanner.place) and word not in ("shard_as", "shard_like"):
        scanner.fail("syntax", f"'=' is wanted right after {word!r}", place=scanner.place)
    scanner.take("=")
    if word == "devices":
        _devices(scanner, parsed)
    elif word == "last_tile_dims":
        scanner.listed(lambda: _kind(scanner))
    elif word == "metadata":
        scanner.braces()
    else:
        scanner.integer()
        parsed.devices = 1 if word == "device" else parsed.devices


def _kind(scanner: Scanner) -> None:
    if scanner.word() not in _KINDS:
        scanner.fail("syntax", f"the last dimensions of tiles are {', '.join(_KINDS)}")


def _devices(scanner: Scanner, parsed: _Tiling) -> None:
    """Read the devices of a sharding: an iota `[2,1]<=[2]` with an optional transposition, or a list `[2,1]0,1`."""
    if parsed.has_tiles:
        scanner.fail("syntax", "devices= is given twice")
    parsed.has_tiles = True
    _sizes(scanner)
    if scanner.take("<="):
        sizes = _sizes(scanner)
        parsed.devices = math.prod(sizes)
        _transposed(scanner, len(sizes))
        return
    parsed.devices = 1
    scanner.integer()
    while scanner.take(","):
        scanner.integer()
        parsed.devices += 1


def _sizes(scanner: Scanner) -> list[int]:
    place = scanner.skip()
    found = scanner.listed(scanner.integer, "[", "]")
    if not found:
        scanner.fail("syntax", "sizes are wanted, as in [2,1]", place=place)
    return found


def _transposed(scanner: Scanner, rank: int) -> None:
    place = scanner.skip()
    if not scanner.take("T("):
        return
    scanner.place -= 1
    order = scanner.listed(scanner.integer, "(", ")")
    if rank < 2 or len(order) != rank or not all(0 <= each < rank for each in order):
        scanner.fail(
            "syntax", f"T({','.join(map(str, order[:20]))}) is no order of several dimensions: {rank}", place=place
        )


def _check(scanner: Scanner, parsed: _Tiling, place: int) -> None:
    """Check the number of devices by the rules of XLA for each kind of sharding."""
    if parsed.kind == "maximal" and parsed.devices != 1:
        scanner.fail("syntax", f"a maximal sharding names one device, and {parsed.devices or 'none'} here", place=place)
    if parsed.kind in ("", "tiled") and not parsed.has_tiles:
        scanner.fail("syntax", "a sharding says devices=[...], or replicated, maximal, manual or unknown", place=place)
    if parsed.kind and parsed.kind != "maximal" and parsed.devices is not None and not parsed.has_tiles:
        scanner.fail("syntax", f"a {parsed.kind} sharding names no device", place=place)
    listed = parsed.has_tiles and not parsed.kind and "<=" not in scanner.text[place : scanner.place]
    if listed and parsed.devices == 1:
        scanner.fail("syntax", "a sharding of one device is {maximal device=0} or {devices=[1]<=[1]}", place=place)
