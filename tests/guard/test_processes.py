"""Whether the processes of a job compiled the same program: by threads with one store, and by real processes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import xbuild as xb
from xbuild.guard import processes
from xbuild.guard.compilation import DeviceId
from xbuild.guard.processes import Comparison, compare, fingerprint, verdict_of_job
from xbuild.process.limits import within

DEVICES = tuple(DeviceId(number, number // 2) for number in range(4))


class Store:
    """The store of a job, whose processes are threads."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def key_value_set(self, key: str, value: str) -> None:
        with self.changed:
            assert key not in self.values
            self.values[key] = value
            self.changed.notify_all()

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, timeout_in_ms / 1000):
                raise RuntimeError("DEADLINE_EXCEEDED: GetKeyValue() timed out")
            return self.values[key]


def job(*lines: str, name: str = "jit_step") -> str:
    """A scheduled program of four partitions whose lines are of f32[4], each of the one before it."""
    body = "\n".join(f" v.{n + 1} = f32[4] {line.replace('OF', f'v.{n}')}" for n, line in enumerate(lines))
    return (
        f"HloModule {name}, is_scheduled=true, num_partitions=4\n"
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ v.0 = f32[4] parameter(0)\n{body}\n ROOT r = f32[4] copy(v.{len(lines)}) }}\n"
    )


def meeting(channel: int, groups: str = "{0,1,2,3}") -> str:
    return (
        f"all-reduce(OF), replica_groups={{{groups}}}, channel_id={channel}, use_global_device_ids=true, to_apply=add"
    )


def compared(*texts: str) -> list[Comparison]:
    store = Store()
    with ThreadPoolExecutor() as pool:
        found = [
            pool.submit(compare, store, "job/1", process, "jit_step", text, DEVICES)
            for process, text in enumerate(texts)
        ]
        return [each.result() for each in found]


def test_one_program_is_no_difference() -> None:
    text = job("negate(OF)", meeting(1))
    where = text.replace("negate(v.0)", 'negate(v.0), metadata={op_name="a}b" source_file="x.py" source_line=3}')
    for each in compared(text, where):
        assert each.verdict is None
        assert not each.is_refused
        assert str(each) == "all processes compiled the same program"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["negate(OF)", meeting(1)], ["abs(OF)", "negate(OF)", meeting(1)]),
        (["negate(OF)", meeting(1)], [meeting(1), "negate(OF)"]),
    ],
)
def test_what_differs_between_collectives_cannot_hang(one: list[str], other: list[str]) -> None:
    for each in compared(job(*one), job(*other)):
        assert each.verdict is not None
        assert not each.is_refused
        assert re.match(
            r"process 0 \(jit_step\) and process 1 \(jit_step\) compiled different programs, but the job cannot hang",
            str(each),
        )


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ([meeting(1), meeting(2)], [meeting(1)], "missing_participant"),
        ([meeting(1), meeting(2)], [meeting(2), meeting(1)], "deadlock"),
        ([meeting(1)], [meeting(1, "{0,1},{2,3}")], "group_disagreement"),
    ],
)
def test_collectives_that_differ_hang(one: list[str], other: list[str], kind: str) -> None:
    texts = [job(*one), job(*other)]
    for each in compared(*texts):
        assert each.is_refused
        assert each.verdict is not None
        assert kind in str(each.verdict)
        assert str(each).endswith("compiled different programs, and the job would hang, or fail with mismatched sizes")
    assert verdict_of_job(dict(enumerate(texts)), DEVICES).refused


LATER = "{0,1},{2,3}"  # each process by itself
ACROSS = "{0,2},{1,3}"


@pytest.mark.parametrize(
    ("one", "other", "hangs"),
    [
        ([meeting(1), "negate(OF)", meeting(1)], ["abs(OF)", meeting(1), meeting(1)], False),
        ([meeting(1), "negate(OF)", meeting(1, LATER)], ["abs(OF)", meeting(1), meeting(1, LATER)], False),
        ([meeting(1), "negate(OF)", meeting(1, LATER)], ["abs(OF)", meeting(1, LATER), meeting(1)], False),
        ([meeting(1), "negate(OF)", meeting(1, ACROSS)], ["abs(OF)", meeting(1), meeting(1, ACROSS)], False),
        ([meeting(1), "negate(OF)", meeting(1, ACROSS)], ["abs(OF)", meeting(1, ACROSS), meeting(1)], True),
        ([meeting(1), meeting(1), meeting(1)], ["negate(OF)", meeting(1), meeting(1)], True),
        ([meeting(1), "negate(OF)", meeting(2)], ["abs(OF)", meeting(1), meeting(1)], True),
    ],
)
def test_collectives_that_share_a_channel_meet_in_their_order(one: list[str], other: list[str], hangs: bool) -> None:
    texts = [job(*one), job(*other)]
    for each in compared(*texts):
        assert each.is_refused == hangs
    unscheduled = [text.replace("is_scheduled=true, ", "") for text in texts]
    assert verdict_of_job(dict(enumerate(unscheduled)), DEVICES).refused == hangs


def test_a_process_that_compiles_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "SECONDS", 0.1)
    monkeypatch.setattr(processes, "SILENT_SECONDS", 0.01)
    found = compare(Store(), "job/1", 0, "jit_step", job(meeting(1)), DEVICES)
    said = "xbuild guard: process 0 waits for process 1 to compile jit_step, at most 0.1 s\n"
    assert capsys.readouterr().err == said
    assert found.absent == (1,)
    assert not found.is_refused
    assert str(found) == "process 1 compiled no program here in 0.1 s: process 0 will wait in jit_step"


def test_a_process_says_when_the_others_have_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "SILENT_SECONDS", 0.01)
    store, text = Store(), job(meeting(1))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(compare, store, "job/1", 0, "jit_step", text, DEVICES)
        said, end = "", time.monotonic() + 30
        while not said.endswith("\n") and time.monotonic() < end:
            said += capsys.readouterr().err
            time.sleep(0.01)
        assert said == "xbuild guard: process 0 waits for process 1 to compile jit_step, at most 60 s\n"
        assert compare(store, "job/1", 1, "jit_step", text, DEVICES).verdict is None
        assert first.result().verdict is None
    assert capsys.readouterr().err == "xbuild guard: process 0 goes on: all have compiled jit_step, after 0 s\n"


def test_a_fingerprint_passes_over_what_computes_nothing() -> None:
    text = job(meeting(1))
    frames = 'FileNames\n1 "/tmp/a.py"\n\nStackFrames\n1 {file_location_id=1}\n'
    assert fingerprint(text.replace("add {", f"{frames}add {{", 1)) == fingerprint(text.replace("add {", "\nadd {", 1))
    assert fingerprint(text.replace("copy", "negate")) != fingerprint(text)


def test_a_fingerprint_keeps_strings_that_look_like_metadata() -> None:
    one, other = (
        f'%c = s32[] custom-call(), custom_call_target="metadata={{{word}}}", metadata={{op_name="x"}}' for word in "ab"
    )
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one.replace('op_name="x"', 'op_name="y}"'))


@pytest.mark.parametrize("unit", ['metadata={"\\"', "metadata={", '"metadata={"', 'metadata={"{', '\\"', "FileNames\n"])
def test_a_fingerprint_of_a_million_characters_is_immediate(unit: str) -> None:
    with within(10):
        fingerprint(unit * (1_000_000 // len(unit)))


SCRIPT = """
import os, sys
process, port = int(sys.argv[1]), sys.argv[2]
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"localhost:{port}", 2, process)
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.make_array_from_callback((8,), NamedSharding(mesh, P("x")), lambda at: np.ones(8, np.float32)[at])
if process == 0:
    print(jax.jit(lambda y: y + 1)(np.float32(1)))  # its own: no other process takes part
def step(v):
    total = jax.lax.psum(v.sum(), "x")
    return BODY
run = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False))
print("result", run(x).addressable_data(0))
"""


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "hangs"),
    [("total * (2 if process else 3)", False), ("total if process else jax.lax.psum(total, 'x')", True)],
)
def test_real_processes(body: str, hangs: bool, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "script.py").write_text(SCRIPT.replace("BODY", body))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "XBUILD_GUARD": "stop"}
    running = [
        subprocess.Popen(
            [sys.executable, "script.py", str(process), port],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for process in range(2)
    ]  # fmt: skip
    try:
        ended = [each.communicate(timeout=240) for each in running]
    finally:
        for each in running:
            each.kill()
    for (out, said), process in zip(ended, running, strict=True):
        assert process.returncode == int(hangs), said
        assert ("result" in out) is not hangs
        assert ("compiled different programs, and the job would hang" in said) is hangs


def test_modules_are_compared_like_their_texts() -> None:
    texts = dict(enumerate([job(meeting(1), meeting(1)), job(meeting(1))]))
    modules = {process: xb.parse_hlo(text) for process, text in texts.items()}
    by_text, by_module = (processes.compare_programs({0: "m", 1: "m"}, each, 4) for each in (texts, modules))
    assert by_text.verdict is not None
    assert by_module.verdict is not None
    assert [each.message for each in by_module.verdict.findings] == [each.message for each in by_text.verdict.findings]
    assert len(by_text.verdict.findings) == 1
    assert processes.compare_programs({0: "m", 1: "m"}, {0: modules[0], 1: modules[0]}, 4).verdict is None
