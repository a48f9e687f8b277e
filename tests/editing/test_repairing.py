"""Repairs applied: no instruction is lost, the check says ok, and the command line writes and reads the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

import xbuild as xb
from examples.deadlocks import ring
from tests.model.generator import SMALL, random_program
from tests.model.writer import written
from xbuild.cli import main


def contents(program: xb.Module | xb.ModuleGroup) -> list[dict[str, list[str]]]:
    """The instructions of each computation on each device, whatever their order."""
    modules = [program] if isinstance(program, xb.Module) else list(program.modules.values())
    return [{c.name: sorted(map(repr, c.instructions)) for c in module.computations} for module in modules]


@pytest.mark.parametrize("first", [0, 250])
def test_every_repair_keeps_all_instructions_and_makes_it_safe(first: int) -> None:
    count = 0
    for seed in range(first, first + 250):
        program = random_program(seed, SMALL)
        given = written(program).module
        verdict = xb.check(given, send_buffers=program.send_buffers, infeed=program.infeed)
        if verdict.repair is not None:
            count += 1
            mended = xb.repaired(verdict)
            assert type(mended) is type(given)
            assert contents(mended) == contents(given)
            assert xb.check(mended, send_buffers=program.send_buffers, infeed=program.infeed).kind == "ok", seed
    assert count > 3


def test_a_repaired_program_is_written_and_is_a_target(tmp_path: Path) -> None:
    path = tmp_path / "mended.hlo"
    refused = CliRunner().invoke(main, ["check", "examples/deadlocks/ring.py:program", "--repair", str(path)])
    assert refused.exit_code == 1
    assert str(path) in refused.stdout
    accepted = CliRunner().invoke(main, ["check", str(path)])
    assert accepted.exit_code == 0, accepted.output
    assert contents(xb.parse_hlo(path.read_text()))[0].keys() == contents(ring.program())[0].keys()


CROSSED = """
import xbuild as xb

def one(device):
    builder = xb.Builder(f"d{device}")
    x = xb.parameter(builder, number=0, shape=xb.f32[2])
    token = xb.ops.after_all((), builder=builder)
    sent = xb.ops.send(x, token, channel_id=1 + device)
    xb.ops.send_done(sent, channel_id=1 + device)
    arrived, _ = xb.ops.recv_done(xb.ops.recv(token, shape=xb.f32[2], channel_id=2 - device), channel_id=2 - device)
    return xb.Module(f"d{device}", builder.build(arrived), is_scheduled=True)

group = xb.ModuleGroup({0: one(0), 1: one(1)})
"""


def test_programs_of_several_devices_go_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "crossed.py").write_text(CROSSED)
    folder = tmp_path / "mended"
    refused = CliRunner().invoke(main, ["check", f"{tmp_path}/crossed.py:group", "--repair", str(folder)])
    assert refused.exit_code == 1
    assert sorted(each.name for each in folder.iterdir()) == ["device0.hlo", "device1.hlo"]
    assert CliRunner().invoke(main, ["check", str(folder)]).exit_code == 0
    run = CliRunner().invoke(main, ["run", str(folder), "--random", "0"])
    assert run.exit_code == 0, run.output
    again = CliRunner().invoke(main, ["check", f"{tmp_path}/crossed.py:group", "--repair", str(folder)])
    assert (again.exit_code, "the repair needs a new or empty folder" in again.stderr) == (2, True)
    itself = CliRunner().invoke(main, ["check", str(folder), "--repair", str(folder)])
    assert (itself.exit_code, "is also the file that the command reads as TARGET" in itself.stderr) == (2, True)
    (folder / "device0.hlo").unlink()
    missing = CliRunner().invoke(main, ["check", str(folder)])
    assert missing.exit_code == 2
    assert "has device1.hlo; expected device0.hlo, device1.hlo and so on" in missing.stderr


def test_a_folder_that_cannot_be_filled_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crossed.py").write_text(CROSSED)
    (tmp_path / "mended").mkdir()
    written: list[Path] = []

    def full(path: Path, content: str, **_: str) -> None:
        written.append(path)
        if len(written) > 1:
            raise OSError(28, "No space left on device")
        path.write_bytes(content.encode())

    monkeypatch.setattr(Path, "write_text", full)
    done = CliRunner().invoke(main, ["check", f"{tmp_path}/crossed.py:group", "--repair", str(tmp_path / "mended")])
    assert (done.exit_code, "mended: No space left on device" in done.stderr) == (2, True)
    assert len(written) == 2
    assert sorted(each.name for each in tmp_path.rglob("*.hlo")) == []
    assert not [*tmp_path.glob(".mended*")]


def test_a_group_that_shares_one_module_stays_a_group() -> None:
    pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}"
    module = xb.parse_hlo(f"""
        HloModule swap, is_scheduled=true
        ENTRY main {{ x = f32[2] parameter(0)  t = token[] after-all()
                     s = (f32[2], u32[], token[]) send(x, t), channel_id=1, {pairs}
                     r = (f32[2], u32[], token[]) recv(t), channel_id=1, {pairs}
                     sent = token[] send-done(s), channel_id=1
                     ROOT came = (f32[2], token[]) recv-done(r), channel_id=1 }}""")
    module = evolve(module, num_partitions=1)  # the reader infers two, by the pairs
    mended = xb.repaired(xb.check(xb.ModuleGroup({0: module, 1: module})))
    assert isinstance(mended, xb.ModuleGroup)
    assert (sorted(mended.modules), xb.check(mended).kind) == ([0, 1], "ok")


def test_where_there_is_nothing_to_repair(tmp_path: Path) -> None:
    path, alone = tmp_path / "none.hlo", tmp_path / "alone.hlo"
    alone.write_text("HloModule alone\nENTRY main { ROOT x = f32[2] parameter(0) }")
    found = CliRunner().invoke(main, ["check", str(alone), "--repair", str(path)])
    assert (found.exit_code, path.exists()) == (0, False)
    assert f"notice: {path} was not written: the program needs no repair" in " ".join(found.stderr.split())
    with pytest.raises(ValueError, match=r"the verdict \(ok\) offers no repair"):
        xb.repaired(xb.check(xb.parse_hlo("ENTRY main { ROOT x = f32[2] parameter(0) }")))
