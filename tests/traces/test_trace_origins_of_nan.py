"""The chain to the first NaN or infinity goes through the operand whose elements made it, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from interpreter.tracing import ProvenanceWalk
from xbuild.cli.trace import overview
from xbuild.traces import Trace
from xbuild.traces.questions import births, is_stated

INF = np.float32(np.inf)


def run(program: Callable[..., xb.Value], *inputs: Any, replicas: int = 1, **options: Any) -> Trace:
    arrays = [np.asarray(each, np.float32) for each in inputs]
    built = xb.computation(*(xb.f32[each.shape] for each in arrays))(program)
    return trace(xb.Module("m", built, num_replicas=replicas), [arrays] * replicas, **options)


def way(found: Trace, what: str = "NaN") -> list[tuple[str, int | None]]:
    birth = next(each for each in births(found) if each.what == what and not is_stated(found, each))
    return [(found[place.event].instruction.name, place.element) for place in ProvenanceWalk(found).chain(birth)]


def test_a_gain_of_ones_is_not_guilty() -> None:
    def program(x: xb.Value, gain: xb.Value) -> xb.Value:
        far = xb.exp(x, name="far")
        scaled = xb.multiply(far, xb.multiply(gain, xb.exp(gain * 0.0), name="gains"), name="scaled")
        return xb.subtract(scaled, scaled, name="born")

    found = run(program, [0.0, 500.0, 1.0], [1.0, 1.0, 1.0])
    assert way(found)[-4:] == [("parameter.1", 1), ("far", 1), ("scaled", 1), ("born", 1)]
    assert way(found, "infinity")[-2:] == [("parameter.1", 1), ("far", 1)]
    told = overview(found)["born"]
    assert [each["number"] for each in told[0]["of"]] == ["inf", "inf"]
    assert told[0]["chain"][-1]["index"] == [1]
    assert "the first infinity is born at step" in told[1]["text"]
    assert "in far, from parameter.1 500." in told[1]["text"]


def test_a_mask_is_not_guilty_that_a_maximum_and_an_exponential_made_harmless() -> None:
    def program(x: xb.Value, mask: xb.Value) -> xb.Value:
        masked = xb.add(x, mask, name="masked")
        weights = xb.exp(xb.maximum(masked, -50.0), name="weights")
        bad = xb.log(xb.subtract(weights, 1.0, name="less"), name="bad")
        return xb.add(bad, mask, name="total")

    found = run(program, [0.5, -1.0, 3.0], [0.0, 0.0, -INF])
    found_way = way(found)
    assert found_way[-1] == ("bad", 1)
    assert all(element in (0, 1) or name.startswith(("broadcast", "constant")) for name, element in found_way)
    assert ("parameter.2", 2) not in found_way


@pytest.mark.parametrize(
    ("program", "inputs", "wanted"),
    [
        (lambda x, y: xb.divide(x, y, name="born"), ([1e9, 0.0], [1.0, 0.0]), ("parameter.2", 1)),
        (lambda x, y: xb.multiply(x, y, name="born"), ([1e9, 0.0], [1e9, INF]), ("parameter.2", 1)),
        (lambda x, y: xb.select(xb.lt(x, 0.0), xb.log(x, name="born"), y),
         ([1.0, -2.0], [INF, 1.0]), ("parameter.1", 1)),
        (lambda x, y: xb.log(xb.concatenate([y, x], 0), name="born"), ([1.0, -2.0], [INF, 1.0]), ("parameter.1", 1)),
        (lambda x, y: xb.log(xb.transpose(xb.reshape(xb.concatenate([x, y], 0), (2, 2)), (1, 0)), name="born"),
         ([1.0, 2.0], [-3.0, INF]), ("parameter.2", 0)),
        (lambda x, y: xb.log(xb.reduce(x, np.float32(0), xb.add, (0,)) + y, name="born"),
         ([-9.0, 2.0], [1.0, 1.0]), ("parameter.1", 0)),
    ],
)  # fmt: skip
def test_each_op_leads_to_the_element_that_made_it(program: Any, inputs: Any, wanted: tuple[str, int]) -> None:
    found = way(run(program, *inputs))
    assert wanted in found
    other = {"parameter.1": "parameter.2", "parameter.2": "parameter.1"}[wanted[0]]
    assert other not in {name for name, _ in found}
    assert found[-1][0] == "born"


def test_the_way_goes_on_through_loops_and_tuples() -> None:
    def program(x: xb.Value, y: xb.Value) -> xb.Value:
        start = xb.tuple_((xb.constant(x.builder, literal=np.int32(0)), x, y))

        def body(s: xb.Value) -> xb.Value:
            return xb.tuple_((s[0] + 1, xb.multiply(s[1], s[1], name="squared"), s[2]))

        end = xb.while_(start, condition=lambda s: xb.lt(s[0], 5), body=body)
        return xb.subtract(end[1], end[2], name="left")

    found = run(program, [2.0, 1e6], [1.0, 1.0])
    names = way(found, "infinity")
    assert names[-1] == ("squared", 1)
    assert [each for each in names if each[0] == "squared"] == [("squared", 1)] * 3
    assert ("parameter.2", 1) not in names
    deep = [name for name, _ in names]
    assert "parameter.1" in deep or len(deep) == 12


def test_the_way_goes_on_to_the_device_that_is_guilty() -> None:
    def program(x: xb.Value) -> xb.Value:
        here = xb.convert(xb.replica_id(x.builder), new_element_type=xb.f32)
        risen = xb.add(x, xb.broadcast_in_dim(here, (2,), ()) * -3.0, name="risen")
        return xb.log(xb.all_reduce(risen, xb.add, name="sum"), name="born")

    found = run(program, [4.0, 1.0], replicas=2)
    birth = next(each for each in births(found) if each.what == "NaN")
    places = ProvenanceWalk(found).chain(birth)
    risen = [(found[p.event].device, p.element) for p in places if found[p.event].instruction.name == "risen"]
    assert risen == [(1, 1)]


def test_values_that_are_not_kept_whole_have_a_way(tmp_path: Path) -> None:
    found = run(
        lambda x, y: xb.subtract(xb.exp(x, name="far"), y * 1.0, name="born"), [900.0] * 9, [INF] * 9, elements=4
    )
    assert way(found)[-1][0] == "born"
    read = Trace.load(found.save(tmp_path / "kept"))
    assert way(read) == way(found)
    assert overview(read)["born"][0]["chain"][-1]["index"] is None
