"""The rule of the host: callbacks that may block a device."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.issues import Issue
from ..properties.effects import calls_python, is_debug_print, jax_primitive, op_and_name
from .facts import ProgramFacts, size_of
from .rules import issue, rule


@rule("A device waits for a Python function on the host, which may block.", "none")
def blocking_callback(facts: ProgramFacts) -> Iterator[Issue]:
    """`jax.debug.print` and `jax.debug.callback`, which return nothing, do not count.

    The time is that of the transfers, and of 10 us for each call.
    """
    for call in facts.flow.home:
        if not calls_python(call) or is_debug_print(call):
            continue
        row = facts.row(call)  # None in a branch that costs less than another
        each = 1 if row is None else row.times
        if each == 0:
            continue
        if row is None:
            runs = "when its branch runs"
        elif row.is_known:
            runs = "once" if each == 1 else f"{each:,} times"
        else:
            runs = "in every trip of a loop"
        moved = size_of(call) + sum(map(size_of, call.operands))
        primitive = jax_primitive(call)
        name = primitive if primitive in ("pure_callback", "io_callback") else "callback"
        yield issue(
            facts,
            "blocking_callback",
            f"{op_and_name(call)} runs a Python function on the host {runs} ({name}), and the device waits until it "
            "returns; if the function waits for another device, the program hangs",
            _FIXES.get(primitive, "compute the value in the program, or before the program runs"),
            call,
            bytes=moved * each,
            seconds=_transfer_seconds(facts, moved) * each,
        )


_FIXES = {
    "io_callback": "collect what the host needs in a result of the program, and pass it on after the step",
    "pure_callback": "write the function with jax.numpy, or compute its result before the step and pass it in",
}

_HOST_LATENCY = 1e-5
"""Seconds of a round trip to Python without any work: an assumption, below what any callback takes."""
_HOST_BANDWIDTH = 6.4e10
"""Bytes per second between host and device: PCI Express 5.0 with 16 lanes."""


def _transfer_seconds(facts: ProgramFacts, moved: int) -> float:
    """The least seconds of one call: the round trip, and the bytes over the bus."""
    return _HOST_LATENCY + moved / min(_HOST_BANDWIDTH, facts.machine.memory_bandwidth)
