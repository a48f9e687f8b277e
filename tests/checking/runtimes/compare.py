"""How a verdict under a runtime compares with an exhaustive model, and with runs under the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import xbuild as xb
from interpreter import Limits
from tests.checking.runtimes.model import DIFFERS, ENDS, HANGS, Model
from tests.checking.runtimes.programs import TARGET, Programs
from tests.model.compare import _samples
from tests.model.generator import random_program
from tests.model.writer import written
from xbuild.core.callbacks import CALLBACKS

RECORDS: dict[str, tuple[str, xb.Runtime]] = {
    "rules without a runtime": ("rst", xb.Runtime()),
    "channels": ("rs", xb.Runtime(collectives="channel")),
    "orders": ("rs", xb.Runtime(collectives="order")),
    "orders of transfers": ("tt", xb.Runtime(transfers="order")),
    "eager sends": ("ttr", xb.Runtime(eager_bytes=16, transfers="order")),
    "first uses": ("rst", xb.Runtime(communicators="first_use", pair_communicators=True)),
    "splits": ("rs", xb.Runtime(communicators="split", collectives="order")),
    "creation at the start": ("rs", xb.Runtime(communicators="start", collectives="order")),
    "lock": ("rs", xb.Runtime(communicators="first_use", creation_lock=True, devices_per_host=2)),
    "lock of each": ("rs", xb.Runtime(communicators="split", creation_lock=True, devices_per_host=1)),
    "one stream": ("ss", xb.Runtime(streams="one", collectives="channel")),
    "streams of communicators": ("srs", xb.Runtime(streams="communicator", collectives="channel")),
    "one place": ("ssr", xb.Runtime(resident=1)),
    "two places": ("s", xb.Runtime(resident=2, streams="communicator")),
    "one place in order": ("ss", xb.Runtime(resident=1, launch_order=True)),
    "two threads": ("rsc", xb.Runtime(threads=2)),
    "threads of two hosts": ("rc", xb.Runtime(threads=2, devices_per_host=2, callback_threads=1)),
    "synchronization": ("ssc", xb.Runtime(synchronizing=(TARGET,), collectives="channel")),
    "turns": ("rst", xb.Runtime(launches="in_turn", devices_per_host=2)),
    "nccl": ("rst", xb.RUNTIMES["nccl"]),
    "gloo": ("rst", xb.RUNTIMES["gloo"]),
    "xla_cpu": ("rst", xb.RUNTIMES["xla_cpu"]),
    "xla_gpu": ("rst", xb.RUNTIMES["xla_gpu"]),
    "tpu": ("rst", xb.RUNTIMES["tpu"]),
}
"""Runtimes with the kinds of events of the programs that are checked under them."""

STOPS = {"deadlock": {"deadlock"}, "error": {"collective_mismatch", "transfer_mismatch"}}


def claims(verdict: xb.Verdict) -> str:
    """The kind of a verdict; ok if it depends only on whether custom calls return."""
    is_ok = verdict.kind == "depends" and all(found.cause == "CALLBACK" for found in verdict.findings)
    return "ok" if is_ok else verdict.kind


def run(programs: Programs, runtime: xb.Runtime) -> xb.Report | None:
    """The report of the run; None if it ends."""
    try:
        xb.execute(programs.module, programs.arguments, check=False, runtime=runtime)
    except xb.Stopped as stopped:
        return stopped.report
    return None


def fault(programs: Programs, runtime: xb.Runtime) -> str:
    """What is wrong with the verdict on some programs; empty if nothing is.

    If a runtime matches collectives by their site, programs have the errors that they have without a runtime.
    """
    verdict = xb.check(programs.module, runtime=runtime)
    alone = xb.check(programs.module)
    if runtime.collectives == "site" and alone.kind == "error":
        same = verdict.kind == "error" and verdict.findings[0].message == alone.findings[0].message
        return "" if same else f"the verdict is {verdict}, and without a runtime {alone}"
    kind, outcomes, report = claims(verdict), Model(programs, runtime).outcomes(), run(programs, runtime)
    expected = {"ok": outcomes == {ENDS}, "deadlock": HANGS in outcomes, "error": DIFFERS in outcomes}
    if not expected.get(kind, False):
        return f"the verdict is {kind}, and runs end as {sorted(outcomes)}"
    if (report is None) != (kind == "ok"):
        return f"the verdict is {kind}, and the run {'ends' if report is None else f'stops: {report}'}"
    if report is None:
        return ""
    finding = verdict.findings[0]
    if report.kind not in STOPS[kind]:
        return f"the verdict is {kind}, and the run stops with {report.kind}"
    said = report.message if kind == "error" else report.cause
    if not said.startswith(finding.message) and kind == "deadlock":
        return f"the verdict says {finding.message!r}, and the run {said!r}"
    at = {state.device: state.instruction.name for state in report.devices if state.instruction is not None}
    blocked = {device: places[0].name for device, places in finding.blocked.items()}
    return "" if kind == "error" or {d: n for d, n in at.items() if d in blocked} == blocked else f"{at} != {blocked}"


def fault_with_data(seed: int, runtime: xb.Runtime) -> str:
    """What is wrong with the verdict on a random program with loops and conditionals; some data are run."""
    program = random_program(seed)
    made = written(program)
    waiting = {"send_buffers": program.send_buffers, "runtime": runtime}
    verdict = xb.check(made.module, infeed=program.infeed, **waiting)
    for data in _samples(program):
        follows = not verdict.refused and program.infeed is None  # the order of the verdict
        try:
            xb.execute(made.module, made.inputs(data), infeed=made.infeed(), limits=LIMITS, check=follows, **waiting)
            stops = False
        except xb.Stopped as stopped:
            stops = True
            if stopped.report.kind.startswith("limit"):
                return f"the run came to no end: {stopped.report}"
        may_compare = program.is_given or program.infeed is None
        if (verdict.kind == "ok" and stops and may_compare) or (verdict.refused and not stops):
            return f"the verdict is {verdict.kind}, and with {data} the run {'stops' if stops else 'ends'}"
    return ""


LIMITS = Limits(seconds=20)


@contextmanager
def function_of_calls() -> Iterator[None]:
    """Register the function of the custom calls of the programs."""
    xb.custom_call_target(TARGET)(lambda x: x)
    try:
        yield
    finally:
        CALLBACKS.pop(TARGET)
