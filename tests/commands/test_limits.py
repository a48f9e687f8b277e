"""Limits of commands: each ends soon on texts of huge programs, with the right answer or a sentence."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from interpreter import Limits, Stopped, evaluate, execute
from shape_inference import ShapeError
from shape_inference.bounds import DEEPEST_TUPLE, MOST_LEAVES
from tests.limits_table import COMMANDS, outcome
from tests.support.hostile import ALL_REDUCE, PROGRAMS
from xbuild.cli import group, main
from xbuild.cli.group import LIMIT, TimeIsOver, limited
from xbuild.core.diagnostics import BuildError
from xbuild.properties.sites import MOST_PLACES, places_of, sites_of

from ..support import hostile

# The alarm may come inside a callback of the garbage collector, where Python passes over what it raises; then it comes
# again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SECONDS = 6
SLOW = 3 * SECONDS  # on a busy machine


def invoked(folder: Path, text: str, command: str) -> Result:
    """A command in this process, with a limit that must hold."""
    target = folder / "program.hlo"
    target.write_text(text)
    arguments = [str(folder / each) if "." in each or each == "kept" else each for each in command.split()]
    begin = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = CliRunner().invoke(
            main, [str(target) if each == "T" else each for each in arguments] + ["--max-seconds", str(SECONDS)]
        )
    assert time.monotonic() - begin < SLOW
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.exit_code in (0, 1, 2, LIMIT)
    assert "Traceback" not in found.output
    return found


FAST = (
    "tuple of 2^40", "tuples 2000 deep", "2^60 by call", "2^60 by conditional", "2^60 by reduce", "2^60 collectives",
    "2^60 beside a collective", "2^62 elements", "iota of 2^62", "window of 10^13", "padding of 10^13",
    "dilated convolution", "sum of 10^13", "product of 10^15", "100,000 braces", "5,000 inline",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("program", ["2^60 by call", "2^60 collectives", "2^62 elements"])
def test_every_command_ends(program: str, command: str, tmp_path: Path) -> None:
    invoked(tmp_path, PROGRAMS[program](), COMMANDS[command])


@pytest.mark.parametrize("command", ["show", "check", "run", "viz"])
@pytest.mark.parametrize("program", FAST)
def test_every_program_ends(program: str, command: str, tmp_path: Path) -> None:
    invoked(tmp_path, PROGRAMS[program](), COMMANDS[command])


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in COMMANDS if name.split()[0] in ("cost", "equivalent", "play")])
def test_many_loops_around_a_collective_end(command: str, tmp_path: Path) -> None:
    invoked(tmp_path, hostile.nested_loops(), COMMANDS[command])


def test_a_shared_tuple_is_refused_by_op_and_numbers(tmp_path: Path) -> None:
    said = invoked(tmp_path, hostile.shared_tuples(), "check T").output
    assert (
        "tuple: the tuple would have 131,072 arrays and tokens; at most 100,000 are allowed [tuple_too_large]" in said
    )
    assert "t16 = tuple(t15, t15)" in said


def test_a_tuple_of_as_many_leaves_as_may_be() -> None:
    shape = xb.TupleShape([xb.f32[()]] * MOST_LEAVES)
    assert shape.count == MOST_LEAVES
    with pytest.raises(ShapeError, match=r"100,001 arrays and tokens; at most 100,000"):
        xb.TupleShape([*shape.elements, xb.f32[()]])


def test_tuples_one_inside_another() -> None:
    shape = xb.TupleShape()
    for _ in range(DEEPEST_TUPLE - 1):
        shape = xb.TupleShape([shape])
    assert shape.depth == DEEPEST_TUPLE
    with pytest.raises(ShapeError, match="65 levels deep"):
        xb.TupleShape([shape])


def test_recording_a_shared_tuple_is_refused() -> None:
    builder = xb.Builder("b")
    value = xb.parameter(builder, number=0, shape=xb.f32[2])
    for _ in range(16):
        value = xb.ops.tuple_([value, value])
    with pytest.raises(ShapeError, match="tuple_too_large"):
        xb.ops.tuple_([value, value])


@pytest.mark.parametrize("how", hostile.DOUBLED)
def test_what_is_called_by_two_ways_is_checked_once(how: str) -> None:
    text = hostile.doubling(how, 60).replace("ENTRY e { x = f32[] parameter(0)", _FIRST, 1)
    verdict = xb.check(xb.parse_hlo(text.replace("HloModule m", "HloModule m, replica_count=2")))
    assert verdict.kind == "ok"


_FIRST = "ENTRY e { x0 = f32[] parameter(0)\n x = f32[] all-reduce(x0), to_apply=add, replica_groups={}"


@pytest.mark.parametrize("levels", [20, 60])
def test_one_program_with_too_many_collectives_is_ok(levels: int) -> None:
    module = xb.parse_hlo(hostile.doubling("call", levels, ALL_REDUCE, ", replica_count=4"))
    assert places_of(module.entry) > MOST_PLACES
    assert len(sites_of(module.entry)) == 1
    verdict = xb.check(module)
    assert verdict.kind == "ok"
    assert verdict.scope == "every"


def test_below_the_limit_places_are_told_apart() -> None:
    module = xb.parse_hlo(hostile.doubling("call", 6, ALL_REDUCE, ", replica_count=2"))
    assert len(sites_of(module.entry)) == 2**5
    assert xb.check(module).kind == "ok"


def test_what_devices_may_do_otherwise_is_left_open() -> None:
    """Each level decides by its data whether it comes to the collective."""
    verdict = xb.check(xb.parse_hlo(hostile.doubling("conditional", 40, ALL_REDUCE, ", replica_count=2")))
    assert verdict.kind == "depends"
    (found,) = verdict.findings
    assert found.cause == "NOT_ALL_TRIED"
    assert "but the check distinguishes at most 100,000" in found.message


def test_too_many_transfers_are_left_open() -> None:
    pairs = 'channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
    lines = (
        "k = token[] after-all()", f"s = (f32[], u32[], token[]) send(x, k), {pairs}",
        "d = token[] send-done(s), channel_id=1", f"v = (f32[], u32[], token[]) recv(k), {pairs}",
        "w = (f32[], token[]) recv-done(v), channel_id=1", "ROOT r = f32[] get-tuple-element(w), index=0",
    )  # fmt: skip
    text = hostile.doubling("call", 40, "negate(x)", ", replica_count=2")
    assert xb.check(xb.parse_hlo(text.replace("ROOT r = f32[] negate(x)", "\n ".join(lines)))).kind == "depends"


def test_a_device_that_goes_another_way_is_no_ok() -> None:
    """Only device 0 takes the branch with 2^39 collectives."""
    parts = hostile.doubling("call", 40, ALL_REDUCE, ", replica_count=2")
    quiet = "g { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n"
    lines = hostile.entry(
        "i = u32[] replica-id()", "z = u32[] constant(0)", "p = pred[] compare(i, z), direction=EQ",
        "r = f32[] conditional(p, x, x), true_computation=fn39, false_computation=g",
    )  # fmt: skip
    verdict = xb.check(xb.parse_hlo(f"{parts[: parts.index('ENTRY')]}{quiet}{lines}"))
    assert verdict.kind != "ok"


def test_thirty_loops_around_a_collective() -> None:
    assert xb.check(xb.parse_hlo(hostile.nested_loops())).kind == "ok"


def test_a_check_ends_when_its_time_is_over() -> None:
    verdict = xb.check(xb.parse_hlo(hostile.apart(20_000)), max_seconds=0.3)
    assert verdict.kind == "depends"
    assert "the check did not finish within 0.3 seconds" in str(verdict)


def test_a_check_within_its_time_is_as_without() -> None:
    module = xb.parse_hlo(hostile.apart(8))
    assert str(xb.check(module, max_seconds=60)) == str(xb.check(module))


def test_fifty_thousand_devices() -> None:
    module = xb.parse_hlo(hostile.devices(", replica_count=50000"))
    assert xb.check(module).kind == "ok"


def test_two_thousand_devices_run_and_stop() -> None:
    module = xb.parse_hlo(hostile.devices(", replica_count=2000"))
    assert execute(module, [[1.0]] * 2000)[1999] == 2000
    apart = xb.parse_hlo(hostile.apart(2000))
    assert xb.check(apart).kind == "deadlock"
    with pytest.raises(Stopped) as stopped:
        execute(apart, [[1.0]] * 2000, check=False)
    assert [state.device for state in stopped.value.report.devices if state.cause] == [7]


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("2^60 by call", "years, but the limit is 5 seconds"), ("2^60 by map", "years, but the limit is 5 seconds"),
        ("2^60 by reduce", "years"), ("sum of 10^13", "the run would take at least 100 seconds"),
        ("product of 10^15", "seconds, but the limit is 5"),
        ("2^62 elements", "the limit is 9,223,372,036,854,775,807"),
        ("padding of 10^13", "limit_bytes"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_end_is_refused_before(program: str, what: str) -> None:
    module = xb.parse_hlo(PROGRAMS[program]())
    arguments = [np.ones(p.shape.dims, np.float32) for p in module.entry.parameters]  # type: ignore[union-attr]
    with pytest.raises(Stopped, match=what):
        execute(module, [arguments], limits=Limits(seconds=5))


def test_without_a_limit_years_are_refused() -> None:
    with pytest.raises(Stopped, match=r"the run would take at least .* years"):
        evaluate(xb.parse_hlo(hostile.doubling("fusion", 60)).entry, 1.0)


def test_a_plan_is_not_written_out_for_ever() -> None:
    module = xb.parse_hlo(hostile.doubling("call", 20, ALL_REDUCE, ", replica_count=2"))
    with pytest.raises(BuildError, match="more than 200,"):
        execute(module, [[1.0], [2.0]])


def test_a_window_of_which_padding_is_most() -> None:
    """The four elements stand behind all that the window covers, or all inside of it."""
    module = xb.parse_hlo(PROGRAMS["window of 10^13"]())
    assert execute(module, [[[1.0, 2.0, 3.0, 4.0]]]) == [np.array([0.0], np.float32)]
    far = "reduce-window(p, z), window={size=10000000000000 pad=9999999999997_0 stride=10000000000000}, to_apply=add"
    inside = xb.parse_hlo(hostile.of_window(f"f32[1] {far}"))
    assert execute(inside, [[[1.0, 2.0, 3.0, 4.0]]]) == [np.array([6.0], np.float32)]


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that never ends, and takes no note of any deadline."""

    def check(*given: object, **options: object) -> None:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # what swallows errors does not swallow the alarm
                continue

    monkeypatch.setattr(xb, "check", check)


@pytest.mark.usefixtures("busy")
def test_the_alarm_ends_what_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "p.hlo").write_text(hostile.devices(", replica_count=2"))
    before = signal.getsignal(signal.SIGALRM)
    found = CliRunner().invoke(main, ["check", str(tmp_path / "p.hlo"), "--max-seconds", "0.3"])
    assert found.exit_code == LIMIT
    assert "stopped: reached the limit of 0.3 seconds" in found.output
    assert "use --max-seconds 2 to allow more" in found.output
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_step_that_does_not_return_is_ended(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import ctypes\nimport xbuild as xb\n\ndef never():\n    ctypes.CDLL(None).sleep(600)\n"
    )
    found = outcome(tmp_path / "p.py:never", ["check", "T"], 0.5)
    assert found.code == LIMIT
    assert "stopped: reached the limit of 0.5 seconds" in found.said


def test_memory_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "p.hlo").write_text(hostile.constant())
    found = outcome(tmp_path / "p.hlo", ["check", "T", "--max-bytes", str(40 << 20)])
    assert found.code == LIMIT
    assert found.megabytes < 200
    assert "the command needs more than 41,943,040 bytes of memory" in found.said


def test_so_few_bytes_are_refused_at_once(tmp_path: Path) -> None:
    """With none left to call a function, Python 3.11 aborts: "Cannot recover from stack overflow"."""
    (tmp_path / "p.hlo").write_text(hostile.constant())
    for most in (0, 2, group._FEWEST - 1):
        found = CliRunner().invoke(main, ["check", str(tmp_path / "p.hlo"), "--max-bytes", str(most)])
        assert found.exit_code == LIMIT
        assert f"needs more than {most:,} bytes of memory [limit_bytes]" in found.output
        assert f"use --max-bytes {max(2 * most, group._FEWEST)} to allow more" in found.output


def test_a_library_that_found_no_memory_is_told_from_one_that_is_broken(tmp_path: Path) -> None:
    """Python names an extension module without its package: `_common` for numpy.random._common."""
    there = importlib.util.find_spec("numpy.random._common")
    assert there is not None
    (broken := tmp_path / Path(str(there.origin)).name).write_bytes(b"no library")
    for path, lacks_memory in ((there.origin, True), (str(broken), False)):
        error = ImportError("cannot map zero-fill pages", name="_common", path=path)
        assert group._is_out_of_memory(error) is lacks_memory


def test_a_name_that_a_module_lacks_is_a_fault_and_no_lack_of_memory() -> None:
    with pytest.raises(ImportError) as caught:
        from xbuild.core.graph import Nothing  # type: ignore[attr-defined]  # noqa: F401
    assert not group._is_out_of_memory(caught.value)
    assert group._is_out_of_memory(
        ImportError("cannot import name 'Module'", name=caught.value.name, path=caught.value.path)
    )


@pytest.mark.parametrize("options", [["--max-bytes", "9" * 25], ["--max-bytes", "0"], ["--max-seconds", "0"]])
def test_limits_at_their_ends_are_told_in_a_sentence(options: list[str]) -> None:
    """More bytes than the system counts, none at all, and no time: none is a traceback, and no timer is left."""
    for _ in range(20):
        found = CliRunner().invoke(main, ["explain", "dot", *options])
        assert found.exit_code in (0, LIMIT)
        assert found.exception is None or isinstance(found.exception, SystemExit)
        assert "Traceback" not in found.output
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        assert all(each.finished.is_set() for each in timers)


@pytest.mark.parametrize(
    "command", sorted({each.split()[0] for each in COMMANDS.values()} | {"trace", "ops", "explain"})
)
def test_help_states_the_limit(command: str) -> None:
    said = " ".join(CliRunner().invoke(main, [command, "--help"]).output.split())
    assert "--max-seconds" in said
    assert "default: 3600" in said or "default: 300.0" in said


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms as POSIX has them")
@pytest.mark.parametrize("function", ["stop", "__exit__"])
def test_an_alarm_that_rings_as_a_command_ends_leaves_no_timer(function: str) -> None:
    """A timer that is left would end the process of a caller seconds later."""

    def ring(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == function:
            rung.append(function)
            signal.raise_signal(signal.SIGALRM)

    rung: list[str] = []
    before = sys.getprofile()
    try:
        with suppress(TimeIsOver), limited(100, None):
            sys.setprofile(ring)
    finally:
        sys.setprofile(before)
    assert rung
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(each.finished.is_set() for each in timers)
