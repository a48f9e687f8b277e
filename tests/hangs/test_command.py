"""`xbuild hang`: the report, JSON, the page, --redact, --how and wrong use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.hangs.jobs import DATA
from xbuild.cli import main
from xbuild.hangs.collecting import HOW


def _run(*words: object) -> Result:
    return CliRunner().invoke(main, ["hang", *map(str, words)])


def test_the_report_begins_with_the_answer(nvrx: Path) -> None:
    result = _run(nvrx / "lock_gil_1st")
    assert result.exit_code == 1
    first, second, *_ = result.output.splitlines()
    assert first.startswith("ranks 9, 14 never launched all_to_all #45265 of group 72 (EXPERT_MODEL_PARALLEL_GROUP); ")
    assert first.endswith("ranks 0-8, 10-13, 15 wait")
    assert second.startswith("  rank 9  never_launched")
    assert "clocks of different hosts may differ" in result.output


def test_the_schema_of_the_json(gloo: Path) -> None:
    result = _run(gloo / "job_01", "--json")
    document = json.loads(result.output)
    assert document["schema"] == "xbuild.hang/1"
    (root,) = document["roots"]
    assert (root["rank"], root["kind"], root["group"], root["sequence"]) == (1, "wrong_order", "1", 1)
    assert root["frames"][0]["function"] == "run_rank"
    assert {*root["frames"][0]} == {"file", "line", "function"}
    assert document["waiting"] == {"0": [1], "2": [1]}
    assert result.exit_code == 1


def test_the_page_needs_no_script_and_no_network(nvrx: Path, tmp_path: Path) -> None:
    page = tmp_path / "hang.html"
    result = _run(nvrx / "gpu_error_1st", "--page", page)
    assert result.output.splitlines()[-1] == f"wrote {page}"
    text = page.read_text()
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "script-src &#x27;none&#x27;" in text or "script-src 'none'" in text
    assert 'class="rank fault">rank 12<' in text
    assert text.count('class="box pending"') > 16


def test_a_page_without_operations_has_no_lanes(nvrx: Path, tmp_path: Path) -> None:
    page = tmp_path / "hang.html"
    _run(DATA / "xla_cpu_rendezvous.log", "--page", page)
    assert "<section hidden>" in page.read_text()
    _run(nvrx / "gpu_error_1st", "--page", page)
    assert "<section>" in page.read_text()


def test_redact_removes_paths_and_names_and_keeps_the_ranks(gloo: Path, nvrx: Path, tmp_path: Path) -> None:
    page = tmp_path / "hang.html"
    for folder, secrets in (
        (gloo / "job_01", ["torch_jobs", "run_rank", "tests/hangs"]),
        (nvrx / "lock_gil_1st", ["EXPERT_MODEL", "default_pg"]),
    ):
        open_report, result = _run(folder, "--all"), _run(folder, "--all", "--redact", "--page", page)
        assert any(secret in open_report.output for secret in secrets)
        assert not any(secret in result.output + page.read_text() for secret in secrets)
        assert [line[:20] for line in open_report.output.splitlines() if line.startswith("  rank ")] == [
            line[:20] for line in result.output.splitlines() if line.startswith("  rank ")
        ]


def test_names_in_dumps_cannot_write_markup_or_escapes(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>\x1b[2J"
    for rank in (0, 1):
        entry = {
            "record_id": 0, "pg_id": 0, "process_group": [name, name], "collective_seq_id": 1, "state": "scheduled",
            "profiling_name": f"nccl:{name}", "frames": [{"filename": name, "line": 1, "name": name}],
        }  # fmt: skip
        config = {name: {"name": name, "desc": name, "ranks": "[0, 1]"}}
        dump = {"version": "2.9", "pg_config": config, "entries": [entry][rank:]}
        (tmp_path / f"trace_{rank}.json").write_text(json.dumps(dump))
    result = _run(tmp_path, "--page", tmp_path / "page.html")
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    assert "<img" not in (tmp_path / "page.html").read_text()


def test_programs_are_no_dumps(tmp_path: Path) -> None:
    shutil.copy(DATA / "xla_cpu_rendezvous.hlo", tmp_path / "module_0001.jit_f.before_optimizations.txt")
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path} holds programs, not dumps of a stuck job: `xbuild check {tmp_path}`" in result.output
    assert f"`xbuild hang LOG --program {tmp_path}`" in result.output


def test_programs_among_the_dumps_are_used(tmp_path: Path) -> None:
    log = shutil.copy(DATA / "xla_cpu_rendezvous.log", tmp_path)
    assert "with the program, --program TARGET names" in _run(log).output
    program = shutil.copy(DATA / "xla_cpu_rendezvous.hlo", tmp_path)
    given = _run(log, "--program", program).output
    assert "psum.6" in given
    assert given.count("deadlock") == 0, "the cause is said once, without the name of its kind"
    result = _run(log, program)
    assert result.output.startswith(given)
    assert "is used as --program" in " ".join(result.output.split())
    redacted = _run(log, program, "--redact")
    assert "psum.6" not in redacted.output
    assert "not used with --redact" in redacted.output


def test_a_program_among_the_dumps_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    shutil.copy(DATA / "xla_cpu_rendezvous.log", tmp_path)
    (tmp_path / "step.hlo").write_text("HloModule broken\nENTRY nonsense\n")
    result = _run(tmp_path)
    assert result.exit_code == 1
    assert "is not used as --program" in " ".join(result.output.split())


@pytest.mark.parametrize("system", HOW)
def test_how_to_take_dumps(system: str) -> None:
    result = _run("--how", system)
    assert result.exit_code == 0
    assert "Before the run" in result.output
    assert "Collect before the job is killed" in result.output
    assert "xbuild hang" in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name the dumps"),
        (["nothing_here"], "no such file or folder"),
        (["--how", "torch", "dumps"], "--how reads no dumps"),
        ([".", "--page", "page.txt"], "expected a file name that ends in .html"),
    ],
)
def test_wrong_use(words: list[str], sentence: str) -> None:
    result = _run(*words)
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_dump_that_is_refused_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "_dump_0").write_bytes(b"\x80\x02cos\nsystem\n.")
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert "_dump_0: the pickle names a class; a dump contains only plain data" in result.output


def test_redact_covers_hosts_and_instructions(tmp_path: Path) -> None:
    (tmp_path / "digest.txt").write_text(
        "TPU states: Launch ID 7, Module jit_secret, Fingerprint ab12\n"
        "Tag:PC breakdown: 2@0x10(all-reduce.secret): [0:secrethost@0:0, 1:secrethost@0:0]\n"
        "Tag:PC breakdown: 1@0x20(fusion.secret): [2:secrethost@0:0]\n"
    )
    (tmp_path / "log.txt").write_text(
        "Root Cause (first observed failure):\n rank      : 2 (x)\n exitcode  : 1 (pid: 5)\n"
    )
    open_report, result = _run(tmp_path, "--all"), _run(tmp_path, "--all", "--redact", "--json")
    assert "secret" in open_report.output
    assert "secret" not in result.output
    assert [root["rank"] for root in json.loads(result.output)["roots"]] == [2]


SHARED_CHANNEL = """HloModule jit_step, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
update { g = f32[] parameter(0)
  ROOT mean = f32[] all-reduce(g), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }
skip { ROOT g = f32[] parameter(0) }
ENTRY main {
  x = f32[] parameter(0)
  ok = pred[] parameter(1)
  loss = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
  ROOT new = f32[] conditional(ok, loss, loss), true_computation=update, false_computation=skip
}
"""


@pytest.mark.parametrize(
    ("old", "new", "place", "note"),
    [
        ("", "", "mean in true_computation of conditional new", ""),
        ("conditional(ok", "conditional(same", "loss", "the log fits loss and mean, which are the same to XLA"),
    ],
)
def test_of_collectives_with_one_channel_that_which_a_finding_explains(
    old: str, new: str, place: str, note: str, tmp_path: Path
) -> None:
    program = tmp_path / "step.hlo"
    same = "  zero = f32[] constant(0)\n  same = pred[] compare(loss, zero), direction=GT\n  ROOT new"
    program.write_text(SHARED_CHANNEL.replace(old, new).replace("  ROOT new", same if new else "  ROOT new"))
    said = " ".join(_run(DATA / "xla_cpu_rendezvous.log", "--program", program).output.split())
    assert f"ranks 0-3 meet at {place}" in said
    assert note in said
    assert ("they do if the predicate of new differs between devices 0-3" in said) is not bool(new)


def test_a_program_that_only_some_processes_compiled(tmp_path: Path) -> None:
    for process in (0, 1):
        folder = tmp_path / f"process_{process}"
        folder.mkdir()
        (folder / "module_0000.jit_both.cpu_after_optimizations.txt").write_text(
            SHARED_CHANNEL.replace("jit_step", "jit_both")
        )
    (tmp_path / "process_0" / "module_0001.jit_step.cpu_after_optimizations.txt").write_text(SHARED_CHANNEL)
    said = " ".join(_run(DATA / "coordination_shutdown.log", "--program", tmp_path).output.split())
    assert "cause only process 0 compiled jit_step: if it spans devices of process 1, it waits for them forever" in said
    assert "healthy machines hang as well, or fail: the processes of the job run different programs" in said
