"""The guard against lost speed: which groups it calls slower, and what it says where it cannot compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quick import __main__ as quick


class Measured:
    """A comparison whose ratios are given, a list for each group with one entry for each time it is measured."""

    def __init__(self, ratios: dict[str, list[float]]) -> None:
        self.ratios, self.asked = ratios, [0] * len(ratios)

    def measure(self, groups: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
        return {group: {"one": self.ratios[group].pop(0), "two": 1.0} for group in groups}


@pytest.mark.parametrize(
    ("ratios", "slower"),
    [
        ([1.0], False),
        ([0.8], False),
        ([1.10], False),  # the mean of two is below 1.05
        ([1.3, 1.0, 1.0], False),
        ([1.3, 1.2, 1.0], False),
        ([1.3, 1.3, 1.0], True),
        ([1.5, 1.5, 1.5], True),
    ],
)
def test_a_group_is_slower_by_the_median_of_three(ratios: list[float], slower: bool, capsys: Any) -> None:
    measured: Any = Measured({"check": [*ratios], "read": [1.0]})
    assert quick.compare(measured, ["check", "read"], 1) == (["check"] if slower else [])
    told = capsys.readouterr().out
    assert told.startswith("check") and ("SLOWER" in told) == slower  # noqa: PT018
    assert not measured.ratios["check"], "measured as often as is needed"


def test_a_clone_without_the_baseline_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    named = tmp_path / "baseline"
    named.write_text(f"{'0' * 40}\n")
    monkeypatch.setattr(quick, "NAMED", named)
    monkeypatch.setattr("sys.argv", ["quick"])
    assert quick.main() == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert f"lacks the baseline commit {'0' * 40}" in line


def test_the_baseline_is_one_commit() -> None:
    assert len(quick.NAMED.read_text().split()) == 1
    assert set(quick.GROUPS) >= {"check", "record", "read", "start-up", "small file"}
    assert sum(map(len, quick.WORKLOADS.values())) == 12
