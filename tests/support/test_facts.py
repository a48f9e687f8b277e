"""What counts as naming a fact, and what does not."""

import pytest

from tests.support.facts import internals, missing, own_words


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("slice: strides [0] has 0", "stride"),
        ("operand is f32[2, 3]{1,0}", "F32[2,3]"),
        ("init_values[0] is f32[1]", "init"),
        ("groups {{0,1}}", "[[0, 1]]"),
        ("start is -1", "-1"),
        ("broadcast_dimensions [2, 0] is not ascending", "broadcast_dimensions"),
        ("element type s8 is not integer", "integ"),
        ("dimension 0 is -1", "dimension 0"),
        ("(f32[2], f32[2])", "(f32[2], f32[2])"),
    ],
)
def test_named(text, fact):
    assert missing(text, [fact]) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("extent 10", "0"),
        ("extent 10", "1"),
        ("f32[2]", "32"),
        ("start is 1", "-1"),
        ("dimension 10", "dimension 1"),
        ("f32[2,30]", "f32[2,3]"),
        ("coordinate", "or"),
        ("bf16[2]", "f16"),
        ("lhs is f32[2,3]", "f32[2]"),
    ],
)
def test_not_named(text, fact):
    assert missing(text, [fact]) == [fact]


def test_an_op_counts_in_each_of_its_spellings():
    assert missing("exponential: operand is s32[2]", ["exp"]) == ["exp"]
    assert missing("exponential: operand is s32[2]", ["exp", "s32"], ["exp", "exponential"]) == []
    assert missing("is-finite: no", ["is_finite"], ["is_finite"]) == []


def test_internals_are_found():
    assert internals("a RET_CHECK: AssertionError") == ["Assert"]
    assert internals("slice: strides [0]: 0 is not positive") == []


def test_the_callers_line_is_not_the_messages_own():
    text = "add: no [rank_mismatch]\n  lhs  f32[2]\n  at model.py:47 in f\n     add(x, 99)\n  hint: broadcast"
    assert missing(own_words(text), ["47", "99", "f32[2]", "broadcast"]) == ["47", "99"]
