"""Axes of devices as extents: one device of each kind is enough, unless a program depends on their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import xbuild as xb
from interpreter.fields import reduction
from interpreter.fields.comparison import ProgramComparison
from interpreter.fields.device_axes import axes_of_groups, axes_of_numbers, axis_extents, rows_of
from interpreter.fields.layouts import ResolvedLayouts
from xbuild.sharding.sharding import Axis, shard_dims

ROWS, PARTS = 24, 2
DEVICES = ROWS * PARTS
MESH = xb.Mesh(b=ROWS, t=PARTS)
B, T = Axis("b", ROWS), Axis("t", PARTS)

ADD = """
add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q)
}
"""

WHOLE = f"""HloModule whole
{ADD}
ENTRY e {{
  x = f32[{2 * ROWS},{4 * ROWS}] parameter(0)
  up = f32[{4 * ROWS},16] parameter(1)
  down = f32[16,8] parameter(2)
  labels = s32[{2 * ROWS}] parameter(3)
  zero = f32[] constant(0)
  h = f32[{2 * ROWS},16] dot(x, up), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  a = f32[{2 * ROWS},16] tanh(h)
  s = f32[{2 * ROWS},8] dot(a, down), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  q = f32[{2 * ROWS},8] multiply(s, s)
  m = f32[] reduce(q, zero), dimensions={{0,1}}, to_apply=add
  count = f32[] constant({16 * ROWS})
  n = f32[] divide(m, count)
  g = f32[{4 * ROWS},16] dot(x, a), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  c = f32[{4 * ROWS}] reduce(x, zero), dimensions={{0}}, to_apply=add
  i = s32[{2 * ROWS},16] iota(), iota_dimension=1
  l = s32[{2 * ROWS},16] broadcast(labels), dimensions={{0}}
  e = pred[{2 * ROWS},16] compare(i, l), direction=EQ
  f = f32[{2 * ROWS},16] convert(e)
  k = f32[{2 * ROWS},16] multiply(f, h)
  o = f32[{2 * ROWS}] reduce(k, zero), dimensions={{1}}, to_apply=add
  ROOT t = (f32[{2 * ROWS},8], f32[], f32[{4 * ROWS},16], f32[{4 * ROWS}], f32[{2 * ROWS}]) tuple(s, n, g, c, o)
}}"""


def listed(groups: Sequence[Sequence[int]]) -> str:
    """Groups as in a text."""
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


ALONG_B, ALONG_T = (listed(rows_of([axis], [ROWS, PARTS])) for axis in (0, 1))
OFFSETS = ",".join(str(8 * (device % PARTS)) for device in range(DEVICES))

LOCAL = f"""HloModule local, num_partitions={DEVICES}
{ADD}
ENTRY e {{
  x = f32[2,{4 * ROWS}] parameter(0)
  up = f32[4,8] parameter(1)
  down = f32[8,8] parameter(2)
  labels = s32[2] parameter(3)
  zero = f32[] constant(0)
  w = f32[{4 * ROWS},8] all-gather(up), channel_id=1, dimensions={{0}}, use_global_device_ids=true,
    replica_groups={ALONG_B}
  h = f32[2,8] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  a = f32[2,8] tanh(h)
  d = f32[2,8] dot(a, down), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[2,8] all-reduce(d), channel_id=2, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_T}
  q = f32[2,8] multiply(s, s)
  u = f32[] reduce(q, zero), dimensions={{0,1}}, to_apply=add
  m = f32[] all-reduce(u), channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_B}
  count = f32[] constant({16 * ROWS})
  n = f32[] divide(m, count)
  v = f32[{4 * ROWS},8] dot(x, a), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  g = f32[4,8] reduce-scatter(v), channel_id=4, use_global_device_ids=true, dimensions={{0}}, to_apply=add,
    replica_groups={ALONG_B}
  columns = f32[{4 * ROWS},2] transpose(x), dimensions={{1,0}}
  y = f32[{4 * ROWS},2] all-to-all(columns), channel_id=5, dimensions={{0}}, replica_groups={ALONG_B}
  parts = f32[{ROWS},4,2] reshape(y)
  c = f32[4] reduce(parts, zero), dimensions={{0,2}}, to_apply=add
  id = u32[] partition-id()
  j = s32[] convert(id)
  table = s32[{DEVICES}] constant({{{OFFSETS}}})
  row = s32[1] dynamic-slice(table, j), dynamic_slice_sizes={{1}}
  offset = s32[] reshape(row)
  spread = s32[2,8] broadcast(offset), dimensions={{}}
  i = s32[2,8] iota(), iota_dimension=1
  place = s32[2,8] add(i, spread)
  l = s32[2,8] broadcast(labels), dimensions={{0}}
  e = pred[2,8] compare(place, l), direction=EQ
  f = f32[2,8] convert(e)
  k = f32[2,8] multiply(f, h)
  z = f32[2] reduce(k, zero), dimensions={{1}}, to_apply=add
  o = f32[2] all-reduce(z), channel_id=6, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_T}
  ROOT t = (f32[2,8], f32[], f32[4,8], f32[4], f32[2]) tuple(s, n, g, c, o)
}}"""

INPUTS = [shard_dims(MESH, dims) for dims in ([[B], []], [[B], [T]], [[T], []], [[B]])]
OUTPUTS = [shard_dims(MESH, dims) for dims in ([[B], []], [], [[B], [T]], [[B]], [[B]])]


def compare(local: str, **given: Any) -> Any:
    return xb.equivalent(WHOLE, local, reduce_extents=True, **{"inputs": INPUTS, "outputs": OUTPUTS, **given})


def axes(verdict: Any) -> list[str]:
    """The axes of devices that are smaller."""
    return [text for text in verdict.details.get("extents", ()) if "axis of devices" in text]


def test_programs_of_many_devices_are_compared_on_few() -> None:
    verdict = compare(LOCAL)
    assert verdict, str(verdict)
    (text,) = axes(verdict)
    assert re.match(rf"{ROWS} to \d+, an axis of devices, of which neighbors are {PARTS} apart", text)
    assert int(text.split()[2].strip(",")) < ROWS


def swapped(text: str, name: str) -> str:
    """The program in which the first two groups of a collective have exchanged their second devices."""
    line = next(each for each in text.replace(",\n", ",").splitlines() if f" {name} = " in each)
    first, second = re.findall(r"{([\d,]+)}", line.split("replica_groups=")[1])[:2]
    one, two = first.split(","), second.split(",")
    one[1], two[1] = two[1], one[1]
    new = line.replace(first, ",".join(one), 1).replace(second, ",".join(two), 1)
    return text.replace(",\n", ",").replace(line, new)


def turned(text: str, name: str) -> str:
    """The program in which the first group of a collective has another order."""
    line = next(each for each in text.replace(",\n", ",").splitlines() if f" {name} = " in each)
    (first,) = re.findall(r"{([\d,]+)}", line.split("replica_groups=")[1])[:1]
    return text.replace(",\n", ",").replace(line, line.replace(first, ",".join(first.split(",")[::-1]), 1))


def on_one_device(value: str, device: int = 5) -> str:
    """The text that doubles a value on one device alone."""
    return f"""number = s32[] constant({device})
  is_one = pred[] compare(j, number), direction=EQ
  two = f32[] constant(2)
  one = f32[] constant(1)
  factor = f32[] select(is_one, two, one)
  {value}"""


ONE_DEVICE: dict[str, Callable[[str], str]] = {
    "members of an all-gather": lambda text: swapped(text, "w"),
    "members of an all-reduce": lambda text: swapped(text, "s"),
    "members of a reduce-scatter": lambda text: swapped(text, "g"),
    "order of an all-gather": lambda text: turned(text, "w"),
    "order of a reduce-scatter": lambda text: turned(text, "g"),
    "order of an all-to-all": lambda text: turned(text, "y"),
    "a row of a table": lambda text: text.replace(f"constant({{{OFFSETS}}})", f"constant({{{OFFSETS[:-1]}9}})"),
    "its number": lambda text: text.replace(
        "  ROOT t", "  " + on_one_device("changed = f32[] multiply(n, factor)") + "\n  ROOT t"
    ).replace("tuple(s, n,", "tuple(s, changed,"),
    "the last number": lambda text: text.replace(
        "  ROOT t", "  " + on_one_device("changed = f32[] multiply(n, factor)", DEVICES - 1) + "\n  ROOT t"
    ).replace("tuple(s, n,", "tuple(s, changed,"),
    "a number that is cut off": lambda text: text.replace("j = s32[] convert(id)", "j = s4[] convert(id)").replace(
        OFFSETS, ",".join(str(8 * (device % PARTS)) if device < 8 else "0" for device in range(DEVICES))
    ),
    "a permutation": lambda text: text.replace("all-reduce(z)", "all-reduce(moved)").replace(
        "  o = ",
        "  moved = f32[2] collective-permute(z), channel_id=7, source_target_pairs="
        + listed([[d, {0: 2, 2: 0}.get(d, d)] for d in range(DEVICES)])
        + "\n  o = ",
    ),
    "an all-reduce of its group alone": lambda text: text.replace(
        f"channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_B}",
        "channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups="
        + listed([[d] for d in (0, 1)] + [[d for d in range(2, DEVICES) if d % 2 == t] for t in (0, 1)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", ONE_DEVICE.values(), ids=ONE_DEVICE)
def test_a_device_that_differs_is_found(change: Callable[[str], str]) -> None:
    changed = change(LOCAL)
    assert changed != LOCAL
    verdict = compare(changed)
    assert verdict.kind == "different", str(verdict)
    assert not axes(verdict)


ALL_DEVICES: dict[str, Callable[[str], str]] = {
    "no all-reduce": lambda text: re.sub(r"all-reduce\(d\).*", "copy(d)", text),
    "no all-reduce of the loss": lambda text: re.sub(r"all-reduce\(u\).*", "copy(u)", text),
    "the other axis": lambda text: text.replace(
        f"channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_B}",
        f"channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_T}",
    ),
    "both axes": lambda text: text.replace(
        f"channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={ALONG_B}",
        f"channel_id=3, use_global_device_ids=true, to_apply=add, replica_groups={listed([range(DEVICES)])}",
    ),
    "another count": lambda text: text.replace(f"constant({16 * ROWS})", f"constant({16 * ROWS + 16})"),
    "the count at fewer devices": lambda text: text.replace(f"constant({16 * ROWS})", f"constant({16 * ROWS // 2})"),
    "another offset": lambda text: text.replace(OFFSETS, OFFSETS.replace("8", "7")),
}


@pytest.mark.parametrize("change", ALL_DEVICES.values(), ids=ALL_DEVICES)
def test_devices_that_all_differ_are_found_on_few(change: Callable[[str], str]) -> None:
    changed = change(LOCAL)
    assert changed != LOCAL
    verdict = compare(changed)
    assert verdict.kind == "different", str(verdict)
    assert axes(verdict)
    assert verdict.example is not None or verdict.difference is not None


def test_a_part_on_another_device_is_found() -> None:
    """Layouts that exchange the rows of two devices."""
    parts: Any = [[(slice(2 * b, 2 * b + 2), slice(0, 8)) for b in range(ROWS) for _ in range(PARTS)]]
    parts[0][0], parts[0][2] = parts[0][2], parts[0][0]
    verdict = compare(LOCAL, outputs=[tuple(parts[0]), *OUTPUTS[1:]])
    assert verdict.kind == "different"
    assert not axes(verdict)


def test_a_difference_names_devices_of_the_given_program() -> None:
    verdict = compare(ALL_DEVICES["another offset"](LOCAL))
    assert verdict.difference is not None
    assert verdict.difference.device < DEVICES
    found = verdict.example
    assert (found.output, found.device % PARTS) == (4, 0)
    row = 2 * (found.device // PARTS) + found.element[0]
    results: Any = xb.evaluate(xb.parse_hlo(WHOLE).entry, *found.arguments[0])
    np.testing.assert_allclose(results[4][row], found.left, rtol=1e-3)


def test_the_axes_that_groups_show() -> None:
    local = xb.parse_hlo(LOCAL)
    assert axis_extents(local, ResolvedLayouts(None, None, ())) == [ROWS, PARTS]
    assert axis_extents(evolve(local, num_partitions=7 * DEVICES), ResolvedLayouts(None, None, ())) != [ROWS, PARTS]


@pytest.mark.parametrize("along", [[0], [1], [2], [0, 1], [2, 0], [1, 2, 0], []])
def test_rows_of_a_grid_are_found(along: list[int]) -> None:
    extents = [2, 3, 4]
    groups = tuple(map(tuple, rows_of(along, extents)))
    assert axes_of_groups(groups, extents) == along
    assert axes_of_groups(groups[1:], extents) is None
    numbers = np.zeros(24, int)
    for group in groups:
        numbers[list(group)] = range(len(group))
    assert axes_of_numbers(numbers, extents) == along


LAYERS = 12
GRID = f"mesh['b'={ROWS},'t'={PARTS}]"
UP, DOWN = f"{2 * ROWS},{2 * PARTS}", f"{2 * PARTS},{2 * ROWS}"
STATE = f"(s32[], f32[{ROWS},{2 * ROWS}], f32[{LAYERS},{UP}], f32[{LAYERS},{DOWN}])"
NETWORK = f"""HloModule step, num_partitions={DEVICES}
{ADD}
goes_on {{
  s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({LAYERS})
  ROOT c = pred[] compare(i, n), direction=LT
}}
layer {{
  s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[{ROWS},{2 * ROWS}] get-tuple-element(s), index=1
  ups = f32[{LAYERS},{UP}] get-tuple-element(s), index=2
  downs = f32[{LAYERS},{DOWN}] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  up.1 = f32[1,{UP}] dynamic-slice(ups, i, zero, zero), dynamic_slice_sizes={{1,{UP}}}
  up = f32[{UP}] reshape(up.1)
  down.1 = f32[1,{DOWN}] dynamic-slice(downs, i, zero, zero), dynamic_slice_sizes={{1,{DOWN}}}
  down = f32[{DOWN}] reshape(down.1)
  h = f32[{ROWS},{2 * PARTS}] dot(x, up), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  a = f32[{ROWS},{2 * PARTS}] tanh(h)
  d = f32[{ROWS},{2 * ROWS}] dot(a, down), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  y = f32[{ROWS},{2 * ROWS}] add(x, d), sharding={{{GRID}, [{{'b'}}, {{}}]}}
  next = s32[] add(i, one)
  ROOT t = {STATE} tuple(next, y, ups, downs)
}}
ENTRY e {{
  x = f32[{ROWS},{2 * ROWS}] parameter(0), sharding={{{GRID}, [{{'b'}}, {{}}]}}
  ups = f32[{LAYERS},{UP}] parameter(1), sharding={{{GRID}, [{{}}, {{'b'}}, {{'t'}}]}}
  downs = f32[{LAYERS},{DOWN}] parameter(2), sharding={{{GRID}, [{{}}, {{'t'}}, {{'b'}}]}}
  i = s32[] constant(0)
  s = {STATE} tuple(i, x, ups, downs)
  w = {STATE} while(s), condition=goes_on, body=layer
  y = f32[{ROWS},{2 * ROWS}] get-tuple-element(w), index=1
  z = f32[] constant(0)
  q = f32[{ROWS},{2 * ROWS}] multiply(y, y)
  m = f32[] reduce(q, z), dimensions={{0,1}}, to_apply=add
  ROOT t = (f32[{ROWS},{2 * ROWS}], f32[]) tuple(y, m)
}}"""


@pytest.fixture(scope="module")
def network() -> tuple[xb.Module, str]:
    """Layers in a loop: the global program, and that of each device, which has rows of x and parts of weights."""
    whole = xb.parse_hlo(NETWORK)
    return whole, xb.shard.partition(whole).module.to_hlo()


@pytest.fixture
def small_loops_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "MUCH", 1)


FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "no all-reduce": (lambda text: re.sub(r"all-reduce\(d.1\).*", "copy(d.1)", text), "all-reduce"),
    "wrong row": (lambda text: text.replace("(get-tuple-element.32, get-tuple-element.29,",
                                            "(get-tuple-element.32, zero.1,"), ""),
    "one device": (lambda text: text.replace("replica_groups={{0,1},{2,3}", "replica_groups={{0,3},{2,1}"), ""),
    "one layer": (lambda text: text.replace("  y.1 = f32[1,48] add(get-tuple-element.30, all-reduce.38)", """
  seven = s32[] constant(7)
  is_seven = pred[] compare(get-tuple-element.29, seven), direction=EQ
  is_here = pred[1,48] broadcast(is_seven), dimensions={}
  chosen = f32[1,48] select(is_here, d.1, all-reduce.38)
  y.1 = f32[1,48] add(get-tuple-element.30, chosen)"""), ""),
}  # fmt: skip


@pytest.mark.usefixtures("small_loops_count_as_large")
def test_layers_on_many_devices_are_compared_at_few_trips_on_few_devices(network: tuple[xb.Module, str]) -> None:
    whole, local = network
    verdict = xb.equivalent(whole, xb.parse_hlo(local), reduce_extents=True)
    assert verdict, str(verdict)
    assert axes(verdict)
    assert "trips" not in dict(verdict.assumed)


@pytest.mark.usefixtures("small_loops_count_as_large")
@pytest.mark.parametrize(("change", "place"), FAULTS.values(), ids=FAULTS)
def test_faults_of_layers_are_found(network: tuple[xb.Module, str], change: Callable[[str], str], place: str) -> None:
    whole, local = network
    changed = change(local)
    assert changed != local
    verdict = xb.equivalent(whole, xb.parse_hlo(changed), reduce_extents=True)
    assert verdict.kind == "different", str(verdict)
    assert verdict.difference is not None
    assert verdict.difference.other is not None
    assert verdict.difference.other.name.startswith(place)


@pytest.mark.usefixtures("small_loops_count_as_large")
@pytest.mark.parametrize("name", ["one device", "one layer"])
def test_faults_of_one_are_no_equal_of_few_trips(
    network: tuple[xb.Module, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the search for a difference, and without runs in floating point."""
    monkeypatch.setattr(ProgramComparison, "after_float_runs", lambda self, found, seconds=0.0: found)
    found: list[Any] = []
    keep = ProgramComparison._verdict_by_trips
    monkeypatch.setattr(ProgramComparison, "_verdict_by_trips", lambda self: found.append(keep(self)) or found[-1])
    whole, local = network
    xb.equivalent(whole, xb.parse_hlo(FAULTS[name][0](local)), reduce_extents=True)
    assert found
    assert not any(found)
