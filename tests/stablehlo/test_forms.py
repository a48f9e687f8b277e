"""The pretty and the generic form of an operation are read as the same instruction."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.stablehlo.programs import FOLDER
from xbuild.stablehlo.reading.rules import RULES
from xbuild.stablehlo.syntax.forms import ROWS, compile_row, printer_of
from xbuild.stablehlo.syntax.parser import Parser

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
    assert compile_row(ROWS[name])


def test_what_has_a_pretty_form_has_a_rule() -> None:
    without = {name for name in ROWS if name not in RULES and name.partition(".")[0] in ("stablehlo", "chlo")}
    assert without <= {
        "stablehlo.return", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_iota", "stablehlo.dynamic_pad",
        "stablehlo.real_dynamic_slice", "stablehlo.uniform_dequantize", "stablehlo.uniform_quantize",
    }  # fmt: skip


SAMPLES = {
    "int": 3,
    "ints": (1, 2),
    "flag": True,
    "string": "a b",
    "symbol": "f",
    "name": "f-g",
    "word": "FFT",
    "float": 0.5,
}
OF_PARTS: dict[str, dict[str, object]] = {
    "slice_ranges": {"start_indices": (0, 1), "limit_indices": (4, 5), "strides": (2, 1)},
    "float_format": {"exponent_bits": 5, "mantissa_bits": 2},
    "tuple_index": {"index": 1},
    "empty_list": {},
}
WORDS = {name: row.partition("{}")[0].split() for name, row in ROWS.items()}
KNOWN = {f"${name}" for name in SAMPLES} | {f"&{name}" for name in OF_PARTS}
PRINTED = [
    name
    for name, words in WORDS.items()
    if all(word[0] not in "$&" or f"{word[0]}{word[1:].partition(':')[2] or word[1:]}" in KNOWN for word in words)
]


def _plain(value: object) -> object:
    return getattr(value, "word", getattr(value, "name", value))


@pytest.mark.parametrize("name", PRINTED)
def test_a_row_reads_what_it_prints(name: str) -> None:
    attributes: dict[str, object] = {}
    for word in WORDS[name]:
        key, _, kind = word[1:].partition(":")
        if word[0] == "$":
            attributes[key] = SAMPLES[kind]
        elif word[0] == "&":
            attributes |= OF_PARTS[key]
    count = 2 if "%*" in WORDS[name] else WORDS[name].count("%")
    operands = [f"%x{n}" for n in range(count)]
    type_ = {"=complex": "tensor<4xcomplex<f32>>", "=tuple": "tuple<tensor<4xf32>, tensor<4xf32>>"}
    result = next((text for word, text in type_.items() if word in ROWS[name]), "tensor<4xf32>")
    taken = ["tensor<4xi1>", result, result][:count] if "=select" in ROWS[name] else ["tensor<4xf32>"] * count
    text = printer_of(name).text(operands, taken, [result], **attributes)
    has_result = not any(word in ROWS[name] for word in ("=repeated", "=operands", "&operand_types"))
    parser = Parser(f"%r = {text}" if has_result else text)
    found = parser.operation()
    assert parser.skip() == len(parser.text)
    assert [f"%{each}" for each in found.operands] == operands
    assert {key: _plain(value) for key, value in found.attributes.items()} == attributes
