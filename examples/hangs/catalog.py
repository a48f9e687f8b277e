"""All stories, in the order of the page, and the threads that cannot be written as a program today."""

from __future__ import annotations

from types import ModuleType

from attrs import frozen

from examples.hangs import (
    autotuner_keys,
    autotuner_orders,
    both_send_first,
    callback_in_pool,
    creation_lock,
    crossed_groups,
    eval_on_rank_zero,
    exit_paths,
    fixed_send_order,
    handle_creation,
    hardware_queues,
    infeed_behind_program,
    interleaved_stages,
    late_rank,
    lazy_communicators,
    local_decisions,
    master_only_graph,
    permute_cycle,
    ragged_last_batch,
    rank_that_leaves,
    scheduler_order,
    second_queue,
    shared_devices,
    singleton_cliques,
    split_and_cache,
    stalled_loader,
    two_communicators,
    unequal_sizes,
    uneven_batches,
    uneven_gather,
    unused_expert,
)
from examples.hangs.story import Told

SECTIONS: dict[str, tuple[ModuleType, ...]] = {
    "A rank does not reach a collective": (
        uneven_batches,
        unused_expert,
        eval_on_rank_zero,
        master_only_graph,
        local_decisions,
        exit_paths,
        rank_that_leaves,
        stalled_loader,
        late_rank,
    ),
    "Ranks pass different sizes": (ragged_last_batch, uneven_gather, unequal_sizes),
    "Ranks run collectives in different orders": (autotuner_orders, crossed_groups, second_queue),
    "Sends and receives cross": (both_send_first, fixed_send_order, scheduler_order, permute_cycle, interleaved_stages),
    "Communicators are created": (lazy_communicators, split_and_cache, singleton_cliques, creation_lock),
    "Room, queues and threads run out": (two_communicators, shared_devices, hardware_queues, callback_in_pool),
    "The runtime waits for itself": (handle_creation, infeed_behind_program, autotuner_keys),
}
STORIES = tuple(Told(module, module.STORY) for modules in SECTIONS.values() for module in modules)
"""All stories."""


@frozen
class LeftOut:
    """Threads that cannot be written as a program today, and what xbuild would have to model."""

    threads: tuple[str, ...]
    cause: str
    missing: str


LEFT_OUT = (
    LeftOut(
        ("openxla/xla#49047",),
        "Sums in the order of pointers: six processes compile three programs",
        "Not a hang: the programs compute different numbers, and `xbuild diff` shows where they differ",
    ),
    LeftOut(("ROCm/rccl#2179",), "One communicator on four streams races on its own state", "races inside a library"),
    LeftOut(
        ("NVIDIA/nccl#1772",),
        "A program hangs if its loop runs more than one trip; the cause is not stated",
        "a known cause",
    ),
    LeftOut(("jax-ml/jax#11637",), "A `cudaMalloc` and a collective wait for one lock of the driver", "locks"),
    LeftOut(
        ("marin-community/marin#8277", "marin-community/marin#5675"),
        "Collectives inside CUDA graphs stop at some step",
        "CUDA graphs",
    ),
    LeftOut(("marin-community/marin#7344",), "512 GPUs stop at a random time", "everything below the program"),
)
"""The other threads."""
