"""The verdict: layouts of inputs and outputs, what is not decided, errors, plain data, the command."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter.fields import run as field_run
from shape_inference import XbuildError
from xbuild.cli import main
from xbuild.sharding.sharding import Axis, Sharding, shard_dims

f = xb.f32
LINE = xb.Mesh(i=4)
I = Axis("i", 4)  # noqa: E741


def local(function: Any, *shapes: Any, devices: int = 4) -> xb.Module:
    return xb.Module("local", xb.computation(*shapes)(function), num_partitions=devices)


def summed(x: Any) -> Any:
    return xb.all_reduce(
        xb.reduce(x, 0.0, xb.add, (0,)), xb.add, [[0, 1, 2, 3]], channel_id=1, use_global_device_ids=True
    )


def masked(x: Any) -> Any:
    """The sum of the rows of a device, of which the last device holds one that counts."""
    rows = xb.iota(x.builder, xb.s32[3, 2], 0) + xb.convert(xb.partition_id(x.builder), xb.s32) * np.int32(3)
    return summed(xb.select(rows < np.int32(10), x, 0.0))


WHOLE = xb.computation(f[8, 2])(lambda x: xb.reduce(x, 0.0, xb.add, (0,)))
UNEVEN = xb.computation(f[10, 2])(lambda x: xb.reduce(x, 0.0, xb.add, (0,)))
SMALLER = shard_dims(xb.Mesh(i=2), [[Axis("i", 2)]])
ROWS = [(slice(2 * n, 2 * n + 2), slice(None)) for n in range(4)]


@pytest.mark.parametrize("inputs", [None, [shard_dims(LINE, [[I]])], [ROWS]], ids=["by shapes", "sharding", "slices"])
def test_layouts_of_inputs(inputs: Any) -> None:
    assert xb.equivalent(WHOLE, local(summed, f[2, 2]), inputs=inputs)
    assert xb.equivalent(WHOLE, local(lambda x: summed(x) * 2.0, f[2, 2]), inputs=inputs).kind == "different"


def test_the_shardings_of_a_partitioned_program_are_taken() -> None:
    rows = shard_dims(LINE, [[I]])
    double = xb.computation(f[8, 2])(lambda x: x + x)
    part = SimpleNamespace(module=local(lambda x: x * 2.0, f[2, 2]), in_shardings=[rows], out_shardings=(rows,))
    assert xb.equivalent(double, part)
    other = shard_dims(xb.Mesh({"i": 4}, device_ids=[1, 0, 2, 3]), [[I]])
    turned = SimpleNamespace(module=part.module, in_shardings=[rows], out_shardings=[other])
    assert xb.equivalent(double, turned).kind == "different"


def test_a_global_program_may_count_partitions() -> None:
    whole = xb.Module("whole", WHOLE, num_partitions=4)
    assert xb.equivalent(whole, local(summed, f[2, 2]), inputs=[shard_dims(LINE, [[I]])])


def test_what_pads_an_uneven_part_is_random() -> None:
    sharding = [shard_dims(LINE, [[I]])]
    assert xb.equivalent(UNEVEN, local(masked, f[3, 2]), inputs=sharding)
    assert xb.equivalent(UNEVEN, local(summed, f[3, 2]), inputs=sharding).kind == "different"


def test_parts_by_offsets() -> None:
    sharding = [Sharding(LINE, shard_dims(LINE, [[I]]).dims, offsets=(0, 3, 6, 9, 10))]
    assert xb.equivalent(UNEVEN, local(masked, f[3, 2]), inputs=sharding)


def test_terms_of_a_sum_are_summed() -> None:
    rows, terms = [shard_dims(LINE, [[I]])], [shard_dims(LINE, [[]], [I])]
    part = local(lambda x: xb.reduce(x, 0.0, xb.add, (0,)), f[2, 2])
    assert xb.equivalent(WHOLE, part, inputs=rows, outputs=terms)
    assert xb.equivalent(WHOLE, part, inputs=rows, outputs=[None]).kind == "different"
    same = xb.computation(f[2])(lambda x: x * 3.0)
    assert xb.equivalent(same, local(lambda x: x * 3.0, f[2]), inputs=terms, outputs=terms)
    assert xb.equivalent(same, local(lambda x: x * x, f[2]), inputs=terms, outputs=terms).kind == "different"


def test_parts_of_axes_cut_in_their_order() -> None:
    mesh = xb.Mesh(i=4)
    outer, inner = Axis("i", 2), Axis("i", 2, pre_size=2)
    double, part = xb.computation(f[4, 4])(lambda x: x + x), local(lambda x: x * 2.0, f[2, 2])
    ways = [shard_dims(mesh, [[outer], [inner]]), shard_dims(mesh, [[inner], [outer]])]
    assert xb.equivalent(double, part, inputs=[ways[0]], outputs=[ways[0]])
    assert xb.equivalent(double, part, inputs=[ways[0]], outputs=[ways[1]]).kind == "different"


def test_given_arguments_are_kept() -> None:
    pair = [xb.computation(xb.s32[2])(each) for each in (lambda n: n + 0, lambda n: n * n)]
    assert xb.equivalent(*pair).kind == "different"
    assert xb.equivalent(*pair, arguments={0: [0, 1]})


DYNAMIC = """HloModule dynamic
ENTRY main {
  x = f32[4] parameter(0)
  n = s32[] parameter(1)
  ROOT s = f32[<=4] set-dimension-size(x, n), dimensions={0}
}
"""


BITS = """HloModule bits
ENTRY main {
  x = f4e2m1fn[4,2] parameter(0)
  ROOT y = s8[4] bitcast-convert(x)
}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DYNAMIC, "dimensions whose extent is known only at run time"),
        (BITS, "bits of complex numbers, or of floats below a byte"),
    ],
)
def test_what_is_not_decided_is_named(text: str, reason: str) -> None:
    module = xb.parse_hlo(text)
    found = xb.equivalent(module, module)
    assert (found.kind, found.undecided) == ("undecided", (reason,))
    assert reason in str(found)


PARTS_OF_BITS = """HloModule parts
ENTRY main {{
  x = f32[2,3] parameter(0)
  y = f32[2,3] {op}(x, x)
  bits = bf16[2,3,2] bitcast-convert(y)
  halves = f16[2,3,2] convert(bits)
  ROOT whole = s32[2,3] bitcast-convert(halves)
}}
"""
IN_A_ROW = """HloModule row
ENTRY main {
  x = f32[2,3] parameter(0)
  row = f32[6] reshape(x)
  y = f32[6] add(row, row)
  words = u32[6] bitcast-convert(y)
  bits = bf16[6,2] bitcast-convert(words)
  halves = f16[6,2] convert(bits)
  whole = s32[6] bitcast-convert(halves)
  ROOT rows = s32[2,3] reshape(whole)
}
"""


def test_bits_are_read_as_types_of_other_widths() -> None:
    assert xb.equivalent(PARTS_OF_BITS.format(op="add"), IN_A_ROW)
    assert xb.equivalent(PARTS_OF_BITS.format(op="multiply"), IN_A_ROW).kind == "different"


ANNOTATED = """HloModule annotated
combine {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  here = f32[] custom-call(a), custom_call_target="Sharding", sharding={replicated}
  both = f32[] add(here, b)
  ROOT there = f32[] custom-call(both), custom_call_target="Sharding", sharding={replicated}
}
ENTRY main {
  x = f32[4,3] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[4] reduce(x, zero), dimensions={1}, to_apply=combine
}
"""


def test_a_reducer_may_annotate_values_with_shardings() -> None:
    plain = xb.computation(xb.f32[4, 3])(lambda x: xb.reduce(x, 0.0, xb.add, (1,)))
    maximum = xb.computation(xb.f32[4, 3])(lambda x: xb.reduce(x, 0.0, xb.maximum, (1,)))
    assert xb.equivalent(ANNOTATED, plain)
    assert xb.equivalent(ANNOTATED, maximum).kind == "different"
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(xb.evaluate(xb.parse_hlo(ANNOTATED).entry, x), x.sum(1))


FOLDED = """HloModule folded
ENTRY main {{
  x = f32[3] parameter(0)
  wave = f32[3] sine(x)
  {scale}
  ROOT y = f32[3] multiply(wave, many)
}}
"""
COMPUTED = """two = f32[] constant(2)
  steps = f32[3] iota(), iota_dimension=0
  slope = f32[] tan(two)
  slopes = f32[3] broadcast(slope), dimensions={}
  many = f32[3] multiply(slopes, steps)"""
TABLE = "many = f32[3] constant({0, -2.1850398, %s})"


def test_a_function_of_literals_is_equal_to_a_literal_that_is_near() -> None:
    whole = FOLDED.format(scale=COMPUTED)
    found = xb.equivalent(whole, FOLDED.format(scale=TABLE % "-4.3700795"))
    assert found, str(found)
    assert dict(found.assumed)["literals"] > 0
    assert xb.equivalent(whole, FOLDED.format(scale=TABLE % "-4.37")).kind != "equal"
    assert xb.equivalent(whole, FOLDED.format(scale=TABLE % "-4.7")).kind == "different"


MASKED = """HloModule masked
largest {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}}
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[2,4] parameter(0)
  keep = pred[2,4] {keep}
  low = f32[] constant({low})
  lows = f32[2,4] broadcast(low), dimensions={{}}
  scores = f32[2,4] select(keep, x, lows)
  none = f32[] constant(-inf)
  top = f32[2] reduce(scores, none), dimensions={{1}}, to_apply=largest
  tops = f32[2,4] broadcast(top), dimensions={{0}}
  away = f32[2,4] subtract(scores, tops)
  weights = f32[2,4] exponential(away)
  zero = f32[] constant(0)
  total = f32[2] reduce(weights, zero), dimensions={{1}}, to_apply=sum
  totals = f32[2,4] broadcast(total), dimensions={{0}}
  ROOT y = f32[2,4] divide(weights, totals)
}}
"""
KEPT, OTHERS, BY_DATA = "constant({{1,0,0,0},{1,1,0,0}})", "constant({{1,0,0,0},{0,1,0,0}})", "parameter(1)"


@pytest.mark.parametrize(
    ("low", "keep", "other", "kind"),
    [
        ("-1e9", KEPT, KEPT, "equal"),
        ("-5", KEPT, KEPT, "different"),
        ("-1e9", KEPT, OTHERS, "different"),
        ("-1e9", BY_DATA, BY_DATA, "different"),  # a row without keys
    ],
)
def test_a_finite_mask_is_compared_with_an_infinite_one(low: str, keep: str, other: str, kind: str) -> None:
    found = xb.equivalent(MASKED.format(keep=keep, low=low), MASKED.format(keep=other, low="-inf"))
    assert found.kind == kind, str(found)
    assert ("masks" in dict(found.assumed)) == (kind == "equal")


def test_a_degree_that_is_too_high_is_named() -> None:
    def powers(x: Any) -> Any:
        for _ in range(40):
            x = x * x
        return x

    def doubled_powers(x: Any) -> Any:
        x = x * 2.0
        for _ in range(40):
            x = x * x * 0.5
        return x * 0.5

    found = xb.equivalent(xb.computation(f[2])(powers), xb.computation(f[2])(doubled_powers))
    assert found.kind == "undecided"
    assert f"degree {2**40}" in found.undecided[0]


def always(state: Any) -> Any:
    return xb.constant(state.builder, np.bool_(True))


def test_a_run_that_does_not_end_is_named() -> None:
    program = xb.computation(f[2])(lambda x: xb.while_(x, always, lambda y: y, builder=x.builder))
    found = xb.equivalent(program, program, limits=xb.Limits(trips=100))
    assert (found.kind, found.undecided) == ("undecided", ("a run stopped: limit_trips",))


@pytest.mark.parametrize(
    ("other", "options", "told"),
    [
        (local(summed, f[4, 2]), {}, "these shapes do not determine which part each device holds"),
        (local(summed, f[2, 2]), {"inputs": [None, None]}, "1 input and the other has 1, but 2 layouts are given"),
        (local(summed, f[2, 2]), {"inputs": [ROWS[:2]]}, "got 2 tuples"),
        (local(summed, f[2, 2]), {"inputs": [SMALLER]}, "the mesh of its sharding has 2 devices"),
        (
            local(summed, f[2, 2]),
            {"inputs": [shard_dims(LINE, [[], []])]},
            "should hold an array with dimensions [8, 2]",
        ),
        (
            local(summed, f[2, 2]),
            {"inputs": [Sharding(LINE, shard_dims(LINE, [[I]]).dims, halo_sizes=(1, 1))]},
            "halos",
        ),
        (xb.computation(f[4])(lambda x: x), {}, "(f32[8,2]) in one program and (f32[4]) in the other"),
    ],
)  # fmt: skip
def test_layouts_that_do_not_fit_are_refused(other: Any, options: Any, told: str) -> None:
    with pytest.raises(XbuildError) as caught:
        xb.equivalent(WHOLE, other, **options)
    assert caught.value.kind == "invalid_attribute"
    assert told in str(caught.value)


def test_programs_of_several_devices_are_given_the_same() -> None:
    module = local(summed, f[2, 2])
    assert xb.equivalent(module, module)
    assert xb.equivalent(module, local(lambda x: summed(x) + summed(x), f[2, 2])).kind == "different"
    with pytest.raises(XbuildError, match="the first program has 4 devices and the second has 2"):
        xb.equivalent(module, local(lambda x: x, f[2, 2], devices=2))


def test_a_global_program_may_be_the_second_one() -> None:
    whole = xb.computation(f[8, 2])(lambda x: xb.tanh(xb.mul(x, 2.0, name="twice"), name="bent"))
    part = local(lambda x: xb.tanh(xb.mul(x, 3.0, name="thrice"), name="curved"), f[2, 2])
    rows = [shard_dims(LINE, [[I]])]
    layouts = {"inputs": rows, "outputs": rows}
    assert xb.equivalent(part, xb.computation(f[8, 2])(lambda x: xb.tanh(x * 3.0)), **layouts)
    found = xb.equivalent(part, whole, values={"thrice": ("twice", rows[0])}, **layouts)
    assert found.difference is not None
    assert found.difference.value is not None
    assert found.difference.value.name == "twice"


def test_values_that_are_to_be_the_same_are_named() -> None:
    whole = xb.computation(f[8, 2])(lambda x: xb.tanh(xb.mul(x, 2.0, name="twice"), name="bent"))
    part = local(lambda x: xb.tanh(xb.mul(x, 3.0, name="thrice"), name="curved"), f[2, 2])
    rows = [shard_dims(LINE, [[I]])]
    values = {"twice": ("thrice", rows[0]), "bent": ("curved", rows[0]), "other": ("none", None)}
    found = xb.equivalent(whole, part, inputs=rows, outputs=rows, values=values)
    assert found.difference is not None
    assert found.difference.value is not None
    assert found.difference.other is not None
    assert (found.difference.value.name, found.difference.other.name) == ("twice", "thrice")
    assert (found.difference.output, found.difference.device, found.difference.element) == (None, 0, (0, 0))
    assert "differs on device 0 at [0, 0] from multiply %thrice" in str(found)


DEGREES = {
    "product": (lambda x, y: x * y * x, 3),
    "sum": (lambda x, y: x + y * y, 2),
    "dot": (lambda x, y: xb.dot_general(x, y, [0], [0]) * xb.dot_general(x, y, [0], [0]), 4),
    "sum of quotients": (lambda x, y: xb.reduce(x / y, 0.0, xb.add), 16),
    "dot of quotients": (lambda x, y: xb.dot_general(x / y, x, [0], [0]), 17),
    "inverse of a dot of quotients": (lambda x, y: 1.0 / xb.dot_general(x / y, x, [0], [0]), 17),
    "square": (lambda x, y: xb.pow(x, 5.0), 5),
    "function": (lambda x, y: xb.exp(x * x * x) * y, 3),
    "product of all": (lambda x, y: xb.reduce(x, 1.0, xb.multiply), 8),
}


@pytest.mark.parametrize("name", DEGREES)
def test_the_degree_is_bounded_from_above(name: str) -> None:
    function, degree = DEGREES[name]
    program = xb.computation(f[8], f[8])(function)
    found = xb.equivalent(program, program)
    assert degree <= found.degree <= 4 * degree + 8


def test_degrees_of_devices_that_go_other_ways() -> None:
    def cube(x: Any) -> Any:
        return x * x * x

    def program(x: Any) -> Any:
        here = xb.partition_id(x.builder) == np.uint32(2)
        return xb.conditional(here, x, cube, x, lambda y: y + y)

    module = local(program, f[4])
    assert xb.equivalent(module, module).degree == 3


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a Computation, a Module or a ModuleGroup"):
        xb.equivalent(WHOLE, "x + y")


def test_plain_data() -> None:
    found = xb.equivalent(WHOLE, local(lambda x: summed(x) * 2.0, f[2, 2])).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["kind"], found["difference"]["output"], found["difference"]["device"]) == ("different", 0, 0)


GLOBAL = """HloModule product
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,8] parameter(0), sharding={mesh['data'=2,'model'=2], [{'data'}, {'model'}]}
  w = f32[8,6] parameter(1), sharding={mesh['data'=2,'model'=2], [{'model'}, {}]}
  y = f32[4,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[] constant(0)
  s = f32[4] reduce(y, n), dimensions={1}, to_apply=add
  ROOT t = (f32[4,6], f32[4]) tuple(y, s)
}
"""


def test_partitioned_programs_from_text_state_their_layouts(tmp_path: Any) -> None:
    whole, cut, wrong = (tmp_path / name for name in ("whole.hlo", "cut.hlo", "wrong.hlo"))
    whole.write_text(GLOBAL)
    run = CliRunner().invoke
    text = run(main, ["shard", str(whole), "--partitioned"]).stdout
    assert 'xbuild.out_shardings="{{devices=[2,1,2]' in text
    cut.write_text(text)
    found = run(main, ["equivalent", str(whole), str(cut)])
    assert (found.exit_code, found.stdout.partition(":")[0]) == (0, "equal")
    wrong.write_text(re.sub(r"all-reduce\((\S+)\),[^\n]*", r"copy(\1)", text))
    found = run(main, ["equivalent", str(whole), str(wrong)])
    assert (found.exit_code, found.stdout.partition(":")[0]) == (1, "different")
    assert f"{wrong} diverges at copy %all-reduce" in found.stdout.replace("\n    ", " ")
    assert run(main, ["equivalent", str(cut), str(wrong)]).exit_code == 1
    turned = run(main, ["equivalent", str(cut), str(whole)])
    assert (turned.exit_code, turned.stdout) == (0, run(main, ["equivalent", str(whole), str(cut)]).stdout)
    assert f"they are compared in this order: {whole}, {cut}" in turned.stderr
    assert xb.testing.assert_equivalent(str(cut), str(whole)).kind == "equal"
    assert xb.equivalent(cut, whole)


def test_the_command(tmp_path: Any) -> None:
    for name, function in (("a", lambda x: x * 2.0), ("b", lambda x: x + x), ("c", lambda x: x * x)):
        (tmp_path / f"{name}.hlo").write_text(xb.Module(name, xb.computation(f[4])(function)).to_hlo())
    (tmp_path / "d.hlo").write_text(DYNAMIC)
    paths = [str(tmp_path / f"{name}.hlo") for name in "abcd"]

    def run(*words: str) -> Any:
        return CliRunner().invoke(main, ["equivalent", *words])

    assert run(paths[0], paths[1]).exit_code == 0
    assert "equal: both programs compute the same function" in run(paths[0], paths[1]).stdout
    assert (run(paths[0], paths[2]).exit_code, run(paths[3], paths[3]).exit_code) == (1, 0)
    assert run(paths[3], paths[3], "--strict").exit_code == 1
    assert json.loads(run(paths[0], paths[2], "--json").stdout)["kind"] == "different"


def test_domains_of_the_command(tmp_path: Any) -> None:
    for name, function in (("a", lambda x: xb.sqrt(x) * xb.sqrt(x)), ("b", lambda x: x * 1.0)):
        (tmp_path / f"{name}.hlo").write_text(xb.Module(name, xb.computation(f[4])(function)).to_hlo())
    paths = [str(tmp_path / "a.hlo"), str(tmp_path / "b.hlo")]

    def run(*words: str) -> Any:
        return CliRunner().invoke(main, ["equivalent", *paths, *words])

    assert run().exit_code == 1
    assert "for ordinary inputs" in " ".join(run().stdout.split())
    for each in ("0=nonnegative", "0=1:2", "0=[0,5]"):
        found = run("--domain", each)
        assert found.exit_code == 0, found.output
        assert "compared only on the numbers of a domain: 1 argument (domain)" in found.stdout
    for wrong in ("0", "0=1:x", "x=unit", "0=1"):
        found = run("--domain", wrong)
        assert found.exit_code == 2
        assert "expected N=KIND" in found.output
    assert run("--domain", "0=unit", "--domain", "0=positive").exit_code == 2
    assert "expected one of positive" in run("--domain", "0=small").output


SLOW = """HloModule slow
condition {
  s = (s32[], f32[200,200]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9000)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[200,200]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[200,200] get-tuple-element(s), index=1
  y = f32[200,200] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[200,200]) tuple(j, y)
}
ENTRY main {
  x = f32[200,200] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[200,200]) tuple(zero, x)
  w = (s32[], f32[200,200]) while(t), condition=condition, body=body
  ROOT r = f32[200,200] get-tuple-element(w), index=1
}
"""


def test_the_command_at_its_limit_gives_no_verdict(tmp_path: Any) -> None:
    path = tmp_path / "slow.hlo"
    path.write_text(SLOW)
    found = CliRunner().invoke(main, ["equivalent", str(path), str(path), "--max-seconds", "1"])
    assert found.exit_code == 3
    assert found.stdout == ""
    assert "stopped: reached the limit of 1 seconds while running the program" in found.stderr


def test_an_interrupt_ends_the_comparison(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slow.hlo"
    path.write_text(SLOW)
    plain = field_run.value

    def interrupted(instruction: Any, *given: Any) -> Any:
        if instruction.opcode == "dot":
            raise KeyboardInterrupt
        return plain(instruction, *given)

    monkeypatch.setattr(field_run, "value", interrupted)
    module = xb.parse_hlo(SLOW)
    with pytest.raises(KeyboardInterrupt):
        xb.equivalent(module, module)
    found = CliRunner().invoke(main, ["equivalent", str(path), str(path)])
    assert (found.exit_code, found.stdout) == (130, "")
    assert "interrupted, without a verdict" in found.stderr
