"""Readers of RAS, Inspector, XLA's logs and TPU digests, on output in their documented layout."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.hangs.jobs import DATA, find, found
from xbuild.cli import main
from xbuild.hangs.flight_recorder import _plain_name


def _ras(*communicators: dict[str, Any]) -> str:
    return json.dumps({"nccl_version": "2.30.7", "communicators": [*communicators]})


def _communicator(
    name: str, counts: dict[int, dict[str, int]], missing: dict[int, bool] | None = None
) -> dict[str, Any]:
    """A communicator of RAS; `counts` by GPU, whose number in the communicator is its place."""
    return {
        "hash": name,
        "size": len(counts),
        "ranks": [
            {"rank": place, "host": "a", "pid": gpu, "cuda_dev": gpu, "status": {}, "collective_counts": kinds}
            for place, (gpu, kinds) in enumerate(counts.items())
        ],
        "missing_ranks": [
            {
                "rank": gpu,
                "host": "a",
                "pid": gpu,
                "cuda_dev": gpu,
                "status": {"unresponsive": True, "considered_dead": dead},
            }
            for gpu, dead in (missing or {}).items()
        ],
    }


def _equal(gpus: range, count: int = 5) -> dict[int, dict[str, int]]:
    return {gpu: {"AllReduce": count} for gpu in gpus}


@pytest.mark.parametrize(
    ("communicators", "ranks", "kinds"),
    [
        ([_communicator("0xa", {**_equal(range(4)), 2: {"AllReduce": 4}})], [2], ["never_launched"]),
        (
            [
                _communicator("0xa", {**_equal(range(4)), 2: {"AllReduce": 4}}),
                _communicator("0xb", {2: {"AllGather": 8}, 3: {"AllGather": 7}}),
            ],
            [2],
            ["wrong_order"],
        ),
        (
            [
                _communicator("0xa", {**_equal(range(6)), 2: {"AllReduce": 4}, 3: {"AllReduce": 4}}),
                _communicator("0xb", {2: {"AllGather": 8}, 3: {"AllGather": 7}}),
            ],
            [3],
            ["never_launched"],
        ),
        ([_communicator("0xa", {**_equal(range(4)), 1: {"AllReduce": 4, "AllGather": 1}})], [1], ["wrong_op"]),
        ([_communicator("0xa", _equal(range(3)), {3: True})], [3], ["dead"]),
        ([_communicator("0xa", _equal(range(3)), {3: False})], [], []),
        ([_communicator("0xa", _equal(range(4)))], [], []),
    ],
)
def test_ras_as_json(communicators: list[dict[str, Any]], ranks: list[int], kinds: list[str], tmp_path: Path) -> None:
    (tmp_path / "ras.json").write_text(_ras(*communicators))
    assert found(find(tmp_path / "ras.json")) == (ranks, kinds)


RAS_TEXT = """\
NCCL version 2.28.3 compiled with CUDA 13.0
Job summary
===========
Communicators... (0.00s)
=============
Warnings
========
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllGather operation counts
  6 ranks have launched up to operation 640
  2 ranks have launched up to operation 639
  Rank 3 -- GPU 3 managed by process 4080 on node 10.0.0.1
  Rank 5 -- GPU 5 managed by process 4082 on node 10.0.0.1
"""


def test_ras_as_text(tmp_path: Path) -> None:
    (tmp_path / "ras.txt").write_text(RAS_TEXT)
    diagnosis = find(tmp_path / "ras.txt")
    assert found(diagnosis) == ([3, 5], ["never_launched"])
    assert [(root.group, root.sequence) for root in diagnosis.roots] == [("27a079b828ff1a75", 640)] * 2
    assert [*diagnosis.waiting] == [0, 1, 2, 4, 6, 7]
    assert any("untried on real output" in limit for limit in diagnosis.limits)


def test_a_real_log_of_a_barrier_names_the_task_that_never_came() -> None:
    diagnosis = find(DATA / "coordination_barrier.log")
    assert found(diagnosis) == ([1], ["never_launched"])
    assert (diagnosis.roots[0].group, diagnosis.waiting) == ("step_5", {0: [1]})
    assert "the heartbeats of rank 1 stopped after the barrier had timed out" in diagnosis.job.facts


def test_a_real_log_of_stopped_heartbeats() -> None:
    diagnosis = find(DATA / "coordination_heartbeat.log")
    assert found(diagnosis) == ([1], ["dead"])
    assert diagnosis.job.formats == {"coordination service": 1}


def test_a_real_log_of_a_process_that_ended_before_another() -> None:
    diagnosis = find(DATA / "coordination_shutdown.log")
    assert found(diagnosis) == ([0], ["never_launched"])
    assert (diagnosis.roots[0].group, diagnosis.waiting) == ("Shutdown", {1: [0]})
    assert any("rank 1 ended while rank 0 still ran" in limit for limit in diagnosis.limits)


def test_a_barrier_that_lists_some_of_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "stderr.log").write_text(
        "Barrier timed out. Id: save::3. This usually happens because.\n# of tasks that reached the barrier: 2/8.\n"
        "The first task at the barrier: /job:jax_worker/replica:0/task:5. Some timed out task names:\n"
        "/job:jax_worker/replica:0/task:1\n/job:jax_worker/replica:0/task:4\n\n"
    )
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([1, 4], ["never_launched"])
    assert diagnosis.waiting == {5: [1, 4]}
    assert "the log lists 2 of the 6 tasks that never reached the barrier" in diagnosis.limits


def test_inspector(tmp_path: Path) -> None:
    for rank, last in enumerate([7, 7, 6, 7]):
        rows = [
            {"header": {"id": "0x1", "rank": rank, "n_ranks": 4}, "coll_perf": {"coll": "AllReduce", "coll_sn": number}}
            for number in range(last + 1)
        ]
        (tmp_path / f"inspector_{rank}.log").write_text("\n".join(map(json.dumps, rows)))
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["not_completed"])
    assert diagnosis.roots[0].sequence == 7


def test_a_real_log_of_xla_says_how_many_participants_came() -> None:
    diagnosis = find(DATA / "xla_cpu_rendezvous.log")
    assert diagnosis.sentence.startswith("3 of 4 participants reached all-reduce with channel id 1 of devices 0-3")
    assert diagnosis.roots == ()


def test_an_old_log_of_xla_names_the_ranks_that_came(tmp_path: Path) -> None:
    key = "RendezvousKey{run_id=RunId: 7, global_devices=[0, 1, 2, 3], num_local_participants=4, op_id=3}"
    lines = [
        f"This thread has been waiting for 5000ms for and may be stuck: participant AllReduceParticipantData{{"
        f"rank={rank}, element_count=4, type=F32, rendezvous_key={key}}} waiting for all participants to arrive at "
        f"rendezvous {key}"
        for rank in (0, 1, 3)
    ]
    (tmp_path / "stderr.log").write_text("\n".join(lines))
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["never_launched"])
    assert diagnosis.waiting == {0: [2], 1: [2], 3: [2]}


def test_progress_of_xla_names_the_device_that_is_behind(tmp_path: Path) -> None:
    lines = []
    pending = [(57, "all-reduce.5"), (57, "all-reduce.5"), (41, "fusion.3"), (57, "all-reduce.5")]
    for device, (number, name) in enumerate(pending):
        lines += [
            f"E0101 00:00:00 1 thunk_executor.cc:1] [{device}] Completed thunks: {number}/90 (unique thunks: 30)",
            f"E0101 00:00:00 1 thunk_executor.cc:1] [{device}] First pending thunks:",
            f"E0101 00:00 1 thunk_executor.cc:1]   - exec[{number}] thunk[7/30] kAllReduce: {name} at 2026-01-01",
        ]
    (tmp_path / "stderr.log").write_text("\n".join(lines))
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([2], ["not_completed"])
    assert diagnosis.waiting == {0: [2], 1: [2], 3: [2]}
    assert "fusion.3" in diagnosis.sentence


def test_a_tpu_digest_names_the_cores_with_another_module(tmp_path: Path) -> None:
    text = (
        "Different module\nTPU states: Launch ID 7, Module jit_step, Fingerprint ab12\n"
        "Tag:PC breakdown: 3@0x10(all-reduce.5): [0:hosta@0:0, 0:hosta@0:1, 1:hostb@0:0]\n"
        "TPU states: Launch ID 7, Module jit_other, Fingerprint cd34\n"
        "Tag:PC breakdown: 1@0x20(fusion.1): [1:hostb@0:1]\n"
    )
    (tmp_path / "digest.txt").write_text(text)
    diagnosis = find(tmp_path)
    assert found(diagnosis) == ([3], ["wrong_op"])
    assert [*diagnosis.waiting] == [0, 1, 2]
    assert "the digest names the cause: Different module" in diagnosis.job.facts


@pytest.mark.parametrize(
    ("line", "dead"),
    [
        ("UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout. This indicates", [37]),
        (
            "The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:1\n"
            "/job:jax_worker/replica:0/task:4\nThe tasks have crashed",
            [1, 4],
        ),
        ("Root Cause (first observed failure):\n rank      : 2 (local_rank: 2)\n exitcode  : -11 (pid: 5)\n", [2]),
        ("E1128 api.py:882] failed (exitcode: -9) local_rank: 1 (pid: 7) of binary: python", [1]),
        ("E1128 api.py:882] failed (exitcode: -15) local_rank: 1 (pid: 7) of binary: python", []),
        ("mpirun noticed that process rank 2 with PID 0 on node a exited on signal 9 (Killed).", [2]),
        ("mpirun noticed that process rank 2 with PID 0 on node a exited on signal 15 (Terminated).", []),
        ("srun: error: node7: task 3: Killed", [3]),
        ("srun: error: node7: task 3: Out Of Memory", [3]),
        ("rank 5 exited with code -9", [5]),
        ("rank 5 was killed by SIGSEGV", [5]),
        ("rank 5 exited with code 0, rank 6 exited with code -15", []),
        ("Root Cause (first observed failure):\n rank      : 2 (local_rank: 2)\n exitcode  : -15 (pid: 5)\n", []),
    ],
)
def test_lines_that_say_that_a_rank_ended(line: str, dead: list[int], tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(line)
    (tmp_path / "_dump_0").write_bytes(pickle.dumps({"version": "2.9", "entries": []}))
    assert found(find(tmp_path))[0] == dead


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("nccl:_all_gather_base", "all_gather"), ("hccl:_reduce_scatter_base", "reduce_scatter"),
        ("gloo:all_reduce", "all_reduce"), ("nccl:allreduce_coalesced", "all_reduce"), ("nccl:send 1->2", "send"),
        ("xccl:coalesced", "coalesced"), ("nccl:_allgather_base", "all_gather"),
    ],
)  # fmt: skip
def test_the_names_of_operations(name: str, plain: str) -> None:
    assert _plain_name(name) == plain


GUARDED = """INFO starts
xbuild guard: jit_step is refused; it runs anyway; wrote checked
deadlock: device 1 never reaches psum.6 in branch 1 of conditional.1 [deadlock]

  device 0     stops at psum.6   train.py:8

  cause  a collective inside a conditional
  fix    move it
next line of the script
"""


@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_the_report_of_the_guard_is_read(prefix: str, tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("".join(f"{prefix}{line}\n" for line in GUARDED.splitlines()))
    job = find(log).job
    (message,) = job.guarded
    assert (message.program, message.what, message.is_stopped) == ("jit_step", "is refused", False)
    assert message.report == tuple(GUARDED.splitlines()[2:8])
    text = str(find(log))
    assert text.startswith("the guard says that jit_step is refused: deadlock: device 1 never reaches psum.6 in branch")
    assert "      fix    move it" in text.splitlines()
    assert "next line" not in text


def test_what_the_guard_says_about_data_and_other_processes(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("xbuild guard: jit_f may hang: the data decide; it runs; --strict stops such programs\n"
                   "depends: the data decide; the program deadlocks under this condition\n")  # fmt: skip
    assert find(log).sentence == (
        "the guard says that jit_f may hang: the data decide; the program deadlocks under this condition"
    )
    log.write_text("xbuild guard: process 0 (jit_f) and process 1 (jit_f) compiled different programs, "
                   "and the job would hang\n")  # fmt: skip
    assert "process 1 (jit_f) compiled different programs and the job would hang" in find(log).sentence
    log.write_text("xbuild guard: 3 programs checked in 0.10 s, none refused\n")
    assert find(log).sentence == "the logs do not say for which rank another one waits (xbuild guard)"


def test_processes_that_the_guard_waited_for_are_at_fault(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    waits = "xbuild guard: process 0 waits for processes 1, 2 to compile jit_f, at most 60 s\n"
    log.write_text(waits)
    assert [root.rank for root in find(log).roots] == [1, 2]
    assert find(log).waiting == {0: [1, 2]}
    log.write_text(f"{waits}xbuild guard: process 0 goes on: all have compiled jit_f, after 9 s\n")
    assert find(log).roots == ()
    log.write_text(
        f"{waits}xbuild guard: process 2 compiled no program here in 60 s: processes 0, 1 will wait in jit_f\n"
    )
    diagnosis = find(log)
    assert [(root.rank, root.kind) for root in diagnosis.roots] == [(2, "never_launched")]
    assert diagnosis.waiting == {0: [2], 1: [2]}


def test_a_process_that_ended_is_not_at_a_barrier_in_another_order(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    log.write_text(
        "xbuild guard: process 0 waits for process 1 to compile jit_f, at most 60 s\n"
        "Barrier timed out. Id: Shutdown::1. This usually happens because a task did not come.\n"
        "# of tasks that reached the barrier: 1/2.\n"
        "The first task at the barrier: 1. Some timed out task names:\n0\n"
    )
    diagnosis = find(log)
    assert [(root.rank, root.kind) for root in diagnosis.roots] == [(1, "never_launched")]
    assert diagnosis.waiting == {0: [1]}
    assert "rank 1 ended without compiling the program that the others compiled" in diagnosis.job.facts


def test_a_collective_of_gloo_that_failed_is_no_job_without_faults(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("JaxRuntimeError: UNKNOWN: Gloo all-reduce failed: [pair.cc:538] Read error [10.1.2.3]:19\n")
    found = find(log)
    assert found.sentence.startswith("a collective failed, so its processes ended")
    assert found.job.facts == ["gloo: the all-reduce of a process failed"]
    assert CliRunner().invoke(main, ["hang", str(log)]).exit_code == 1
