"""Lines that differ from an earlier one in names alone are read on a quick path, with the same result."""

from __future__ import annotations

import pytest

import xbuild as xb
from xbuild.text import reader

HEAD = """
one { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
two { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
"""

LINES = {
    "dot of other types": (
        "p = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "q = f32[2,2] dot(h, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "r = f32[2,2] dot(x, i), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "regions": tuple(
        f"r{n} = f32[2] reduce(x, z), dimensions={{1}}, to_apply={name}" for n, name in enumerate(("one", "two"))
    ),
    "compare of other types": (
        "p = pred[2,2] compare(x, x), direction=LT",
        "q = pred[2,2] compare(i, i), direction=LT",
    ),
    "names in strings": tuple(
        f'r{n} = f32[2] reduce(x, z), frontend_attributes={{k=", to_apply={name}"}}, dimensions={{1}}, to_apply=one'
        for n, name in enumerate(("one", "two"))
    ),
    "names in braces": tuple(
        f"r{n} = f32[2] reduce(x, z), backend_config={{, metadata={{source_line={n}}}}}, dimensions={{1}}, to_apply=one"
        for n in (3, 4)
    ),
    "escapes in metadata": tuple(f"r{n} = f32[2,2] negate(x), metadata={{op_name=\"P[\\'{n}\\']\"}}" for n in (3, 4)),
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_known_lines_are_read_as_in_full(lines: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    operands = [
        "x = f32[2,2] parameter(0)",
        "h = bf16[2,2] parameter(1)",
        "i = s32[2,2] parameter(2)",
        "z = f32[] parameter(3)",
    ]
    body = "\n  ".join([*operands, *lines, *(f"n{line}" for line in lines)])
    text = f"{HEAD}\nENTRY e {{\n  {body}\n}}\n"
    quick = xb.parse_hlo(text).to_hlo(style="full")
    monkeypatch.setattr(reader, "take_known", lambda *_: False)
    assert quick == xb.parse_hlo(text).to_hlo(style="full")


def test_parameters_differ_in_numbers() -> None:
    text = "ENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(2)\n  c = f32[2] parameter(1)\n}\n"
    found = xb.parse_hlo(text).entry.instructions
    assert [each.attributes.number for each in found] == [0, 2, 1]
    with pytest.raises(xb.HloParseError, match="already has a parameter 2"):
        xb.parse_hlo(text.replace("parameter(1)", "parameter(2)"))
