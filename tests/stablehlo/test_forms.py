"""The pretty and the generic form of an operation are read as the same instruction."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.stablehlo.programs import FOLDER
from xbuild.stablehlo.reading.rules import RULES
from xbuild.stablehlo.syntax.form_rows import ROWS
from xbuild.stablehlo.syntax.forms import compiled

FORMS = [tuple(pair.splitlines()) for pair in (FOLDER / "forms.txt").read_text().split("\n\n")]
SIGNATURE = (
    "(%x: tensor<4x6xf32>, %i: tensor<i32>, %p: tensor<i1>, %c: tensor<f32>, %z: tensor<4xcomplex<f32>>, "
    "%s: tensor<3x3xf32>, %d: tensor<1xi64>)"
)


def _read(line: str) -> xb.Module:
    count = line.rpartition("->")[2].count("tensor") if line.rpartition("->")[2].strip().startswith("(") else 1
    results = f":{count}" if count > 1 else ""
    return xb.parse_stablehlo(f"func.func @main{SIGNATURE} {{\n  %0{results} = {line}\n  return\n}}")


@pytest.mark.parametrize(("pretty", "generic"), FORMS, ids=lambda line: line[:30])
def test_two_forms_are_one_program(pretty: str, generic: str) -> None:
    one, other = _read(pretty), _read(generic)
    assert str(one.entry) == str(other.entry)
    assert len(one.entry.instructions) > 8


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_made_of_parts_that_there_are(name: str) -> None:
    assert compiled(ROWS[name])


def test_what_has_a_pretty_form_has_a_rule() -> None:
    without = {name for name in ROWS if name not in RULES and name.partition(".")[0] in ("stablehlo", "chlo")}
    assert without <= {
        "stablehlo.return", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_iota", "stablehlo.dynamic_pad",
        "stablehlo.real_dynamic_slice", "stablehlo.uniform_dequantize", "stablehlo.uniform_quantize",
    }  # fmt: skip
