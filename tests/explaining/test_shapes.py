"""Why an instruction has its shape: over all cases of all ops, the numbers that are told give the shape that it has."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re

import pytest

import tests.cases
import xbuild as xb
from shape_inference import Shape
from xbuild.core.op import OPS
from xbuild.explaining.shapes import reasons

FAMILIES = [info.name for info in pkgutil.iter_modules(tests.cases.__path__) if info.name != "case"]
ROW = re.compile(r"dimension (\d+): (?:(.+?) = )?(\d+)(?:,|$)")


def computed(text: str) -> int:
    """The value of a sum such as `(8 + 2 - 3) / 2 + 1 rounded down`."""
    sum_, _, rounded = text.partition(" rounded ")
    assert re.fullmatch(r"[-+*/() \d]+", sum_), text
    found = eval(sum_)
    assert rounded or found == int(found), text
    return math.ceil(found) if rounded == "up" else math.floor(found)


def instructions(family: str) -> list[xb.Instruction]:
    cases = importlib.import_module(f"tests.cases.{family}").CASES
    return [i for case in cases for c in case.computation().reachable() for i in c.instructions]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_numbers_are_those_of_the_shape(family: str) -> None:
    for instruction in instructions(family):
        rows = [found for line in reasons[instruction.opcode](instruction) if (found := ROW.match(line))]
        for row in rows:
            assert row[2] is None or computed(row[2]) == int(row[3]), (instruction, row[0])
        if rows and isinstance(instruction.shape, Shape):
            told = {int(row[1]): int(row[3]) for row in rows}
            assert told.items() <= dict(enumerate(instruction.shape.dims)).items(), (instruction, told)
            is_whole = len(told) == instruction.shape.rank
            assert is_whole or instruction.opcode in ("fft", "ragged_dot"), (instruction, told)


def test_every_op_has_a_reason() -> None:
    assert reasons.keys() == OPS.keys()


TEXTS = [
    ("x = f32[1,8,8,3] parameter(0)  k = f32[3,3,3,16] parameter(1)", "ROOT r = f32[1,8,8,16] convolution(x, k), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "dimension 1: (8 + 1 + 1 - 3) / 1 + 1 = 8,"),
    ("x = f32[1,9,3] parameter(0)  k = f32[2,3,4] parameter(1)", "ROOT r = f32[1,4,4] convolution(x, k), "
     "window={size=2 stride=2}, dim_labels=b0f_0io->b0f", "dimension 1: (9 - 2) / 2 + 1 rounded down = 4,"),
    ("x = f32[4] parameter(0)  k = f32[] parameter(1)", "ROOT r = f32[15] pad(x, k), padding=2_3_2",
     "dimension 0: 2 + 4 + 3 * 2 + 3 = 15"),
    ("x = f32[9] parameter(0)", "ROOT r = f32[3] slice(x), slice={[1:8:3]}",
     "dimension 0: (8 - 1) / 3 rounded up = 3, x[1:8], by stride 3, of 9"),
    ("x = f32[2,3,4] parameter(0)", "ROOT r = f32[6,4] reshape(x)",
     "2 * 3 = 6 elements of dimensions 0, 1 of x become dimension 0: 6"),
    ("x = f32[6,4] parameter(0)", "ROOT r = f32[6,16] all-gather(x), dimensions={1}, replica_groups={{0,1,2,3}}",
     "dimension 1: 4 * 4 = 16, dimension 1 of x in groups of 4, one part from each participant"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "root", "line"), TEXTS)
def test_lines(given: str, root: str, line: str) -> None:
    module = xb.parse_hlo(f"HloModule m, replica_count=4\nENTRY e {{ {given}  {root} }}")
    lines = xb.explain(module, "r").parts[0].shape
    assert any(each.startswith(line) for each in lines), lines
