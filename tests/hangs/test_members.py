"""Who is in a group where no dump says so, and what a rank should have launched."""

from __future__ import annotations

import pytest

from xbuild.hangs.habits import Habits
from xbuild.hangs.members import find_members
from xbuild.hangs.records import Launch, RankRecord, StuckJob

Used = dict[int, list[tuple[str, str, int]]]


def _job(used: Used, descriptions: dict[str, str]) -> StuckJob:
    """A job in which ranks launched operations: the group, the name and the number of elements of each."""
    job = StuckJob()
    for name, description in descriptions.items():
        job.group(name).description = description
    for rank, calls in used.items():
        record = job.ranks[rank] = RankRecord(rank)
        operations = []
        for place, (group, name, size) in enumerate(calls):
            record.launched[group] = record.launched.get(group, 0) + 1
            done = place < len(calls) - 1
            operations.append(Launch(group, record.launched[group], name, place, done, inputs=(size,), outputs=(size,)))
        record.replace_operations(operations)
    return job


@pytest.mark.parametrize(
    ("used", "descriptions", "members"),
    [
        # blocks of two, and the groups across them, of which one rank used none
        (
            {0: ["1", "3"], 1: ["1", "4"], 2: ["2", "3"], 3: ["2"]},
            {"1": "tp", "2": "tp", "3": "dp", "4": "dp"},
            {"1": (0, 1), "2": (2, 3), "3": (0, 2), "4": (1, 3)},
        ),
        # each pair one rank further than the one before
        (
            {0: ["1"], 1: ["1", "2"], 2: ["2"], 3: ["3"]},
            {"1": "link", "2": "link", "3": "link"},
            {"1": (0, 1), "2": (1, 2), "3": (2, 3)},
        ),
        # nothing says more than who used it
        ({0: ["1"], 1: ["0"], 2: ["0"], 3: ["1"], 4: ["0"]}, {"1": ""}, {"1": None}),
    ],
)
def test_members_follow_rules(
    used: dict[int, list[str]], descriptions: dict[str, str], members: dict[str, tuple[int, ...]]
) -> None:
    calls = {rank: [("0", "barrier", 0), *((name, "broadcast", 4) for name in names)] for rank, names in used.items()}
    job = _job(calls, {"0": "default_pg", **descriptions})
    find_members(job)
    assert job.groups["0"].members == tuple(range(len(used)))
    assert {name: job.groups[name].members for name in members} == members


def test_a_rank_that_left_something_out_is_odd() -> None:
    step = [("0", "all_gather", 8), ("0", "all_reduce", 3), ("1", "all_reduce", 5)]
    used = dict.fromkeys(range(3), step * 3)
    used[1] = [*step, step[0], step[2]]
    job = _job(used, {"0": "default_pg", "1": "dp"})
    find_members(job)
    habits = Habits(job)
    assert not [*habits.oddities(0)]
    (odd,) = habits.oddities(1)
    assert (odd.group, odd.sequence, odd.is_common, odd.is_old, odd.is_next) == ("0", 4, True, True, True)
    expected = habits.expect_next(1)
    assert expected is not None
    assert (expected.group, expected.name) == ("0", "all_gather")
