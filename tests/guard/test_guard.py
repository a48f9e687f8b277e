"""The guard on texts: modes, what it prints and writes, and that it fails open."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import xbuild as xb
from xbuild import guard
from xbuild.guard import compilation, folder, programs
from xbuild.guard.compilation import DeviceId
from xbuild.process.limits import within

OK = """HloModule jit_ok, is_scheduled=true, num_partitions=2
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
 ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
"""
STUCK = """HloModule jit_stuck, is_scheduled=true, num_partitions=2
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
here { x = f32[4] parameter(0)
 ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
there { x = f32[4] parameter(0)
 ROOT r = f32[4] copy(x) }
ENTRY e { x = f32[4] parameter(0)
 i = u32[] partition-id()
 z = u32[] constant(0)
 p = pred[] compare(i, z), direction=EQ
 ROOT c = f32[4] conditional(p, x, x), true_computation=here, false_computation=there }
"""
DEVICES = (DeviceId(0, 0), DeviceId(1, 0))


def test_a_program_that_would_hang_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    with guard.active() as active:
        guard.see("jit_ok", OK, DEVICES)
        with pytest.raises(guard.ProgramRefused, match="never") as refused:
            guard.see("jit_stuck", STUCK, DEVICES)
    assert refused.value.code == 1
    assert [each.kind for each in active.programs] == ["ok", "deadlock"]
    said = capsys.readouterr().err
    assert "xbuild guard: jit_stuck is refused; it was stopped before it ran\ndeadlock: device 1 never" in said
    assert "xbuild guard: 2 programs checked in" in said
    assert said.rstrip().endswith("s, 1 refused")


def test_a_refused_program_runs_in_mode_warn(capsys: pytest.CaptureFixture[str]) -> None:
    with guard.active("warn"):
        guard.see("jit_stuck", STUCK, DEVICES)
    assert "jit_stuck is refused; it runs anyway\ndeadlock: " in capsys.readouterr().err


MAY_HANG = STUCK.replace("jit_stuck", "jit_clip").replace(
    """ i = u32[] partition-id()
 z = u32[] constant(0)
 p = pred[] compare(i, z), direction=EQ
""",
    " p = pred[] parameter(1)\n",
)
CALLBACK = """HloModule jit_callback, is_scheduled=true, num_partitions=2
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0)
 y = f32[4] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback", custom_call_has_side_effect=true
 ROOT r = f32[4] all-reduce(y), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add }
"""


def test_a_program_that_hangs_on_some_data_runs_below_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with guard.active("report", tmp_path / "out") as active:
        guard.see("jit_clip", MAY_HANG, DEVICES)
        assert (tmp_path / "out" / "index.json").exists()  # before it runs, since that may never end
        said = capsys.readouterr().err
        assert said.startswith("xbuild guard: jit_clip may hang: the data decide; it runs; wrote ")
        assert "if the predicate of c differs between devices 0 and 1" in said
        guard.see("jit_callback", CALLBACK, DEVICES)
        assert capsys.readouterr().err == ""
    assert [each.kind for each in active.programs] == ["depends", "depends"]
    assert [each.may_hang for each in active.programs] == [True, False]
    assert "none refused, 1 may hang, depending on the data" in capsys.readouterr().err
    rows = json.loads((tmp_path / "out" / "index.json").read_text())["programs"]
    assert [row["may_hang"] for row in rows] == [True, False]


def test_the_mode_strict_stops_what_hangs_on_some_data(capsys: pytest.CaptureFixture[str]) -> None:
    with guard.active("strict"):
        guard.see("jit_callback", CALLBACK, DEVICES)
        with pytest.raises(guard.ProgramRefused) as raised:
            guard.see("jit_clip", MAY_HANG, DEVICES)
        with pytest.raises(guard.ProgramRefused):
            guard.see("jit_stuck", STUCK, DEVICES)
    assert raised.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("xbuild guard: jit_clip may hang: the data decide; it was stopped before it ran\ndepends: ")
    with guard.active("stop"):
        guard.see("jit_other", MAY_HANG, DEVICES)
    assert "it runs; --strict (XBUILD_GUARD=strict) stops such programs" in capsys.readouterr().err


def test_a_report_has_a_page_the_texts_and_the_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the second replaces what the first wrote
        with guard.active("report", tmp_path / "out"):
            for name, text in (("jit_ok", OK), ("jit_stuck", STUCK), ("jit_ok", OK), ("<odd>/../name", "no HLO")):
                guard.see(name, text, DEVICES)
    assert f"wrote {tmp_path / 'out' / 'index.html'}" in capsys.readouterr().err
    facts = json.loads((tmp_path / "out" / "index.json").read_text())
    rows = facts["programs"]
    assert [each["verdict"] for each in rows] == ["ok", "deadlock", "ok", "unread"]
    assert [each["refused"] for each in rows] == [False, True, False, False]
    assert [each["order"] for each in rows] == [1, 2, 3, 4]
    assert rows[0]["devices"] == [0, 1]
    assert rows[0]["collectives"] == 1
    assert rows[1]["problem"].startswith("deadlock: device 1 never")
    assert rows[2]["text"] == "process_0/jit_ok.2.hlo.gz"
    for row in rows:
        text = gzip.decompress((tmp_path / "out" / row["text"]).read_bytes()).decode()
        assert text in (OK, STUCK, "no HLO")
        if "page" in row:
            assert "<svg" in (tmp_path / "out" / row["page"]).read_text()
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Content-Security-Policy" in page
    assert "&lt;odd&gt;" in page
    assert "<odd>" not in page
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["index.html", "index.json", "process_0"]


def test_a_report_is_written_before_a_refused_program_runs_which_may_never_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows() -> list[tuple[str, str, int]]:
        facts = json.loads((tmp_path / "out" / "index.json").read_text())
        return [(row["name"], row["verdict"], row["process"]) for row in facts["programs"]]

    with guard.active("report", tmp_path / "out") as active:
        guard.see("jit_ok", OK, DEVICES)
        assert not (tmp_path / "out").exists()
        guard.see("jit_stuck", STUCK, DEVICES)
        assert rows() == [("jit_ok", "ok", 0), ("jit_stuck", "deadlock", 0)]
        page = tmp_path / "out" / "process_0" / "jit_stuck.html"
        assert "<svg" in page.read_text()
        assert f"it runs anyway; wrote {tmp_path / 'out' / 'index.html'}" in capsys.readouterr().err
        page.write_text("drawn before")
        active.process = 1  # as `jax.distributed` says once it has started
        guard.see("jit_stuck", STUCK, DEVICES)
    assert rows() == [("jit_ok", "ok", 1), ("jit_stuck", "deadlock", 1), ("jit_stuck", "deadlock", 1)]
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["index.html", "index.json", "process_1"]
    pages = [tmp_path / "out" / "process_1" / name for name in ("jit_stuck.html", "jit_stuck.2.html")]
    assert [each.read_text() == "drawn before" for each in pages] == [True, False]


def test_processes_of_one_run_write_beside_each_other(tmp_path: Path) -> None:
    def write(name: str, text: str, since: float, process: int = 0) -> None:
        written = programs.Guard("report", since=since)
        written.see(name, text, DEVICES)
        folder.write_folder(written, tmp_path, process)

    begin = time.time()
    for name, text, process in (("jit_child", OK, 0), ("jit_other", STUCK, 1), ("jit_parent", OK, 0)):
        write(name, text, begin, process)
    rows = json.loads((tmp_path / "index.json").read_text())["programs"]
    assert [(each["name"], each["process"], each["text"]) for each in rows] == [
        ("jit_child", 0, "process_0/jit_child.hlo.gz"),
        ("jit_parent", 0, "process_0.2/jit_parent.hlo.gz"),
        ("jit_other", 1, "process_1/jit_other.hlo.gz"),
    ]
    page = (tmp_path / "index.html").read_text()
    assert re.search(r"3 programs checked in [\d.]+ s, 1 refused, in 3 processes", page)
    assert page.index("jit_child") < page.index(">process_0.2<") < page.index("jit_parent")

    write("jit_ok", OK, time.time())  # a later run replaces all of them
    assert sorted(each.name for each in tmp_path.iterdir()) == ["index.html", "index.json", "process_0"]
    assert [each["name"] for each in json.loads((tmp_path / "index.json").read_text())["programs"]] == ["jit_ok"]
    assert "in 1 process" not in (tmp_path / "index.html").read_text()


def test_threads_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    begin = time.time()

    def write(number: int) -> None:
        written = programs.Guard("report", since=begin)
        written.see(f"jit_{number}", OK, DEVICES)
        folder.write_folder(written, tmp_path)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    rows = json.loads((tmp_path / "index.json").read_text())["programs"]
    assert sorted(each["name"] for each in rows) == [f"jit_{number}" for number in range(8)]


def test_a_fault_while_the_folder_is_written_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(folder, "_write_index", fail)
    with guard.active("report", tmp_path):
        guard.see("jit_ok", OK, DEVICES)
    assert f"cannot write {tmp_path}: KeyError('inside')" in capsys.readouterr().err


def test_a_folder_is_not_written_when_xbuild_has_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xbuild.guard.folder", None)  # its import fails
    with guard.active("report", tmp_path):
        guard.see("jit_ok", OK, DEVICES)
    assert re.search(r"cannot write .*: (ImportError|ModuleNotFoundError)", capsys.readouterr().err)


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kept := tmp_path / "out" / "process_0" / "mine").mkdir(parents=True)
    with guard.active("report", tmp_path / "out"):
        guard.see("jit_ok", OK, DEVICES)
    assert kept.is_dir()
    assert "cannot write" in capsys.readouterr().err


def test_a_program_that_communicates_nothing_is_not_read() -> None:
    with guard.active() as active:
        guard.see("jit_new", "HloModule m\nENTRY e { ROOT all-reduce.1 = f32[2] frobnicate() }", ())
    (program,) = active.programs
    assert str(program.verdict) == "ok: the program communicates with no device and no host"


def test_a_program_that_cannot_be_read_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with guard.active() as active:
        guard.see("jit_new", "HloModule m\nENTRY e { x = f32[2] frobnicate() ROOT y = f32[2] all-reduce(x) }", ())
    (program,) = active.programs
    assert program.verdict is None
    assert "frobnicate" in program.problem
    said = capsys.readouterr().err
    assert "jit_new runs without a verdict: " in said
    assert "none refused, 1 without a verdict" in said


def test_a_fault_of_the_check_lets_the_program_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object, **__: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(programs, "check", fail)
    with guard.active() as active:
        guard.see("jit_ok", OK, DEVICES)
    assert active.programs[0].problem == "KeyError('inside')"
    assert "runs without a verdict" in capsys.readouterr().err


def test_a_check_that_takes_too_long_lets_the_program_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f" t{n} = f32[4] all-reduce(t{n - 1}), replica_groups={{{{0,1}}}}, to_apply=add" for n in range(1, 3000)]
    text = OK.replace(
        " x = f32[4] parameter(0)\n ROOT r", " t0 = f32[4] parameter(0)\n" + "\n".join(lines) + "\n ROOT r"
    )
    monkeypatch.setattr(programs, "SECONDS", 0.001)
    begin = time.monotonic()
    with guard.active() as active:
        guard.see("jit_long", text.replace("all-reduce(x)", "all-reduce(t2999)"), DEVICES)
    assert active.programs[0].problem == "the guard stopped after 0.001 s"
    assert time.monotonic() - begin < 5


def test_what_is_wrong_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with guard.active():
        for _ in range(3):
            guard.see("jit_twice", "no HLO", ())
    assert capsys.readouterr().err.count("runs without a verdict") == 1


def test_guards_nest(capsys: pytest.CaptureFixture[str]) -> None:
    outer = guard.install("warn")
    try:
        with guard.active("stop") as inner:
            guard.see("jit_ok", OK, DEVICES)
        guard.see("jit_stuck", STUCK, DEVICES)
    finally:
        guard.uninstall()
    assert [each.name for each in inner.programs] == ["jit_ok"]
    assert [each.name for each in outer.programs] == ["jit_stuck"]
    guard.see("jit_stuck", STUCK, DEVICES)  # without a guard nothing is checked
    assert len(outer.programs) == 1


@pytest.mark.parametrize(
    ("mode", "place", "message"),
    [
        ("halt", None, "expected one of stop, strict, warn, report"),
        ("warn", "out", "only mode 'report' writes a folder"),
    ],
)
def test_bad_arguments_are_refused(mode: str, place: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        guard.install(mode, place)
    assert guard._current is None


def test_programs_that_threads_compile_at_the_same_time_are_seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, tuple[DeviceId, ...]]] = []
    hook = compilation.CompilerHook(lambda *program: seen.append(program))

    def compile_or_get_cached(name: str) -> object:
        time.sleep(0)
        hook._transform(name.encode())
        return SimpleNamespace(hlo_modules=lambda: [SimpleNamespace(name=name, to_string=lambda: "text")])

    compiler = SimpleNamespace(compile_or_get_cached=compile_or_get_cached)
    modules = {"jax": ModuleType("jax"), "jax._src": SimpleNamespace(compiler=compiler)}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(compilation, "_text_of_proto", lambda proto: (proto.decode(), "past the function"))
    monkeypatch.setattr(compilation.CompilerHook, "register", lambda _: True)
    compilation._wrap(hook.see, hook)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(64) as threads:
            list(threads.map(compiler.compile_or_get_cached, map(str, range(4000))))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(int(name) for name, _, _ in seen) == list(range(4000))
    assert {text for _, text, _ in seen} == {"text"}
    assert not compilation._compilations


def test_the_guard_is_a_module_of_xbuild() -> None:
    assert xb.guard is guard


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_a_report_neither_waits_for_nor_replaces_what_is_not_its_own(tmp_path: Path) -> None:
    facts = tmp_path / "process_0" / "index.json"
    facts.parent.mkdir()
    os.mkfifo(facts)
    with pytest.raises(FileExistsError), within(10):
        folder.write_folder(programs.Guard("report"), tmp_path)
    facts.unlink()
    facts.write_text("[" * 100_000)
    with pytest.raises(FileExistsError):
        folder.write_folder(programs.Guard("report"), tmp_path)
    facts.write_text('{"written_by": "xbuild guard"}')
    assert folder.write_folder(programs.Guard("report"), tmp_path).read_text().startswith("<!doctype html>")


def test_programs_are_checked_under_the_runtime_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "host.toml"
    file.write_text('launches = "in_turn"\n', encoding="utf-8")
    with guard.active("warn") as active:
        guard.see("jit_ok", OK, DEVICES)
        for name in ("nccl", str(file), "nothing"):
            monkeypatch.setenv("XBUILD_GUARD_RUNTIME", name)
            guard.see(f"jit_{len(active.programs)}", OK.replace("jit_ok", f"jit_{len(active.programs)}"), DEVICES)
    assert [each.kind for each in active.programs[:3]] == ["ok", "ok", "deadlock"]
    assert "runtime 'nothing' is neither one of" in active.programs[3].problem


def test_the_command_passes_the_runtime_on(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text('launches = "in_turn"\n', encoding="utf-8")
    (tmp_path / "script.py").write_text("import os\nprint(os.environ['XBUILD_GUARD_RUNTIME'])\n", encoding="utf-8")
    for given, expected in (("nccl", "nccl"), ("host.toml", str(tmp_path / "host.toml"))):
        words = [sys.executable, "-m", "xbuild", "guard", "--runtime", given, "script.py"]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.stdout == f"{expected}\n", ran.stderr
    words[5] = "nothing"
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "Invalid value for '--runtime'" in ran.stderr
