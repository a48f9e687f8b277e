"""Entries of the Flight Recorder: batches of messages, started and retired operations, old versions, sizes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.hangs.jobs import find, found

GROUP = ("0", "default_pg")


def entry(number: int, name: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    """A pending entry with the number as its place and its sequence."""
    return {
        "record_id": number, "pg_id": 0, "process_group": GROUP, "collective_seq_id": number, "p2p_seq_id": 0,
        "op_id": number, "profiling_name": name, "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]],
        "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "retired": False, "is_p2p": False, "frames": [], **more,
    }  # fmt: skip


def message(number: int, name: str, batch: int = 1, **more: Any) -> dict[str, Any]:
    return entry(number, f"nccl:{name}", is_p2p=True, collective_seq_id=batch, p2p_seq_id=batch, **more)


def write(folder: Path, *ranks: list[dict[str, Any]], version: str = "2.9", **more: Any) -> Path:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str([*range(len(ranks))])}}
    for rank, entries in enumerate(ranks):
        dump = {"version": version, "pg_config": config, "entries": entries, **more}
        (folder / f"_dump_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    return folder


DONE = {"state": "completed"}


def test_messages_of_a_batch_are_launched_together(tmp_path: Path) -> None:
    """A ring in which each rank sends and receives in a batch is no cycle; rank 2 never launched its batch."""
    ring = [[message(0, f"send {r}->{(r + 1) % 4}"), message(1, f"recv {r}<-{(r - 1) % 4}")] for r in range(4)]
    write(
        tmp_path, *[[*each, entry(2, "nccl:coalesced", is_p2p=True)] if r != 2 else [] for r, each in enumerate(ring)]
    )
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["never_launched"])
    assert {*diagnosis.waiting} == {1, 3}, "the partners of rank 0 are there"


def test_a_ring_of_single_sends_is_a_wrong_order_on_all_ranks(tmp_path: Path) -> None:
    write(tmp_path, *[[message(0, f"send {rank}->{(rank + 1) % 3}")] for rank in range(3)])
    assert found(find(tmp_path)) == ([0, 1, 2], ["wrong_order"])


def test_messages_of_a_closed_batch_are_done(tmp_path: Path) -> None:
    """The recorder leaves the messages scheduled, and completes the entry that closes the batch."""
    closing = entry(2, "nccl:coalesced", collective_seq_id=1, p2p_seq_id=1, **DONE)
    batch = [message(0, "send 0->1"), message(1, "recv 0<-1"), closing]
    write(tmp_path, [*batch, entry(3, collective_seq_id=1)], [])
    diagnosis = find(tmp_path)
    assert diagnosis.waits.frontiers[0][0].name == "all_reduce"
    assert found(diagnosis) == ([1], ["never_launched"])


def test_a_rank_that_never_started_what_others_started(tmp_path: Path) -> None:
    first = entry(1, **DONE)
    started = {"state": "started", "time_discovered_started_ns": 7}
    write(tmp_path, [first, entry(2, **started)], [first, entry(2, **started)], [first, entry(2)])
    assert found(find(tmp_path)) == ([2], ["not_completed"])


def test_an_operation_that_nobody_completed_is_a_tie(tmp_path: Path) -> None:
    write(tmp_path, *[[entry(1, **DONE), entry(2)] for _ in range(3)])
    assert found(find(tmp_path)) == ([0, 1, 2], ["not_completed"])


def test_nccl_retires_what_has_timed_out(tmp_path: Path) -> None:
    write(tmp_path, [entry(1, retired=True)], [])
    assert found(find(tmp_path)) == ([1], ["never_launched"])


def test_a_back_end_without_states_and_without_retiring(tmp_path: Path) -> None:
    """What all ranks launched, and went on from, counts as completed."""
    name = "mccl:all_reduce"
    write(tmp_path, [entry(1, name), entry(2, name)], [entry(1, name), entry(2, name)], [entry(1, name)])
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["never_launched"])
    assert diagnosis.roots[0].sequence == 2
    assert any("records no completion" in limit for limit in diagnosis.limits)


@pytest.mark.parametrize("version", ["2.4", "2.5", "2.7", "2.9", "2.10"])
def test_versions(version: str, tmp_path: Path) -> None:
    """Version 2.4 has no counts of groups, no retired operations and no dtypes."""
    entries = [entry(1, **DONE), entry(2)]
    if version == "2.4":
        for each in entries:
            for key in ("retired", "input_dtypes", "output_dtypes"):
                del each[key]
    write(tmp_path, entries, entries[:1], version=version, nccl_version="2.20.5")
    assert found(find(tmp_path)) == ([1], ["never_launched"])


@pytest.mark.parametrize(
    ("one", "two", "kinds"),
    [
        (
            entry(1, "nccl:all_to_all", input_sizes=[[7]]),
            entry(1, "nccl:all_to_all", input_sizes=[[9]]),
            ["not_completed"],
        ),
        (entry(1, input_sizes=[[2, 2]]), entry(1, input_sizes=[[4]]), ["not_completed"]),
        (entry(1, "nccl:all_gather"), entry(1, "nccl:_all_gather_base"), ["not_completed"]),
        (entry(1, input_sizes=[[8]]), entry(1), ["wrong_size"]),
        (entry(1, input_dtypes=["Int"]), entry(1), ["wrong_type"]),
        (entry(1, "nccl:broadcast"), entry(1), ["wrong_op"]),
        (entry(1, "nccl:reduce_scatter", output_sizes=[[1]]), entry(1, "nccl:reduce_scatter"), ["wrong_size"]),
        (
            entry(1, "nccl:all_gather", input_sizes=[[3]], output_sizes=[[3], [4]]),
            entry(1, "nccl:all_gather", output_sizes=[[3], [4]]),
            ["not_completed"],
        ),
    ],
)
def test_what_may_differ_between_two_ranks(
    one: dict[str, Any], two: dict[str, Any], kinds: list[str], tmp_path: Path
) -> None:
    write(tmp_path, [one], [two])
    assert found(find(tmp_path)) == ([0, 1], kinds)


def test_the_minority_is_at_fault(tmp_path: Path) -> None:
    diagnosis = find(write(tmp_path, [entry(1)], [entry(1, input_sizes=[[9]])], [entry(1)], [entry(1)]))
    assert found(diagnosis) == ([1], ["wrong_size"])
    assert diagnosis.roots[0].reason == "all_reduce #1 has 9 elements where ranks 0, 2, 3 have 4"
    assert diagnosis.waiting == {0: [1], 2: [1], 3: [1]}


def test_a_rank_that_waits_in_another_group_is_not_at_fault(tmp_path: Path) -> None:
    """Rank 0 waits for 1, which lags because it waits in another group for 2, which does nothing."""
    other = {"pg_id": 1, "process_group": ("1", "pair"), "collective_seq_id": 1}
    write(tmp_path, [entry(1, **DONE), entry(2)], [entry(1, **DONE), entry(5, **other)], [entry(1, **DONE)])
    for rank in (1, 2):
        path = tmp_path / f"_dump_{rank}"
        dump = pickle.loads(path.read_bytes())
        dump["pg_config"]["1"] = {"name": "1", "desc": "pair", "ranks": "[1, 2]"}
        path.write_bytes(pickle.dumps(dump))
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["never_launched"])
    assert diagnosis.waiting == {0: [2], 1: [2]}


def test_a_message_that_only_the_other_side_completed(tmp_path: Path) -> None:
    """Dumps with pending operations alone: rank 1 waits for rank 0 in a collective, so it has completed the message."""
    late = {"record_id": 90}
    write(
        tmp_path,
        [message(7, "send 0->1", **late), entry(8, record_id=91)],
        [entry(8, **late)],
        pg_status={"0": {"last_enqueued_collective": 8, "last_completed_collective": 7}},
    )
    assert found(find(tmp_path)) == ([0], ["not_completed"])


def test_a_message_that_the_other_side_never_launched(tmp_path: Path) -> None:
    """Dumps with pending operations alone: nothing is pending on rank 1."""
    write(tmp_path, [message(7, "send 0->1", record_id=90)], [])
    assert found(find(tmp_path)) == ([1], ["never_launched"])


def test_counts_of_messages_are_not_taken_for_counts_of_collectives(tmp_path: Path) -> None:
    """In a group with messages, the status of rank 2 counts these: it never launched the collective 9."""
    pending = entry(9, record_id=90)
    counts = {"last_enqueued_collective": 700, "last_completed_collective": 700}
    write(tmp_path, [message(8, "send 0->1", record_id=80, **DONE), pending], [pending], [], pg_status={"0": counts})
    assert found(find(tmp_path)) == ([2], ["never_launched"])


def test_messages_of_a_back_end_without_states(tmp_path: Path) -> None:
    """Two messages that both sides launched are done; the third has no recv, since rank 1 waits for another rank."""
    rank_0 = [message(number, "send 0->1") for number in range(3)]
    rank_1 = [message(0, "recv 1<-0"), message(1, "recv 1<-0"), message(2, "recv 1<-2")]
    rank_2 = [entry(1, "nccl:barrier", input_sizes=[], record_id=0)]
    write(tmp_path, rank_0, rank_1, rank_2)
    assert found(find(tmp_path)) == ([1], ["unmatched"])
