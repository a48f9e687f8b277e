"""Sharded programs of the kinds that Shardy's executable tests have, each as the text of such a test.

A kind is a function in StableHLO with Shardy's shardings. Integers go in, and what is expected to come out is what the
function gives as a global program, or what `wanted` says: of whole arrays, or of those that devices hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb
from tests.conformance import stablehlo_ops as ops
from xbuild.sharding.partition.partitioned import part_of
from xbuild.sharding.shardy_text import shardy_mesh, shardy_shardings
from xbuild.stablehlo.reading.reader import module_of, parse_tree

Array = Any
_TYPED = r"tensor<([\dx]*?)x?([a-z]+\d+)> \{sdy\.sharding = #sdy\.sharding<(@\w+, [^>]*)>\}"
_MESH = re.compile(r"sdy\.mesh @(\w+) = (<.*>)")
_DTYPES = {"i32": xb.s32, "f32": xb.f32, "i64": xb.s64, "i1": xb.pred, "i8": xb.s8, "ui32": xb.u32, "ui64": xb.u64}


@frozen
class Kind:
    """A sharded function `@parallel_f`; with `own` each device is given an array of its own in place of a part."""

    name: str
    text: str
    wanted: Callable[..., Any] | None = None
    own: bool = False
    is_replicas: bool = False


@frozen
class _Typed:
    """An argument or a result: its extents, the word of its element type, its sharding."""

    dims: tuple[int, ...]
    word: str
    sharding: Any

    def parts(self, array: Array) -> list[Array]:
        return [part_of(array, self.sharding, device) for device in range(self.sharding.mesh.num_devices)]

    def type(self, array: Array) -> str:
        return f"tensor<{'x'.join([*map(str, array.shape), self.word])}>"

    def constant(self, array: Array) -> str:
        numbers = str(array.tolist()).replace("True", "true").replace("False", "false")
        return f"stablehlo.constant dense<{numbers}> : {self.type(array)}"


def _typed(dims: str, word: str, sharding: str, meshes: Any) -> _Typed:
    extents = tuple(int(each) for each in dims.split("x") if each)
    return _Typed(extents, word, shardy_shardings(f"#sdy.sharding<{sharding}>", meshes)[0])


def _numbers(number: int, typed: _Typed) -> Array:
    """Small integers without a pattern that a wrong order of parts would keep."""
    size = int(np.prod(typed.dims))
    flat = (np.arange(size) * (7 + 2 * number) + 3 * number) % 23
    return flat.reshape(typed.dims).astype(_DTYPES[typed.word].dtype)


def text_of(kind: Kind) -> str:
    """The text of an executable test of a kind."""
    meshes = {name: shardy_mesh(mesh) for name, mesh in _MESH.findall(kind.text)}
    head, _, result_text = kind.text.partition("@parallel_f")[2].partition("->")
    given = [_typed(*each, meshes) for each in re.findall(_TYPED, head)]
    result = _typed(*re.findall(_TYPED, result_text)[0], meshes)
    rows, wanted = _rows(kind, given, result)
    body = [f"    %a{d}_{n} = {each.constant(part)}" for d, row in enumerate(rows)
            for n, (each, part) in enumerate(zip(given, row, strict=True))]  # fmt: skip
    names = ", ".join(f"%a{d}_{n}" for d, row in enumerate(rows) for n in range(len(row)))
    types = ", ".join(each.type(part) for row in rows for each, part in zip(given, row, strict=True))
    outs = ", ".join(result.type(part) for part in wanted)
    calls = ("], [" if kind.is_replicas else ", ").join(["@parallel_f"] * len(rows))
    body.append(f'    %r:{len(rows)} = "interpreter.run_parallel"({names}) {{programs = [[{calls}]]}} : '
                f"({types}) -> ({outs})")  # fmt: skip
    for device, part in enumerate(wanted):
        body.append(f"    %w{device} = {result.constant(part)}")
        both = f"({result.type(part)}, {result.type(part)})"
        body.append(f'    "check.expect_eq"(%r#{device}, %w{device}) : {both} -> ()')
    main = "\n".join(["func.func @main() {", *body, "    return", "}"])
    return f"// RUN: run\n\n//--- part1.mlir\n{kind.text}\n//--- part2.mlir\n{main}\n"


def _rows(kind: Kind, given: Sequence[_Typed], result: _Typed) -> tuple[list[list[Array]], list[Array]]:
    """What each device is given, and what it is expected to have at the end."""
    devices = range(result.sharding.mesh.num_devices)
    if kind.own:
        assert kind.wanted is not None
        local = [[_numbers(n + 3 * device, _local(each)) for n, each in enumerate(given)] for device in devices]
        return local, [np.asarray(each) for each in kind.wanted(*zip(*local, strict=True))]
    whole = [_numbers(n, each) for n, each in enumerate(given)]
    parts = [each.parts(array) for each, array in zip(given, whole, strict=True)]
    out = kind.wanted(*whole) if kind.wanted is not None else _global(kind, whole)
    return [[each[device] for each in parts] for device in devices], result.parts(np.asarray(out))


def _local(typed: _Typed) -> _Typed:
    return _Typed(typed.parts(np.zeros(typed.dims))[0].shape, typed.word, typed.sharding)


def _global(kind: Kind, arrays: list[Array]) -> Array:
    """The result of the function run as a program of one device."""
    with ops.ready():
        tree = parse_tree(kind.text, kind.name)
        return xb.evaluate(module_of(tree, kind.text, kind.name, entry="parallel_f").entry, *arrays)
