"""The oracle itself: it runs text on real XLA with several devices, and outlives a child that dies."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import Failure, Job, run, run_one

pytestmark = pytest.mark.oracle
pytest.importorskip("jaxlib")

SUM = """HloModule sum
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[3] parameter(0)
  ROOT total = f32[3] all-reduce(x), to_apply=add, replica_groups={{0,1}}, channel_id=1
}"""
TWICE = "HloModule twice\nENTRY e { x = bf16[2] parameter(0)  ROOT y = bf16[2] add(x, x) }"
WHO = "HloModule who\nENTRY e { ROOT x = u32[] partition-id() }"
REFUSED = "HloModule bad\nENTRY e { x = f32[3] parameter(0)  ROOT y = f32[4] add(x, x) }"
DEADLY = "HloModule bad\nENTRY e { x = f32[2] parameter(0)  ROOT y = f32[] get-tuple-element(x), index=0 }"


def test_replicas_meet():
    rows = [[np.array([1, 2, 3], np.float32)], [np.array([10, 20, 30], np.float32)]]
    (outcome,) = run([Job(SUM, rows, num_replicas=2)])
    assert [device[0].tolist() for device in outcome] == [[11, 22, 33]] * 2


def test_partitions_have_numbers():
    (outcome,) = run([Job(WHO, [[]] * 3, num_partitions=3)])
    assert [int(device[0]) for device in outcome] == [0, 1, 2]


def test_a_refusal_and_a_death_harm_no_other_job():
    two = np.array([1.5, 2.0], np.float32)
    jobs = [Job(DEADLY, [[two]]), Job(REFUSED, [[np.zeros(3, np.float32)]]), Job(TWICE, [[two]])]
    dead, refused, fine = run(jobs)
    assert isinstance(dead, Failure)
    assert "died" in dead.message
    assert isinstance(refused, Failure)
    assert "add" in refused.message
    assert fine[0][0].astype(np.float32).tolist() == [3.0, 4.0]


def test_one_program_gives_its_leaves_or_raises():
    assert run_one(TWICE, np.array([1.0, 2.0]))[0].dtype.name == "bfloat16"
    with pytest.raises(RuntimeError, match="add"):
        run_one(REFUSED, np.zeros(3, np.float32))


@pytest.mark.slow
def test_a_job_without_an_answer_is_stopped():
    endless = """HloModule endless
    c { s = s32[] parameter(0)  ROOT t = pred[] constant(true) }
    b { s = s32[] parameter(0)  i = s32[] constant(1)  ROOT n = s32[] add(s, i) }
    ENTRY e { x = s32[] parameter(0)  ROOT w = s32[] while(x), condition=c, body=b }"""
    outcomes = run([Job(endless, [[np.int32(0)]]), Job(TWICE, [[np.zeros(2)]])], seconds=6)
    assert isinstance(outcomes[0], Failure)
    assert not isinstance(outcomes[1], Failure)
