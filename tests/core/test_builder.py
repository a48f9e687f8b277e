"""Recording: names, scopes and source lines."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import xbuild as xb
from tests.core.recording import value


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
