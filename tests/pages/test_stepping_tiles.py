"""`xbuild step` of a partitioned program: tiles of global arrays, the arrays themselves, reasons of collectives."""

from __future__ import annotations

import io

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from xbuild.stepping import Shell

A = np.arange(70, dtype=np.int32).reshape(5, 14)
B = np.arange(42, dtype=np.int32).reshape(14, 3) % 5


@pytest.fixture(scope="module")
def parts() -> xb.shard.Partitioned:
    product = xb.computation(xb.s32[5, 14], xb.s32[14, 3])(lambda a, b: xb.dot(a, b) + 1)
    specs = {0: xb.P("x", "y"), 1: xb.P("y")}
    return xb.shard.partition(xb.shard.annotated(xb.Module("m", product), specs, mesh=xb.Mesh(x=2, y=2)))


def said(parts: xb.shard.Partitioned, script: str, *, knows: bool = True) -> tuple[str, bool]:
    out = io.StringIO()
    run = trace(parts.module, parts.arguments(A, B, padding=7))
    shell = Shell(run, io.StringIO(script), out, partitioned=parts if knows else None)
    shell.cmdloop()
    return out.getvalue(), shell.failed


def test_the_place_says_which_tile_it_is(parts: xb.shard.Partitioned) -> None:
    found, failed = said(parts, "device 3\n")
    assert not failed
    assert "    tile [0:3, 0:7] of %parameter.1 s32[5,14] [{x}, {y}]\n" in found
    assert "    tile [3:5, 7:14] of %parameter.1 s32[5,14] [{x}, {y}]\n" in found


def test_the_global_array_of_tiles(parts: xb.shard.Partitioned) -> None:
    root = parts.module.entry.root.name
    found, failed = said(parts, f"whole\nto {root}\ng\ng %parameter.2\n")
    assert not failed
    assert _below(found, "%add.") == (A @ B + 1).astype(str).tolist()
    assert _below(found, "%parameter.2") == B.astype(str).tolist()
    assert "%parameter.1 [{x}, {y}] = s32[5,14] 0 .. 69, mean 34.5" in found


def _below(text: str, begin: str) -> list[list[str]]:
    """The words of the lines of numbers behind one that begins so."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(begin)) + 1
    rows = [line.split() for line in lines[at:]]
    return rows[: next((n for n, row in enumerate(rows) if not all(each.isdigit() for each in row)), None)]


def test_a_collective_says_why_it_is_there(parts: xb.shard.Partitioned) -> None:
    (inserted,) = parts.communications
    found, _ = said(parts, f"to {inserted.name}\n")
    assert " ".join(found.split()).count(f"inserted: {' '.join(inserted.reason.split())}") == 1


def test_what_is_no_global_array_is_a_fault(parts: xb.shard.Partitioned) -> None:
    (inserted,) = parts.communications
    found, failed = said(parts, f"to {inserted.name}\nback\nwhole\nwhole q\nwhole {parts.module.entry.root.name}\n")
    assert failed
    assert "dot.3 is a partial sum of %dot.3 on each device; the next collective adds the partial sums" in found
    assert "the run never reached 'q'" in found
    assert "not all devices have reached" in found
    assert "this command did not partition the program" in said(parts, "whole\n", knows=False)[0]
