"""Names in printed text: of ops, attributes, values and computations; what text cannot hold is refused at the call."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.text.real_xla import refusals
from xbuild.core.identifiers import KEYWORDS, is_identifier, nearest
from xbuild.core.op import OPS
from xbuild.reference.op_names import NAMES
from xbuild.text.codec_table import spellings

# ops and their attributes


@pytest.mark.parametrize("opcode", sorted(OPS))
def test_each_attribute_has_one_spelling(opcode: str) -> None:
    """Whatever an op has as an attribute stands in its text once, or is told by the shape."""
    record = OPS[opcode].attributes
    fields = [field.name for field in record.__attrs_attrs__] if record else []
    assert sorted(name for spelling in spellings(opcode) for name in spelling.names) == sorted(fields)


def test_each_op_has_its_names() -> None:
    assert OPS.keys() ^ NAMES.keys() == set()
    for opcode in OPS:
        assert getattr(xb, NAMES[opcode].name)
        assert OPS[opcode].spelling == NAMES[opcode].spelling


# values and computations


@pytest.mark.parametrize("name", ["", "3rd", "my layer", "größe", "a/b", "f32", "ROOT", "true", "-x", "x\n", "bf16"])
def test_names_that_text_cannot_hold_are_refused_at_the_call(name: str) -> None:
    x = xb.ops.parameter(xb.Builder("b"), number=0, shape=xb.f32[2], name="x")
    if name:
        with pytest.raises(xb.BuildError, match=f"(?s)negate: .*invalid_name.*{nearest(name)}"):
            xb.ops.negate(x, name=name)
    with pytest.raises(xb.BuildError) as caught:
        xb.Builder(name)
    assert caught.value.kind == "invalid_name"
    with pytest.raises(xb.XbuildError) as caught_module:
        xb.Module(name, x.builder.build(x))
    assert caught_module.value.kind == "invalid_name"
    assert is_identifier(nearest(name))


@pytest.mark.oracle
def test_the_words_that_are_no_names_are_those_of_real_xla() -> None:
    pytest.importorskip("jaxlib")
    words = sorted({*KEYWORDS, "x", "_", "x-1.y_", "s3", "tuple", "add", "none", "NaN", "T"})
    said = refusals(
        [f"HloModule m\nENTRY e {{\n  {w} = f32[] parameter(0)\n  ROOT r = f32[] negate({w})\n}}" for w in words]
    )
    refused = {word for word, message in zip(words, said, strict=True) if message}
    assert refused == KEYWORDS


def test_functions_with_odd_names_make_regions_with_legal_ones() -> None:
    def größe(v: xb.Value) -> xb.Value:
        return xb.ops.negate(v)

    x = xb.ops.parameter(xb.Builder("b"), number=0, shape=xb.f32[2])
    called = xb.ops.call(x, to_apply=größe).instruction.called
    assert is_identifier(called[0].name)


def test_computations_of_one_name_are_told_apart() -> None:
    @xb.computation(xb.f32[()])
    def inner(v):
        return xb.ops.negate(v)

    first = inner

    @xb.computation(xb.f32[()])
    def inner(v):
        return xb.ops.abs(v)

    x = xb.ops.parameter(xb.Builder("main"), number=0, shape=xb.f32[()])
    y = xb.ops.call(xb.ops.call(x, to_apply=first), to_apply=inner)
    text = str(xb.Module("two", x.builder.build(y)))
    assert "inner {" in text
    assert "inner.1 {" in text
    assert "to_apply=inner\n" in text
    assert "to_apply=inner.1\n" in text
