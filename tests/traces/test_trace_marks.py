"""A trace without values has the events of one with values, however the run ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from examples import pipeline, ring
from examples.digits import model
from interpreter import Limits, plan_source, trace
from interpreter.compiler.emit import PlanOptions
from interpreter.compiler.plan import plan_of
from interpreter.tracing import run
from xbuild.files.arrays import random_arguments
from xbuild.traces import Trace

Program = tuple[xb.Module | xb.ModuleGroup, list[Any]]


def _random(program: xb.Module | xb.ModuleGroup) -> Program:
    modules = [program] * program.num_devices if isinstance(program, xb.Module) else list(program.modules.values())
    return program, random_arguments(0, [[p.shape for p in module.entry.parameters] for module in modules])


def _digits() -> Program:
    """Two training steps; all replicas have the same weights, so that they share what they compute of them."""
    module, (first, *others) = _random(xb.Module("digits", model.train_epoch(2, 16, xb.f32), num_replicas=4))
    alike = len(first) - 2
    return module, [first, *([*first[:alike], *row[alike:]] for row in others)]


def _module(function: Callable[..., Any], *shapes: Any, replicas: int = 1) -> Program:
    return _random(xb.Module("m", xb.computation(*shapes)(function), num_replicas=replicas))


def _branches() -> Program:
    """Loops and branches that differ between the devices, the inner ones deeper than a plan writes in place."""

    def deeper(x: xb.Value, depth: int) -> xb.Value:
        if not depth:
            return xb.all_reduce(x * 0.5, xb.add)
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        body = lambda s: xb.tuple_((s[0] + 1, deeper(s[1], depth - 1)))  # noqa: E731
        return xb.while_(start, condition=lambda s: xb.lt(s[0], 1), body=body)[1]

    def program(x: xb.Value) -> xb.Value:
        first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
        return deeper(xb.conditional(first, x, lambda v: xb.sqrt(xb.abs(v)), x, lambda v: v * 2.0), 10)

    return _module(program, xb.f32[2], replicas=2)


def _scan() -> Program:
    return _module(lambda x: xb.map((xb.sort(x, dimension=0), x), xb.add, (0,)) + x, xb.f32[5], replicas=2)


def _meeting_scans() -> Program:
    """A scan in a scan, of which each trip meets."""

    def inner(each: xb.Value, total: xb.Value) -> Any:
        return xb.all_reduce(total + each, xb.add), total * each

    def outer(row: xb.Value, total: xb.Value) -> Any:
        return xb.scan(row, total, inner, is_reverse=True)

    return _module(lambda x, z: xb.scan(x, z, outer)[0], xb.f32[3, 2], xb.f32[()], replicas=2)


def _endless() -> Program:
    def program(x: xb.Value) -> xb.Value:
        return xb.while_(x, condition=lambda v: xb.lt(v * 0.0, 1.0), body=lambda v: v + 1.0)

    return _module(program, xb.f32[()])


def _too_large() -> Program:
    """An instruction that stands together with others wants more memory than there is."""

    def program(x: xb.Value) -> xb.Value:
        start = x * 3.0
        return xb.reduce(xb.iota(x.builder, shape=xb.f32[2**50], iota_dimension=0), start, xb.add, (0,))

    return _module(program, xb.f32[()])


def _stuck() -> Program:
    """One of two devices comes to a collective."""

    def program(x: xb.Value) -> xb.Value:
        first = xb.eq(xb.replica_id(x.builder), np.uint32(0))
        return xb.conditional(first, x + 1.0, lambda v: xb.all_reduce(v * v, xb.add), x, lambda v: v * 2.0)

    return _module(program, xb.f32[2], replicas=2)


PROGRAMS = {
    "ring": lambda: _random(ring.ring_all_reduce(4)),
    "pipeline": lambda: _random(pipeline.program()),
    "digits": _digits,
    "branches": _branches,
    "scan": _scan,
    "scans that meet": _meeting_scans,
    "endless": _endless,
    "too large": _too_large,
    "stuck": _stuck,
}


def _same(a: Trace, b: Trace) -> None:
    assert list(map(str, a.spots)) == list(map(str, b.spots))
    for name in ("device", "spot", "count", "time", "since"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert [(m.group, m.time, m.events) for m in a.meetings] == [(m.group, m.time, m.events) for m in b.meetings]
    assert list(a.transfers) == list(b.transfers)
    np.testing.assert_equal(a.results, b.results)


def _stop(found: Trace) -> Any:
    return found.stop and (found.stop["kind"], found.stop["devices"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_events(name: str) -> None:
    program, inputs = PROGRAMS[name]()
    limits = Limits(trips=30, bytes=None)
    found, wanted = (trace(program, inputs, values=values, check=False, limits=limits) for values in (False, True))
    _same(found, wanted)
    assert _stop(found) == _stop(wanted)
    assert (found.stop is not None) == (name in ("endless", "too large", "stuck"))
    assert found.left_out == "the trace holds no values"
    assert not found.values


def test_what_was_done_before_an_exception_is_told() -> None:
    found = trace(*_too_large(), values=False, limits=Limits(bytes=None))
    assert [event.instruction.opcode for event in found] == ["parameter", "constant", "multiply"]
    assert found.stop is not None
    assert found.stop["devices"][0]["instruction"].startswith("iota")


def test_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNK", 50)
    program, inputs = _digits()
    found = trace(program, inputs, values=False, folder=tmp_path / "trace")
    assert len(list((tmp_path / "trace").glob("chunk-*.npz"))) > 4
    _same(Trace.load(tmp_path / "trace"), found)
    _same(found, trace(program, inputs))


def test_a_stretch_is_told_by_one_call() -> None:
    module, _ = _module(lambda x: xb.all_reduce(x * x + 1.0, xb.add) * 2.0, xb.f32[2], replicas=2)
    source = plan_of(module.entry, PlanOptions(marked=True)).source
    assert source.count("mark((me, ") == 2
    assert "mark" not in plan_source(module.entry)


def test_the_findings_of_a_strict_run_are_at_the_same_events() -> None:
    def program(x: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x))
        body = lambda s: xb.tuple_((s[0] + 1, xb.all_reduce(xb.log(s[1] - 1.0), xb.add)))  # noqa: E731
        return xb.while_(start, condition=lambda s: xb.lt(s[0], 3), body=body)[1]

    module = xb.Module("logs", xb.computation(xb.f32[2])(program), num_replicas=2)
    inputs = [[np.float32([2.0, 3.0])], [np.float32([1.5, 0.5])]]
    found, wanted = (trace(module, inputs, values=values, strict=True) for values in (False, True))
    _same(found, wanted)
    assert found.findings == wanted.findings
    assert {finding["kind"] for finding in found.findings} == {"nan_born"}
