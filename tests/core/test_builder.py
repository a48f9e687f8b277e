"""Recording: names, scopes, source lines, numbers as operands, operators, regions, and what a builder refuses."""

from __future__ import annotations

import inspect
import operator
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import evaluate
from tests.support.compare import assert_same


def value(builder: xb.Builder, number: int = 0, shape: Any = None, name: str | None = None) -> xb.Value:
    return xb.parameter(builder, number=number, shape=xb.f32[3] if shape is None else shape, name=name)


def refused(kind: str, call: Callable[[], object]) -> xb.XbuildError:
    with pytest.raises(xb.XbuildError) as caught:
        call()
    assert caught.value.kind == kind, caught.value
    return caught.value


class TestNames:
    def test_one_counter_counts_all_instructions(self) -> None:
        x = value(xb.Builder("b"))
        y = xb.add(x, x)
        z = xb.multiply(y, y)
        assert [x.name, y.name, z.name] == ["parameter.1", "add.2", "multiply.3"]

    def test_names_are_hlos_spelling(self) -> None:
        x = value(xb.Builder("b"), shape=xb.TupleShape((xb.f32[2],)))
        assert xb.get_tuple_element(x, index=0).name == "get-tuple-element.2"

    def test_a_name_is_kept_and_takes_no_number(self) -> None:
        x = value(xb.Builder("b"), name="x")
        y = xb.add(x, x, name="twice")
        assert [x.name, y.name, xb.add(y, y).name] == ["x", "twice", "add.1"]

    def test_names_are_made_unique(self) -> None:
        x = value(xb.Builder("b"), name="x")
        names = [xb.add(x, x, name="y").name for _ in range(3)]
        assert names[0] == "y"
        assert len(set(names)) == 3
        assert all(name.startswith("y.") for name in names[1:])

    def test_a_given_name_is_not_given_out_again(self) -> None:
        x = value(xb.Builder("b"), name="add.1")
        assert xb.add(x, x).name != "add.1"

    def test_sub_builders_count_on(self) -> None:
        outer = xb.Builder("outer")
        x = value(outer)
        inner = outer.sub_builder("inner")
        y = value(inner)
        assert [x.name, y.name, xb.add(y, y).name, xb.add(x, x).name] == [
            "parameter.1",
            "parameter.2",
            "add.3",
            "add.4",
        ]

    def test_traced_regions_count_on(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s32[()])
        loop = xb.while_(x, condition=lambda n: n < 9, body=lambda n: n + n)
        names = [i.name for c in loop.instruction.called for i in c.instructions]
        numbers = [int(name.rpartition(".")[2]) for name in [x.name, *names, loop.name]]
        assert numbers == list(range(1, len(numbers) + 1))

    def test_computations_of_a_module_have_names_of_their_own(self) -> None:
        def step(n: xb.Value) -> xb.Value:
            return xb.call(n, to_apply=lambda m: m + m)

        x = value(xb.Builder("step"), shape=xb.s32[()])
        y = xb.call(xb.call(x, to_apply=step), to_apply=step)
        names = [c.name for c in x.builder.build(y).reachable()]
        assert len(names) == len(set(names)), names

    def test_two_builders_count_by_themselves(self) -> None:
        assert value(xb.Builder("a")).name == value(xb.Builder("b")).name == "parameter.1"


class TestScope:
    def test_scopes_nest(self) -> None:
        x = value(xb.Builder("b"))
        with xb.scope("model"):
            with xb.scope("layer"):
                inner = xb.add(x, x)
            outer = xb.add(x, x)
        after = xb.add(x, x)
        assert inner.instruction.annotations["metadata"]["op_name"] == "model/layer"
        assert outer.instruction.annotations["metadata"]["op_name"] == "model"
        assert "metadata" not in after.instruction.annotations

    def test_a_scope_ends_where_an_error_leaves_it(self) -> None:
        x = value(xb.Builder("b"))
        with pytest.raises(ZeroDivisionError), xb.scope("lost"):
            raise ZeroDivisionError
        assert "metadata" not in xb.add(x, x).instruction.annotations

    def test_regions_are_traced_inside_it(self) -> None:
        x = value(xb.Builder("b"))
        with xb.scope("inside"):
            y = xb.call(x, to_apply=lambda a: a + a)
        (region,) = y.instruction.called
        assert region.root.annotations["metadata"]["op_name"] == "inside"

    def test_control_edges_stand_beside_it(self) -> None:
        x = value(xb.Builder("b"))
        with xb.scope("s"), xb.control(after=[x]):
            y = xb.constant(x.builder, literal=1.0)
        assert y.instruction.control == (x.instruction,)
        assert y.instruction.annotations["metadata"]["op_name"] == "s"

    def test_the_text_holds_the_scope(self) -> None:
        x = value(xb.Builder("b"))
        with xb.scope("layer"):
            y = xb.add(x, x)
        assert 'op_name="layer' in xb.Module("m", x.builder.build(y)).to_hlo(metadata=True)


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


class TestSource:
    def at(self, recorded: xb.Value, line: int) -> bool:
        source = recorded.instruction.source
        return source is not None and source.file == __file__ and source.line == line

    def test_strict_op(self) -> None:
        x = value(xb.Builder("b"))
        assert self.at(xb.ops.add(x, x), here())

    def test_derived_form(self) -> None:
        x = value(xb.Builder("b"))
        assert self.at(xb.add(x, 1.0), here())

    def test_operator(self) -> None:
        x = value(xb.Builder("b"))
        assert self.at(x * 2.0, here())

    def test_every_instruction_of_a_derived_form(self) -> None:
        x = value(xb.Builder("b"), shape=xb.f32[2, 3])
        y = x + 1.0
        line = here() - 1
        recorded = x.builder.build(y).instructions[1:]
        assert len(recorded) > 1
        assert {i.source.line for i in recorded if i.source} == {line}

    def test_inside_a_region(self) -> None:
        x = value(xb.Builder("b"))
        lines = []

        def twice(a: xb.Value) -> xb.Value:
            lines.append(here() + 1)
            return a + a

        (region,) = xb.call(x, to_apply=twice).instruction.called
        assert region.root.source is not None
        assert (region.root.source.line, region.root.source.function) == (lines[0], "twice")

    def test_a_computation_is_traced_where_it_stands(self) -> None:
        @xb.computation(xb.f32[3])
        def twice(a: xb.Value) -> xb.Value:
            return a + a

        assert twice.root.source is not None
        assert twice.root.source.function == "twice"

    def test_a_call_over_several_lines_is_told_at_its_expression(self) -> None:
        x = value(xb.Builder("b"))
        start = here()
        y = xb.add(
            x,
            x,
        )
        assert y.instruction.source is not None
        assert start < y.instruction.source.line <= start + 4

    def test_a_folder_whose_name_begins_like_ours_is_the_users(self, tmp_path: Any) -> None:
        package = xb.__path__[0]
        script = tmp_path / "user.py"
        program = f"""
            import xbuild as xb
            x = xb.parameter(xb.Builder("b"), number=0, shape=xb.f32[3])
            code = compile("y = xb.add(x, x)", {package + "_models/layer.py"!r}, "exec")
            exec(code)
            print(y.instruction.source.file)
        """
        script.write_text(textwrap.dedent(program))
        root = package.removesuffix("xbuild")
        done = subprocess.run(
            [sys.executable, script], cwd=root, env={"PYTHONPATH": root}, capture_output=True, text=True
        )
        assert done.stdout.strip() == f"{package}_models/layer.py", done.stderr


class TestLiterals:
    """Numbers and arrays as operands take the element type of the value beside them."""

    @pytest.mark.parametrize("kind", [xb.f32, xb.bf16, xb.f8e4m3fn, xb.s8, xb.u4, xb.c64], ids=str)
    def test_a_number_becomes_a_constant_of_the_type(self, kind: xb.PrimitiveType) -> None:
        x = value(xb.Builder("b"), shape=kind[2, 3])
        for y in (xb.add(x, 1), xb.add(1, x), x + 1, 1 + x):
            assert y.shape == kind[2, 3]
        constant = x.builder.build().instructions[1]
        assert constant.opcode == "constant"
        assert constant.shape.plain() == kind[()]

    def test_a_bool_beside_pred(self) -> None:
        x = value(xb.Builder("b"), shape=xb.pred[3])
        assert xb.and_(x, True).shape == xb.pred[3]

    def test_an_array_keeps_its_dtype(self) -> None:
        x = value(xb.Builder("b"))
        assert xb.add(x, np.array([1, 2, 3], np.float32)).shape == xb.f32[3]
        refused("element_type_mismatch", lambda: xb.add(x, np.array([1, 2, 3], np.int32)))

    def test_an_array_on_the_left_of_an_operator(self) -> None:
        x = value(xb.Builder("b"))
        y = np.array([1, 2, 3], np.float32) - x
        assert isinstance(y, xb.Value)
        assert evaluate(x.builder.build(y), np.ones(3, np.float32)).tolist() == [0, 1, 2]

    def test_a_fraction_beside_integers_is_refused(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s32[3])
        with pytest.raises(xb.XbuildError, match=r"1\.5"):
            x + 1.5

    def test_a_number_that_does_not_fit_is_refused(self) -> None:
        x = value(xb.Builder("b"), shape=xb.s8[3])
        with pytest.raises(xb.XbuildError, match="300"):
            x + 300

    def test_an_array_that_changes_later_changes_no_program(self) -> None:
        array = np.zeros(3, np.float32)
        x = value(xb.Builder("b"))
        computation = x.builder.build(x + array)
        array[:] = 7
        assert evaluate(computation, np.ones(3, np.float32)).tolist() == [1, 1, 1]

    @pytest.mark.parametrize("wrong", ["text", None, {1}, [1, "a"]], ids=repr)
    def test_other_things_are_no_operands(self, wrong: object) -> None:
        x = value(xb.Builder("b"))
        error = refused("invalid_operand", lambda: xb.add(x, wrong))
        assert "add" in str(error)


BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
    "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt,    ">=": operator.ge,
}  # fmt: skip
# What NumPy's operator gives is what ours gives, on numbers where XLA's and NumPy's rules do not part.
ARGUMENTS = {
    "float": (np.array([1.5, 2.0, 4.0], np.float32), np.array([0.5, 4.0, 3.0], np.float32)),
    "int": (np.array([6, 7, 8], np.int32), np.array([2, 3, 5], np.int32)),
    "bool": (np.array([True, True, False]), np.array([True, False, False])),
}
APPLIES = {
    "float": ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">="],
    "int": ["+", "-", "*", "%", "**", "&", "|", "^", "<", "<=", ">", ">="],
    "bool": ["&", "|", "^", "<", "<=", ">", ">="],
}
CALLS = [(kind, symbol) for kind, symbols in APPLIES.items() for symbol in symbols]


class TestOperators:
    def both(self, kind: str) -> tuple[xb.Value, xb.Value]:
        builder = xb.Builder("b")
        dtype = ARGUMENTS[kind][0].dtype
        return value(builder, 0, xb.primitive_type(dtype)[3]), value(builder, 1, xb.primitive_type(dtype)[3])

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_values_on_both_sides(self, kind: str, symbol: str) -> None:
        x, y = self.both(kind)
        left, right = ARGUMENTS[kind]
        result = evaluate(x.builder.build(BINARY[symbol](x, y)), left, right)
        assert_same(result, BINARY[symbol](left, right), 1)

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_a_number_on_the_right(self, kind: str, symbol: str) -> None:
        x, _ = self.both(kind)
        left, right = ARGUMENTS[kind]
        number = right[0].item()
        result = evaluate(x.builder.build(BINARY[symbol](x, number)), left, right)
        assert_same(result, BINARY[symbol](left, right[0]), 1)

    @pytest.mark.parametrize(("kind", "symbol"), CALLS)
    def test_a_number_on_the_left(self, kind: str, symbol: str) -> None:
        _, y = self.both(kind)
        left, right = ARGUMENTS[kind]
        number = left[0].item()
        result = evaluate(y.builder.build(BINARY[symbol](number, y)), left, right)
        assert_same(result, BINARY[symbol](left[0], right), 1)

    def test_unary(self) -> None:
        x, _ = self.both("float")
        assert [(-x).instruction.opcode, abs(x).instruction.opcode] == ["negate", "abs"]
        p, _ = self.both("bool")
        assert (~p).instruction.opcode == "not"

    def test_matmul(self) -> None:
        builder = xb.Builder("b")
        x, y = value(builder, 0, xb.f32[2, 3]), value(builder, 1, xb.f32[3, 4])
        assert (x @ y).shape == xb.f32[2, 4]

    def test_matmul_with_an_array(self) -> None:
        x = value(xb.Builder("b"), 0, xb.f32[2, 3])
        assert (x @ np.ones((3, 4), np.float32)).shape == xb.f32[2, 4]
        assert (np.ones((5, 2), np.float32) @ x).shape == xb.f32[5, 3]

    @pytest.mark.parametrize(
        "index",
        [
            0,
            -1,
            slice(1, 3),
            slice(None, 2),
            (1, 2),
            (slice(None), 1),
            (..., 0),
            (slice(0, 2), slice(1, 4)),
        ],
        ids=str,
    )
    def test_index(self, index: Any) -> None:
        array = np.arange(12, dtype=np.int32).reshape(3, 4)
        x = value(xb.Builder("b"), 0, xb.s32[3, 4])
        result = evaluate(x.builder.build(x[index]), array)
        np.testing.assert_array_equal(result, array[index], strict=True)

    @pytest.mark.parametrize("index", [3, -4, (0, 4), (0, 0, 0), (None, 0, 0, 0), 1.0], ids=str)
    def test_an_index_out_of_range_is_refused(self, index: Any) -> None:
        x = value(xb.Builder("b"), 0, xb.s32[3, 4])
        with pytest.raises(xb.XbuildError):
            x[index]

    def test_equality_records_and_keys_are_by_identity(self) -> None:
        x, y = self.both("float")
        assert [(x == y).instruction.attributes.direction, (x != y).instruction.attributes.direction] == ["EQ", "NE"]
        assert len({x, y}) == 2
        assert (x == 1.0).shape == xb.pred[3]

    def test_a_value_has_no_truth(self) -> None:
        x, y = self.both("float")
        with pytest.raises(TypeError, match="select"):
            bool(x < y)

    def test_a_tuple_unpacks_and_an_array_does_not(self) -> None:
        x, y = self.both("float")
        first, second = xb.tuple_(x, y)
        assert [first.shape, second.shape] == [x.shape, y.shape]
        with pytest.raises(TypeError, match="no tuple"):
            iter(x)

    def test_operators_broadcast_as_add_does(self) -> None:
        builder = xb.Builder("b")
        x, y = value(builder, 0, xb.f32[2, 3]), value(builder, 1, xb.f32[()])
        assert (x + y).shape == (y - x).shape == xb.f32[2, 3]
        refused("rank_mismatch", lambda: x + value(builder, 2, xb.f32[3]))


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
        assert "test_builder.py" in text

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
