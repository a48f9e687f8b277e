"""Variables as state of each replica, by object and by name; the scope in which bf16 is stored as f32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.tpu.support import F32, plain, refused


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    xb.tpu.reset_variables()
    yield
    xb.tpu.reset_variables()


def test_each_replica_keeps_its_own() -> None:
    w = xb.tpu.Variable(F32([1, 2]), name="w")
    program = xb.tpu.replicate.program(lambda x: w.assign_add(x), [[F32([1, 1])], [F32([10, 10])]])
    program.run()
    assert plain(w.values) == [[2.0, 3.0], [11.0, 12.0]]
    program.run()
    assert plain(w.values) == [[3.0, 4.0], [21.0, 22.0]]
    assert plain(w.numpy(1)) == [21.0, 22.0]


def test_a_variable_is_a_parameter_and_a_result_in_the_same_memory() -> None:
    w, unread = xb.tpu.Variable(1.0, name="w"), xb.tpu.Variable(1.0, name="unread")
    program = xb.tpu.rewrite.program(lambda x: (w.assign(w * x), x)[1] + unread, [2.0])
    entry = program.module.entry
    assert [p.name for p in entry.parameters] == ["input_0", "w", "unread"]
    assert len(entry.root.shape.elements) == 2
    assert "input_output_alias={ {1}: (1, {}, may-alias) }" in str(program)
    assert str(xb.parse_hlo(str(program))) == str(program)


def test_a_read_after_an_assignment_sees_it() -> None:
    w = xb.tpu.Variable(2.0)

    def computation() -> Any:
        before = w.value()
        xb.tpu.assign_sub(w, 0.5)
        return before, w.read_value(), w + 0.0

    assert plain(xb.tpu.rewrite(computation)) == [2.0, 1.5, 1.5]


@pytest.mark.parametrize(
    "use",
    [
        lambda w, x: w + x, lambda w, x: x + w, lambda w, x: xb.add(w, x), lambda w, x: xb.add(x, w),
        lambda w, x: xb.ops.add(w, x), lambda w, x: xb.reshape(w, (2,)) + x,
        lambda w, x: xb.maximum(w, x) * 0.0 + w + x,
        lambda w, x: xb.select(x > 0.0, w, x) + x, lambda w, x: w[0:2] + x,
    ],
)  # fmt: skip
def test_a_variable_stands_for_its_value(use: Any) -> None:
    w = xb.tpu.Variable(F32([1, 2]))
    assert plain(xb.tpu.rewrite(lambda x: use(w, x), [F32([10, 20])])) == [[11.0, 22.0]]


def test_products_with_a_variable() -> None:
    w = xb.tpu.Variable(F32([[1], [2]]))
    assert plain(xb.tpu.rewrite(lambda x: xb.dot(x, w), [F32([[3, 4]])])) == [[[11.0]]]
    assert plain(xb.tpu.rewrite(lambda x: x @ w, [F32([[3, 4]])])) == [[[11.0]]]


def test_a_variable_as_a_result() -> None:
    w = xb.tpu.Variable(3.0)
    assert plain(xb.tpu.rewrite(lambda: w)) == [3.0]
    assert plain(xb.tpu.rewrite(lambda: {"w": w})) == {"w": 3.0}


def test_another_number_of_replicas() -> None:
    w = xb.tpu.Variable(0.0, name="w")
    xb.tpu.replicate(lambda x: w.assign(xb.tpu.cross_replica_sum(x)), [[1.0], [2.0]])
    assert plain(xb.tpu.rewrite(lambda: w)) == [3.0]
    xb.tpu.replicate(lambda x: w.assign(x), [[1.0], [2.0]])
    text = refused("shape_mismatch", lambda: xb.tpu.rewrite(lambda: w), "different values on 2 replicas")
    assert "load" in text
    w.load(7.0)
    assert plain(xb.tpu.rewrite(lambda: w)) == [7.0]


def test_a_run_that_fails_changes_no_variable() -> None:
    w = xb.tpu.Variable(1.0)

    def fails(a: Any) -> None:
        raise RuntimeError

    def computation() -> Any:
        w.assign(w + 1.0)
        return xb.tpu.outside_compilation(fails, w.value())

    with pytest.raises(Exception, match="fails"):
        xb.tpu.rewrite(computation)
    assert plain(w.numpy()) == 1.0


def test_refusals() -> None:
    w = xb.tpu.Variable(F32([1, 2]), name="w")
    refused("no_builder", w.value, "the value of w")
    refused("no_builder", lambda: w + 1.0)
    refused("no_builder", lambda: xb.tpu.assign(w, 1.0), "assign to w")
    refused("shape_mismatch", lambda: xb.tpu.rewrite(lambda: w.assign(1.0)), "f32[2]", "f32[]")
    refused("shape_mismatch", lambda: xb.tpu.rewrite(lambda: w.assign(np.int32([1, 2]))), "s32[2]")
    refused("shape_mismatch", lambda: w.load([1.0]), "[1]")
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda x: xb.tpu.assign(x, 1.0), [1.0]), "not a variable")
    refused("invalid_operand", lambda: xb.tpu.Variable("text"), error=TypeError)

    def in_a_loop(x: Any) -> Any:
        body = lambda s: (w.assign(xb.broadcast(s, (2,))), s + 1.0)[1]  # noqa: E731
        return xb.while_(x, condition=lambda s: s < 3.0, body=body)

    refused("foreign_value", lambda: xb.tpu.rewrite(in_a_loop, [1.0]), "carry the value")


def test_variables_by_name() -> None:
    def computation(x: Any) -> Any:
        with xb.tpu.variable_scope("outer"), xb.tpu.variable_scope("inner"):
            w = xb.tpu.get_variable("w", [2], initializer=xb.tpu.ones_initializer)
        return w * x

    assert plain(xb.tpu.rewrite(computation, [3.0])) == [[3.0, 3.0]]
    assert [each.name for each in xb.tpu.global_variables()] == ["outer/inner/w"]
    assert plain(xb.tpu.rewrite(computation, [F32([4, 5])])) == [[4.0, 5.0]]
    assert len(xb.tpu.global_variables()) == 1
    xb.tpu.reset_variables()
    assert plain(xb.tpu.rewrite(computation, [3.0])) == [[3.0, 3.0]]


def test_what_get_variable_refuses() -> None:
    xb.tpu.get_variable("w", [2])
    refused("shape_mismatch", lambda: xb.tpu.get_variable("w", [3]), "w is f32[2], but f32[3] was requested")
    refused("shape_mismatch", lambda: xb.tpu.get_variable("w", [2], xb.s32))
    refused("missing_shape", lambda: xb.tpu.get_variable("v"))
    assert xb.tpu.get_variable("v", initializer=F32([1, 2])).shape == xb.f32[2]


def test_initializers() -> None:
    assert plain(xb.tpu.get_variable("bias", [], initializer=None).numpy()) == 0.0
    assert plain(xb.tpu.get_variable("count", [2], xb.s32).numpy()) == [0, 0]
    assert xb.tpu.get_variable("kernel", [30, 40]).numpy().std() == pytest.approx(np.sqrt(2 / 70), rel=0.1)
    drawn = xb.tpu.random_normal_initializer(stddev=2.0, seed=3)
    assert xb.tpu.get_variable("normal", [1000], initializer=drawn).numpy().std() == pytest.approx(2.0, rel=0.1)
    assert [v.name for v in xb.tpu.trainable_variables()] == ["bias", "count", "kernel", "normal"]
    xb.tpu.get_variable("step", [], xb.s32, trainable=False)
    assert "step" not in [v.name for v in xb.tpu.trainable_variables()]


def test_bfloat16_scope_stores_in_f32_and_reads_in_bf16() -> None:
    seen = []

    def computation(x: Any) -> Any:
        with xb.tpu.bfloat16_scope():
            narrow, wide = xb.tpu.get_variable("narrow", [2], xb.bf16), xb.tpu.get_variable("wide", [2], xb.f64)
            seen.append((narrow.instruction.opcode, narrow.shape, wide.shape))
        whole = xb.tpu.get_variable("other", [2], xb.bf16)
        seen.append(whole.shape)
        return narrow

    assert xb.tpu.rewrite(computation, [1.0])[0].dtype.name == "bfloat16"
    assert seen == [("convert", xb.bf16[2], xb.f64[2]), xb.bf16[2]]
    assert [str(v.shape) for v in xb.tpu.global_variables()] == ["f32[2]", "f64[2]", "bf16[2]"]


def test_bfloat16_scope_may_have_a_name() -> None:
    with xb.tpu.bfloat16_scope("net"):
        xb.tpu.get_variable("w", [1])
    with xb.tpu.bfloat16_scope():
        xb.tpu.get_variable("w", [1])
    assert [v.name for v in xb.tpu.global_variables()] == ["net/w", "w"]


def test_numpy_beside_a_variable() -> None:
    w = xb.tpu.Variable(F32([1, 2]))
    found = xb.tpu.rewrite(lambda: (F32([10, 20]) * w, F32(3) + w, w - F32([1, 1]), np.arange(2, dtype=np.float32) @ w))
    assert plain(found) == [[10.0, 40.0], [4.0, 5.0], [0.0, 1.0], 2.0]


@pytest.mark.parametrize("ask", [bool, float, iter, np.exp, np.asarray, np.sum, lambda w: 1.0 in w])
def test_what_python_may_not_ask_of_a_variable(ask: Any) -> None:
    w = xb.tpu.Variable(F32([1, 2]), name="w")
    with pytest.raises(xb.ValueUseError):
        xb.tpu.rewrite(lambda: ask(w))
    with pytest.raises(xb.ValueUseError):
        ask(w)
    assert len(w) == 2
    assert w.numpy().sum() == 3.0


FORMS = [
    lambda w, s, n, v: xb.clamp(0.0, w, v), lambda w, s, n, v: xb.clamp(s, v, 9.0),
    lambda w, s, n, v: xb.pad(w, s, [(1, 1, 0)]), lambda w, s, n, v: xb.concatenate([w, v], 0),
    lambda w, s, n, v: xb.reduce(v, s, xb.add), lambda w, s, n, v: xb.transpose(w, [0]),
    lambda w, s, n, v: xb.dynamic_update_slice(v, w, [0]), lambda w, s, n, v: xb.dynamic_update_slice(w, v, [n]),
    lambda w, s, n, v: xb.dynamic_slice(w, [n], [1]), lambda w, s, n, v: v[n], lambda w, s, n, v: w[n],
    lambda w, s, n, v: xb.while_([w, v], condition=lambda t: t[0][0] < 9.0, body=lambda t: [t[0] + 1.0, t[1]])[0],
    lambda w, s, n, v: xb.conditional(s > 0.0, w, lambda a: a, v, lambda a: a), lambda w, s, n, v: xb.erf(w),
    lambda w, s, n, v: xb.call((w, v), lambda a, b: a + b), lambda w, s, n, v: xb.cross_replica_sum(w),
    lambda w, s, n, v: xb.map([w, v], lambda a, b: a * b, [0]), lambda w, s, n, v: xb.sort(w, dimension=0),
    lambda w, s, n, v: -abs(w) ** 2 // s,
    lambda w, s, n, v: xb.tpu.outside_compilation(lambda a: a * 2, w, result_shapes=xb.f32[2]),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_takes_a_variable_as_its_value(form: Any) -> None:
    arrays = F32([1, 2]), F32(0.5), np.int32(1)
    variables = [xb.tpu.Variable(array) for array in arrays]
    v = F32([3, 4])
    assert plain(xb.tpu.rewrite(lambda v: form(*variables, v), [v])) == plain(xb.tpu.rewrite(form, [*arrays, v]))
