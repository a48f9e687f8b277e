"""Element types, shapes, layouts, tuples and tokens: their text and back, what they hold, what they refuse."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from shape_inference import (
    PRIMITIVES,
    AnyShape,
    Layout,
    PrimitiveType,
    ProgramShape,
    Shape,
    TupleShape,
    compatible,
    leaves,
    parse_program_shape,
    parse_shape,
    primitive_type,
    token,
)

# xla_data.proto, PrimitiveType, without the placeholder, tuple, token and opaque, which are no element types.
XLA_DATA_PROTO = """
    pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 f32 f64 bf16
    f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e3m4
    f8e5m2fnuz f8e4m3fnuz f4e2m1fn f6e2m3fn f6e3m2fn f8e8m0fnu c64 c128
"""
OF_XLA = XLA_DATA_PROTO.split()


@st.composite
def arrays(draw: st.DrawFn) -> Shape:
    dims = tuple(draw(st.lists(st.integers(0, 2**12), max_size=5)))
    flags = tuple(draw(st.booleans()) for _ in dims)
    order = tuple(draw(st.permutations(range(len(dims)))))
    layout = draw(st.sampled_from([None, Layout(order), Layout(order, "T(8,128)"), Layout(order, "E(4)S(1)")]))
    return Shape(draw(st.sampled_from(list(PRIMITIVES))), dims, flags if any(flags) else (), layout)


def tuples(children: st.SearchStrategy[AnyShape]) -> st.SearchStrategy[AnyShape]:
    return st.lists(children, max_size=4).map(TupleShape)


shapes: st.SearchStrategy[AnyShape] = st.recursive(arrays() | st.just(token), tuples, max_leaves=8)


class TestElementTypes:
    def test_all_of_xla(self) -> None:
        assert sorted(PRIMITIVES) == sorted(OF_XLA)

    @pytest.mark.parametrize("name", OF_XLA)
    def test_is_public_and_found_by_name_and_dtype(self, name: str) -> None:
        kind = getattr(xb, name)
        assert isinstance(kind, PrimitiveType)
        assert (kind.name, str(kind)) == (name, name)
        assert primitive_type(name) is primitive_type(kind.dtype) is primitive_type(kind) is kind

    @pytest.mark.parametrize("name", OF_XLA)
    def test_bits(self, name: str) -> None:
        kind = PRIMITIVES[name]
        digits = "".join(c for c in name.split("e")[0] if c.isdigit())
        assert kind.bits == (1 if name == "pred" else int(digits))
        assert kind.dtype.itemsize == max(kind.bits, 8) // 8

    def test_dtypes_differ(self) -> None:
        assert len({kind.dtype for kind in PRIMITIVES.values()}) == len(PRIMITIVES)

    @pytest.mark.parametrize(
        ("given_as", "name"),
        [
            (np.float32, "f32"),
            ("float64", "f64"),
            (bool, "pred"),
            (np.dtype("u2"), "u16"),
            (ml_dtypes.bfloat16, "bf16"),
        ],
    )
    def test_what_numpy_takes_for_a_dtype(self, given_as: Any, name: str) -> None:
        assert primitive_type(given_as) is PRIMITIVES[name]

    @pytest.mark.parametrize("wrong", ["f31", np.dtype("U3"), object, "datetime64[s]", 3])
    def test_others_are_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="is not an XLA element type"):
            primitive_type(wrong)

    def test_kinds(self) -> None:
        native = " ".join(t.name for t in PRIMITIVES.values() if t.is_native)
        assert native == "pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 c64 c128"
        assert xb.bf16.is_float
        assert not xb.c64.is_float
        assert xb.u4.is_integer
        assert not xb.pred.is_integer

    def test_indexing_gives_shapes(self) -> None:
        assert xb.f32[2, 3] == Shape(xb.f32, (2, 3))
        assert xb.f32[()] == Shape(xb.f32)
        assert xb.f32[4] == xb.f32[(4,)] == xb.f32[[4]]
        assert xb.f32[2, 3] is xb.f32[2, 3]


class TestText:
    @pytest.mark.parametrize(
        "text",
        [
            "f32[2,3]", "f32[]", "f32[0]", "s4[<=4]", "f32[2,<=3]{1,0}", "pred[2]{0:T(256)}", "token[]", "()",
            "(f32[2])", "(f32[2], (s32[], token[]), ())", "f8e4m3b11fnuz[1,2,3]{0,2,1}",
            "bf16[8,128]{1,0:T(8,128)(2,1)}",
        ],
    )  # fmt: skip
    def test_hlo_spelling_round_trip(self, text: str) -> None:
        assert str(parse_shape(text)) == text

    @given(shapes)
    def test_every_shape_round_trips(self, shape: AnyShape) -> None:
        assert parse_shape(str(shape)) == shape

    @given(st.lists(shapes, max_size=3), shapes)
    def test_every_signature_round_trips(self, parameters: list[AnyShape], result: AnyShape) -> None:
        signature = ProgramShape(parameters, result)
        assert parse_program_shape(str(signature)) == signature

    @given(shapes)
    def test_blanks_do_not_matter(self, shape: AnyShape) -> None:
        spread = str(shape).replace(",", " , ").replace("[", " [ ").replace("]", " ] ").replace("(", " ( ")
        if shape_has_tiling(shape):
            return
        assert parse_shape(spread) == shape

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("f31[2]", "'f31'"), ("f32", "'['"), ("f32[2", "']'"), ("f32[2,]", "']'"), ("f32[a]", "'a'"),
            ("f32[-1]", "-1"), ("(f32[2]", "')'"), ("f32[2] x", "'x'"), ("", "''"), ("f32[2]]", "']'"),
            ("(f32[2] s32[])", "','"),
        ],
    )  # fmt: skip
    def test_what_spells_no_shape_is_refused_at_its_place(self, text: str, named: str) -> None:
        with pytest.raises(ValueError, match="is not a shape") as caught:
            parse_shape(text)
        assert named in str(caught.value) or "the end" in str(caught.value)

    @given(st.text(alphabet="f32s[](),<=-{}: tokenpredx01", max_size=20))
    def test_any_text_is_a_shape_or_a_value_error(self, text: str) -> None:
        try:
            shape = parse_shape(text)
        except ValueError:
            return
        assert parse_shape(str(shape)) == shape


def shape_has_tiling(shape: AnyShape) -> bool:
    return any(isinstance(leaf, Shape) and leaf.layout is not None and leaf.layout.suffix for leaf in leaves(shape))


class TestShapes:
    def test_layout_is_carried_and_not_compared(self) -> None:
        plain, laid_out = xb.f32[2, 3], Shape(xb.f32, (2, 3), layout=Layout((0, 1)))
        assert plain != laid_out
        assert compatible(plain, laid_out)
        assert compatible(TupleShape((plain,)), TupleShape((laid_out,)))
        assert laid_out.plain() == plain

    def test_dynamic_is_compared(self) -> None:
        assert not compatible(xb.f32[4], Shape(xb.f32, (4,), (True,)))
        assert Shape(xb.f32, (4,), (True,)).is_dynamic
        assert not xb.f32[4].is_dynamic

    def test_sizes(self) -> None:
        assert (xb.f32[2, 3].size, xb.f32[2, 3].bytes, xb.f32[()].size, xb.s4[7].bytes) == (6, 24, 1, 7)
        assert TupleShape((xb.f32[2], token, TupleShape((xb.s8[3],)))).bytes == 11

    def test_tuples_count_and_flatten(self) -> None:
        nested = parse_shape("(f32[2], (s32[], token[]), ())")
        assert isinstance(nested, TupleShape)
        assert len(nested) == 3
        assert list(map(str, leaves(nested))) == ["f32[2]", "s32[]", "token[]"]

    @given(shapes)
    def test_shapes_are_keys(self, shape: AnyShape) -> None:
        assert {shape: 1}[parse_shape(str(shape))] == 1

    def test_shapes_are_frozen(self) -> None:
        with pytest.raises(AttributeError):
            xb.f32[2].dims = (3,)  # type: ignore[misc]
