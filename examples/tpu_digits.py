"""Handwritten digits on eight replicas, trained by a script in the TPU style of 2018: infeed, shards, summaries."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import xbuild as xb
from examples.digits import data
from interpreter import Limits, Refused, Stopped
from xbuild import tpu

HIDDEN = 48
LEARNING_RATE = 0.3
MOMENTUM = 0.9


def dense(inputs: xb.Value, units: int, name: str, dtype: xb.PrimitiveType) -> xb.Value:
    """A layer; it requests variables in `dtype`, which a bfloat16_scope stores in f32."""
    features = inputs.shape.dims[1]
    with tpu.variable_scope(name):
        drawn = tpu.random_normal_initializer(stddev=1 / np.sqrt(features), seed=1)
        kernel = tpu.get_variable("kernel", [features, units], dtype, initializer=drawn)
        bias = tpu.get_variable("bias", [units], dtype, initializer=tpu.zeros_initializer)
    return xb.add(xb.dot(inputs, kernel), bias, broadcast_dimensions=[1])


def network(images: xb.Value, dtype: xb.PrimitiveType) -> xb.Value:
    """64 pixels, 48 tanh units, 10 logits."""
    with tpu.bfloat16_scope():
        hidden = xb.tanh(dense(xb.convert(images, dtype), HIDDEN, "hidden", dtype))
        logits = dense(hidden, 10, "logits", dtype)
    return xb.convert(logits, xb.f32)


def cross_entropy(labels: xb.Value, logits: xb.Value) -> xb.Value:
    """The mean over the examples of this replica."""
    shifted = xb.subtract(logits, xb.reduce(logits, -np.inf, xb.maximum, [1]), broadcast_dimensions=[0])
    normalizer = xb.log(xb.reduce(xb.exp(shifted), 0.0, xb.add, [1]))
    log_probability = xb.subtract(shifted, normalizer, broadcast_dimensions=[0])
    return xb.reduce(labels * log_probability, 0.0, xb.add) / -float(labels.shape.dims[0])


class Summaries:
    """The losses that the host functions of the replicas write, one for each replica and step."""

    def __init__(self) -> None:
        self.losses: dict[int, list[float]] = {}

    def scalar(self, step: Any, loss: Any) -> None:
        """Write the loss of one replica."""
        self.losses.setdefault(int(step), []).append(float(loss))


class Training:
    """The graph of a training step, which is built once, and the queue that feeds it."""

    def __init__(self, num_shards: int, dtype: xb.PrimitiveType = xb.bf16, summary: Any = None) -> None:
        tpu.reset_variables()
        self.dtype, self.summaries = dtype, Summaries()
        self.summary = summary or self.summaries.scalar
        self.infeed = tpu.InfeedQueue(tuple_types=[xb.f32, xb.f32], tuple_shapes=[[data.BATCH, 64], [data.BATCH, 10]])
        self.optimizer = tpu.CrossShardOptimizer(tpu.MomentumOptimizer(LEARNING_RATE, MOMENTUM))
        self.global_step = tpu.get_variable("global_step", [], xb.s32, trainable=False)
        self.train_op = tpu.batch_parallel.program(self.train_step, num_shards=num_shards, infeed_queue=self.infeed)

    def train_step(self, images: xb.Value, labels: xb.Value) -> tuple[xb.Value, tpu.Operation]:
        """One step of one replica: its loss, and the update of the variables by the mean gradient of all replicas."""
        loss = cross_entropy(labels, network(images, self.dtype))
        step = self.optimizer.minimize(loss, global_step=self.global_step)
        tpu.outside_compilation(self.summary, self.global_step, loss)
        return loss, step

    def epoch(self, digits: data.Digits, seed: int, **options: Any) -> float:
        """Train on shuffled batches once; returns the mean loss."""
        order = np.random.default_rng(seed).permutation(len(digits.images))
        losses = []
        for start in range(0, len(order) - data.BATCH + 1, data.BATCH):
            batch = order[start : start + data.BATCH]
            self.infeed.enqueue(digits.images[batch], digits.labels[batch])
            (loss,) = self.train_op.run(**options)
            losses.append(loss.mean())
        return float(np.mean(losses))

    def accuracy(self, digits: data.Digits) -> float:
        """The fraction of the digits whose largest logit is their label."""
        (logits,) = tpu.rewrite(self.predict, [digits.images])
        return float(np.mean(logits.argmax(axis=1) == digits.labels.argmax(axis=1)))

    def predict(self, images: xb.Value) -> xb.Value:
        """The logits for images."""
        return network(images, self.dtype)

    def weights(self) -> Sequence[np.ndarray[Any, Any]]:
        """The trained variables of the first replica."""
        return [variable.numpy() for variable in tpu.trainable_variables()]


def train(num_shards: int, epochs: int, dtype: xb.PrimitiveType = xb.bf16) -> Training:
    """Run the script: initialize, train, evaluate, and shut down."""
    digits, held_back = data.load()
    print(tpu.initialize_system(topology=tpu.Topology([max(num_shards // 2, 1), 1, 1, min(num_shards, 2)])))
    training = Training(num_shards, dtype)
    print(training.train_op.verdict)
    for number in range(1, epochs + 1):
        loss = training.epoch(digits, seed=number)
        print(f"epoch {number:2}   loss {loss:.4f}   held back {training.accuracy(held_back):.1%} right")
    print(f"the host wrote {sum(map(len, training.summaries.losses.values()))} summaries")
    print(tpu.shutdown_system())
    return training


def program() -> tpu.TpuProgram:
    """The training step of eight replicas, for commands such as `xbuild show examples/tpu_digits.py:program`."""
    return Training(8).train_op


def in_step_with_some(x: xb.Value) -> xb.Value:
    """A CrossReplicaSum that only the even replicas reach."""
    is_even = xb.replica_id(x.builder) % np.uint32(2) == np.uint32(0)
    return xb.conditional(is_even, x, tpu.cross_replica_sum, x, lambda value: value)


def refused(num_shards: int) -> Refused:
    """The refusal, before the run, of a step in which some replicas never reach a sum."""
    try:
        tpu.replicate(in_step_with_some, [[float(replica)] for replica in range(num_shards)])
    except Refused as refusal:
        return refusal
    raise AssertionError("it was not refused")


def endless(step: Any, loss: Any) -> None:
    """A summary that is never written."""
    while True:
        time.sleep(0.01)


def stopped(num_shards: int, seconds: float) -> Stopped:
    """The stop of a run whose host function never returns."""
    digits, _ = data.load()
    try:
        Training(num_shards, summary=endless).epoch(digits, 1, limits=Limits(seconds=seconds))
    except Stopped as stop:
        return stop
    raise AssertionError("it was not stopped")


def main() -> int:
    """Train, then show the reports for two variants that would hang on a machine; status 1 if it learned too little."""
    parser = argparse.ArgumentParser(prog="python -m examples.tpu_digits", description=main.__doc__)
    parser.add_argument("--num_shards", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--float32", action="store_true", help="request variables in f32 instead of bf16")
    flags = parser.parse_args()
    training = train(flags.num_shards, flags.epochs, xb.f32 if flags.float32 else xb.bf16)
    reached = training.accuracy(data.load()[1])
    print("\nWith a sum that only some replicas reach:\n")
    print(refused(flags.num_shards))
    print("\nWith a summary that is never written, and a limit of half a second:\n")
    print(stopped(flags.num_shards, 0.5))
    return 0 if reached >= 0.95 else 1


if __name__ == "__main__":
    raise SystemExit(main())
