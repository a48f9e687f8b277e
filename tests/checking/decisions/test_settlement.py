"""Data-dependent programs: random ones against all their runs, orders searched or given, limits of the search."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.checking.hlo_texts import ADD, PAIRS, SENDS, TAKES
from tests.checking.programs_by_hand import choice, many, meet
from tests.model.campaign import compare
from tests.model.compare import checked, disagreement
from tests.model.generator import WIDE, random_program
from tests.model.programs import Decision
from xbuild.checking.scenarios import scenarios, search

CHUNK = 50


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_wide_programs_get_the_verdict_of_all_their_runs(first: int) -> None:
    """Numbers that decide in several places and by turns, programs that agree, up to five devices."""
    _, wrong = compare(range(first, first + CHUNK), is_small=True, size=WIDE)
    assert not wrong


# In which order.


@pytest.mark.parametrize("seed", [404779, 1002970, 2002418])
def test_an_order_is_searched_for_where_the_levels_refuse(seed: int) -> None:
    program = random_program(seed)
    assert checked(program)[1].kind == "depends"
    assert disagreement(program) is None


def test_an_order_that_was_searched_is_told_as_found() -> None:
    verdict = xb.check(xb.ModuleGroup({0: xb.parse_hlo(SENDS), 1: xb.parse_hlo(TAKES)}))
    names = [instruction.name for instruction in verdict.schedule[1]]
    assert names.index("k") < names.index("g")
    assert "not the recorded order on device 1" in str(verdict)


def test_a_given_order_may_be_all_that_is_wrong() -> None:
    """What the data may decide in another order is no reason to say that none runs."""
    module = xb.parse_hlo(f"""HloModule m, is_scheduled=true, replica_count=2
{ADD}fed {{ p = s32[] parameter(0)
  t = token[] after-all()
  f = (s32[], token[]) infeed(t)
  ROOT g = s32[] get-tuple-element(f), index=0 }}
unfed {{ ROOT p = s32[] parameter(0) }}
ENTRY e {{ p = s32[] parameter(0)
  t = token[] after-all()
  s = (s32[], u32[], token[]) send(p, t), channel_id=1, {PAIRS}
  sd = token[] send-done(s), channel_id=1
  a = s32[] all-reduce(p), replica_groups={{}}, to_apply=add
  r = (s32[], u32[], token[]) recv(t), channel_id=1, {PAIRS}
  rd = (s32[], token[]) recv-done(r), channel_id=1
  ROOT c = s32[] conditional(a, p, p), branch_computations={{fed, unfed}} }}""")
    verdict = xb.check(module, infeed={0: 0, 1: 0})
    assert (verdict.kind, verdict.scope) == ("deadlock", "given")


# What is too much to try.


def test_where_not_all_can_be_tried_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MOST_SCENARIOS", 1)
    a = [choice(name, Decision("own", n), meet(n + 1)) for n, name in enumerate("abc")]
    program = many((*a,), (*a[::-1],), domains=((0, 1),) * 3)
    verdict = checked(program)[1]
    assert verdict.kind == "depends"
    assert "1 of 64 were" in str(verdict)


def test_a_search_that_gives_up_does_not_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_program(404779)
    monkeypatch.setattr(search, "MOST_STEPS", 1)
    verdict = checked(program)[1]
    assert verdict.kind == "depends"
    assert "the check could not try all cases" in str(verdict)
    assert "not in every order" in str(verdict)
