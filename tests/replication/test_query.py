"""The questions that can be asked of the analysis: in Python, on the command line, in pictures and strict runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import StrictFailure, execute
from shape_inference.trees import flatten
from tests.conformance.replication import failure
from tests.conformance.replication import main as run_cases
from xbuild.checking.dataflow.promises import share_equal_arguments, tiles_of
from xbuild.checking.dataflow.replication import Partitions
from xbuild.cli import main
from xbuild.files.arrays import random_arguments
from xbuild.sharding.hlo_text import Parsed, parsed

TEXT = """HloModule p, replica_count=2, num_partitions=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[4] parameter(0)
  w = (f32[4], f32[2]) parameter(1), parameter_replication={true,false}, sharding={{replicated}, {maximal device=0}}
  v = f32[4] get-tuple-element(w), index=0
  y = f32[4] all-reduce(x), to_apply=add, replica_groups={{0,1}}
  ROOT z = (f32[4], f32[4]) tuple(y, v)
}
"""


@pytest.fixture
def module() -> xb.Module:
    return xb.parse_hlo(TEXT)


def test_groups_of_values_leaves_and_names(module: xb.Module) -> None:
    values = xb.replication(module)
    assert values.groups("y") == values.groups(module.entry["y"]) == ((0, 2), (1, 3))
    assert values.groups("z", (1,)) == ((0, 1, 2, 3),)
    assert values.groups("z") == ((0, 2), (1, 3))
    assert values.groups("w", [1]) == ((0,), (1,), (2,), (3,))


def test_across_replicas_and_partitions(module: xb.Module) -> None:
    values = xb.replication(module)
    assert [values.is_replicated("y", across=each) for each in ("devices", "replicas", "partitions")] == [
        False, True, False,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="across is 'rows'"):
        values.is_replicated("y", across="rows")


def test_annotations_are_taken_for_true_unless_told_otherwise(module: xb.Module) -> None:
    assert xb.replication(module).groups("v") == ((0, 1, 2, 3),)
    assert len(xb.replication(module, annotations=False).groups("v")) == 4
    assert len(xb.replication(module, {1: False}).groups("v")) == 4
    assert xb.replication(module, {1: [False, True]}).groups("w", (1,)) == ((0, 1, 2, 3),)


@pytest.mark.parametrize(
    ("sharding", "tiles"),
    [
        ("replicated", [0, 0, 0, 0]),
        ("maximal device=0", [0, 1, 2, 3]),
        ("manual", [0, 1, 2, 3]),
        ("devices=[2,2]<=[4]", [0, 1, 2, 3]),
        ("devices=[2,2]<=[4] last_tile_dim_replicate", [0, 0, 2, 2]),
        ("devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate", [0, 1, 0, 1]),
        ("devices=[2,1,2]0,3,1,2 last_tile_dims={replicated}", [0, 2, 2, 0]),
        ("devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}", [0, 0, 2, 2]),
        ("devices=[1,2,2]<=[4] last_tile_dims={replicated, manual}", [0, 1, 0, 1]),
        ("devices=[8]<=[8]", [0, 1, 2, 3]),
        ("mesh['a'=4], [{}]", [0, 0, 0, 0]),
        ("mesh['a'=2,'b'=2], [{'b'}, {}]", [0, 1, 0, 1]),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2), [{'a'}, {}]", [0, 1, 0, 1][::-1]),
        ("mesh['a'=4], [{'a':(1)2}]", [0, 0, 1, 1]),
        ("mesh['a'=4], [{'a':(2)2, ?}], replicated={'a':(1)2}", [0, 1, 0, 1]),
        ("mesh['a'=2,'b'=2], [{'b'}], unreduced={'a'}", [0, 1, 2, 3]),
        ("mesh['a'=2,'b'=2], [{}], unreduced={'a'}", [0, 0, 1, 1]),
        ("mesh['a'=2], [{}]", [0, 1, 2, 3]),
    ],
)
def test_shardings_say_which_partitions_hold_one_tile(sharding: str, tiles: list[int]) -> None:
    found = parsed(f"{{{sharding}}}")
    assert isinstance(found, Parsed)
    assert Partitions(4).group_by(tiles_of(found.stated, 4)) == Partitions(4).group_by(tiles)


def test_questions_that_have_no_answer(module: xb.Module) -> None:
    values = xb.replication(module)
    with pytest.raises(KeyError, match="no such instruction"):
        values.groups("nothing")
    with pytest.raises(KeyError, match="no such instruction"):
        values.groups(module.entry["y"].attributes.to_apply.root)
    with pytest.raises(IndexError, match=r"which has no leaf \{2\}"):
        values.groups("z", (2,))
    with pytest.raises(xb.XbuildError, match="parameter 7, but p has 2 parameters"):
        xb.replication(module, {7: True})
    with pytest.raises(xb.XbuildError, match=r"1 leaves for parameter 1 \(w\), but .* has 2"):
        xb.replication(module, {1: [True]})
    with pytest.raises(TypeError, match="neither a Module nor a ModuleGroup"):
        xb.replication(module.entry)  # type: ignore[arg-type]


def test_programs_of_their_own_agree_where_they_meet() -> None:
    text = """HloModule m{n}, replica_count=4
    add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
    ENTRY main {{ x = f32[4] parameter(0)
      y = f32[4] all-reduce(x), to_apply=add, channel_id=1, replica_groups={{{{0,1}},{{2,3}}}}
      ROOT z{n} = f32[4] {op}(y) }}"""
    first, second = (xb.parse_hlo(text.format(n=n, op=op)) for n, op in enumerate(("negate", "sine")))
    values = xb.replication(xb.ModuleGroup({0: first, 1: first, 2: first, 3: second}))
    assert values.groups("z0") == ((0, 1), (2,))
    assert values.groups("z1") == ((3,),)


def test_the_table_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "p.hlo"
    file.write_text(TEXT)
    result = CliRunner().invoke(main, ["show", str(file), "--replication"])
    assert result.exit_code == 0
    assert "replication of p, on devices 0-3" in result.output
    assert "equal within {0,2} {1,3}" in result.output
    result = CliRunner().invoke(main, ["show", str(file), "--replication", "--all", "--replicated", "0"])
    assert "  x  f32[4]            equal on all" in result.output
    for wrong in (["--replicated", "0"], ["--replication", "--plan"], ["--all"]):
        assert CliRunner().invoke(main, ["show", str(file), *wrong]).exit_code == 2


def test_the_short_table_has_the_values_from_which_the_others_follow(tmp_path: Path) -> None:
    text = """HloModule step, num_partitions=4
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
yes { p = f32[4] parameter(0) ROOT r = f32[4] negate(p) }
no { ROOT p = f32[4] parameter(0) }
ENTRY e {
  w = f32[4] parameter(0), sharding={replicated}
  x = f32[4] parameter(1), sharding={devices=[4]<=[4]}
  scaled = f32[4] multiply(w, x)
  total = f32[4] all-reduce(scaled), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  new = f32[4] subtract(w, total)
  me = u32[] partition-id()
  zero = u32[] constant(0)
  first = pred[] compare(me, zero), direction=EQ
  picked = f32[4] conditional(first, new, new), true_computation=yes, false_computation=no
  ROOT both = (f32[4], f32[4]) tuple(new, picked)
}"""
    file = tmp_path / "step.hlo"
    file.write_text(text)
    lines = CliRunner().invoke(main, ["show", str(file), "--replication"]).output.splitlines()
    assert lines[0] == "replication of step, on devices 0-3: 7 of 13 values, from which the others follow"
    rows = {line.split()[0]: " ".join(line.split()[2:]) for line in lines[2:]}
    assert rows["w"] == "equal on all the program states it"
    assert rows["x"] == "may differ each device gets its own"
    assert rows["total"] == "equal on all all-reduce over groups {0,1,2,3}"
    assert rows["first"] == "equal within {1-3} decides a branch or a loop; from me: the partition of the device"
    assert [line.strip() for line in lines[-2:]] == [
        "result 0 (new)     f32[4]  equal on all",
        "result 1 (picked)  f32[4]  equal within {1-3}  from me: the partition of the device",
    ]
    assert "scaled" not in rows


def test_a_picture_is_coloured_by_groups(tmp_path: Path) -> None:
    file = tmp_path / "p.hlo"
    file.write_text(TEXT)
    result = CliRunner().invoke(main, ["viz", str(file), "--replication"])
    assert result.exit_code == 0
    assert "groups of devices with equal values: 2 to 4" in result.output


def test_a_strict_run_sees_to_what_is_promised(module: xb.Module) -> None:
    x, w = np.ones(4, np.float32), np.zeros(2, np.float32)
    execute(module, [[x, (x, w + n)] for n in range(4)], strict=True)
    with pytest.raises(StrictFailure, match="promise_broken") as failed:
        execute(module, [[x, (x + (n == 3), w)] for n in range(4)], strict=True)
    (finding,) = failed.value.findings
    assert (finding.device, finding.instruction.name) == (3, "w")
    assert "promised to equal the value on device 0" in finding.what


CASE = {
    "id": "c", "text": "\n" + TEXT.replace(", replica_count=2, num_partitions=2", ""), "across": "replicas",
    "replicas": 2, "partitions": None, "parameters": [{"parameter": 0, "replicated_leaves": [False]}],
    "expect": [{"name": "y", "index": [], "replicated": True}, {"name": "x", "index": [], "replicated": False}],
}  # fmt: skip


def test_the_runner_of_cases_tells_what_is_wrong(tmp_path: Path) -> None:
    assert failure(CASE) is None
    assert failure({**CASE, "expect": [{"name": "y", "index": [], "replicated": False}]}) is None  # it is equal in runs
    assert "not proved" in str(failure({**CASE, "expect": [{"name": "x", "index": [], "replicated": True}]}))
    assert "KeyError" in str(failure({**CASE, "expect": [{"name": "none", "index": [], "replicated": True}]}))
    assert "came" in str(failure({**CASE, "text": "nonsense"}))


def test_the_runner_counts(tmp_path: Path) -> None:
    import json

    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"about": "", "cases": [CASE, {**CASE, "id": "d", "text": "nonsense"}]}))
    command = [sys.executable, "-m", "tests.conformance.replication", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")
    assert run_cases([str(file)]) == 1


LOOP = """HloModule l, replica_count=4
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }
under { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=1
        ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] get-tuple-element(s), index=1
       one = s32[] constant(1) j = s32[] add(i, one) ROOT t = (s32[], s32[]) tuple(j, n) }
pass { ROOT p = s32[] parameter(0) }
twice { p = s32[] parameter(0) ROOT d = s32[] add(p, p) }
ENTRY main {
  x = s32[] parameter(0)  zero = s32[] constant(0)
  t = s32[] all-reduce(x), to_apply=add, replica_groups={{0,1},{2,3}}
  s = (s32[], s32[]) tuple(zero, t)
  w = (s32[], s32[]) while(s), condition=under, body=body
  c = s32[] conditional(t, zero, zero), branch_computations={pass, twice}
  k = s32[] call(t), to_apply=twice
  q = s32[] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  r = u64[2] rng-get-and-update-state(), delta=1
  ROOT z = (s32[], s32[], s32[], s32[], s32[], u64[2]) tuple(zero, t, c, k, q, r)
}
"""

WAYS = [
    ("zero", (), ["zero is equal on all devices, in every run"]),
    ("x", (), ["x may differ between devices 0 and 1", "x", "each device gets its own"]),
    ("main/t", (), ["t may differ between devices 0 and 2", "t", "x", "each device gets its own"]),
    ("w", (0,), ["w{0} may differ between devices 0 and 2", "w{0}", "l", "n", "s{1}", "t", "x"]),
    ("c", (), ["c may differ", "c", "t", "x"]),
    ("twice/d", (), ["d may differ", "d", "p", "t", "x"]),
    ("k", (), ["k may differ", "k", "d", "p", "t", "x"]),
    ("q", (), ["q may differ between devices 0 and 1", "q", "x", "each device gets its own"]),
    ("r", (), ["r may differ", "r", "each device has its own state"]),
    ("z", (), ["z may differ between devices 0 and 1", "z{4}", "q", "x"]),
]


@pytest.mark.parametrize(("name", "leaf", "words"), WAYS, ids=lambda given: given if isinstance(given, str) else "")
def test_the_way_back_to_what_differs(name: str, leaf: tuple[int, ...], words: list[str]) -> None:
    text = xb.replication(xb.parse_hlo(LOOP)).why(name, leaf)
    place = 0
    for word in words:
        assert word in text[place:]
        place = text.index(word, place) + len(word)


def test_a_name_of_several_is_told_apart() -> None:
    values = xb.replication(xb.parse_hlo(LOOP))
    with pytest.raises(KeyError, match="several instructions have this name: main/s, body/s, under/s"):
        values.groups("s")
    assert values.groups("body/s", (0,)) == ((0, 1), (2, 3))


def test_the_way_back_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "l.hlo"
    file.write_text(LOOP)
    result = CliRunner().invoke(main, ["show", str(file), "--replication", "--why", "k"])
    assert result.output.splitlines()[0] == "k may differ between devices 0 and 2"
    assert CliRunner().invoke(main, ["show", str(file), "--replication", "--why", "s"]).exit_code == 2


@pytest.mark.parametrize(
    ("sharding", "groups"),
    [
        ("{replicated}", ((0, 1),)),
        ("{devices=[1,2]<=[2] last_tile_dim_replicate}", ((0, 1),)),
        ("{mesh['a'=2], [{}]}", ((0, 1),)),
        ("{mesh['a'=2], [{'a'}]}", ((0,), (1,))),
        ("{{mesh['a'=2], [{}]}}", ((0, 1),)),
    ],
)
def test_a_sharding_promises_the_same_in_each_spelling(sharding: str, groups: Any) -> None:
    text = f"""HloModule m, num_partitions=2
    ENTRY e {{ x = f32[2] parameter(0), sharding={sharding}
      ROOT y = f32[2] add(x, x) }}"""
    module = xb.parse_hlo(text)
    assert xb.replication(module).groups(module.entry.root) == groups


TUPLE = """HloModule m, num_partitions=4
ENTRY e {
  p = (f32[2], f32[2]) parameter(0), sharding={{replicated}, {devices=[2,2]<=[4] last_tile_dim_replicate}}
  ROOT x = f32[2] get-tuple-element(p), index=0
}
"""


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        (TEXT, [[0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 2, 3]]),
        (TUPLE, [[0, 0, 0, 0], [0, 0, 2, 2]]),
        (TUPLE.replace("{{replicated}, ", "{{manual}, "), [[0, 1, 2, 3], [0, 0, 2, 2]]),
    ],
)
def test_random_arguments_are_equal_where_annotations_promise_it(text: str, tiles: list[list[int]]) -> None:
    module = xb.parse_hlo(text)
    rows = share_equal_arguments(module, random_arguments(3, [[p.shape for p in module.entry.parameters]] * 4))
    columns = [flatten(tuple(row)) for row in rows]
    for leaf, tile in enumerate(tiles):
        equal = [[np.array_equal(one[leaf], other[leaf]) for other in columns] for one in columns]
        assert equal == [[one == other for other in tile] for one in tile]


def test_a_run_with_random_arguments_keeps_the_promises_of_its_parameters(tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(TUPLE)
    result = CliRunner().invoke(main, ["run", str(file), "--random", "0", "--strict"])
    assert (result.exit_code, len({line.partition("f32")[2] for line in result.stdout.splitlines()})) == (0, 1)
