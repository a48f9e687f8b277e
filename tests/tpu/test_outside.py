"""outside_compilation: Python on the host, once for each replica, over channels that the scheduler sees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import Limits, Refused, Stopped, execute
from tests.tpu.support import F32, plain, refused


def stopped(kind: str, call: Any) -> str:
    with pytest.raises(Stopped) as caught:
        call()
    assert caught.value.report.kind == kind
    return str(caught.value)


def opcodes(program: xb.tpu.Program) -> list[str]:
    return [i.opcode for i in program.module.entry.instructions]


def test_the_function_runs_once_for_each_replica_with_arrays() -> None:
    seen: list[Any] = []

    def host(a: Any, b: Any, *, scale: float, none: None) -> Any:
        seen.append((type(a), a.tolist(), float(b), scale, none))
        return {"sum": a * scale, "pair": (np.float32(b), np.int32(len(seen)))}

    def computation(x: Any, y: Any) -> Any:
        shapes = {"sum": xb.f32[2], "pair": (xb.f32[()], xb.s32[()])}
        return xb.tpu.outside_compilation(host, x, b=y, scale=10.0, none=None, result_shapes=shapes)

    found = xb.tpu.replicate(computation, [[F32([1, 2]), 3.0], [F32([4, 5]), 6.0]])
    assert plain(found) == [{"sum": [10.0, 20.0], "pair": (3.0, 1)}, {"sum": [40.0, 50.0], "pair": (6.0, 2)}]
    assert seen == [(np.ndarray, [1.0, 2.0], 3.0, 10.0, None), (np.ndarray, [4.0, 5.0], 6.0, 10.0, None)]


def test_values_move_by_a_send_and_a_recv_each_on_channels_of_their_own() -> None:
    def computation(x: Any) -> Any:
        y, z = xb.tpu.outside_compilation(lambda a, b: (a, b), x, x, result_shapes=(xb.f32[()], xb.f32[()]))
        xb.tpu.outside_compilation(lambda a: None, y + z)
        return z

    program = xb.tpu.replicate.program(computation, [[1.0], [2.0]])
    halves = [i for i in program.module.entry.instructions if i.opcode in ("send", "recv")]
    assert [i.opcode for i in halves] == ["send", "send", "recv", "recv", "send"]
    assert len({i.attributes.channel_id for i in halves}) == 5
    assert all(i.attributes.is_host_transfer for i in halves)
    clusters = [i.annotations["frontend_attributes"]["_xla_outside_compilation"] for i in halves]
    assert clusters == ["0", "0", "0", "0", "1"]
    assert "4 channels" not in str(program.verdict)
    assert "5 channels" in str(program.verdict)


def test_a_function_without_operands_and_results() -> None:
    seen: list[int] = []
    program = xb.tpu.replicate.program(lambda: xb.tpu.outside_compilation(lambda: seen.append(1)), [[]] * 3)
    assert isinstance(program.run()[0], xb.tpu.Operation)
    assert len(seen) == 3


def test_outside_of_a_computation_it_is_a_call() -> None:
    assert xb.tpu.outside_compilation(lambda x, y: x - y, 5, y=3) == 2


def test_in_a_loop_it_runs_in_each_trip_in_order() -> None:
    seen: list[float] = []

    def body(x: xb.Value) -> xb.Value:
        y = xb.tpu.outside_compilation(lambda a: a + 1, x, result_shapes=xb.f32[()])
        xb.tpu.outside_compilation(lambda a: seen.append(float(a)), y)
        return y

    loop = lambda x: xb.while_(x, condition=lambda s: s < 4.0, body=body)  # noqa: E731
    assert plain(xb.tpu.rewrite(loop, [0.0])) == [4.0]
    assert seen == [1.0, 2.0, 3.0, 4.0]
    seen.clear()
    assert plain(xb.tpu.replicate(loop, [[0.0], [2.0]], limits=Limits(seconds=20))) == [[4.0], [4.0]]
    assert sorted(seen) == [1.0, 2.0, 3.0, 3.0, 4.0, 4.0]


def test_a_function_that_raises_ends_the_run_and_is_named() -> None:
    def broken(a: Any) -> None:
        raise OSError("disk is full")

    call = lambda: xb.tpu.replicate(lambda x: xb.tpu.outside_compilation(broken, x), [[1.0], [2.0]])  # noqa: E731
    text = stopped("raised", call)
    assert "the host function 'broken'" in text
    assert "OSError: disk is full at tests/tpu/test_outside.py" in text
    with pytest.raises(Stopped) as caught:
        call()
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("result", [None, xb.f32[()]])
def test_a_function_that_never_returns_ends_the_run_at_its_limit(result: Any) -> None:
    def endless(a: Any) -> Any:
        while True:
            time.sleep(0.01)

    def computation(x: Any) -> Any:
        found = xb.tpu.outside_compilation(endless, x, result_shapes=result)
        return xb.tpu.cross_replica_sum(x if result is None else found)

    program = xb.tpu.replicate.program(computation, [[1.0], [2.0]])
    begin = time.monotonic()
    text = stopped("limit_seconds", lambda: program.run(limits=Limits(seconds=0.3)))
    assert time.monotonic() - begin < 3.0
    assert "the host function 'endless', fed by send" in text
    assert "has not returned" in text
    if result is not None:
        assert "waits for a result of the host function 'endless'" in text


def test_a_result_that_others_wait_for_makes_the_verdict_depend() -> None:
    def computation(x: Any) -> Any:
        return xb.tpu.cross_replica_sum(xb.tpu.outside_compilation(abs, x, result_shapes=xb.f32[()]))

    verdict = xb.tpu.replicate.program(computation, [[1.0], [2.0]]).verdict
    assert verdict.kind == "depends"
    assert "if the host function 'abs', whose result" in str(verdict)
    assert "otherwise no schedule can deadlock" in str(verdict)
    alone = lambda x: xb.tpu.outside_compilation(abs, xb.tpu.cross_replica_sum(x), result_shapes=xb.f32[()])  # noqa: E731
    assert xb.tpu.replicate.program(alone, [[1.0], [2.0]]).verdict.kind == "ok"


def test_a_wrong_result_is_named() -> None:
    def run(function: Any, shapes: Any) -> str:
        call = lambda x: xb.tpu.outside_compilation(function, x, result_shapes=shapes)  # noqa: E731
        return stopped("raised", lambda: xb.tpu.rewrite(call, [1.0]))

    assert "returned 1.0, but outside_compilation got no result_shapes" in run(float, None)
    assert "returned type list (1 array), but result_shapes has type tuple (2 shapes)" in run(
        lambda a: [a], (xb.f32[()], xb.f32[()])
    )


def test_a_result_of_another_shape_is_refused() -> None:
    call = lambda x: xb.tpu.outside_compilation(lambda a: np.float32([a, a]), x, result_shapes=xb.f32[()])  # noqa: E731
    with pytest.raises(ValueError, match="result 0 of the host function '<lambda>' for device 0 has shape"):
        xb.tpu.rewrite(call, [1.0])
    call = lambda x: xb.tpu.outside_compilation(lambda a: np.float16(a), x, result_shapes=xb.f32[()])  # noqa: E731
    with pytest.raises(ValueError, match="is float16"):
        xb.tpu.rewrite(call, [1.0])


def test_nesting_is_refused() -> None:
    inner = lambda a: xb.tpu.outside_compilation(abs, a)  # noqa: E731
    text = stopped("raised", lambda: xb.tpu.rewrite(lambda x: xb.tpu.outside_compilation(inner, x), [1.0]))
    assert "Cannot nest outside_compilation clusters" in text
    again = lambda a: xb.tpu.rewrite(lambda: 1.0)  # noqa: E731
    text = stopped("raised", lambda: xb.tpu.rewrite(lambda x: xb.tpu.outside_compilation(again, x), [1.0]))
    assert "cannot be nested" in text


def test_values_and_variables_are_handed_over_as_arguments() -> None:
    w, seen = xb.tpu.Variable(2.0, name="w"), []

    def run(function: Any) -> str:
        return stopped("raised", lambda: xb.tpu.rewrite(function, [1.0]))

    text = run(lambda x: xb.tpu.outside_compilation(lambda a: a + x, x, result_shapes=xb.f32[()]))
    assert "uses a value or a variable that is not among its arguments" in text
    assert "outside_compilation(<lambda>, value)" in text
    assert "the value of w" in run(lambda x: xb.tpu.outside_compilation(lambda a: w + a, x, result_shapes=xb.f32[()]))
    xb.tpu.rewrite(lambda: (w.assign(w * 2.0), xb.tpu.outside_compilation(lambda a: seen.append((a, w.numpy())), w))[0])
    assert plain(seen) == [(4.0, 2.0)]
    assert plain(w.numpy()) == 4.0


def test_result_shapes_are_shapes() -> None:
    call = lambda x: xb.tpu.outside_compilation(abs, x, result_shapes="f32[]")  # noqa: E731
    refused("invalid_operand", lambda: xb.tpu.rewrite(call, [1.0]), "result_shapes has 'f32[]'; expected shapes")


def test_a_program_keeps_its_functions_and_text_calls_none() -> None:
    seen: list[float] = []

    def noted(a: Any) -> None:
        seen.append(float(a))

    program = xb.tpu.replicate.program(lambda x: xb.tpu.outside_compilation(noted, x), [[1.0]])
    execute(xb.eliminate_dead_code(program.module), [[F32(5)]])
    assert seen == [5.0]
    text = stopped("unregistered_target", lambda: execute(xb.parse_hlo(str(program)), [[F32(6)]]))
    assert "was read from text" in text
    assert "run the program that xb.tpu built" in text
    assert seen == [5.0]


HOST = 'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xbuild",\
_xla_host_transfer_rendezvous="nobody"}'
INVERTED = f"""HloModule inverted, is_scheduled=true, replica_count=2

ENTRY inverted {{
  x = f32[] parameter(0)
  t = token[] after-all()
  u = token[] after-all()
  r = (f32[], u32[], token[]) recv(u), channel_id=2, {HOST}
  rd = (f32[], token[]) recv-done(r), channel_id=2, is_host_transfer=true
  s = (f32[], u32[], token[]) send(x, t), channel_id=1, {HOST}
  sd = token[] send-done(s), channel_id=1, is_host_transfer=true
  ROOT y = f32[] get-tuple-element(rd), index=0
}}
"""


def test_the_scheduler_sees_that_a_result_comes_after_its_operand() -> None:
    verdict = xb.check(xb.parse_hlo(INVERTED))
    assert verdict.kind == "deadlock"
    assert "rd of device 0 waits for a value that the host computes from s, which device 0 sends later" in str(verdict)
    assert "move s before rd (checked: ok)" in str(verdict)
    free = xb.check(xb.parse_hlo(INVERTED.replace(" is_scheduled=true,", "")))
    assert free.kind == "ok"
    assert [i.name for i in free.schedule[0]].index("s") < [i.name for i in free.schedule[0]].index("rd")
    with pytest.raises(Refused):
        execute(xb.parse_hlo(INVERTED), [[1.0], [2.0]])


def test_a_run_of_what_the_scheduler_refuses_is_stuck_there() -> None:
    text = stopped("deadlock", lambda: execute(xb.parse_hlo(INVERTED), [[1.0], [2.0]], check=False))
    assert "is at rd" in text
    assert "waits for a result of the host function 'nobody'" in text
