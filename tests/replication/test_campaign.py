"""A short round of the campaign, and faults in the analysis that it has to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.replication.campaign import judge, main
from xbuild.checking.dataflow import replication as rules
from xbuild.checking.dataflow.replication import _MARKING, Agreement, ReplicationAnalysis, varies


def test_what_is_inferred_holds_in_runs() -> None:
    counts, wrong = judge(range(150))
    assert wrong == {}
    assert counts["programs"] == 150
    assert counts["runs to the end"] > 100
    assert counts["leaves equal on some"] > 300
    assert counts["programs of one for each device"] > 10


def test_the_command_counts_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "4"]) == 0
    assert "programs that breach what is inferred" in capsys.readouterr().out


@contextmanager
def _everywhere(walk: Any, decides: Any) -> Iterator[None]:
    yield


def _after(walk: ReplicationAnalysis, before: Any, state: Any, after: Any, decides: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(_after(walk, *each, decides) for each in zip(before, state, after, strict=True))
    return before if state is after else Agreement(state.labels)


FAULTS: dict[str, tuple[Any, str, Any, int]] = {
    "all devices come to a branch": (ReplicationAnalysis, "within_decision", _everywhere, 13),
    "a loop leaves what its trips agree on": (ReplicationAnalysis, "_state_after", _after, 13),
    "a loop is read once": (rules, "_is_unchanged", lambda state, following: True, 8),
    "a permutation gives all the same": (_MARKING, "collective_permute", _MARKING["all_gather"], 23),
    "an exchange gives all the same": (_MARKING, "all_to_all", _MARKING["all_gather"], 18),
    "random numbers are equal": (rules, "varies", {**varies, "rng": rules._operand_result}, 24),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_analysis_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, wrong, seed = FAULTS[name]
    change: Callable[..., None] = monkeypatch.setitem if isinstance(where, dict) else monkeypatch.setattr
    change(where, what, wrong)
    assert judge([seed])[1]
