"""Assertions on programs: every form of a collective, the faults they report, and injected changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.testing import ContractError

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
HEAD = "HloModule step, num_partitions=8\n" + SUM.replace("  ", "\n  ").replace("{ ", "{\n  ").replace(" }", "\n}")
GROUPS = "channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=sum"


def entry(*lines: str) -> str:
    return (
        HEAD
        + "\nENTRY main {\n  x = f32[16] parameter(0)\n  y = f32[16] parameter(1)\n  "
        + "\n  ".join(lines)
        + "\n}\n"
    )


LOOP = f"""
body {{
  s = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[16] get-tuple-element(s), index=1
  r = f32[16] all-reduce(v), {GROUPS}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[16]) tuple(j, r)
}}
cond {{
  s = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT less = pred[] compare(i, five), direction=LT
}}
"""

# Each form of an all-reduce with its counts of instructions, arrays and executions, and its bytes on a device.
FORMS = {
    "synchronous": (entry(f"ROOT r = f32[16] all-reduce(x), {GROUPS}"), (1, 1, 1), 64),
    "renamed": (entry(f"ROOT all-gather.7 = f32[16] all-reduce(x), {GROUPS}"), (1, 1, 1), 64),
    "asynchronous": (
        entry(f"s = f32[16] all-reduce-start(x), {GROUPS}", "ROOT d = f32[16] all-reduce-done(s)"),
        (1, 1, 1),
        64,
    ),
    "combined": (
        entry(f"ROOT r = (f32[16], f32[16]) all-reduce(x, y), {GROUPS}"),
        (1, 2, 1),
        128,
    ),
    "split": (
        entry(
            f"a = f32[16] all-reduce(x), {GROUPS}",
            f"b = f32[16] all-reduce(y), {GROUPS.replace('=1', '=2')}",
            "ROOT t = (f32[16], f32[16]) tuple(a, b)",
        ),
        (2, 2, 2),
        128,
    ),
    "wrapped in an async-start": (
        HEAD
        + f"\nwrapped {{\n  p = f32[16] parameter(0)\n  ROOT r = f32[16] all-reduce(p), {GROUPS}\n}}\n"
        + entry(
            "s = ((f32[16]), f32[16], u32[]) async-start(x), calls=wrapped",
            "ROOT d = f32[16] async-done(s), calls=wrapped",
        ).removeprefix(HEAD),
        (1, 1, 1),
        64,
    ),
    "in a loop of five trips": (
        HEAD
        + LOOP
        + entry(
            "zero = s32[] constant(0)",
            "t = (s32[], f32[16]) tuple(zero, x)",
            "w = (s32[], f32[16]) while(t), condition=cond, body=body",
            "ROOT r = f32[16] get-tuple-element(w), index=1",
        ).removeprefix(HEAD),
        (1, 1, 5),
        320,
    ),
    "in an async fusion": (
        HEAD
        + f"\nfused {{\n  p = f32[16] parameter(0)\n  r = f32[16] all-reduce(p), {GROUPS}\n"
        + "  ROOT n = f32[16] negate(r)\n}\n"
        + "\nwrapped {\n  p = f32[16] parameter(0)\n  ROOT f = f32[16] fusion(p), kind=kCustom, calls=fused\n}\n"
        + entry(
            "fusion-start = ((f32[16]), f32[16], u32[]) async-start(x), calls=wrapped",
            "ROOT d = f32[16] async-done(fusion-start), calls=wrapped",
        ).removeprefix(HEAD),
        (1, 1, 1),
        64,
    ),
    "in the branch with less work": (
        HEAD
        + f"\nsummed {{\n  p = f32[16] parameter(0)\n  ROOT r = f32[16] all-reduce(p), {GROUPS}\n}}\n"
        + "\nlong {\n  p = f32[16] parameter(0)\n  q = f32[16] exponential(p)\n  ROOT r = f32[16] tanh(q)\n}\n"
        + entry(
            "which = pred[] parameter(2)",
            "ROOT c = f32[16] conditional(which, x, y), true_computation=summed, false_computation=long",
        ).removeprefix(HEAD),
        (1, 1, 1),
        64,
    ),
    "in a call": (
        HEAD
        + f"\ncallee {{\n  p = f32[16] parameter(0)\n  ROOT r = f32[16] all-reduce(p), {GROUPS}\n}}\n"
        + entry("ROOT c = f32[16] call(x), to_apply=callee").removeprefix(HEAD),
        (1, 1, 1),
        64,
    ),
}
UNITS = ("instructions", "arrays", "executions")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_an_all_reduce_counts_as_the_contract_says(form: str) -> None:
    text, counts, size = FORMS[form]
    for unit, count in zip(UNITS, counts, strict=True):
        found = xb.testing.assert_collectives(text, unit=unit, all_reduce=count, all_gather=0, others=0)
        assert found.bytes == size
        with pytest.raises(ContractError, match=rf"expected {count + 1} all-reduce {unit}, got {count}"):
            xb.testing.assert_collectives(text, unit=unit, all_reduce=count + 1)
    xb.testing.assert_collectives(text, bytes_at_most=size)
    with pytest.raises(ContractError, match=f"expected at most {size - 1} bytes in collectives, got {size}"):
        xb.testing.assert_collectives(text, bytes_at_most=size - 1)
    assert [each.is_async for each in xb.testing.collectives(text)] == ["async" in form] * counts[0]


MESH = xb.Mesh(data=2, model=4)


def test_axes_are_those_of_the_mesh_and_the_collectives_along_one_are_counted() -> None:
    text = entry(
        f"a = f32[16] all-reduce(x), {GROUPS}",
        "g = f32[32] all-gather(y), channel_id=2, replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0},"
        " use_global_device_ids=true",
        "ROOT t = (f32[16], f32[32]) tuple(a, g)",
    )
    assert [each.axes for each in xb.testing.collectives(text, mesh=MESH)] == [("model",), ("data",)]
    xb.testing.assert_collectives(text, mesh=MESH, axis="model", all_reduce=1, others=0)
    xb.testing.assert_collectives(text, mesh=MESH, axis="data", all_gather=1, others=0, bytes_at_most=128)
    xb.testing.assert_collectives(text, mesh=MESH, all_reduce={"model": 1, "data": 0}, all_gather={"data": range(1, 3)})
    with pytest.raises(ContractError, match="expected 1 to 2 all-gather instructions along axis model, got 0"):
        xb.testing.assert_collectives(text, mesh=MESH, all_gather={"model": range(1, 3)})


def permuted(pairs: str) -> str:
    return entry(f"ROOT r = f32[16] collective-permute(x), channel_id=1, source_target_pairs={{{pairs}}}")


@pytest.mark.parametrize(
    ("pairs", "axes"),
    [("{0,1},{1,0}", ("model",)), ("{0,4},{4,0}", ("data",)), ("{0,5},{5,0}", ("data", "model")), ("{3,3}", ())],
)
def test_a_permutation_is_along_the_axes_in_which_its_pairs_differ(pairs: str, axes: tuple[str, ...]) -> None:
    (found,) = xb.testing.collectives(permuted(pairs), mesh=MESH)
    assert found.axes == axes
    counts = {axis: int(axis in axes) for axis in ("data", "model")}
    xb.testing.assert_collectives(permuted(pairs), mesh=MESH, collective_permute=counts)


def test_a_file_detects_that_a_permutation_changes_its_axis(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("XBUILD_UPDATE_CONTRACTS", "1")
    xb.testing.contract("step", permuted("{0,1},{1,0}"), mesh=MESH, folder=tmp_path)
    monkeypatch.delenv("XBUILD_UPDATE_CONTRACTS")
    with pytest.raises(ContractError, match="pairs along axis data"):
        xb.testing.contract("step", permuted("{0,4},{4,0}"), mesh=MESH, folder=tmp_path)


@pytest.mark.parametrize("dtype", ["bf16", "f32", "s8"])
def test_only_collectives_of_an_element_type_are_counted(dtype: str) -> None:
    kinds = ("bf16", "f32", "s8")
    lines = [
        f"c{n} = {kind}[16] parameter({n + 2})\n  g{n} = {kind}[32] all-gather(c{n}), channel_id={n + 1}, "
        "replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}, use_global_device_ids=true"
        for n, kind in enumerate(kinds)
    ]
    text = entry(*lines, "ROOT t = (bf16[32], f32[32], s8[32]) tuple(g0, g1, g2)")
    found = xb.testing.assert_collectives(text, dtype=dtype, all_gather=1, others=0)
    assert [each.dtypes for each in found] == [(dtype,)]
    xb.testing.assert_collectives(text, dtype=np.float64, all_gather=0)
    with pytest.raises(ContractError, match=f"expected 2 all-gather instructions of element type {dtype}, got 1"):
        xb.testing.assert_collectives(text, dtype=dtype, all_gather=2)
    with pytest.raises(TypeError, match="'f31' is not an XLA element type"):
        xb.testing.assert_collectives(text, dtype="f31", all_gather=1)


def test_the_number_may_be_open_but_not_empty() -> None:
    text = FORMS["split"][0]
    xb.testing.assert_collectives(text, all_reduce=xb.testing.at_least(2))
    with pytest.raises(ContractError, match="expected at least 3 all-reduce instructions, got 2"):
        xb.testing.assert_collectives(text, all_reduce=xb.testing.at_least(3))
    empty = r"the range for the number of all-reduce instructions must not be empty, got range\(3, 3\)"
    with pytest.raises(TypeError, match=empty):
        xb.testing.assert_collectives(text, all_reduce=range(3, 3))


def test_every_fault_of_a_contract_is_reported_at_once() -> None:
    text = FORMS["combined"][0]
    with pytest.raises(ContractError) as caught:
        xb.testing.assert_collectives(text, all_reduce=2, all_gather=1, bytes_at_most=1)
    first, *table = str(caught.value).splitlines()
    assert first == (
        "expected 2 all-reduce instructions, got 1, expected 1 all-gather instruction, got 0 "
        "and expected at most 1 bytes in collectives, got 128"
    )
    assert len(table) == 2
    assert "all-reduce" in table[1]


def test_only_collectives_of_a_scope_are_counted() -> None:
    named = ', metadata={op_name="jit(step)/dense/psum"}'
    text = entry(
        f"a = f32[16] all-reduce(x), {GROUPS}{named}",
        f"b = f32[16] all-reduce(y), {GROUPS.replace('=1', '=2')}",
        "ROOT t = (f32[16], f32[16]) tuple(a, b)",
    )
    xb.testing.assert_collectives(text, scope="dense", all_reduce=1)
    xb.testing.assert_collectives(text, scope="attention", all_reduce=0)


def test_what_is_no_contract_is_refused() -> None:
    text = FORMS["synchronous"][0]
    with pytest.raises(TypeError, match="'allreduce' is not a collective; expected one of all_reduce, "):
        xb.testing.assert_collectives(text, allreduce=1)
    with pytest.raises(TypeError, match="unit='ops'; expected one of instructions, arrays, executions"):
        xb.testing.assert_collectives(text, unit="ops", all_reduce=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a JAX function with its arguments, or a program .* got int"):
        xb.testing.assert_collectives(3, all_reduce=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got Module and 1 arguments"):
        xb.testing.assert_no_deadlock(xb.parse_hlo(text), 1)


def test_memory_and_flops_are_those_of_the_cost() -> None:
    text = FORMS["synchronous"][0]
    found = xb.cost(xb.parse_hlo(text))
    assert xb.testing.assert_memory(text, at_most=found.reserved_memory).peak_memory == found.peak_memory
    assert xb.testing.assert_flops(text, at_most=found.flops).flops == found.flops
    reserved = found.reserved_memory
    with pytest.raises(ContractError, match=f"at most {reserved - 1:,} bytes of memory, got {reserved:,}\n"):
        xb.testing.assert_memory(text, at_most=reserved - 1)
    with pytest.raises(ContractError, match=rf"at most {found.flops - 1:,} FLOPs .* got {found.flops:,}\n"):
        xb.testing.assert_flops(text, at_most=found.flops - 1)


def branching(decides: str) -> str:
    """A program that enters a branch with an all-reduce where a predicate holds."""
    return (
        HEAD
        + f"\nyes {{\n  p = f32[16] parameter(0)\n  ROOT r = f32[16] all-reduce(p), {GROUPS}\n}}\n"
        + "\nno {\n  ROOT p = f32[16] parameter(0)\n}\n"
        + entry(
            "zero = s32[] constant(0)",
            "n = s32[] convert(partition)" if "partition" in decides else "n = s32[] parameter(2)",
            "here = pred[] compare(n, zero), direction=EQ",
            "ROOT c = f32[16] conditional(here, x, x), true_computation=yes, false_computation=no",
        )
        .removeprefix(HEAD)
        .replace("  zero", f"  {decides}\n  zero" if "partition" in decides else "  zero")
    )


def test_a_deadlock_fails_with_its_report_and_depends_passes() -> None:
    with pytest.warns(xb.testing.DataDependentWarning, match="if the predicate of c differs between"):
        assert xb.testing.assert_no_deadlock(branching("an argument")).kind == "depends"
    with pytest.raises(ContractError, match=r"^depends: "):
        xb.testing.assert_no_deadlock(branching("an argument"), strict=True)
    assert xb.testing.assert_no_deadlock(FORMS["synchronous"][0], strict=True).kind == "ok"
    hangs = branching("partition = u32[] partition-id()")
    verdict = xb.check(xb.parse_hlo(hangs))
    assert verdict.kind == "deadlock"
    with pytest.raises(ContractError) as caught:
        xb.testing.assert_no_deadlock(hangs)
    assert str(caught.value) == str(verdict)
    with pytest.raises(xb.Refused) as refused:
        verdict.raise_if_refused()
    assert str(refused.value) == str(verdict)
    assert refused.value.verdict is verdict


def test_equivalence_of_programs() -> None:
    spec = xb.f32[8]
    square = xb.computation(spec)(lambda x: x * x)
    assert xb.testing.assert_equivalent(square, xb.computation(spec)(lambda x: xb.pow(x, 2.0))).kind == "equal"
    with pytest.raises(ContractError, match="different"):
        xb.testing.assert_equivalent(square, xb.computation(spec)(lambda x: x * x * x))


# ----------------------------------------------------------------------------
# Contracts in files


def random_step(seed: int) -> list[dict[str, Any]]:
    """Collectives along random axes of a mesh of 2 x 2 x 2 devices."""
    draw = np.random.default_rng(seed)
    ops = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    return [
        {"op": ops[draw.integers(4)], "axis": int(draw.integers(3)), "extent": int(8 * draw.integers(1, 5))}
        for _ in range(draw.integers(2, 6))
    ]


def spell(step: list[dict[str, Any]]) -> str:
    """The HLO text of a list of collectives, one after the other."""
    devices = np.arange(8).reshape(2, 2, 2)
    lines, value = [], "x"
    for number, each in enumerate(step):
        groups = np.moveaxis(devices, each["axis"], -1).reshape(4, 2).tolist()
        shared = f"channel_id={number + 1}, use_global_device_ids=true, replica_groups=" + str(
            "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"
        )
        n = each["extent"]
        lines.append(f"i{number} = f32[{n}] broadcast(zero), dimensions={{}}")
        after = {
            "all-reduce": f"f32[{n}] all-reduce(i{number}), {shared}, to_apply=sum",
            "all-gather": f"f32[{2 * n}] all-gather(i{number}), {shared}, dimensions={{0}}",
            "reduce-scatter": f"f32[{n // 2}] reduce-scatter(i{number}), {shared}, dimensions={{0}}, to_apply=sum",
            "all-to-all": f"f32[{n}] all-to-all(i{number}), {shared.replace(', use_global_device_ids=true', '')}"
            ", dimensions={0}",
        }[each["op"]]
        lines.append(f"c{number} = {after}")
        value = f"c{number}"
    lines.append(f"ROOT r = (f32[16], {lines[-1].split(' ')[2]}) tuple(x, {value})")
    return entry("zero = f32[] constant(0)", *lines)


BOX = xb.Mesh(a=2, b=2, c=2)


@pytest.mark.parametrize("change", ["extra", "removed", "axis"])
def test_a_file_catches_each_injected_change(change: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(30):
        step = random_step(seed)
        monkeypatch.setenv("XBUILD_UPDATE_CONTRACTS", "1")
        xb.testing.contract(f"step{seed}", spell(step), mesh=BOX, folder=tmp_path)
        monkeypatch.setenv("XBUILD_UPDATE_CONTRACTS", "0")
        xb.testing.contract(f"step{seed}", spell(step), mesh=BOX, folder=tmp_path)
        at = seed % len(step)
        changed = {
            "extra": [*step[:at], step[at], *step[at:]],
            "removed": [*step[:at], *step[at + 1 :]],
            "axis": [*step[:at], {**step[at], "axis": (step[at]["axis"] + 1) % 3}, *step[at + 1 :]],
        }[change]
        with pytest.raises(ContractError, match=f"contract step{seed} has changed") as caught:
            xb.testing.contract(f"step{seed}", spell(changed), mesh=BOX, folder=tmp_path)
        assert re.search(rf"^[-+]{step[at]['op']}", str(caught.value), re.MULTILINE)


def test_a_file_outlives_line_numbers_names_and_asynchronous_forms(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("XBUILD_UPDATE_CONTRACTS", "1")
    place = ', metadata={{op_name="step/psum" source_file="train.py" source_line={line}}}'
    before = entry(f"ROOT r = f32[16] all-reduce(x), {GROUPS}{place.format(line=10)}")
    xb.testing.contract("step", before, folder=tmp_path)
    monkeypatch.delenv("XBUILD_UPDATE_CONTRACTS")
    after = entry(
        f"start.9 = f32[16] all-reduce-start(x), {GROUPS}{place.format(line=99)}",
        "ROOT d = f32[16] all-reduce-done(start.9)",
    )
    xb.testing.contract("step", after, folder=tmp_path)
    kept = (tmp_path / "step.txt").read_text()
    assert kept.splitlines()[0] == "# xbuild contract of step: 8 devices"
    assert "all-reduce" in kept
    assert "step/psum" in kept
    assert "train.py" in kept
    assert "10" not in kept


@pytest.mark.parametrize("name", ["../up", ".hidden", "a/b", "", "a b"])
def test_a_name_that_is_no_file_name_is_refused(name: str, tmp_path: Any) -> None:
    with pytest.raises(xb.XbuildError, match="is not a file name"):
        xb.testing.contract(name, FORMS["synchronous"][0], folder=tmp_path)
