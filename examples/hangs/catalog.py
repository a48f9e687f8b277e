"""All stories, in the order of the page, and the threads that cannot be written as a program today."""

from __future__ import annotations

from types import ModuleType

from attrs import frozen

from examples.hangs import (
    autotuner_orders,
    both_send_first,
    crossed_groups,
    eval_on_rank_zero,
    exit_paths,
    fixed_send_order,
    handle_creation,
    infeed_behind_program,
    lazy_communicators,
    local_decisions,
    master_only_graph,
    ragged_last_batch,
    rank_that_leaves,
    scheduler_order,
    split_and_cache,
    stalled_loader,
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
    ),
    "Ranks pass different sizes": (ragged_last_batch, uneven_gather, unequal_sizes),
    "Ranks run collectives in different orders": (autotuner_orders, crossed_groups),
    "Sends and receives cross": (both_send_first, fixed_send_order, scheduler_order),
    "The runtime waits for itself": (split_and_cache, lazy_communicators, handle_creation, infeed_behind_program),
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
    LeftOut(
        ("marin-community/marin#9042",),
        "Ranks lower different HLO, and the autotuner waits for a key of another rank",
        "rendezvous between compilers",
    ),
    LeftOut(("marin-community/marin#8538",), "One rank reaches a barrier four hours late", "time"),
    LeftOut(
        ("NVIDIA/Megatron-LM#1451", "NVIDIA/Megatron-LM#1495"),
        "With two stages, the next and the previous rank are the same, and messages pair wrongly",
        "messages that pair in the order in which two ranks post them; xbuild pairs them by channel",
    ),
    LeftOut(
        ("openxla/xla#44530",),
        "One device is requested as a communicator with different device groups",
        "requests for communicators; the verdict on the program of the thread is ok",
    ),
    LeftOut(
        ("openxla/xla#19026", "openxla/xla#40656", "openxla/xla#47467"),
        "Two collectives on two streams share devices and are launched in different orders",
        "streams, and limits of what overlaps",
    ),
    LeftOut(("openxla/xla#31027",), "`device_put` queues NCCL calls from another thread", "a second queue of launches"),
    LeftOut(
        tuple(f"NVIDIA/nccl#{number}" for number in (195, 208, 522, 592, 781, 783)),
        "Kernels of two communicators must run at the same time",
        "limited room on a device",
    ),
    LeftOut(("ROCm/rccl#2191",), "Three communicators fill the hardware queues", "the capacity of queues"),
    LeftOut(("ROCm/rccl#2179",), "One communicator on four streams races on its own state", "races inside a library"),
    LeftOut(
        ("NVIDIA/nccl#1772",),
        "A program hangs if its loop runs more than one trip; the cause is not stated",
        "a known cause",
    ),
    LeftOut(("jax-ml/jax#11637",), "A `cudaMalloc` and a collective wait for one lock of the driver", "locks"),
    LeftOut(
        ("jax-ml/jax#24255", "jax-ml/jax#25861", "jax-ml/jax#5934", "PyAutoLabs/PyAutoFit#1530"),
        "Callbacks enter the runtime again and exhaust its threads",
        "a pool of threads; the check reports only that a callback may not return",
    ),
    LeftOut(
        ("AI-Hypercomputer/maxtext#2739",),
        "A compiler pass adds control edges that make a cycle",
        "Not a hang: compilation fails, and a program of xbuild cannot contain a cycle",
    ),
    LeftOut(
        ("marin-community/marin#8277", "marin-community/marin#5675"),
        "Collectives inside CUDA graphs stop at some step",
        "CUDA graphs",
    ),
    LeftOut(("marin-community/marin#7344",), "512 GPUs stop at a random time", "everything below the program"),
    LeftOut(
        ("tensorflow/tensorflow@0be5a10c185",),
        "Hosts create communicators in different orders under one lock",
        "the creation of communicators, and locks",
    ),
)
"""The other threads."""
