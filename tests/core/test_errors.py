"""Contents of refusals: op, operands, clashing numbers, attribute, region, way out, kind; and what they never hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import xbuild as xb
from shape_inference import KINDS, Shape, XbuildError
from shape_inference.kinds import SHAPE_KINDS
from tests.support.facts import internals, missing, own_words


def parameters(*shapes: Any) -> list[xb.Value]:
    builder = xb.Builder("b")
    return [xb.parameter(builder, number=n, shape=s, name=f"v{chr(97 + n)}") for n, s in enumerate(shapes)]


def error_of(call: Callable[[], object]) -> XbuildError:
    with pytest.raises(XbuildError) as caught:
        call()
    return caught.value


def text_of(call: Callable[[], object]) -> str:
    return str(error_of(call))


def first_line(call: Callable[[], object]) -> str:
    return text_of(call).splitlines()[0]


def total(kind: Any) -> xb.Computation:
    return xb.computation(kind[()], kind[()])(lambda a, b: a + b)


class TestPoint1OpAndPlace:
    def test_the_op_stands_first(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        assert first_line(lambda: xb.ops.add(x, y)).startswith("add: ")

    def test_an_op_of_two_words_is_spelt_as_in_hlo(self) -> None:
        (x,) = parameters(xb.f32[2])
        assert first_line(lambda: xb.ops.get_tuple_element(x, index=0)).startswith("get-tuple-element: ")

    def test_the_callers_line_and_its_text(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        text = text_of(lambda: xb.ops.add(x, y))
        assert re.search(r"^  at \S*test_errors\.py:\d+ in <lambda>$", text, re.MULTILINE)
        assert "xb.ops.add(x, y)" in text

    def test_it_comes_at_the_call(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        before = len(x.builder._instructions)
        error_of(lambda: xb.ops.add(x, y))
        assert len(x.builder._instructions) == before


class TestPoint2Operands:
    def test_each_by_its_name_shape_and_value(self) -> None:
        x, y = parameters(xb.f32[2, 3], xb.s32[3])
        text = text_of(lambda: xb.ops.add(x, y))
        assert re.search(r"^  lhs +f32\[2,3\] +%va$", text, re.MULTILINE)
        assert re.search(r"^  rhs +s32\[3\] +%vb$", text, re.MULTILINE)

    def test_lists_are_numbered(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        text = text_of(lambda: xb.ops.call((x, y), to_apply=xb.computation(xb.f32[2])(lambda a: a)))
        assert re.search(r"^  operands\[0\] +f32\[2\] +%va$", text, re.MULTILINE)
        assert re.search(r"^  operands\[1\] +f32\[3\] +%vb$", text, re.MULTILINE)

    def test_one_spelling_of_types(self) -> None:
        x, y = parameters(xb.f32[2], xb.bf16[3])
        assert not re.search(r"\bF32\b|\bBF16\b|float32|bfloat16|tensor<", own_words(text_of(lambda: xb.ops.add(x, y))))

    def test_dynamic_extents_and_tuples_as_in_hlo(self) -> None:
        x, y = parameters(Shape(xb.f32, (4,), (True,)), xb.parse_shape("(f32[2], token[])"))
        text = text_of(lambda: xb.ops.add(x, y))
        assert "f32[<=4]" in text
        assert "(f32[2], token[])" in text


class TestPoint3Clash:
    def test_both_numbers_and_the_dimension_in_the_first_line(self) -> None:
        x, y = parameters(xb.f32[2, 3], xb.f32[2, 4])
        assert missing(first_line(lambda: xb.ops.add(x, y)), ["lhs", "rhs", "dimension 1", "3", "4"]) == []

    def test_ranks(self) -> None:
        x, y = parameters(xb.f32[2, 3], xb.f32[2])
        assert missing(first_line(lambda: xb.ops.add(x, y)), ["rank", "2", "1"]) == []

    def test_contracted_dimensions(self) -> None:
        x, y = parameters(xb.f32[2, 3], xb.f32[4, 5])
        call = lambda: xb.ops.dot(x, y, lhs_contracting_dims=[1], rhs_contracting_dims=[0])  # noqa: E731
        assert missing(first_line(call), ["lhs", "rhs", "1", "3", "0", "4", "contract"]) == []


class TestPoint4Attributes:
    def test_the_list_as_given_and_its_range(self) -> None:
        (x,) = parameters(xb.f32[2, 3])
        line = first_line(lambda: xb.ops.reverse(x, dimensions=[0, 2]))
        assert missing(line, ["dimensions", "[0, 2]", "2", "0..1", "rank 2"]) == []

    def test_a_wrong_word_tells_the_right_ones(self) -> None:
        (x,) = parameters(xb.f32[2])
        line = first_line(lambda: xb.ops.compare(x, x, direction="LTE"))
        assert missing(line, ["direction", "'LTE'", "'LT'", "'LE'"]) == []

    def test_all_attributes_stand_below(self) -> None:
        (x,) = parameters(xb.f32[8])
        text = text_of(lambda: xb.ops.all_gather(x, all_gather_dimension=3, shard_count=2, replica_groups=[[0, 1]]))
        assert re.search(r"^  replica_groups +\[\[0, 1\]\]$", text, re.MULTILINE)

    def test_a_misspelt_one_is_guessed(self) -> None:
        (x,) = parameters(xb.f32[2])
        assert "hint: did you mean 'direction'?" in text_of(lambda: xb.ops.compare(x, x, directoin="LT"))

    @pytest.mark.parametrize("wrong", [1.5, "1", None, [1]], ids=repr)
    def test_one_of_the_wrong_type_is_refused_by_name_and_value(self, wrong: Any) -> None:
        (x,) = parameters(xb.parse_shape("(f32[], f32[])"))
        line = first_line(lambda: xb.ops.get_tuple_element(x, index=wrong))
        assert f"index={wrong!r}" in line
        assert "[invalid_attribute]" in line


class TestPoint5Regions:
    def test_role_signature_and_first_difference(self) -> None:
        (x,) = parameters(xb.parse_shape("(s32[], f32[2])"))
        body = xb.computation(x.shape)(lambda s: (xb.get_tuple_element(s, index=0), other(s)))
        text = first_line(lambda: xb.ops.while_(x, condition=always(x.shape), body=body))
        assert missing(text, ["body", "(s32[], f32[3])", "(s32[], f32[2])", "tuple index 1"]) == []

    def test_arity(self) -> None:
        (x,) = parameters(xb.f32[2])
        line = first_line(lambda: xb.ops.all_reduce(x, to_apply=xb.computation(xb.f32[()])(lambda a: a)))
        assert missing(line, ["to_apply", "1", "2", "(f32[]) -> f32[]"]) == []

    def test_a_branch_by_its_number(self) -> None:
        p, x = parameters(xb.pred[()], xb.f32[2])
        branches = (xb.computation(xb.f32[2])(lambda a: a), xb.computation(xb.f32[3])(lambda a: a))
        line = first_line(lambda: xb.ops.conditional(p, (x, x), branch_computations=branches))
        assert missing(line, ["false_computation", "f32[3]", "f32[2]", "parameter 0"]) == []

    def test_a_reducer_of_another_type(self) -> None:
        (x,) = parameters(xb.s32[2])
        assert error_of(lambda: xb.ops.all_reduce(x, to_apply=total(xb.f32))).kind == "signature_mismatch"


def always(shape: Any) -> xb.Computation:
    return xb.computation(shape)(lambda s: xb.constant(s.builder, literal=True))


def other(state: xb.Value) -> xb.Value:
    return xb.constant(state.builder, literal=[1.0, 2.0, 3.0])


class TestPoint6WayOut:
    def test_broadcast_dimensions_that_fit(self) -> None:
        x, y = parameters(xb.f32[2, 3], xb.f32[3])
        text = text_of(lambda: xb.add(x, y))
        assert missing(text, ["broadcast_dimensions=[1]"]) == []
        assert missing(text, ["broadcast_dimensions=[0]"]) != []

    def test_convert(self) -> None:
        x, y = parameters(xb.f32[2], xb.s32[2])
        assert "convert" in text_of(lambda: xb.add(x, y))

    def test_a_token_can_be_made(self) -> None:
        (x,) = parameters(xb.f32[2])
        assert "after_all" in text_of(lambda: xb.ops.send(x, x, channel_id=1))


class TestPoint7Kind:
    def test_kind_is_a_word_of_the_list_and_stands_in_the_text(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        error = error_of(lambda: xb.ops.add(x, y))
        assert error.kind in KINDS
        assert first_line(lambda: xb.ops.add(x, y)).endswith("[dimension_mismatch]")

    def test_same_kind_same_class(self) -> None:
        x, y = parameters(xb.f32[2], xb.s32[3])
        assert type(error_of(lambda: xb.ops.add(x, y))) is type(error_of(lambda: xb.ops.maximum(x, y))) is xb.ShapeError

    def test_the_short_fact_and_hints_are_there_as_data(self) -> None:
        x, y = parameters(xb.f32[2], xb.s32[2])
        error = error_of(lambda: xb.ops.add(x, y))
        assert error.message in str(error)
        assert "\n" not in error.message
        assert error.hints

    def test_no_kind_is_made_up(self) -> None:
        with pytest.raises(AssertionError):
            XbuildError("no_such_kind", "text")

    def test_kinds_of_shapes_are_the_published_ones(self) -> None:
        import json
        from pathlib import Path

        cases = json.loads((Path(__file__).parents[1] / "data" / "shape_cases.json").read_text())
        assert set(cases["meta"]["error_kinds"]) == SHAPE_KINDS


class TestPoint8Never:
    REFUSED: tuple[tuple[str, Callable[[], object]], ...] = (
        ("iota of a scalar", lambda: xb.ops.iota(xb.Builder("b"), shape=xb.s32[()], iota_dimension=0)),
        ("iota out of range", lambda: xb.ops.iota(xb.Builder("b"), shape=xb.s32[2, 2], iota_dimension=2)),
        ("reducer of another type", lambda: xb.ops.all_reduce(*parameters(xb.s32[2]), to_apply=total(xb.f32))),
        ("replica twice", lambda: xb.ops.all_gather(*parameters(xb.s32[2]), all_gather_dimension=0, shard_count=2,
                                                    replica_groups=[[0, 0]])),
        ("source twice", lambda: xb.ops.collective_permute(*parameters(xb.s32[2]),
                                                           source_target_pairs=[(0, 1), (0, 2)])),
        ("infeed without token", lambda: xb.ops.infeed(*parameters(xb.s32[2]), shape=xb.f32[2])),
        ("sum of tokens", lambda: xb.ops.all_reduce(*parameters(xb.token), to_apply=total(xb.f32))),
        ("element of no tuple", lambda: xb.ops.get_tuple_element(*parameters(xb.f32[2]), index=0)),
        ("element out of range", lambda: xb.ops.get_tuple_element(*parameters(xb.TupleShape()), index=0)),
        ("clamp bounds", lambda: xb.ops.clamp(*parameters(xb.f32[2], xb.f32[2, 3], xb.f32[2]))),
        ("select rank", lambda: xb.ops.select(*parameters(xb.pred[3], xb.f32[2], xb.f32[2]))),
        ("gather dimension", lambda: xb.ops.all_gather(*parameters(xb.f32[2]), all_gather_dimension=1, shard_count=2)),
        ("shard count", lambda: xb.ops.all_gather(*parameters(xb.f32[2, 3]), all_gather_dimension=0, shard_count=0)),
        ("negative reshape", lambda: xb.ops.reshape(*parameters(xb.f32[2, 3]), dimensions=[-1, 3])),
        ("dot of mixed types", lambda: xb.ops.dot(*parameters(xb.f32[2], xb.s32[2]), lhs_contracting_dims=[0],
                                                  rhs_contracting_dims=[0])),
        ("sort dimension", lambda: xb.ops.sort(*parameters(xb.f32[2, 3]), dimension=2, to_apply=lambda a, b: a < b)),
        ("sort arity", lambda: xb.ops.sort(*parameters(xb.f32[2]), dimension=0,
                                           to_apply=xb.computation(xb.f32[()])(lambda a: xb.is_finite(a)))),
        ("rng bounds", lambda: xb.ops.rng(*parameters(xb.f32[()], xb.s32[()]), shape=xb.f32[2],
                                          distribution="rng_uniform")),
        ("huge number", lambda: xb.ops.get_tuple_element(*parameters(xb.TupleShape()), index=2**80)),
        ("text as list", lambda: xb.ops.all_reduce(*parameters(xb.s32[2]), to_apply=xb.add, replica_groups="01")),
        ("operands beside each other", lambda: xb.ops.call(*parameters(xb.f32[2], xb.f32[2]), to_apply=xb.add)),
        ("no operand", lambda: xb.ops.add()),
        ("an operand of another kind", lambda: xb.ops.add(*parameters(xb.f32[2]), object())),
    )  # fmt: skip

    @pytest.mark.parametrize("call", [each for _, each in REFUSED], ids=[name for name, _ in REFUSED])
    def test_what_xla_accepts_dies_on_or_leaks_is_refused_in_our_words(self, call: Callable[[], object]) -> None:
        text = text_of(call)
        assert internals(own_words(text)) == []
        assert "\n" in text or "no_builder" in text or "builder" in text

    def test_the_traceback_ends_in_our_words(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        error = error_of(lambda: xb.ops.add(x, y))
        assert error.__cause__ is None
        assert error.__suppress_context__


class TestPoint9Independence:
    def test_ops_after_an_error_are_still_checked_and_recorded(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        assert len([error_of(lambda: xb.ops.add(x, y)) for _ in range(2)]) == 2
        assert xb.ops.add(x, x).shape == xb.f32[2]


class TestPoint10NoShape:
    def test_an_error_gives_no_value(self) -> None:
        x, y = parameters(xb.f32[2], xb.f32[3])
        result = None
        with pytest.raises(xb.ShapeError):
            result = xb.ops.add(x, y)
        assert result is None
