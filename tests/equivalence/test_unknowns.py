"""What programs do not say: functions of custom calls, elements of constants, and how pieces are on the devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter.fields.layouts import layout_of
from shape_inference import XbuildError
from xbuild.cli import main
from xbuild.core.callbacks import CALLBACKS

CALL = """HloModule m{header}
ENTRY e {{
  x = f32[{rows},6] parameter(0)
  w = f32[6] parameter(1)
  n = f32[{rows},6] custom-call({operands}), custom_call_target="Norm", backend_config="{config}"{effect}
  ROOT r = f32[{rows},6] {op}(n, x)
}}"""


def call(
    operands: str = "x, w", *, config: str = "0", op: str = "add", rows: int = 4, effect: str = "", devices: int = 1
) -> str:
    header = f", replica_count={devices}" if devices > 1 else ""
    return CALL.format(operands=operands, config=config, op=op, rows=rows, effect=effect, header=header)


def test_calls_of_one_unknown_function_with_equal_operands_are_equal() -> None:
    verdict = xb.equivalent(call(), call().replace("(n, x)", "(x, n)"))
    assert verdict, str(verdict)
    assert dict(verdict.assumed) == {"functions": 2}


@pytest.mark.parametrize("other", [call(op="multiply"), call().replace("add(n, x)", "add(n, n)")])
def test_results_of_unknown_functions_that_are_used_otherwise_differ(other: str) -> None:
    assert xb.equivalent(call(), other).kind == "different"


@pytest.mark.parametrize("other", [call(config="1"), call().replace("(x, w)", "(y, w)").replace(
    "n = f32", "y = f32[4,6] negate(x)\n  n = f32")])  # fmt: skip
def test_what_unknown_functions_of_other_operands_return_is_open(other: str) -> None:
    verdict = xb.equivalent(call(), other)
    assert verdict.kind == "undecided"
    assert "apply unknown functions (Norm) to different operands" in verdict.reason


def test_calls_with_effects_tokens_or_computations_are_not_decided() -> None:
    verdict = xb.equivalent(*[call(effect=", custom_call_has_side_effect=true")] * 2)
    assert verdict.undecided == ("the user's functions (Norm)",)


def test_a_registered_function_decides_whether_results_differ() -> None:
    shifted = call().replace("(x, w)", "(y, w)").replace("n = f32", "y = f32[4,6] add(x, x)\n  n = f32")
    assert xb.equivalent(call(), shifted).kind == "undecided"
    try:
        xb.custom_call_target("Norm")(lambda x, w: x / np.abs(x).sum() * w)
        assert xb.equivalent(call(), shifted).kind == "undecided"  # equal in numbers, but by a law
        xb.custom_call_target("Norm")(lambda x, w: x * w)
        assert xb.equivalent(call(), shifted).kind == "different"
    finally:
        CALLBACKS.pop("Norm")


def test_rows_of_a_function_may_be_on_different_devices() -> None:
    whole, local = call(rows=8), call(rows=4, devices=2)
    assert xb.equivalent(whole, local).kind == "undecided"
    verdict = xb.equivalent(whole, local, rowwise={"Norm": [0]})
    assert verdict, str(verdict)
    assert "Norm along [0]" in str(verdict)
    assert xb.equivalent(whole, call(rows=4, devices=2, op="subtract"), rowwise={"Norm": [0]}).kind == "different"


def test_rows_of_a_target_that_no_call_has_are_refused() -> None:
    with pytest.raises(XbuildError, match=r"no custom call of an unknown function has the target 'norm'.* are: Norm"):
        xb.equivalent(call(), call(), rowwise={"norm": [0]})


def test_results_of_several_types() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[4] parameter(0)
      c = (f32[4], s32[2], pred[], c64[3]) custom-call(x), custom_call_target="Many"
      a = f32[4] get-tuple-element(c), index=0
      b = s32[2] get-tuple-element(c), index=1
      p = pred[] get-tuple-element(c), index=2
      z = c64[3] get-tuple-element(c), index=3
      y = f32[4] select(p, a, x)
      ROOT t = (f32[4], s32[2], c64[3]) tuple(y, b, z)
    }"""
    assert xb.equivalent(text, text)
    assert xb.equivalent(text, text.replace("select(p, a, x)", "select(p, x, a)")).kind == "different"


def test_transfers_through_a_ring_are_copies() -> None:
    text = """HloModule m
    ENTRY e { x = f32[4] parameter(0)
              ROOT y = f32[4] custom-call(x), custom_call_target="AwsNeuronTransferWithStaticRing" }"""
    assert xb.equivalent(text, xb.computation(xb.f32[4])(lambda x: x * 1.0))
    assert xb.evaluate(xb.parse(text).entry, [1.0, 2.0, 3.0, 4.0]).tolist() == [1.0, 2.0, 3.0, 4.0]


# ----------------------------------------------------------------------------
# Constants whose elements are omitted from the text.

ELIDED = """HloModule m{header}
ENTRY e {{
  x = f32[{rows},6] parameter(0)
  {constants}
  b = f32[{rows},6] broadcast({name}), dimensions={{1}}
  ROOT r = f32[{rows},6] {op}(x, b)
}}"""


def elided(name: str = "c", *, op: str = "multiply", rows: int = 4, devices: int = 1, extra: str = "") -> str:
    constants = f"{name} = f32[6] constant({{...}})" + extra
    header = f", replica_count={devices}" if devices > 1 else ""
    return ELIDED.format(name=name, op=op, constants=constants, rows=rows, header=header)


def test_the_only_omitted_constants_of_a_shape_are_one_unknown() -> None:
    verdict = xb.equivalent(elided(), elided("d"))
    assert verdict, str(verdict)
    assert dict(verdict.assumed)["constants"] == 1
    assert "%c of one program and %d of the other, f32[6]" in str(verdict)
    assert verdict.to_dict()["details"]["constants"] == ["%c of one program and %d of the other, f32[6]"]
    assert xb.equivalent(elided(), elided(op="subtract")).kind == "different"
    assert xb.equivalent(elided(), elided(rows=2, devices=2))


def test_omitted_constants_are_equal_on_all_devices() -> None:
    gathered = elided(rows=2, devices=2).replace(
        "ROOT r = f32[2,6] multiply(x, b)",
        "g = f32[4,6] all-gather(b), dimensions={0}, replica_groups={{0,1}}\n  "
        "h = f32[2,6] slice(g), slice={[2:4], [0:6]}\n  ROOT r = f32[2,6] multiply(x, h)",
    )
    assert xb.equivalent(elided(rows=2, devices=2), gathered)


def test_several_omitted_constants_need_pairs() -> None:
    two = elided(extra="\n  k = f32[6] constant({...})").replace("broadcast(c)", "broadcast(s)").replace(
        "b = f32", "s = f32[6] subtract(c, k)\n  b = f32")  # fmt: skip
    verdict = xb.equivalent(two, two)
    assert verdict.undecided == ("constants whose elements are omitted from the text",)
    assert "constants={NAME: OTHER}" in verdict.reason
    assert xb.equivalent(two, two, constants={"c": "c", "k": "k"})
    assert xb.equivalent(two, two, constants={"c": "k", "k": "c"}).kind == "different"
    with pytest.raises(XbuildError, match=r"second program has no constant %q with omitted elements.* are: %c, %k"):
        xb.equivalent(two, two, constants={"c": "q"})


# ----------------------------------------------------------------------------
# Pieces of a dimension.


def fused(parts: tuple[int, ...], *, devices: int = 1, order: tuple[int, ...] = (0, 1, 2), sliced: bool = True) -> Any:
    """A product with a matrix of three pieces, which are added with weights 1, 2, 3."""
    ends = np.cumsum((0, *parts))

    def body(x: Any, w: Any) -> Any:
        both = xb.dot(x, w)
        pieces = [xb.slice(both, [0, ends[n]], [4, ends[n + 1]], [1, 1]) for n in order]
        sums = [xb.reduce(piece, 0.0, xb.add, (1,)) * float(n + 1) for n, piece in enumerate(pieces)]
        total = sums[0] + sums[1] + sums[2]
        if devices == 1:
            return total
        groups = [[*range(devices)]]
        return xb.all_reduce(total, xb.add, groups, channel_id=1, use_global_device_ids=True)

    return xb.Module("m", xb.computation(xb.f32[4, 6], xb.f32[6, sum(parts)])(body), num_partitions=devices)


def test_pieces_that_both_programs_slice_are_found() -> None:
    verdict = xb.equivalent(fused((8, 4, 4)), fused((4, 2, 2), devices=2))
    assert verdict, str(verdict)
    assert "an equal part of each of 8, 4 and 4 elements of dimension 1" in verdict.details["layouts"][0]
    assert xb.equivalent(fused((8, 4, 4)), fused((4, 2, 2), devices=2, order=(0, 2, 1))).kind == "different"
    assert xb.equivalent(fused((8, 4, 4)), fused((4, 2, 2), devices=2, order=(0, 0, 2))).kind == "different"


@pytest.mark.parametrize(
    "layout", [{1: (8, 4, 4)}, [(slice(None), (slice(0, 4), slice(8, 10), slice(12, 14))),
                                (slice(None), (slice(4, 8), slice(10, 12), slice(14, 16)))]],
)  # fmt: skip
def test_pieces_can_be_stated(layout: Any) -> None:
    pair = fused((8, 4, 4)), fused((4, 2, 2), devices=2)
    verdict = xb.equivalent(*pair, inputs={1: layout})
    assert verdict, str(verdict)
    assert not verdict.details
    assert xb.equivalent(*pair, inputs={1: {1: (16,)}}).kind == "different"


@pytest.mark.parametrize(
    ("layout", "told"),
    [({2: (8, 8)}, "pieces of one dimension"), ({1: (9, 7)}, "each has to be a multiple of 2"),
     ({1: (8, 4)}, "their sum is 12"), ({0: (6,)}, "should hold an array with dimensions"),
     ({}, "pieces of one dimension")],
)  # fmt: skip
def test_pieces_that_do_not_fit_are_refused(layout: Any, told: str) -> None:
    with pytest.raises(XbuildError, match=told) as caught:
        layout_of(layout, xb.f32[6, 16], xb.f32[6, 8], 2, "input 1")
    assert caught.value.kind == "invalid_attribute"


def test_a_layout_of_an_input_that_is_none_is_refused() -> None:
    with pytest.raises(XbuildError, match="a layout is given for input 5, but the program has 2"):
        xb.equivalent(fused((8, 4, 4)), fused((4, 2, 2), devices=2), inputs={5: {1: (16,)}})


# ----------------------------------------------------------------------------
# The command.


def test_the_command_takes_rows_and_constants(tmp_path: Path) -> None:
    files = {"whole.hlo": call(rows=8), "local.hlo": call(rows=4, devices=2), "one.hlo": elided("c"),
             "two.hlo": elided("d", extra="\n  e = f32[6] constant({...})")}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def run(words: str) -> str:
        found = CliRunner().invoke(
            main, ["equivalent", *(str(tmp_path / w) if ".hlo" in w else w for w in words.split())]
        )
        return found.output

    assert run("whole.hlo local.hlo").startswith("undecided")
    assert run("whole.hlo local.hlo --rows Norm=0").startswith("equal")
    assert run("one.hlo two.hlo").startswith("undecided")
    assert run("one.hlo two.hlo --constant c=d").startswith("equal")
    assert "compared in this order: " in run("local.hlo whole.hlo --rows Norm=0")
    (tmp_path / "cut.hlo").write_text(elided("d", rows=2, devices=2, extra="\n  e = f32[6] constant({...})"))
    assert run("one.hlo cut.hlo --constant c=d").startswith("equal")
    turned = run("cut.hlo one.hlo --constant d=c")
    assert "compared in this order: " in turned
    assert "\nequal: both programs compute" in turned
    assert "made smaller" in run("one.hlo one.hlo --extents smaller")
    assert "expected TARGET=DIMENSIONS" in run("one.hlo two.hlo --rows Norm")
    assert "expected NAME=OTHER" in run("one.hlo two.hlo --constant c")
