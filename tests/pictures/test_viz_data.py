"""Data over pictures: badges, sums, colours and their scale, names that are meant and names that are not there."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import xbuild as xb
from examples.gallery import programs as shown
from interpreter import trace
from tests.pictures.support import contrast, needs_engine
from xbuild.cli import main
from xbuild.pictures import ViewError
from xbuild.pictures.data import STEPS, BoxData, Scale, by_instruction, colours, scale_of
from xbuild.pictures.drawing import draw
from xbuild.pictures.showing import picture_of
from xbuild.pictures.views import View

from ..golden import programs


def badges(program: Any, data: dict[Any, Any], **view: Any) -> dict[str, str]:
    picture = picture_of(program, View(**view), data)
    return {box.name: box.mark.words for box in picture.all_boxes() if box.mark}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"), (1_048_576, "1,048,576"), (-5, "-5"), (2.5, "2.5"), (3.0, "3"), (1e-7, "1e-07"), (1 / 3, "0.333333"),
        (2118.5, "2,118.5"), (1e300, "1e+300"), (10**400, "inf"), (math.nan, "nan"), (math.inf, "inf"),
        (np.float32(0.5), "0.5"), (np.int8(7), "7"), ("hot", "hot"), ("two\nlines", "two lines"),
        ("x" * 99, "x" * 27 + "…"),
    ],
)  # fmt: skip
def test_a_value_in_a_badge(value: Any, words: str) -> None:
    assert badges(programs.loop(), {"x": value}) == {"x": words}


def test_keys_are_instructions_values_and_names() -> None:
    x = xb.parameter(xb.Builder("main"), number=0, shape=xb.f32[2], name="x")
    y = xb.tanh(x)
    program = x.builder.build(xb.negate(y))
    data = {x: 1, y.instruction: 2, "main/negate.2": 3}
    assert badges(program, data) == {"x": "1", "tanh.1": "2", "negate.2": "3"}


def test_a_name_that_several_have_is_written_with_its_computation() -> None:
    def one(name: str) -> xb.Computation:
        x = xb.parameter(xb.Builder(name), number=0, shape=xb.f32[2], name="x")
        return x.builder.build(xb.tanh(x, name="y"))

    group = xb.ModuleGroup({0: xb.Module("m", one("main")), 1: xb.Module("m", one("main"))})
    with pytest.raises(
        ViewError,
        match=(
            "'y' is the name of 2 instructions; identify one of them by its computation, as in 'd0/main/y', 'd1/main/y'"
        ),
    ):
        badges(group, {"y": 1})
    picture = picture_of(group, View(), {"d1/main/y": 1})
    assert [box.id for box in picture.all_boxes() if box.mark] == ["d1/main/y"]  # type: ignore[union-attr]


def test_one_module_on_several_devices_has_one_name() -> None:
    module = xb.Module("m", programs.loop().entry)
    marks = by_instruction(xb.ModuleGroup({0: module, 1: module}), {"x": 1})
    assert [each.name for each in marks] == ["x"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"while.2": 1},
            r"data for 'while\.2': the program has no such instruction; did you mean 'while\.20'",
        ),
        ({"nxt/add.18": 1}, r"data for 'nxt/add\.18': .* did you mean 'next/add\.18'"),
        ({"x": None}, "data for 'x': expected a number or text, got None"),
        ({"x": True}, "data for 'x': expected a number or text, got True"),
        ({"x": [1]}, r"data for 'x': expected a number or text, got \[1\]"),
        ({"x": 1, "loop/x": 2}, "data contains 'x' twice; give each instruction one number or one string"),
        ({3: 1}, "data for 3: the program has no such instruction"),
        ({programs.loop().entry.root: 1}, r"data for 'conditional\.30': the program has no such instruction"),
    ],
)
def test_what_is_refused(data: dict[Any, Any], message: str) -> None:
    with pytest.raises(ViewError, match=message):
        xb.viz(programs.loop(), "txt", data=data)


def test_a_verdict_has_no_data() -> None:
    with pytest.raises(ViewError, match="data needs the boxes of a program, but a verdict has no boxes"):
        xb.viz(xb.check(programs.loop()), "txt", data={"x": 1})


def test_a_folded_box_has_the_sum_and_the_colour_of_the_highest() -> None:
    program = shown.tower(3)
    sizes = {each: n for n, each in enumerate(program.entry.instructions)}
    picture = picture_of(program, View(fold=("forward", "backward")), sizes)
    whole = [*draw(program, by_instruction(program, sizes)).all_boxes()]
    for box in picture.all_boxes():  # type: ignore[union-attr]
        inside = [each for each in whole if each.scope.startswith(box.name)] if box.holds else []
        if inside:
            numbers = [n for each in inside for n in each.mark.numbers]  # type: ignore[union-attr]
            assert box.mark.words == f"sum {sum(numbers):,}"  # type: ignore[union-attr]
            assert box.mark.highest == max(numbers)  # type: ignore[union-attr]
    total = sum(sum(box.mark.numbers) for box in picture.all_boxes() if box.mark)  # type: ignore[union-attr]
    assert total == sum(sum(box.mark.numbers) for box in whole if box.mark)


def test_a_caller_has_its_own_and_what_is_folded_into_it() -> None:
    data = {"while.20": 1, "all-reduce.13": 10, "multiply.16": 100}
    assert badges(programs.loop(), data, fold=("next",)) == {"while.20": "sum 111"}
    assert badges(programs.loop(), data) == {"while.20": "1", "all-reduce.13": "10", "multiply.16": "100"}


def test_texts_of_what_is_folded() -> None:
    body = ["all-reduce.13", "multiply.16", "add.18"]
    assert badges(programs.loop(), dict.fromkeys(body, "hot"), fold=("next",)) == {"while.20": "hot"}
    assert badges(programs.loop(), dict(zip(body, "aab", strict=True)), fold=("next",)) == {"while.20": "a, b"}
    assert badges(programs.loop(), dict(zip(body, "abc", strict=True)), fold=("next",)) == {"while.20": "3 texts"}
    assert badges(programs.loop(), dict(zip(body, [1, "a", 2], strict=True)), fold=("next",)) == {
        "while.20": "sum 3, a"
    }


def test_what_has_no_box_is_counted() -> None:
    program = programs.training_step()
    text = str(xb.viz(program, "txt", data=dict.fromkeys(program.entry.instructions, 1), data_name="ones"))
    boxes = draw(program).size
    left = len(program.entry.instructions) - boxes
    assert text.startswith(
        f"ones: {left} not shown, for instructions without a box, such as small constants\nones: 1 to 1\n"
    )


numbers = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(numbers, min_size=1))
def test_colours_follow_the_numbers(values: list[int | float]) -> None:
    scale = scale_of("n", values)
    steps = [(float(each), scale.step(BoxData((each,)))) for each in values]
    assert all((step is None) == (not math.isfinite(value)) for value, step in steps)
    found = sorted((value, step) for value, step in steps if step is not None)
    assert [step for _, step in found] == sorted(step for _, step in found)  # type: ignore[type-var]
    assert all(0 <= step < STEPS for _, step in found)
    if found and found[0][0] < found[-1][0]:
        assert (found[0][1], found[-1][1]) == (0, STEPS - 1)


def test_a_scale_over_many_orders_is_logarithmic() -> None:
    assert scale_of("n", [1, 1000]) == Scale("n", 1.0, 1000.0, is_log=False)
    assert scale_of("n", [1, 10**6]).is_log
    assert not scale_of("n", [0, 10**6]).is_log
    assert [scale_of("n", [1, 10**9]).step(BoxData((10**n,))) for n in range(9)] == list(range(9))
    assert scale_of("n", ["a", math.nan]) == Scale("n", None, None)
    assert scale_of("n", [1, 10**6]).description == "n: 1 to 1,000,000, logarithmic"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_on_every_colour(theme: str) -> None:
    found = [colours(step, theme) for step in range(STEPS)]
    assert all(contrast(*each) >= 4.5 for each in found if each)
    # By lightness alone, so that the order does not hang on seeing hues.
    against_black = [contrast(each[0], "#000000") for each in found if each]
    assert against_black == sorted(against_black, reverse=theme == "light")
    assert all(max(a, b) / min(a, b) > 1.05 for a, b in itertools.pairwise(against_black))


def test_a_picture_without_data_is_as_before() -> None:
    for form in ("svg", "html", "dot", "txt", "mermaid"):
        assert xb.viz(programs.loop(), form) == xb.viz(programs.loop(), form, data=None)
    assert 'class="mark"' not in str(xb.viz(programs.loop(), "svg"))


def test_every_form_has_the_numbers() -> None:
    data = {"x": 1234, "conditional.30": 5678}
    for form in ("svg", "html", "dot", "txt", "mermaid"):
        text = str(xb.viz(programs.loop(), form, data=data, data_name="cycles"))
        assert all(word in text for word in ("1,234", "5,678", "cycles")), form
        assert text == str(xb.viz(programs.loop(), form, data=data, data_name="cycles"))
    svg = str(xb.viz(programs.loop(), "svg", data=data))
    assert len(re.findall(r'class="shapes kF root m8"', svg)) == len(re.findall(r'class="shapes kP m0"', svg)) == 1
    assert svg.count('<g class="mark">') == 2


def test_nothing_in_data_is_markup() -> None:
    for form in ("svg", "html", "dot", "mermaid"):
        text = str(xb.viz(programs.loop(), form, data={"x": '<b onclick="1">'}, data_name="</script>\n<i>"))
        assert "<b onclick" not in text
        assert "<i>" not in text


@needs_engine
def test_png_and_pdf_have_data() -> None:
    plain, laid = (
        xb.viz(programs.loop(), "png", seconds=30, **each) for each in ({}, {"data": {"x": 1, "while.20": 9}})
    )  # type: ignore[arg-type]
    assert isinstance(laid, bytes)
    assert laid.startswith(b"\x89PNG")
    assert laid != plain


def test_how_often_each_ran_is_a_line() -> None:
    from collections import Counter

    module = shown.loop()
    run = trace(module, [[np.ones(8, np.float32)]] * 4)
    counts = Counter(event.instruction for event in run)
    found = badges(module, counts)
    assert found["x"] == "4"
    assert found["total"] == "40"


def command(tmp_path: Path, text: str, *options: str) -> Any:
    target, data = tmp_path / "loop.hlo", tmp_path / "cycles.json"
    target.write_text(programs.loop().to_hlo(), encoding="utf-8")
    data.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["viz", str(target), "--data", str(data), *options])


def test_the_command_lays_a_file_over_a_picture(tmp_path: Path) -> None:
    done = command(tmp_path, json.dumps({"x": 12, "next/multiply.16": 3.5, "while.20": "hot"}))
    assert done.exit_code == 0, done.output
    assert "cycles: 3.5 to 12\n" in done.output
    assert all(badge in done.output for badge in ("[12]", "[3.5]", "[hot]"))
    assert "flops: 1 to 1\n" in command(tmp_path, '{"x": 1}', "--data-name", "flops").output
    assert command(tmp_path, "{}").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cycles.json: invalid data: Expecting property name"),
        ("[1]", 'expected an object, such as {"add.3": 12}, got list'),
        ('{"x": 1, "x": 2}', "cycles.json: invalid data: the name 'x' occurs 2 times; expected each name once"),
        ("[" * 99_999, "cycles.json: invalid data: "),
        ('{"y": 1}', "data for 'y': the program has no such instruction"),
        ('{"x": null}', "expected a number or text, got None"),
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    done = command(tmp_path, text)
    assert done.exit_code == 2
    assert message in done.output


def test_options_of_data_want_data(tmp_path: Path) -> None:
    target = tmp_path / "loop.hlo"
    target.write_text(programs.loop().to_hlo(), encoding="utf-8")
    done = CliRunner().invoke(main, ["viz", str(target), "--data-name", "flops"])
    assert (done.exit_code, "--data-name has no effect without --data FILE.json" in done.output) == (2, True)
    done = CliRunner().invoke(main, ["viz", str(target), "--data", str(tmp_path / "none.json")])
    assert (done.exit_code, "none.json' cannot be read: No such file or directory" in done.output) == (2, True)
