"""Recording: regions, what a builder refuses, and computations."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.core.recording import refused, value


class TestRegions:
    def test_a_computation_a_function_and_an_op_are_the_same(self) -> None:
        @xb.computation(xb.f32[()], xb.f32[()])
        def total(a: xb.Value, b: xb.Value) -> xb.Value:
            return xb.add(a, b)

        results = []
        for region in (total, lambda a, b: a + b, xb.add, xb.ops.add):
            x = value(xb.Builder("b"), 0, xb.f32[4])
            y = xb.reduce(x, xb.constant(x.builder, literal=np.float32(0)), to_apply=region, dimensions=[0])
            results.append(float(evaluate(x.builder.build(y), np.array([1, 2, 3, 4], np.float32))))
        assert results == [10.0] * 4

    def test_an_op_is_traced_once_for_each_signature(self) -> None:
        x = value(xb.Builder("b"))
        first, second = (xb.call((x, x), to_apply=xb.add).instruction.called[0] for _ in range(2))
        assert first is second
        s = value(x.builder, 1, xb.s32[2])
        assert xb.call((s, s), to_apply=xb.add).instruction.called[0] is not first

    def test_a_region_returns_a_tuple(self) -> None:
        x = value(xb.Builder("b"))
        assert xb.call(x, to_apply=lambda a: (a, (a, a))).shape == xb.parse_shape("(f32[3], (f32[3], f32[3]))")

    def test_a_region_that_returns_no_value_is_refused(self) -> None:
        x = value(xb.Builder("b"))
        assert "returned" in str(refused("not_a_computation", lambda: xb.call(x, to_apply=lambda a: None)))

    def test_a_thing_that_is_no_region_is_refused(self) -> None:
        x = value(xb.Builder("b"))
        refused("not_a_computation", lambda: xb.call(x, to_apply=3))

    def test_an_outer_value_inside_a_region_is_refused(self) -> None:
        x = value(xb.Builder("outer"), name="x")
        error = refused("foreign_value", lambda: xb.call(x, to_apply=lambda a: a + x))
        text = str(error)
        assert "%x" in text
        assert "outer" in text
        assert "pass the value as an operand" in text

    def test_an_outer_value_as_a_regions_result_is_refused(self) -> None:
        x = value(xb.Builder("outer"))
        refused("foreign_value", lambda: xb.call(x, to_apply=lambda a: x))

    def test_an_error_inside_a_region_tells_the_line_inside(self) -> None:
        x = value(xb.Builder("b"))

        def wrong(a: xb.Value) -> xb.Value:
            return xb.reshape(a, new_sizes=(4,))

        with pytest.raises(xb.ShapeError) as caught:
            xb.call(x, to_apply=wrong)
        assert "in wrong" in str(caught.value)
        assert str(caught.value).startswith("reshape:")

    def test_a_region_of_the_wrong_signature_is_refused(self) -> None:
        @xb.computation(xb.s32[()], xb.s32[()])
        def total(a: xb.Value, b: xb.Value) -> xb.Value:
            return a + b

        x = value(xb.Builder("b"))
        refused("signature_mismatch", lambda: xb.call((x, x), to_apply=total))

    def test_a_function_of_another_arity_is_refused(self) -> None:
        x = value(xb.Builder("b"))
        refused("arity_mismatch", lambda: xb.call(x, to_apply=lambda a, b: a))

    def test_regions_nest(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s32[()])
        y = xb.while_(x, condition=lambda n: n < 50, body=lambda n: xb.call(n, to_apply=lambda m: m * 3))
        assert int(evaluate(x.builder.build(y), 2)) == 54

    def test_branches_are_functions(self) -> None:
        builder = xb.Builder("b")
        p, x = value(builder, 0, xb.pred[()]), value(builder, 1)
        y = xb.conditional(p, (x, x), branch_computations=(lambda a: a + a, lambda a: -a))
        assert evaluate(builder.build(y), False, [1.0, 2.0, 3.0]).tolist() == [-1, -2, -3]


class TestRefusals:
    def test_a_value_of_another_builder(self) -> None:
        x, y = value(xb.Builder("one"), name="x"), value(xb.Builder("two"), name="y")
        text = str(refused("foreign_value", lambda: xb.add(x, y)))
        assert "one" in text
        assert "two" in text
        assert "%y" in text

    def test_build_twice(self) -> None:
        x = value(xb.Builder("once"))
        x.builder.build(x)
        assert "once" in str(refused("builder_finished", lambda: x.builder.build(x)))

    def test_an_op_after_build(self) -> None:
        x = value(xb.Builder("done"))
        x.builder.build(x)
        text = str(refused("builder_finished", lambda: xb.add(x, x)))
        assert "done" in text
        assert "test_builder_regions.py" in text

    def test_nothing_recorded(self) -> None:
        refused("missing_parameter", xb.Builder("empty").build)

    def test_a_root_of_another_builder(self) -> None:
        x = value(xb.Builder("one"))
        other = value(xb.Builder("two"))
        assert "two" in str(refused("foreign_value", lambda: other.builder.build(x)))

    def test_a_parameter_number_twice(self) -> None:
        x = value(xb.Builder("b"))
        assert "0" in str(refused("duplicate_parameter", lambda: value(x.builder, 0)))

    def test_a_parameter_number_left_out(self) -> None:
        x = value(xb.Builder("b"), number=1)
        text = str(refused("missing_parameter", lambda: x.builder.build(x)))
        assert "[1]" in text
        assert "0..0" in text

    def test_a_negative_parameter_number(self) -> None:
        refused("invalid_attribute", lambda: value(xb.Builder("b"), number=-1))

    def test_parameters_in_any_order(self) -> None:
        builder = xb.Builder("b")
        second, first = value(builder, 1, xb.s32[2]), value(builder, 0, xb.f32[3])
        computation = builder.build(xb.tuple_(first, second))
        assert str(computation.program_shape) == "(f32[3], s32[2]) -> (f32[3], s32[2])"

    def test_an_op_without_a_builder(self) -> None:
        for call in (xb.ops.tuple_, xb.ops.after_all):
            assert "builder" in str(refused("no_builder", lambda call=call: call(())))

    def test_a_builder_where_none_is_asked(self) -> None:
        builder = xb.Builder("b")
        assert xb.tuple_((), builder=builder).shape == xb.TupleShape()
        assert xb.after_all(builder=builder).shape == xb.token

    def test_too_many_and_too_few_operands(self) -> None:
        x = value(xb.Builder("b"))
        for call in (lambda: xb.ops.abs(x, x), lambda: xb.ops.select(x, x)):
            refused("arity_mismatch", call)

    def test_misspelt_and_missing_attributes(self) -> None:
        x = value(xb.Builder("b"))
        assert "direction" in str(refused("invalid_attribute", lambda: xb.ops.compare(x, x, directoin="LT")))
        assert "missing" in str(refused("invalid_attribute", lambda: xb.ops.compare(x, x)))

    def test_a_refused_op_leaves_no_trace(self) -> None:
        x = value(xb.Builder("b"), name="x")
        refused("rank_mismatch", lambda: xb.ops.add(x, value(x.builder, 1, xb.f32[()], "s")))
        y = xb.ops.add(x, x)
        assert y.name == "add.1"
        assert [i.name for i in x.builder.build(y).instructions] == ["x", "s", "add.1"]


class TestComputations:
    def test_the_root_is_the_last_unless_it_is_named(self) -> None:
        x = value(xb.Builder("b"), name="x")
        y = xb.add(x, x, name="y")
        assert y.builder.build().root.name == "y"
        z = value(xb.Builder("b"), name="z")
        xb.add(z, z)
        assert z.builder.build(z).root.name == "z"

    def test_a_graph_has_an_edge_for_each_operand_and_control(self) -> None:
        x = value(xb.Builder("b"), name="x")
        with xb.control(after=[x]):
            c = xb.constant(x.builder, literal=np.ones(3, np.float32), name="c")
        y = xb.add(x, c, name="y")
        graph = x.builder.build(y).graph()
        edges = {(a.name, b.name, kind) for a, b, kind in graph.edges(data="kind")}
        assert edges == {("x", "c", "control"), ("x", "y", "operand"), ("c", "y", "operand")}

    def test_modules_refuse_counts_that_cannot_be(self) -> None:
        computation = value(xb.Builder("b")).builder.build()
        for count in ("num_replicas", "num_partitions"):
            with pytest.raises(ValueError, match=count):
                xb.Module("m", computation, **{count: 0})
        with pytest.raises(TypeError, match="Computation"):
            xb.Module("m", xb.Builder("not_built"))

    def test_deep_programs_are_walked_without_recursion(self) -> None:
        x = value(xb.Builder("b"))
        y = x
        for _ in range(5000):
            y = xb.ops.add(y, x)
        computation = x.builder.build(y)
        assert len(computation.reachable()) == 1
        assert len(str(computation).splitlines()) > 5000
