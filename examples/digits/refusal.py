"""The training step by itself, and the same step with two collectives in the opposite order on one replica."""

from __future__ import annotations

import xbuild as xb
from examples.digits import by_hand, data, model


def train_step(replicas: int) -> xb.Module:
    """One step without the surrounding loop: (parameters, images, labels) -> (parameters, loss)."""
    share = data.BATCH // replicas
    shapes = [xb.f32[p.shape] for p in model.initial_parameters()]

    @xb.computation(*shapes, xb.f32[share, 64], xb.f32[share, 10])
    def step(*arguments: xb.Value) -> list[xb.Value]:
        *parameters, images, labels = arguments
        loss, found = by_hand.gradients(parameters, images, labels)
        summed = [xb.cross_replica_sum(gradient) for gradient in found]
        return [*(p - model.LEARNING_RATE * g for p, g in zip(parameters, summed, strict=True)), loss]

    return xb.Module("digits_step", step, num_replicas=replicas)


def verdict(replicas: int) -> xb.Verdict:
    """The verdict when the last replica runs its first two collectives in the opposite order."""
    module = train_step(replicas)
    recorded = module.entry.instructions
    collectives = [n for n, instruction in enumerate(recorded) if instruction.opcode == "all_reduce"]
    first, second = collectives[:2]
    swapped = [*recorded]
    swapped[first], swapped[second] = recorded[second], recorded[first]
    orders = dict.fromkeys(range(replicas), recorded) | {replicas - 1: tuple(swapped)}
    return xb.check(module, schedule=orders)
