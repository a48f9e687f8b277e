"""Common mistakes of beginners with the convenience forms, and the messages that they get."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute


def begun(name: str = "b") -> tuple[xb.Builder, xb.Value]:
    builder = xb.Builder(name)
    return builder, xb.parameter(builder, number=0, shape=xb.f32[2, 3], name="x")


def doubled() -> xb.Computation:
    builder, x = begun()
    return builder.build(x * 2.0)


def test_a_function_with_a_parameter_for_each_element_of_the_state() -> None:
    _, x = begun()
    with pytest.raises(xb.ShapeError) as refused:
        xb.while_((0, x), lambda n, y: n < 3, lambda n, y: (n + 1, y))
    lines = str(refused.value).splitlines()
    assert lines[0] == "while: function lambda(n, y) must take 1 parameter: (s32[], f32[2,3]) [arity_mismatch]"
    assert lines[-1] == "  hint: the function receives the tuple as one value; unpack it: n, y = state"


def test_one_operand_for_two_branches() -> None:
    builder, x = begun()
    with pytest.raises(xb.ShapeError) as refused:
        xb.conditional(xb.constant(builder, 1), [x], [lambda y: y, lambda y: -y])
    text = str(refused.value)
    assert text.startswith(
        "conditional: expected one operand for each branch, got 1 branch_operands and 2 branch_computations [arity"
    )
    assert "<function" not in text
    assert "hint: an operand may be a tuple" in text


def test_no_build() -> None:
    builder, x = begun()
    total = x + 1.0
    for given, kind in ((builder, "Builder named 'b'"), (total, f"Value named '{total.name}'")):
        with pytest.raises(
            TypeError, match=rf"evaluate: expected a Computation, got a {kind}; pass builder\.build\(\) or module"
        ):
            evaluate(given, np.ones((2, 3), np.float32))  # type: ignore[arg-type]
    with pytest.raises(
        TypeError,
        match=r"check: Builder\('b'\) is neither .* from the Computation that builder\.build\(\) returns",
    ):
        xb.check(builder)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError,
        match=r"expected a Computation, got a Module named 'm'; .* to run a Module, use execute\(module, inputs\)",
    ):
        evaluate(xb.Module("m", builder.build()), np.ones((2, 3), np.float32))  # type: ignore[arg-type]


def test_the_computation_in_the_place_of_the_name() -> None:
    with pytest.raises(xb.XbuildError, match=r"^expected a string as a name, got a Computation$"):
        xb.Module(doubled(), "m")  # type: ignore[arg-type]


def test_a_value_of_another_builder_of_the_same_name() -> None:
    (_, x), (_, y) = begun(), begun()
    with pytest.raises(
        xb.BuildError,
        match=r"^add: operand %x: f32\[2,3\] belongs to builder 'b', but the op is recorded with another builder",
    ):
        x + y
    with pytest.raises(xb.BuildError, match=r"belongs to builder 'other', but the op is recorded with builder 'b' \["):
        x + begun("other")[1]


def test_attributes_by_position() -> None:
    builder, _ = begun()
    with pytest.raises(xb.BuildError) as refused:
        xb.parameter(builder, 1, xb.f32[2], "y")  # type: ignore[call-arg]
    first = "parameter: takes no positional operands, got 1; pass number=..., shape=..., name=..."
    assert str(refused.value).splitlines()[0] == f"{first} [invalid_operand]"


def test_a_number_of_many_digits_is_cut() -> None:
    _, x = begun()
    with pytest.raises(xb.ShapeError) as refused:
        x * 10**400
    assert len(str(refused.value).splitlines()[0]) < 160


def test_arguments_of_another_kind_come_with_a_way_out() -> None:
    with pytest.raises(
        ValueError, match=r"is float16, but f32\[2,3\] requires float32 .*\n  hint: \.astype\(xb\.f32\.dtype\)"
    ):
        evaluate(doubled(), np.ones((2, 3), np.float16))
    with pytest.raises(ValueError, match=r"has shape \[1, 2, 3\], .*\n  hint: pass each argument separately"):
        evaluate(doubled(), [np.ones((2, 3), np.float32)])
    with pytest.raises(
        ValueError,
        match=r"got inputs for 1 device, but the program has 4 .*\n  hint: inputs takes a list of arguments for",
    ):
        execute(xb.Module("m", doubled(), num_replicas=4), [[np.ones((2, 3), np.float32)]])
    with pytest.raises(ValueError, match=r"^2 arguments for device 0, but %b has 1 parameter: "):
        evaluate(doubled(), 1, 2)


def test_what_build_refuses_names_its_kind_once() -> None:
    builder, x = begun()
    xb.parameter(builder, number=2, shape=xb.f32[2, 3], name="y")
    with pytest.raises(xb.BuildError) as gap:
        builder.build()
    told = "the parameter numbers of builder 'b' must be 0..1, got [0, 2]"
    assert (str(gap.value), gap.value.message) == (f"{told} [missing_parameter]", told)
    with pytest.raises(xb.BuildError) as region:
        xb.reduce(x, 0.0, lambda a, b: x)
    assert str(region.value).count("[foreign_value]") == 1
