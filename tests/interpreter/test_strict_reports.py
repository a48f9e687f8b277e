"""What strict mode reports: on which devices, in words, as plain data, on a stop and beside an observer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Recorder, Stopped, StrictFailure, evaluate, execute
from tests.interpreter.strict_runs import strictly
from tests.support.compare import assert_same
from tests.support.strict_programs import PROGRAMS, array, f32

# devices


def test_only_the_device_that_strays_is_named() -> None:
    @xb.computation(xb.f32[4])
    def program(x: xb.Value) -> xb.Value:
        replica = xb.convert(xb.replica_id(x.builder), xb.s32)
        return xb.dynamic_slice(x, [replica], (2,))

    with pytest.raises(StrictFailure) as failed:
        execute(xb.Module("m", program, num_replicas=4), [[np.arange(4, dtype=f32)]] * 4, strict=True)
    (finding,) = failed.value.findings
    assert (finding.device, finding.values) == (3, (("start_indices[0]", 3),))
    assert [result.tolist() for result in failed.value.results] == [[0, 1], [1, 2], [2, 3], [2, 3]]


REDUCTIONS = {
    "all_reduce": lambda x: xb.all_reduce(x, xb.add),
    "reduce_scatter": lambda x: xb.reduce_scatter(x, xb.add, 0, 4),
    "all_reduce_start": lambda x: xb.all_reduce_done(xb.all_reduce_start(x, xb.add)),
    "async": lambda x: xb.async_done(xb.async_start(x, lambda y: xb.reduce_scatter(y, xb.add, 0, 4))),
}


@pytest.mark.parametrize("form", REDUCTIONS)
def test_a_collective_is_checked_as_a_whole(form: str) -> None:
    module = xb.Module("m", xb.computation(xb.f32[4])(REDUCTIONS[form]), num_replicas=4)
    inputs = [[array(f32, 1, 2, 1e38, np.nan)]] * 4
    with pytest.raises(StrictFailure) as failed:
        execute(module, inputs, strict=True)
    (finding,) = failed.value.findings
    assert (finding.kind, finding.index, finding.further) == ("inf_born", (2,), 0)
    assert [name for name, _ in finding.values] == [f"member {n}" for n in range(4)]
    assert_same(failed.value.results, execute(module, inputs))


def test_programs_of_their_own() -> None:
    def device(call: Any) -> xb.Module:
        return xb.Module("m", xb.computation(xb.f32[2])(call))

    group = xb.ModuleGroup({0: device(xb.exp), 1: device(xb.log)})
    with pytest.raises(StrictFailure) as failed:
        execute(group, [[array(f32, 0, 1)]] * 2, strict=True)
    assert [(each.device, each.kind) for each in failed.value.findings] == [(1, "inf_born")]


# what comes out


def test_the_report_reads_like_a_refusal() -> None:
    builder = xb.Builder("mean")
    x = xb.parameter(builder, number=0, shape=xb.f32[3], name="x")
    count = xb.parameter(builder, number=1, shape=xb.f32[()], name="count")
    module = xb.Module("mean", builder.build(xb.divide(xb.negate(x), count, name="mean")), num_replicas=3)
    with pytest.raises(StrictFailure) as failed:
        execute(module, [[array(f32, 0, 1, 2), 0.0]] * 3, strict=True)
    lines = [line.partition("    /")[0].rstrip() for line in str(failed.value).splitlines()]
    lines = [line.partition("    tests/")[0].rstrip() for line in lines]
    assert lines == [
        "strict: 9 findings at 2 places [nan_born, inf_born]",
        "",
        "  nan_born  mean on devices 0-2",
        "    at [0]  lhs -0.0  rhs 0.0  gives nan",
        "    from  x = f32[3] parameter(0)",
        "          negate.1 = f32[3] negate(x)",
        "          count = f32[] parameter(1)",
        "          broadcast.2 = f32[3] broadcast(count), dimensions={}",
        "  inf_born  mean on devices 0-2",
        "    at [1]  lhs -1.0  rhs 0.0  gives -inf",
        "    and 1 more at this instruction",
    ]


def test_the_same_facts_are_plain_data() -> None:
    program = next(each for each in PROGRAMS if each.id == "gather")
    with pytest.raises(StrictFailure) as failed:
        evaluate(program.computation(), *program.arguments, strict=True)
    (facts,) = json.loads(json.dumps(failed.value.report.to_dict()))["findings"]
    assert (facts["kind"], facts["device"], facts["further"]) == ("index_clamped", 0, 1)
    assert facts["values"] == {"start_indices[1, 0]": "7"}
    assert facts["what"] == "becomes 3: the valid starts in dimension 0 are 0..3"
    assert "test_strict" not in facts["instruction"]


def test_a_run_that_stops_tells_what_it_has_found_so_far() -> None:
    loop = xb.computation(xb.f32[()])(lambda x: xb.while_(x, lambda x: xb.eq(1.0, 1.0 + x * 0.0), lambda x: 1.0 / x))
    endless = xb.computation(xb.s32[()])(lambda n: xb.while_(n, lambda n: xb.eq(n, n), lambda n: n / 0))
    assert strictly(loop, 0.0)[1][0].kind == "inf_born"
    with pytest.raises(Stopped) as stopped:
        evaluate(endless, 1, strict=True, limits=Limits(trips=100))
    (note,) = stopped.value.__notes__
    assert note.startswith("strict: 101 findings at 1 place [division_by_zero]")


def test_an_observer_sees_the_same_beside_it() -> None:
    computation = xb.computation(xb.f32[2])(lambda x: xb.log(x) + 1.0)
    plain, strict = Recorder(), Recorder()
    evaluate(computation, [0.0, 1.0], observer=plain)
    _, findings = strictly(computation, [0.0, 1.0], observer=strict)
    assert [each.kind for each in findings] == ["inf_born"]
    assert [(e.step, e.instruction) for e in strict.events] == [(e.step, e.instruction) for e in plain.events]


def test_a_caller_may_have_a_global_of_any_name() -> None:
    computation = xb.computation(xb.f32[()])(xb.log)
    names = {"paths": len, "strictly": strictly, "computation": computation}
    _, findings = eval("strictly(computation, 0.0)", names)
    assert [each.kind for each in findings] == ["inf_born"]
