"""What is typed to be one value along an axis is inferred to be equal there, and is."""

from __future__ import annotations

import pytest

import xbuild as xb
from tests.replication.runs import breaches, random_inputs
from tests.replication.typed_programs import random_typed
from xbuild.checking.dataflow.replication import _MARKING

SEEDS = range(100, 160)


def modules() -> list[xb.Module]:
    found = []
    for seed in SEEDS:
        try:
            found.append(random_typed(seed))
        except xb.XbuildError:
            continue
    return found


MODULES = modules()


def test_nearly_all_programs_have_types() -> None:
    assert len(MODULES) > 0.9 * len(SEEDS)


def test_types_are_inferred_to_hold() -> None:
    assert {str(xb.check(module)) for module in MODULES if xb.check(module).kind == "error"} == set()


def test_types_hold_in_runs() -> None:
    for seed, module in enumerate(MODULES[::2]):
        values = xb.replication(module)
        assert breaches(module, values, *random_inputs(module, values, seed)) == []


def test_parameters_are_as_they_are_typed() -> None:
    function = xb.shard_map(lambda x, w: x * w, xb.Mesh(i=2, j=2), (xb.P("i"), xb.P()), xb.P("i"))
    module = function.program(xb.f32[4], xb.f32[2]).module
    values = xb.replication(module)
    assert [values.groups(p) for p in module.entry.parameters] == [((0, 1), (2, 3)), ((0, 1, 2, 3),)]
    assert len(xb.replication(module, annotations=False).groups(module.entry.root)) == 4


def test_an_analysis_that_proves_too_little_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_MARKING, "all_reduce", lambda coming, labels: [*range(len(coming.devices))])
    assert any(finding.kind == "variance_broken" for module in MODULES for finding in xb.check(module).findings)
