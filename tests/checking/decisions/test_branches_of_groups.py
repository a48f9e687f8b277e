"""Groups of two programs in text: a collective in a branch of one meets one in the other, and a send to no device."""

from __future__ import annotations

import numpy as np
import pytest

import xbuild as xb
from interpreter import Stopped, execute
from tests.checking.hlo_texts import ADD


def group(*entries: str, is_scheduled: bool = True) -> xb.ModuleGroup:
    head = f"is_scheduled={str(is_scheduled).lower()}, replica_count=2"
    return xb.ModuleGroup({n: xb.parse_hlo(f"HloModule m{n}, {head}\n{ADD}{e}") for n, e in enumerate(entries)})


SUM = "all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add"
OUTSIDE = f"ENTRY e {{ p = s32[] parameter(0)\n  ROOT t = s32[] {SUM} }}"
NEITHER = "ENTRY e { ROOT p = s32[] parameter(0) }"


def inside(index: str, first: str, second: str) -> str:
    return f"""a {{ p = s32[] parameter(0)
  ROOT t = s32[] {first} }}
b {{ p = s32[] parameter(0)
  ROOT u = s32[] {second} }}
ENTRY e {{ p = s32[] parameter(0)
  k = s32[] {index}
  ROOT c = s32[] conditional(k, p, p), branch_computations={{a, b}} }}"""


@pytest.mark.parametrize("is_scheduled", [True, False])
@pytest.mark.parametrize(
    ("programs", "kind"),
    [
        ((inside("constant(0)", SUM, "copy(p)"), OUTSIDE), "ok"),
        ((inside("constant(1)", SUM, "copy(p)"), OUTSIDE), "deadlock"),
        ((inside("copy(p)", SUM, "copy(p)"), OUTSIDE), "depends"),
        ((inside("copy(p)", SUM, SUM), OUTSIDE), "ok"),
        ((inside("copy(p)", SUM, SUM), inside("copy(p)", SUM, SUM)), "ok"),
        ((inside("copy(p)", SUM, SUM), inside("constant(0)", SUM, "copy(p)")), "ok"),
        ((inside("constant(1)", SUM, "copy(p)"), NEITHER), "ok"),
        ((inside("constant(0)", SUM, "copy(p)"), NEITHER), "error"),
    ],
)
def test_a_collective_in_a_branch_may_meet_one_outside(
    programs: tuple[str, str], kind: str, is_scheduled: bool
) -> None:
    made = group(*programs, is_scheduled=is_scheduled)
    verdict = xb.check(made)
    assert verdict.kind == kind
    ends = set()
    for first in (0, 1):
        for second in (0, 1):
            try:
                execute(made, [[np.int32(first)], [np.int32(second)]], check=False)
                ends.add(True)
            except Stopped:
                ends.add(False)
    assert ends == {"ok": {True}, "depends": {True, False}}.get(kind, {False})


def test_a_device_that_is_none_is_told_as_that() -> None:
    pairs = '{_xla_send_recv_source_target_pairs="{{0,1}}"}'
    send = """ENTRY e { x = s32[] parameter(0)
  t = token[] after-all()
  s = (s32[], u32[], token[]) send(x, t), channel_id=1, frontend_attributes=PAIRS
  ROOT d = token[] send-done(s), channel_id=1 }"""
    verdict = xb.check(group(send.replace("PAIRS", pairs.replace("1", "5")), NEITHER))
    assert verdict.findings[0].kind == "device_out_of_range"
    assert "s names device 5 as a target, but the devices are 0..1" in verdict.findings[0].message
    assert "add a recv" not in str(verdict)
    assert (
        xb.check(group(send.replace("PAIRS", pairs), NEITHER)).findings[0].message
        == "s of device 0 on channel 1 has no recv"
    )
