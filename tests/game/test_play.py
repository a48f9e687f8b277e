"""`xbuild play`: the list, pages of levels and of programs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import xbuild as xb
from tests.commands.command_line import xbuild
from xbuild.game.levels import ShippedLevel, in_order

LARGEST = 200_000


def test_levels_are_listed() -> None:
    out = xbuild("play").output
    assert [line.split()[:2] for line in out.splitlines()[: len(in_order())]] == [
        [str(each.number), each.name] for each in in_order()
    ]


@pytest.mark.parametrize("entry", in_order(), ids=lambda each: each.name)
def test_a_page_is_small_and_whole(entry: ShippedLevel) -> None:
    page = entry.page()
    assert len(page) < LARGEST
    assert "<!--" not in page.replace("<!doctype", "")


def test_a_level_is_written_by_number_or_name(tmp_path: Path) -> None:
    for which in ("3", "two_sums"):
        result = xbuild("play", which, "-o", tmp_path / f"{which}.html")
        assert result.exit_code == 0, result.output
    assert (tmp_path / "3.html").read_text() == (tmp_path / "two_sums.html").read_text()


def test_a_program_is_a_level(tmp_path: Path) -> None:
    total = xb.computation(xb.f32[2])(xb.cross_replica_sum)
    (tmp_path / "m.hlo").write_text(str(xb.Module("total", total, num_replicas=2)))
    result = xbuild("play", tmp_path / "m.hlo", "-o", tmp_path / "m.html")
    assert result.exit_code == 0, result.output
    assert "wrote" in result.output


def test_an_unknown_level_says_what_there_is() -> None:
    result = xbuild("play", "nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.output


def test_a_program_is_not_written_over(tmp_path: Path) -> None:
    total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    (tmp_path / "p.hlo").write_text(total.to_hlo())
    found = xbuild("play", tmp_path / "p.hlo", "-o", tmp_path / "p.hlo")
    assert found.exit_code == 2
    assert (tmp_path / "p.hlo").read_text() == total.to_hlo()
