"""The training script of 2018: it learns, eight replicas equal one, and what would hang ends with its reason."""

from __future__ import annotations

import time

import numpy as np
import pytest

import xbuild as xb

pytest.importorskip("sklearn")

from examples import tpu_digits
from examples.digits import data


def test_the_digits_are_learned_in_bf16_on_eight_replicas() -> None:
    training = tpu_digits.train(8, 4)
    assert training.accuracy(data.load()[1]) >= 0.95
    assert training.train_op.num_replicas == 8
    steps = 4 * (len(data.load()[0].images) // data.BATCH)
    assert sorted(training.summaries.losses) == [*range(1, steps + 1)]
    assert {len(losses) for losses in training.summaries.losses.values()} == {8}
    assert all(str(v.shape).startswith("f32") for v in xb.tpu.trainable_variables())
    assert xb.tpu.system() is None


def test_eight_replicas_equal_one_on_the_same_batches() -> None:
    found = {}
    for shards in (8, 1):
        training = tpu_digits.Training(shards, xb.f32)
        for seed in (1, 2):
            training.epoch(data.load()[0], seed)
        found[shards] = [np.array(weight) for weight in training.weights()]
    for eight, one in zip(found[8], found[1], strict=True):
        assert np.abs(eight - one).max() <= 1e-5


def test_a_sum_that_only_some_replicas_come_to_is_refused_before_the_run() -> None:
    text = str(tpu_digits.refused(8))
    assert "devices 1, 3, 5 and 7 never reach all-reduce" in text
    assert "tpu_digits.py" in text
    assert "fix    move all-reduce" in text


def test_a_summary_that_is_never_written_ends_the_run_at_its_limit() -> None:
    begin = time.monotonic()
    stop = tpu_digits.stopped(8, 0.5)
    assert stop.report.kind == "limit_seconds"
    assert "the host function 'endless'" in str(stop)
    assert time.monotonic() - begin < 5.0


def test_the_program_of_a_step_holds_one_sum_for_each_variable() -> None:
    training = tpu_digits.Training(2)
    opcodes = [i.opcode for i in training.train_op.module.entry.instructions]
    assert opcodes.count("all_reduce") == 4
    assert opcodes.count("tanh") == 1
