"""Counts of replicas and partitions that no header states, and texts of several modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import xbuild as xb
from xbuild.cli import main

GATHER = """HloModule m

ENTRY e {{
  x = f32[2] parameter(0)
  ROOT y = f32[4] all-gather(x), {}, dimensions={{0}}
}}
"""
PASSED = """HloModule m

ENTRY e {
  x = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, t), frontend_attributes={_xla_send_recv_source_target_pairs={{0,3}}}
  ROOT d = token[] send-done(s)
}
"""
COUNTS = {
    "replica_groups={{0,1},{2,3}}": (4, 1),
    "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true": (1, 4),
    "channel_id=1, replica_groups=[3,2]<=[6], use_global_device_ids=true": (1, 6),
    "replica_groups={}": (2, 1),
}


@pytest.mark.parametrize("words", COUNTS)
def test_counts_are_inferred_from_groups_and_said(words: str) -> None:
    module = xb.parse_hlo(GATHER.format(words))
    assert (module.num_replicas, module.num_partitions) == COUNTS[words]
    assert "%y names" in module.annotations["inferred_counts"]
    again = xb.parse_hlo(str(module))
    assert (again.num_replicas, again.num_partitions) == COUNTS[words]
    assert "inferred_counts" not in again.annotations


def test_counts_are_inferred_from_pairs_and_shardings() -> None:
    assert xb.parse_hlo(PASSED).num_partitions == 4
    text = "HloModule m ENTRY e { ROOT x = f32[8] parameter(0), sharding={devices=[4,2]<=[8] last_tile_dim_replicate} }"
    assert xb.parse_hlo(text).num_partitions == 8


def test_counts_that_are_given_stand_before_all_others() -> None:
    text = GATHER.format("replica_groups={{0,1}}")
    assert xb.parse_hlo(text, replicas=2, partitions=3).num_devices == 6
    assert xb.parse_hlo(text.replace("HloModule m", "HloModule m, replica_count=4"), replicas=2).num_replicas == 2
    with pytest.raises(xb.HloParseError, match="invalid_group"):
        xb.parse_hlo(GATHER.format("replica_groups={{0,5}}"), replicas=2)


@pytest.mark.parametrize("given", [{"replicas": 0}, {"partitions": -1}, {"replicas": 10**9}])
def test_counts_of_no_program_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be at least 1|more devices than the limit"):
        xb.parse_hlo(GATHER.format("replica_groups={}"), **given)
    with pytest.raises(TypeError, match="must be an int"):
        xb.parse_hlo(GATHER.format("replica_groups={}"), replicas=2.0)  # type: ignore[arg-type]


def test_commands_take_counts_and_say_what_is_inferred(tmp_path: Path) -> None:
    path = tmp_path / "p.hlo"
    path.write_text(GATHER.format("replica_groups={{0,1}}"))
    said = CliRunner().invoke(main, ["check", str(path)])
    assert "replicas: 2, partitions: 1 (inferred because %y names replica 1)" in said.stderr
    said = CliRunner().invoke(main, ["check", str(path), "--replicas", "2", "--partitions", "2"])
    assert "inferred" not in said.stderr
    assert "devices 0-3 run one program" in said.output


def test_a_text_of_several_modules() -> None:
    one = GATHER.format("replica_groups={{0,1}}")
    for text in (
        f"{one}\n// -----\n// a remark\n{one}",
        one + one,
        f"/* first */\n// -----\n{one}// -----\n{one}// -----\n",
    ):
        found = xb.parse_hlo_modules(text)
        assert [str(each) for each in found] == [str(xb.parse_hlo(one))] * 2
        with pytest.raises(xb.HloParseError, match="expected one module, got 2"):
            xb.parse_hlo(text)
    wrong = one + one.replace("all-gather", "all-gathre")
    with pytest.raises(xb.HloParseError, match=f"<hlo>:{one.count(chr(10)) + 5}:"):
        xb.parse_hlo_modules(wrong)
