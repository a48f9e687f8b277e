"""Optimizers against their formulas in NumPy, and CrossShardOptimizer: scale, groups, clipping, refusals."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.tpu.support import F32, plain, refused

MEAN, SUM = xb.tpu.Reduction.MEAN, xb.tpu.Reduction.SUM
GROUPS = [[0, 1], [2, 3]]


def steps(optimizer: Any, gradients: list[float], start: float = 2.0) -> list[float]:
    """The values of w after each step, where the loss is w*x and so x the gradient."""
    w = xb.tpu.Variable(np.float64(start), name="w")
    program = xb.tpu.rewrite.program(lambda x: optimizer.minimize(w * x, var_list=[w]), [np.float64(0)])
    found = []
    for gradient in gradients:
        program.run([np.float64(gradient)])
        found.append(float(w.numpy()))
    return found


GRADIENTS = [1.0, -2.0, 0.5, 4.0]


def descent(w: float, state: dict[str, float], g: float, t: int) -> float:
    return w - 0.1 * g


def momentum(w: float, state: dict[str, float], g: float, t: int) -> float:
    state["v"] = 0.9 * state.get("v", 0.0) + g
    return w - 0.1 * state["v"]


def nesterov(w: float, state: dict[str, float], g: float, t: int) -> float:
    state["v"] = 0.9 * state.get("v", 0.0) + g
    return w - 0.1 * (g + 0.9 * state["v"])


def adam(w: float, state: dict[str, float], g: float, t: int) -> float:
    state["m"] = 0.8 * state.get("m", 0.0) + 0.2 * g
    state["v"] = 0.99 * state.get("v", 0.0) + 0.01 * g * g
    rate = 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.8**t)
    return w - rate * state["m"] / (np.sqrt(state["v"]) + 1e-3)


def adamw(w: float, state: dict[str, float], g: float, t: int) -> float:
    return adam(w - 0.05 * w, state, g, t)


OPTIMIZERS = [
    (lambda: xb.tpu.GradientDescentOptimizer(0.1), descent, []),
    (lambda: xb.tpu.MomentumOptimizer(0.1, 0.9), momentum, ["momentum"]),
    (lambda: xb.tpu.MomentumOptimizer(0.1, 0.9, use_nesterov=True), nesterov, ["momentum"]),
    (lambda: xb.tpu.AdamOptimizer(0.1, 0.8, 0.99, 1e-3), adam, ["m", "v"]),
    (lambda: xb.tpu.AdamWOptimizer(0.1, 0.8, 0.99, 1e-3, weight_decay=0.05), adamw, ["m", "v"]),
]


@pytest.mark.parametrize(("make", "formula", "slots"), OPTIMIZERS)
@pytest.mark.parametrize("is_cross_shard", [False, True])
def test_steps_follow_the_formula(make: Any, formula: Any, slots: list[str], is_cross_shard: bool) -> None:
    optimizer = xb.tpu.CrossShardOptimizer(make()) if is_cross_shard else make()
    w, state, wanted = 2.0, {}, []
    for t, gradient in enumerate(GRADIENTS, 1):
        w = formula(w, state, gradient, t)
        wanted.append(w)
    assert steps(optimizer, GRADIENTS) == pytest.approx(wanted, rel=1e-6)
    assert optimizer.get_slot_names() == slots


def test_slots_and_variables_are_those_inside() -> None:
    w, inner = xb.tpu.Variable(1.0, name="w"), xb.tpu.AdamOptimizer(0.1)
    optimizer = xb.tpu.CrossShardOptimizer(inner)
    assert optimizer.get_slot(w, "m") is None
    xb.tpu.rewrite(lambda x: optimizer.minimize(w * x, var_list=[w]), [1.0])
    assert optimizer.get_slot(w, "m") is inner.get_slot(w, "m") is not None
    assert optimizer.variables() == inner.variables()
    assert len(inner.variables()) == 4


def cross(x: list[float], reduction: str, groups: Any = None, w: float = 2.0) -> list[float]:
    variable = xb.tpu.Variable(F32(w), name="w")
    optimizer = xb.tpu.CrossShardOptimizer(xb.tpu.GradientDescentOptimizer(0.5), reduction, group_assignment=groups)
    xb.tpu.replicate(lambda x: optimizer.minimize(variable * x, var_list=[variable]), [[F32(each)] for each in x])
    return plain(list(variable.values))


@pytest.mark.parametrize(
    ("x", "reduction", "groups", "wanted"),
    [
        ([0, 1, 2, 3], MEAN, None, [1.25] * 4),
        ([0, 1, 2, 3], SUM, None, [-1.0] * 4),
        ([0, 1, 2, 3], MEAN, GROUPS, [1.75, 1.75, 0.75, 0.75]),
        ([0, 1, 2, 3], SUM, [[0, 2], [1, 3]], [1.0, 0.0, 1.0, 0.0]),
        ([0, 1, 2, 3], MEAN, [], [1.25] * 4),
        ([3], MEAN, None, [0.5]),
        ([3], MEAN, [[0]], [0.5]),
    ],
)
def test_the_worked_examples(x: list[float], reduction: str, groups: Any, wanted: list[float]) -> None:
    assert cross(x, reduction, groups) == wanted


def test_clipping_sees_the_share_of_one_replica() -> None:
    w, seen = xb.tpu.Variable(2.0), []
    optimizer = xb.tpu.CrossShardOptimizer(xb.tpu.GradientDescentOptimizer(1.0))

    def computation(x: Any) -> Any:
        clipped = []
        for gradient, variable in optimizer.compute_gradients(w * x, [w]):
            xb.tpu.outside_compilation(lambda g: seen.append(float(g)), gradient)
            clipped.append((xb.minimum(gradient, 0.5), variable))
        return optimizer.apply_gradients(clipped)

    xb.tpu.replicate(computation, [[0.0], [1.0], [2.0], [4.0]])
    assert seen == [0.0, 0.25, 0.5, 1.0]
    assert plain(w.values) == [2.0 - 1.25] * 4


def test_variables_that_the_loss_does_not_reach_stay() -> None:
    w, v, step = xb.tpu.Variable(1.0), xb.tpu.Variable(5.0), xb.tpu.Variable(0)
    optimizer = xb.tpu.CrossShardOptimizer(xb.tpu.GradientDescentOptimizer(1.0))

    def computation(x: Any) -> Any:
        pairs = optimizer.compute_gradients(w * x + 0.0 * xb.floor(x), [w, v])
        assert pairs[1] == (None, v)
        return optimizer.apply_gradients(pairs, global_step=step)

    xb.tpu.replicate(computation, [[1.0], [1.0]])
    assert (plain(w.values), plain(v.numpy()), plain(step.values)) == ([0.0, 0.0], 5.0, [1, 1])


def test_the_trainable_variables_by_name_are_the_default() -> None:
    xb.tpu.reset_variables()

    def computation(x: Any) -> Any:
        w = xb.tpu.get_variable("w", [], initializer=F32(2))
        return xb.tpu.GradientDescentOptimizer(0.5).minimize(w * x)

    xb.tpu.rewrite(computation, [1.0])
    assert plain(xb.tpu.trainable_variables()[0].numpy()) == 1.5
    xb.tpu.reset_variables()


def test_gradients_share_the_forward_pass() -> None:
    w, calls = xb.tpu.Variable(F32([[1, 2], [3, 4]])), []

    def computation(x: Any) -> Any:
        hidden = xb.tanh(xb.dot(x, w))
        xb.tpu.outside_compilation(lambda h: calls.append(h.shape), hidden)
        loss = xb.reduce(hidden * hidden, 0.0, xb.add)
        return loss, xb.tpu.GradientDescentOptimizer(0.5).minimize(loss, var_list=[w])

    program = xb.tpu.rewrite.program(computation, [F32([[1, 0.5]])])
    program.run()
    opcodes = [i.opcode for i in program.module.entry.instructions]
    assert opcodes.count("tanh") == 1
    assert opcodes.count("dot") == 2
    assert calls == [(1, 2)]
    assert str(xb.parse_hlo(str(program))) == str(program)


def test_a_rate_may_be_a_variable_a_value_or_a_function() -> None:
    rate = xb.tpu.Variable(0.5)
    assert steps(xb.tpu.GradientDescentOptimizer(rate), [1.0]) == [1.5]
    assert steps(xb.tpu.GradientDescentOptimizer(lambda: rate * 2.0), [1.0]) == [1.0]


def test_in_bf16_the_stored_variable_is_changed() -> None:
    xb.tpu.reset_variables()

    def computation(x: Any) -> Any:
        with xb.tpu.bfloat16_scope():
            w = xb.tpu.get_variable("w", [], xb.bf16, initializer=F32(2))
        loss = xb.convert(w * xb.convert(x, xb.bf16), xb.f32)
        return xb.tpu.GradientDescentOptimizer(0.001).minimize(loss)

    xb.tpu.rewrite(computation, [1.0])
    assert plain(xb.tpu.global_variables()[0].numpy()) == float(F32(2) - F32(0.001))
    xb.tpu.reset_variables()


def test_what_the_optimizer_refuses() -> None:
    inner = xb.tpu.GradientDescentOptimizer(0.1)
    text = refused("invalid_attribute", lambda: xb.tpu.CrossShardOptimizer(inner, "mean"))
    assert "Argument `reduction` should be one of ('weighted_sum', 'weighted_mean'). Received: mean" in text
    refused("invalid_operand", lambda: xb.tpu.CrossShardOptimizer(0.1), error=TypeError)


@pytest.mark.parametrize(
    ("groups", "kind", "word"),
    [
        ([0, 1, 2, 3], "rank_mismatch", "must be a list of lists"),
        ([[0, 1], [2, 2]], "duplicate_replica", "replica 2 twice"),
        ([[0, 1, 2, 3], [0, 1, 2, 3]], "duplicate_replica", "replica 0 twice"),
        ([[0, 1], [2, 4]], "replica_out_of_range", "replica 4"),
        ([[0, 1]], "missing_replica", "replicas 2, 3"),
        ([[0], [1, 2, 3]], "ragged_groups", "The size of each subgroup"),
        ([[0, 1, 2], [2, 3]], "ragged_groups", "The size of each subgroup"),
    ],
)
def test_groups_that_are_none(groups: Any, kind: str, word: str) -> None:
    refused(kind, lambda: cross([0, 1, 2, 3], MEAN, groups), word)


def test_what_gradients_refuse() -> None:
    w, inner = xb.tpu.Variable(F32([1, 2])), xb.tpu.GradientDescentOptimizer(0.1)
    refused("no_builder", lambda: inner.compute_gradients(1.0, [w]))
    refused("non_scalar", lambda: xb.tpu.rewrite(lambda: inner.minimize(w * 2.0, var_list=[w])), "f32[2]")
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda: inner.minimize(1.0, var_list=[w])), "not a value")
    loss = lambda x: xb.reduce(w * x, 0.0, xb.add)  # noqa: E731
    wrong = lambda x: inner.minimize(loss(x), var_list=[x])  # noqa: E731
    refused("invalid_operand", lambda: xb.tpu.rewrite(wrong, [1.0]), "expected a variable", error=TypeError)
    nothing = lambda x: inner.minimize(x * 2.0, var_list=[w])  # noqa: E731
    refused("invalid_attribute", lambda: xb.tpu.rewrite(nothing, [1.0]), "No gradients provided")
    late = lambda x: (w.assign(w * 2.0), inner.minimize(loss(x), var_list=[w]))[1]  # noqa: E731
    refused("invalid_attribute", lambda: xb.tpu.rewrite(late, [1.0]), "assigned before its gradient")


def test_outside_of_a_context_one_replica_is_assumed(caplog: pytest.LogCaptureFixture) -> None:
    optimizer = xb.tpu.CrossShardOptimizer(xb.tpu.GradientDescentOptimizer(0.1))
    with caplog.at_level(logging.WARNING, "xbuild.tpu"), pytest.raises(xb.tpu.TpuError):
        optimizer.compute_gradients(1.0, [])
    assert "Assuming 1" in caplog.text


def total_loss(w: Any, x: Any, groups: Any) -> float:
    """The sum over the replicas of sin of the group's sum of w * x of each."""
    values = w * x
    return float(sum(np.sin(values[group].sum()) for group in groups for _ in group))


@pytest.mark.parametrize("groups", [[[0, 1, 2, 3]], [[0, 2], [1, 3]], [[3], [0], [1], [2]]])
def test_gradients_through_a_sum_are_those_of_the_total_loss(groups: Any) -> None:
    """The derivative of the total loss by the variable of each replica, against differences."""
    x, start = np.float64([0.5, -1.0, 2.0, 0.25]), np.float64([0.3, 0.2, -0.1, 0.4])
    w = xb.tpu.Variable(np.float64(0))
    w.values = list(start)
    inner = xb.tpu.GradientDescentOptimizer(1.0)

    def computation(x: Any) -> Any:
        return inner.compute_gradients(xb.sin(xb.tpu.cross_replica_sum(w * x, groups)), [w])[0][0]

    found = [float(g) for (g,) in xb.tpu.replicate(computation, [[each] for each in x])]
    for replica in range(4):
        nudge = np.eye(4)[replica] * 1e-6
        slope = (total_loss(start + nudge, x, groups) - total_loss(start - nudge, x, groups)) / 2e-6
        assert found[replica] == pytest.approx(slope, abs=1e-8)
