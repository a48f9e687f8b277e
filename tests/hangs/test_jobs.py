"""Jobs with a known fault: real dumps of NCCL and gloo, synthetic dumps with collectives and messages, and many."""

from __future__ import annotations

import json
import pickle
import shutil
import time
from pathlib import Path

import pytest

from tests.hangs.drawing_jobs import draw_job, draw_messages
from tests.hangs.jobs import find, found, record


@pytest.mark.parametrize(
    ("name", "ranks", "kind", "places"),
    [
        ("gpu_error_1st", [12, 14], "not_completed", [("41", 42806), ("42", 42806)]),
        ("lock_gil_1st", [9, 14], "never_launched", [("72", 45265), ("72", 45265)]),
    ],
)
def test_the_ranks_of_real_jobs_of_nccl(
    nvrx: Path, name: str, ranks: list[int], kind: str, places: list[tuple[str, int]]
) -> None:
    begin = time.perf_counter()
    diagnosis = find(nvrx / name)
    assert time.perf_counter() - begin < 2
    assert found(diagnosis) == (ranks, [kind])
    assert [(root.group, root.sequence) for root in diagnosis.roots] == places
    assert {*diagnosis.waiting} == {*range(16)} - {*ranks}, "all other ranks wait"
    assert all({*roots} <= {*ranks} for roots in diagnosis.waiting.values())


def test_who_waits_for_whom_in_a_pipeline(nvrx: Path) -> None:
    waiting = find(nvrx / "gpu_error_1st").waiting
    assert waiting[0] == waiting[4] == waiting[8] == [12], "stages of one pipeline"
    assert waiting[2] == waiting[6] == waiting[10] == [14]
    assert waiting[13] == [12, 14], "it waits in a group with both"


def test_a_rank_without_a_dump_is_unknown_and_not_dead(nvrx: Path, tmp_path: Path) -> None:
    shutil.copytree(nvrx / "lock_gil_1st", tmp_path / "job")
    for rank in (9, 14):
        (tmp_path / "job" / f"_dump_{rank}").unlink()
    diagnosis = find(tmp_path / "job")
    assert found(diagnosis) == ([9, 14], ["unknown"])
    assert "ranks 9, 14 left no dump" in diagnosis.limits


def test_a_missing_dump_is_not_blamed_for_what_another_rank_explains(nvrx: Path, tmp_path: Path) -> None:
    shutil.copytree(nvrx / "lock_gil_1st", tmp_path / "job")
    (tmp_path / "job" / "_dump_3").unlink()
    assert found(find(tmp_path / "job"))[0] == [9, 14]


@pytest.mark.parametrize("name", ["job_00", "job_01", "job_02", "job_04", "job_09", "job_10", "job_13"])
def test_the_ranks_of_real_jobs_of_gloo(gloo: Path, name: str) -> None:
    truth = json.loads((gloo / name / "truth.txt").read_text())
    diagnosis = find(gloo / name)
    assert found(diagnosis) == (truth["ranks"], [truth["kind"]])
    assert all("site-packages" not in frame.file for root in diagnosis.roots for frame in root.frames)
    assert any(frame.function == "run_rank" for root in diagnosis.roots for frame in root.frames)


@pytest.mark.parametrize(
    "name",
    [
        "a_00_skip",  # the lines tell two calls of one operation apart; gloo ended a rank before its dump was written
        "a_01_skip",  # the rank goes on one ahead with equal operations, then uses another group
        "a_04_skip",  # what the aborted rank has not completed in its dump has completed
        "a_09_size",  # the aborted rank counts for the size that it used to launch
        "a_16_die",  # it ended with an exit code, before its last completion was in the dump
        "a_17_die",  # what failed is retired as well
        "a_21_uneven",  # the operation after the loop is new, and what used to come first is missing
        "a_22_uneven",  # the rank left, and the connection was lost
        "a_24_wrong_peer",  # each rank of a cycle has a message without a partner; one used to send elsewhere
        "a_25_missing_recv",  # the next message between the same two ranks was launched
        "a_27_unequal",  # the sender has completed the message, and the receiver was aborted
        "b_03_skip",  # one ahead with equal operations, and then with one that differs
        "c_00_skip",  # others show that an operation is missing which the rank would not have waited for at once
        "c_02_skip",  # what followed in the group followed after operations of other groups
        "c_06_swap",  # the bytes that an aborted rank expected tell with whom it agreed
        "c_20_uneven",  # most ranks wait for a later operation than the one that is missing first
        "c_21_uneven",  # most ranks at its place went on with the loop that it left
        "c_22_uneven",  # every second step has a barrier more
        "c_29_missing_send",  # other ranks that pass messages on show which one is missing
        "d_00_skip",  # what followed it is new, and the rank launched what is missing in the step before
        "d_06_swap",  # a tie of the two ranks in both groups; a rank is in a group that it never used
        "d_07_swap",  # the same, after an equal operation at another line
        "d_10_size",  # what the aborted rank launched is not in its dump, and all others agree
        "d_23_frozen",  # gloo lists no members, and a rank without a dump used no group
        "d_29_missing_send",  # all others are at messages that they used to launch there
        "e_11_size",  # operations after the one that differs were launched before its failure
        "f_12_type",  # two bytes are no whole element of four
    ],
)
def test_the_ranks_of_trials(trials: Path, name: str) -> None:
    truth = json.loads((trials / name / "truth.json").read_text())
    ranks, kinds = found(find(trials / name / "dumps"))
    assert ranks == truth["ranks"]
    assert len(kinds) == 1
    assert {*kinds} <= {*truth["kinds"]}


@pytest.mark.parametrize("name", ["job_04", "job_13"])
def test_a_rank_of_gloo_without_a_dump_is_unknown(gloo: Path, name: str, tmp_path: Path) -> None:
    """gloo lists no ranks: the missing one lies between others, is counted by a gather, or is the next number."""
    (rank,) = json.loads((gloo / name / "truth.txt").read_text())["ranks"]
    shutil.copytree(gloo / name, tmp_path / "job")
    (tmp_path / "job" / f"_dump_{rank}").unlink()
    (tmp_path / "job" / "launcher.log").unlink(missing_ok=True)
    assert found(find(tmp_path / "job")) == ([rank], ["unknown"])


@pytest.mark.parametrize("seed", range(56))
def test_drawn_jobs(seed: int, tmp_path: Path) -> None:
    job = draw_job(seed)
    diagnosis = find(record(job, tmp_path, "json" if seed % 2 else "pickle"))
    assert found(diagnosis) == (job["truth"]["ranks"], [job["truth"]["kind"]]), job["fault"]


@pytest.mark.parametrize("seed", range(36))
def test_drawn_jobs_with_messages(seed: int, tmp_path: Path) -> None:
    job = draw_messages(seed)
    diagnosis = find(record(job, tmp_path))
    assert found(diagnosis) == (job["truth"]["ranks"], [job["truth"]["kind"]]), job["fault"]


def test_a_job_that_is_not_stuck_has_no_rank_at_fault(tmp_path: Path) -> None:
    job = draw_job(0)
    job["programs"] = [[call for call in program if call["group"] == 0] for program in job["programs"]]
    longest = max(job["programs"], key=len)
    job["programs"] = [longest for _ in job["programs"]]
    diagnosis = find(record(job, tmp_path))
    assert diagnosis.roots == ()
    assert diagnosis.waiting == {}
    assert "no rank waits" in diagnosis.sentence


def test_the_newest_of_several_dumps_of_a_rank_is_used(nvrx: Path, tmp_path: Path) -> None:
    job = draw_job(5)
    record(job, tmp_path / "late")
    early = tmp_path / "early"
    early.mkdir()
    for path in (tmp_path / "late").iterdir():
        data = pickle.loads(path.read_bytes())
        data["entries"] = data["entries"][:1]
        (early / path.name).write_bytes(pickle.dumps(data))
    assert found(find(early, tmp_path / "late")) == found(find(tmp_path / "late"))
    assert found(find(tmp_path / "late", early)) == found(find(tmp_path / "late"))


def test_the_rank_may_be_in_the_name_of_the_folder(nvrx: Path, tmp_path: Path) -> None:
    for rank in range(16):
        (tmp_path / f"rank_{rank}").mkdir()
        shutil.copy(nvrx / "lock_gil_1st" / f"_dump_{rank}", tmp_path / f"rank_{rank}" / "dump.pickle")
    assert found(find(tmp_path)) == ([9, 14], ["never_launched"])


@pytest.mark.slow
def test_a_thousand_ranks_take_less_than_ten_seconds(nvrx: Path, tmp_path: Path) -> None:
    """64 copies of the job, each with ranks and groups of its own."""
    for copy in range(64):
        for rank in range(16):
            data = pickle.loads((nvrx / "gpu_error_1st" / f"_dump_{rank}").read_bytes())
            config = {}
            for name, group in data["pg_config"].items():
                ranks = [int(each) + 16 * copy for each in group["ranks"][1:-1].split(",")]
                config[f"{1000 * copy + int(name)}"] = {
                    **group,
                    "name": f"{1000 * copy + int(name)}",
                    "ranks": str(ranks),
                }
            for entry in data["entries"]:
                name, description = entry["process_group"]
                entry["process_group"] = (f"{1000 * copy + int(name)}", description)
            data["pg_config"] = config
            (tmp_path / f"_dump_{16 * copy + rank}").write_bytes(pickle.dumps(data, protocol=2))
    begin = time.perf_counter()
    diagnosis = find(tmp_path)
    assert time.perf_counter() - begin < 10
    assert [root.rank for root in diagnosis.roots] == [16 * copy + rank for copy in range(64) for rank in (12, 14)]
