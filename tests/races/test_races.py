"""Races: the cases by hand, and random programs against the model, in the check and in strict runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from xbuild.cli import main

from .campaign import compare
from .cases import Case, cases
from .model import judge
from .programs import Call, Done, Program, Pure, Start, Update

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_race_is_found_before_the_run_and_in_it(case: Case) -> None:
    module = xb.parse_hlo(case.text)
    verdict = xb.check(module)
    if not case.races:
        assert verdict.kind == "ok", verdict
    else:
        assert (verdict.kind, verdict.scope) == ("error", "given")
        found = [tuple(each.name for each in finding.instructions) for finding in verdict.findings]
        assert {frozenset(each) for each in found} >= {frozenset(each) for each in case.races}
        for finding in verdict.findings:
            assert finding.kind == "race"
            first = finding.instructions[0].name
            assert first in finding.message.split(" [")[0].split()
            assert finding.repair_text
            assert len(finding.sources) == len(finding.instructions)
    if case.runs:
        assert bool(_strict(module)) == bool(case.races)


def _strict(module: xb.Module, devices: int = 2) -> set[str]:
    """The instructions at which a strict run reports a race, with the other one in the text."""
    rows = [[np.arange(4, dtype=np.float32) for _ in module.entry.parameters]] * devices
    try:
        xb.execute(module, rows, strict=True, check=False)
    except xb.StrictFailure as failure:
        found = failure.findings
    else:
        return set()
    assert {each.kind for each in found} == {"race"}
    assert all("(" in each.what and each.instruction.source is not None for each in found)
    return {each.instruction.name for each in found}


TRAVELLING = """HloModule m, is_scheduled=true
body { p = (f32[4], (f32[4], u32[], token[]), s32[]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  q = (f32[4], u32[], token[]) get-tuple-element(p), index=1
  n = s32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  u = f32[1] constant({1})
  %s
  %s
  k = token[] after-all()
  again = (f32[4], u32[], token[]) send(b, k), channel_id=1, is_host_transfer=true
  ROOT t = (f32[4], (f32[4], u32[], token[]), s32[]) tuple(b, again, m) }
condition { p = (f32[4], (f32[4], u32[], token[]), s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=2
  k = s32[] constant(2)
  ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[4] parameter(0)
  k = token[] after-all()
  first = (f32[4], u32[], token[]) send(x, k), channel_id=1, is_host_transfer=true
  z = s32[] constant(0)
  i = (f32[4], (f32[4], u32[], token[]), s32[]) tuple(x, first, z)
  w = (f32[4], (f32[4], u32[], token[]), s32[]) while(i), condition=condition, body=body
  q = (f32[4], u32[], token[]) get-tuple-element(w), index=1
  d = token[] send-done(q), channel_id=1, is_host_transfer=true
  ROOT r = f32[4] get-tuple-element(w), index=0 }"""


@pytest.mark.parametrize("is_race", [False, True])
def test_a_transfer_whose_context_travels_through_a_loop(is_race: bool) -> None:
    steps = [
        "e = token[] send-done(q), channel_id=1, is_host_transfer=true",
        "b = f32[4] dynamic-update-slice(a, u, n)",
    ]
    module = xb.parse_hlo(TRAVELLING % tuple(reversed(steps) if is_race else steps))
    verdict = xb.check(module)
    assert [[each.name for each in finding.instructions] for finding in verdict.findings] == [["b", "e"]] * is_race
    assert verdict.kind == ("error" if is_race else "ok")
    assert _strict(module, 1) == ({"b"} if is_race else set())


def test_only_scheduled_programs_have_races() -> None:
    case = next(case for case in CASES if case.races)
    free = xb.parse_hlo(case.text.replace(", is_scheduled=true", ""))
    assert xb.check(free).kind == "ok"
    assert not _strict(free)
    with pytest.raises(xb.Refused, match=r"\[race\]"):
        xb.execute(xb.parse_hlo(case.text), [[np.zeros(4)]] * 2)


def test_a_deadlock_comes_before_a_race() -> None:
    text = "HloModule m, is_scheduled=true\n" + (
        "ENTRY e { x = f32[2] parameter(0)\n s = (f32[2], f32[2], u32[]) copy-start(x)\n n = f32[1] constant({1})\n"
        " i = s32[] constant(0)\n d = f32[2] dynamic-update-slice(x, n, i)\n r = f32[2] copy-done(s)\n"
        "%s ROOT t = f32[2] add(d, r) }"
    )
    assert xb.check(xb.parse_hlo(text % "")).findings[0].kind == "race"
    waits = " k = token[] after-all()\n q = (f32[2], u32[], token[]) recv(k), channel_id=1\n"
    waits += " p = (f32[2], token[]) recv-done(q), channel_id=1\n"
    assert [each.kind for each in xb.check(xb.parse_hlo(text % waits)).findings] == ["missing_send"]


def test_the_command_shows_a_race_and_exits_1(tmp_path) -> None:  # type: ignore[no-untyped-def]
    case = next(case for case in CASES if case.races)
    path = tmp_path / "program.hlo"
    path.write_text(case.text)
    plain = CliRunner().invoke(main, ["check", str(path)])
    assert plain.exit_code == 1
    assert plain.output.startswith(
        "error: dynamic-update-slice w overwrites x, which all-reduce-start s reads until r [race]"
    )
    data = json.loads(CliRunner().invoke(main, ["check", "--json", str(path)]).output)
    assert data["findings"][0]["kind"] == "race"
    assert data["findings"][0]["instructions"] == ["w", "s"]
    strict = CliRunner().invoke(main, ["explain", "race"])
    assert strict.exit_code == 0
    assert "buffer" in strict.output


PROGRAMS = 60


def test_random_programs_have_the_races_that_the_model_finds() -> None:
    counts, wrong = compare(itertools.count(), PROGRAMS, PROGRAMS)
    assert not wrong
    assert counts["race"] == counts["right"] == PROGRAMS


def test_the_model_knows_what_is_known() -> None:
    start, done = Start("s", "p0", "copy"), Done("r", "s")
    update = Update("u", "p0")
    assert judge(Program(("p0",), (start, done, update), ("r", "u"))).truth == "right"  # type: ignore[union-attr]
    assert judge(Program(("p0",), (start, update, done), ("r", "u"))).truth == "race"  # type: ignore[union-attr]
    assert judge(Program(("p0",), (update, Pure("a", ("p0",))), ("a",))).truth == "missing copy"  # type: ignore[union-attr]
    called = Call("u", "p0", (Update("v", "p0"),), "v")
    assert judge(Program(("p0",), (start, called, done), ("r", "u"))).truth == "race"  # type: ignore[union-attr]
    stated = Update("u", "p0", "stated")
    assert judge(Program(("p0",), (stated, Pure("a", ("p0",))), ("a",))).truth == "race"  # type: ignore[union-attr]
