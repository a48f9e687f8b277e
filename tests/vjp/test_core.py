"""What the public derivatives give: parameters and results, argnums, kinds of programs, and programs without waste."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate, execute
from xbuild.core.op import OPS
from xbuild.differentiation.rules import REASONS, ZERO, all_rules, vjp

S, V = xb.f32[()], xb.f32[3]
PAIR = xb.TupleShape((xb.f32[3], xb.s32[2], xb.TupleShape((xb.c64[()], xb.f64[2]))))


def total(x: xb.Value) -> xb.Value:
    return xb.reduce(x, 0.0, xb.add)


@xb.computation(V, V)
def loss(x: xb.Value, w: xb.Value) -> xb.Value:
    return total(xb.tanh(x * w) * w)


def opcodes(program: xb.Computation) -> Counter[str]:
    return Counter(i.opcode for i in program.instructions)


def test_each_opcode_has_a_rule_or_a_zero_or_a_reason_without() -> None:
    all_rules()
    for opcode in OPS:
        assert [opcode in vjp, opcode in ZERO, opcode in REASONS].count(True) == 1, opcode
    assert not ({*vjp} | ZERO | {*REASONS}) - {*OPS}


def test_a_rule_takes_the_operands_of_its_op() -> None:
    all_rules()
    for opcode in vjp:
        operands, attributes = vjp.signature(opcode)
        named = [each for each in operands[1:] if each not in ("attributes", "groups")]
        assert named == [*OPS[opcode].operands], opcode
        assert {*attributes} <= OPS[opcode].names, opcode


def test_vjp_of_tuples_and_integers() -> None:
    @xb.computation(PAIR, xb.s32[()])
    def mixed(pair: xb.Value, n: xb.Value) -> Any:
        x, counts, (z, y) = pair
        return xb.convert(n, new_element_type=xb.f32) * x, counts, (z * z, xb.complex(y, y))

    back = xb.vjp(mixed)
    shapes = [p.shape for p in back.parameters]
    assert shapes == [PAIR, xb.s32[()], xb.f32[3], xb.c64[()], xb.c128[2]]
    assert back.root.shape == xb.TupleShape((xb.f32[3], xb.c64[()], xb.f64[2]))


def test_a_cotangent_alone_comes_in_a_tuple() -> None:
    back = xb.vjp(xb.computation(S)(xb.sin))
    assert back.root.shape == xb.TupleShape((S,))
    assert evaluate(back, 0.0, 2.0) == (2.0,)


def test_forms_of_argnums() -> None:
    x, w = np.float32([1, 2, 3]), np.float32([0.5, 0.25, 0.125])
    of_x, of_w = evaluate(xb.grad(loss, (0, 1)), x, w)
    np.testing.assert_array_equal(evaluate(xb.grad(loss), x, w), of_x)
    np.testing.assert_array_equal(evaluate(xb.grad(loss, 1), x, w), of_w)
    np.testing.assert_array_equal(evaluate(xb.grad(loss, -1), x, w), of_w)
    (alone,) = evaluate(xb.grad(loss, [1]), x, w)
    np.testing.assert_array_equal(alone, of_w)
    value, (again, _) = evaluate(xb.value_and_grad(loss, (1, 0)), x, w)
    assert value == evaluate(loss, x, w)
    np.testing.assert_array_equal(again, of_w)


def test_grad_of_a_tuple_has_its_form() -> None:
    program = xb.computation(PAIR)(lambda pair: total(pair[0]) + xb.convert(total(pair[2][1]), new_element_type=xb.f32))
    assert xb.grad(program).root.shape == xb.TupleShape((xb.f32[3], xb.TupleShape((xb.c64[()], xb.f64[2]))))


def test_functions_and_modules() -> None:
    by_function = xb.grad(lambda x, w: total(xb.tanh(x * w) * w))(V, V)
    assert xb.same_structure(by_function, xb.grad(loss))
    module = xb.grad(xb.Module("m", loss, num_replicas=2))
    assert (module.num_replicas, module.entry.name) == (2, "loss_grad")
    first, second = execute(module, [[np.ones(3, np.float32)] * 2, [np.zeros(3, np.float32)] * 2])
    assert first.any()
    assert not second.any()


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: x * x, lambda x: 2 * x),
        (lambda x: x * x * x, lambda x: 3 * x * x),
        (lambda x: xb.tanh(x), lambda x: 1 - np.tanh(x) ** 2),
        (lambda x: xb.pow(x, 3.0), lambda x: 3 * x**2),
        (lambda x: xb.while_((0, x), lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1]))[1], lambda x: 8 * x**7),
    ],
)
def test_second_derivatives(function: Any, wanted: Any) -> None:
    first = xb.grad(function)(xb.f64[()])
    h = 1e-6
    np.testing.assert_allclose(evaluate(first, 1.1), wanted(1.1), rtol=1e-12)
    numeric = (wanted(1.1 + h) - wanted(1.1 - h)) / (2 * h)
    np.testing.assert_allclose(evaluate(xb.grad(first), 1.1), numeric, rtol=1e-8)


def test_complex_gradients_are_not_conjugated() -> None:
    size = xb.computation(xb.c128[()])(lambda z: xb.real(z * xb.conj(z)))
    assert evaluate(xb.grad(size), 3 + 4j) == 6 - 8j


def test_each_cotangent_has_the_type_of_its_parameter() -> None:
    program = xb.computation(xb.bf16[3], xb.f32[3])(lambda x, y: total(xb.convert(x, new_element_type=xb.f32) * y))
    assert xb.grad(program, (0, 1)).root.shape == xb.TupleShape((xb.bf16[3], xb.f32[3]))


def test_what_does_not_depend_on_a_parameter_is_zero() -> None:
    program = xb.computation(S, V)(lambda x, y: x * 2.0)
    of_x, of_y = evaluate(xb.grad(program, (0, 1)), 1.0, np.ones(3, np.float32))
    assert of_x == 2
    assert of_y.tolist() == [0, 0, 0]


# no waste


def test_nothing_of_the_loss_is_left_that_the_gradient_does_not_read() -> None:
    gradient = xb.grad(loss, (0, 1))
    assert gradient is xb.eliminate_dead_code(gradient)
    assert opcodes(gradient)["reduce"] == 0
    assert opcodes(gradient)["tanh"] == 1


def test_a_linear_program_is_transposed_without_its_values() -> None:
    gradient = xb.grad(xb.computation(V)(lambda x: total(x + x * 3.0)))
    assert opcodes(gradient) == {"parameter": 1, "constant": 1, "broadcast": 1}


def test_no_multiplication_by_one_and_no_zeros() -> None:
    gradient = xb.grad(xb.computation(V)(lambda x: total(xb.exp(x))))
    assert [i.opcode for i in gradient.instructions] == ["parameter", "exponential"]


def test_a_sum_of_what_repeats_is_a_product() -> None:
    program = xb.computation(V)(lambda x: total(xb.broadcast(x, [5, 7])))
    gradient = xb.grad(program)
    assert opcodes(gradient)["reduce"] == 0
    assert evaluate(gradient, np.ones(3, np.float32)).tolist() == [35, 35, 35]


def test_forward_values_are_shared() -> None:
    gradient = xb.grad(xb.computation(V)(lambda x: total(xb.sin(x) * xb.cos(x))))
    assert opcodes(gradient)["sine"] == opcodes(gradient)["cosine"] == 1


# where an instruction comes from


def test_names_lines_and_scopes_tell_the_forward_instruction() -> None:
    @xb.computation(V)
    def scoped(x: xb.Value) -> xb.Value:
        with xb.scope("layer"):
            y = xb.tanh(x, name="squash")
        return total(y)

    made = [i for i in xb.grad(scoped).instructions if i.name.startswith("squash.vjp")]
    assert made
    for each in made:
        assert each.annotations["metadata"]["op_name"] == "layer/squash/vjp(squash)" or each.annotations["metadata"][
            "op_name"
        ].endswith("vjp(squash)")
        assert each.source == scoped["squash"].source


def test_custom_rules() -> None:
    xb.custom_call_target("cubes")(lambda x, y: x**3 * y)
    program = xb.computation(V, V)(lambda x, y: total(xb.custom_call([x, y], "cubes", V)))
    with pytest.raises(xb.ShapeError, match="no rule is registered for the target 'cubes'"):
        xb.grad(program)
    xb.custom_vjp("cubes")(lambda ct, result, x, y: (ct * 3.0 * x * x * y, ct * x * x * x))
    of_x, of_y = evaluate(xb.grad(program, (0, 1)), np.float32([1, 2, 3]), np.float32([1, 1, 2]))
    assert of_x.tolist() == [3, 12, 54]
    assert of_y.tolist() == [1, 8, 27]


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (lambda ct, result, x: (ct, ct), "returned 2 cotangents for 1 operands"),
        (lambda ct, result, x: total(ct), r"returned a cotangent of shape f32\[\] for operand 0, which is f32\[3\]"),
        (lambda ct, result, x: 1.0, "expected a value or None as cotangent 0, got 1.0"),
    ],
)
def test_custom_rules_that_give_something_else(rule: Any, fault: str) -> None:
    xb.custom_vjp("odd")(rule)
    program = xb.computation(V)(lambda x: total(xb.custom_call(x, "odd", V)))
    with pytest.raises(xb.XbuildError, match=fault):
        xb.grad(program)


def test_custom_vjp_wants_a_target() -> None:
    with pytest.raises(TypeError, match="expected a string as the custom-call target"):
        xb.custom_vjp(lambda ct: ct)  # type: ignore[arg-type]
