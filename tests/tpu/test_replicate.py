"""replicate and rewrite: the checks in TensorFlow's order, the table of results, one trace for each signature."""

from __future__ import annotations

import copy
import functools
import gc
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.tpu.support import F32, plain, refused

Pair = namedtuple("Pair", ["first", "second"])


def both(x: Any, y: Any) -> Any:
    return x + y, x - y


# What a computation of x = 3 returns, and what one replica gives: the table of TensorFlow's results.
RESULTS = [
    (lambda x: x, [3.0]),
    (lambda x: (x, x + 1.0), [3.0, 4.0]),
    (lambda x: [x, x + 1.0], [3.0, 4.0]),
    (lambda x: Pair(x, x + 1.0), [3.0, 4.0]),
    (lambda x: (x, xb.tpu.no_op()), [3.0]),
    (lambda x: (x, None, x + 1.0), [3.0, None, 4.0]),
    (lambda x: {"b": x, "a": x + 1.0}, {"b": 3.0, "a": 4.0}),
    (lambda x: {"a": (x, None), "b": [x + 1.0]}, {"a": (3.0, None), "b": [4.0]}),
    (lambda x: (Pair(x, x), x), (Pair(3.0, 3.0), 3.0)),
    (lambda x: ((x, x),), ((3.0, 3.0),)),
    (lambda x: 7, [7]),
    (lambda x: 7.5, [7.5]),
    (lambda x: True, [True]),
    (lambda x: (x, np.arange(2, dtype=np.int32)), [3.0, [0, 1]]),
    (lambda x: [1.0, 2.0], [1.0, 2.0]),
    (lambda x: xb.ops.tuple_((x, x)), [3.0, 3.0]),
]


@pytest.mark.parametrize(("computation", "wanted"), RESULTS)
def test_the_result_of_a_replica(computation: Any, wanted: Any) -> None:
    assert plain(xb.tpu.replicate(computation, [[3.0], [3.0]])) == [wanted, wanted]
    assert plain(xb.tpu.rewrite(computation, [3.0])) == wanted


@pytest.mark.parametrize(
    "computation", [lambda x: None, lambda x: xb.tpu.no_op(), lambda x: (), lambda x: [xb.tpu.no_op(), xb.tpu.no_op()]]
)
def test_no_value_gives_an_operation(computation: Any) -> None:
    for result in xb.tpu.replicate(computation, [[3.0], [3.0]]):
        assert isinstance(result, xb.tpu.Operation)
        assert result.name == "NoOp"
    assert isinstance(xb.tpu.rewrite(computation, [3.0]), xb.tpu.Operation)


def test_element_types_of_python_numbers_are_those_of_tensorflow() -> None:
    (result,) = xb.tpu.replicate(lambda *values: values, [[1, 1.0, True, np.float64(1), np.int64(1)]])
    assert [value.dtype.name for value in result] == ["int32", "float32", "bool", "float64", "int64"]


def test_a_list_of_numbers_is_a_structure_of_scalars() -> None:
    program = xb.tpu.replicate.program(lambda pair: pair[0] + pair[1], [[[1.0, 2.0]]])
    assert [p.shape for p in program.module.entry.parameters] == [xb.f32[()], xb.f32[()]]
    assert plain(program.run()) == [[3.0]]


def test_a_nested_input_arrives_in_its_structure() -> None:
    def computation(x: Any) -> Any:
        assert set(x) == {"a", "b"}
        return x["a"] - x["b"][1]

    rows = [[{"b": (1.0, 2.0), "a": 5.0}], [{"b": (1.0, 4.0), "a": 5.0}]]
    assert plain(xb.tpu.replicate(computation, rows)) == [[3.0], [1.0]]


def test_none_among_the_inputs_arrives_as_none() -> None:
    def computation(x: Any, nothing: Any) -> Any:
        assert nothing is None
        return x

    assert plain(xb.tpu.replicate(computation, [[1.0, None], [2.0, None]])) == [[1.0], [2.0]]


def test_no_inputs_are_one_replica() -> None:
    assert plain(xb.tpu.replicate(lambda: 1)) == [[1]]
    assert plain(xb.tpu.replicate(lambda: 1, [[]] * 3)) == [[1]] * 3


def test_the_computation_is_traced_once_for_each_signature() -> None:
    calls = []

    def computation(x: Any) -> Any:
        calls.append(x.shape)
        return x * 2.0

    for _ in range(3):
        xb.tpu.replicate(computation, [[1.0], [2.0]])
    assert len(calls) == 1
    xb.tpu.replicate(computation, [[1.0], [2.0], [3.0]])
    xb.tpu.replicate(computation, [[F32([1, 2])], [F32([3, 4])]])
    xb.tpu.rewrite(computation, [1.0])
    assert len(calls) == 4
    xb.tpu.replicate(computation, [[5.0], [6.0]])
    assert len(calls) == 4


def test_a_method_is_traced_once_for_each_object() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor, self.calls = factor, 0

        def step(self, x: Any) -> Any:
            self.calls += 1
            return x * self.factor

    two, three = Model(2.0), Model(3.0)
    for _ in range(2):
        assert plain(xb.tpu.rewrite(two.step, [1.0])) == [2.0]
        assert plain(xb.tpu.rewrite(three.step, [1.0])) == [3.0]
    assert (two.calls, three.calls) == (1, 1)


def test_everything_recorded_runs_though_no_result_needs_it() -> None:
    seen: list[float] = []

    def computation(x: Any) -> Any:
        xb.tpu.outside_compilation(lambda a: seen.append(float(a)), x)
        return 1.0

    xb.tpu.replicate(computation, [[5.0], [6.0]])
    assert seen == [5.0, 6.0]


# The checks in TensorFlow's order: each call breaks one, and every later one as well where it can.
def test_1_inputs_are_a_list_of_lists() -> None:
    refused("invalid_operand", lambda: xb.tpu.replicate(both, ([1.0], [2])), "<class 'tuple'>", error=TypeError)
    refused("invalid_operand", lambda: xb.tpu.replicate(both, [1.0, 2.0]), "received types", error=TypeError)


def test_2_no_replicas() -> None:
    refused("no_replicas", lambda: xb.tpu.replicate(both, []), "hint: inputs=None")


def test_3_structures_differ() -> None:
    message = "don't have the same nested structure"
    refused("structure_mismatch", lambda: xb.tpu.replicate(both, [[1.0], [1, 2]]), message)
    refused("structure_mismatch", lambda: xb.tpu.replicate(both, [[(1.0, 2.0)], [[1.0, 2.0]]]), message)


def test_4_types_differ() -> None:
    text = refused("element_type_mismatch", lambda: xb.tpu.replicate(lambda x: x, [[1.0, 2.0], [1, 2]]))
    assert "Replica 0 had input types [float32, float32], replica 1 had input types [int32, int32]" in text
    text = refused("element_type_mismatch", lambda: xb.tpu.replicate(both, [[1.0, None], [1.0, 2.0]]))
    assert "[float32, None]" in text


def test_5_arity() -> None:
    text = refused("arity_mismatch", lambda: xb.tpu.replicate(both, [[1.0], [F32([1])]]), error=TypeError)
    assert "You specified 1 inputs, but the computation needs exactly 2 arguments" in text
    refused("arity_mismatch", lambda: xb.tpu.rewrite(lambda x, *y: x), "at least 1 arguments", error=TypeError)
    refused("arity_mismatch", lambda: xb.tpu.rewrite(lambda x, y=1: x), "1 to 2 arguments", error=TypeError)
    queue = xb.tpu.InfeedQueue(tuple_types=[xb.f32], tuple_shapes=[[2]])
    refused("arity_mismatch", lambda: xb.tpu.replicate(lambda: 1, [[]], queue), "of the infeed", error=TypeError)


def test_varargs_take_any_number() -> None:
    assert plain(xb.tpu.rewrite(lambda *x: len(x), [1.0, 2.0, 3.0])) == [3]


def test_6_maximum_shapes() -> None:
    queue = xb.tpu.InfeedQueue(tuple_types=[xb.f32], tuple_shapes=[[2]])
    rows = [[F32([1])], [F32([1, 2])]]
    refused(
        "invalid_attribute",
        lambda: xb.tpu.replicate(lambda x, y: x, rows, queue, maximum_shapes=[[2]]),
        "infeed queues",
    )
    refused("structure_mismatch", lambda: xb.tpu.replicate(lambda x: x, rows, maximum_shapes=[[2], [2]]), "2 shapes")


def test_7_static_shapes_differ() -> None:
    text = refused("shape_mismatch", lambda: xb.tpu.replicate(lambda x: x, [[F32([1, 2])], [F32([1, 2, 3])]]))
    assert "Dimension 0 in both shapes must be equal, but are 2 and 3" in text
    assert "maximum_shapes" in text
    refused("shape_mismatch", lambda: xb.tpu.replicate(lambda x: x, [[1.0], [F32([1])]]), "equal rank, but are 0 and 1")


def test_8_no_nesting() -> None:
    inner = lambda x: xb.tpu.rewrite(lambda y: y, [x])  # noqa: E731
    refused("nested_replicate", lambda: xb.tpu.rewrite(inner, [1.0]), "cannot be nested")
    without = lambda x: xb.tpu.rewrite(lambda: 1.0)  # noqa: E731
    refused("nested_replicate", lambda: xb.tpu.rewrite(without, [1.0]), error=NotImplementedError)


def test_operations_come_after_values() -> None:
    refused("bad_order", lambda: xb.tpu.rewrite(lambda x: (xb.tpu.no_op(), x), [1.0]), "zero-or more Tensor values")


def test_operations_have_no_place_in_a_structure() -> None:
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda x: {"a": xb.tpu.no_op()}, [1.0]), "non-flat output")


@pytest.mark.parametrize("wrong", ["text", object(), lambda: 1, {1, 2}])
def test_results_are_values(wrong: Any) -> None:
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda x: wrong, [1.0]), "convertible to Tensors")
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda x: {"a": (x, wrong)}, [1.0]), "convertible to Tensors")


@pytest.mark.parametrize("wrong", ["text", object(), {1, 2}])
def test_inputs_are_arrays(wrong: Any) -> None:
    refused("invalid_operand", lambda: xb.tpu.rewrite(lambda x: x, [wrong]), "an array or a number", error=TypeError)


def test_a_value_of_a_loop_is_no_result() -> None:
    kept = []

    def body(state: xb.Value) -> xb.Value:
        kept.append(state * 2.0)
        return kept[0]

    def computation(x: Any) -> Any:
        xb.while_(x, condition=lambda s: s < 10.0, body=body)
        return kept[0]

    refused("foreign_value", lambda: xb.tpu.rewrite(computation, [1.0]))


def test_a_wrapper_does_not_take_the_programs_of_what_it_wraps() -> None:
    def computation(x: Any) -> Any:
        return x + 1.0

    assert plain(xb.tpu.rewrite(computation, [1.0])) == [2.0]

    @functools.wraps(computation)
    def doubled(x: Any) -> Any:
        return computation(x) * 2.0

    assert plain(xb.tpu.rewrite(doubled, [1.0])) == [4.0]


@pytest.mark.slow
def test_a_model_and_its_programs_go_when_nobody_holds_them() -> None:
    class Model:
        def note(self, value: Any) -> None: ...

        def step(self, x: Any) -> Any:
            return x, xb.tpu.outside_compilation(self.note, x)

    model = Model()
    xb.tpu.rewrite(model.step, [1.0])
    assert plain(xb.tpu.rewrite(copy.copy(model).step, [1.0])) == [1.0]
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
