"""`xbuild lint`: reports, formats, exit statuses, and what a target may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.command_line import usage, xbuild
from xbuild.linting import RULES
from xbuild.linting.rules import UNNEEDED

FAULT = """HloModule shifted, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}
  ROOT y = f32[8] add(p, x)
}
"""
CLEAN = FAULT.replace("{2,3}}", "{2,3},{3,0}}").replace("shifted", "ring")
PYTHON = """
import xbuild as xb

mesh = xb.Mesh(x=2)
product = xb.Module("product", xb.computation(xb.f32[64, 64], xb.f32[64, 64])(lambda a, b: xb.dot(a, b)))
stated = xb.shard.annotated(product, {0: xb.P("x", None), 1: xb.P("x", None)}, mesh=mesh)
twice = xb.Module(
    "twice",
    xb.computation(xb.f32[64])(lambda x: xb.cross_replica_sum(xb.cross_replica_sum(x))),  # xbuild: allow reduced_twice
    num_replicas=4,
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("fault.hlo", FAULT), ("clean.hlo", CLEAN), ("two.hlo", f"{CLEAN}// -----\n{FAULT}")):
        Path(name).write_text(text)
    Path("programs.py").write_text(PYTHON)
    Path("dump").mkdir()
    for number, text in enumerate((FAULT, CLEAN, "HloModule broken\nENTRY e { x = f32[2 }\n"), 1):
        Path(f"dump/module_000{number}.jit_f{number}.before_optimizations.txt").write_text(text)
    return tmp_path


def test_the_report_and_the_exit_status(folder: Path) -> None:
    result = xbuild("lint", "fault.hlo")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:4] == [
        "shifted: 1 issue, which cost 1 us of 1 us on h100", "",
        "permutation_zeros  fault.hlo:5 in e",
        "  collective-permute p sends nothing to device 0, so this device receives zeros",
    ]  # fmt: skip
    result = xbuild("lint", "clean.hlo")
    assert (result.exit_code, result.stdout) == (0, "clean: ring has nothing to report\n")


def test_every_kind_of_target(folder: Path) -> None:
    result = xbuild("lint", "-", input=FAULT)
    assert (result.exit_code, "<stdin>:5" in result.stdout) == (1, True)
    result = xbuild("lint", "two.hlo")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if line.startswith("two")] == ["two.hlo#1", "two.hlo#2"]
    assert xbuild("lint", "two.hlo#1", "clean.hlo").exit_code == 0
    result = xbuild("lint", "programs.py:twice")
    assert (result.exit_code, result.stdout) == (0, "clean: twice has nothing to report; comments allow 1\n")
    result = xbuild("lint", "programs.py:stated")
    assert result.exit_code == 1
    assert "avoidable_gather  programs.py:5 in <module>" in result.stdout
    result = xbuild("lint", "dump")
    assert result.exit_code == 1
    assert result.stdout.count("permutation_zeros") == 1
    assert "jit_f2" in result.stdout
    assert "jit_f3  unread: " in result.stdout
    assert result.stdout.endswith("clean: 1 of 3 modules have nothing to report: jit_f2\n")
    assert xbuild("lint", "dump#jit_f2").exit_code == 0


def test_a_text_that_cannot_be_read_among_several(folder: Path) -> None:
    Path("broken.hlo").write_text("HloModule broken\nENTRY e { x = f32[2 }\n")
    Path("raising.py").write_text("raise ValueError('no')\n")
    for command in ("lint", "check"):
        result = xbuild(command, "broken.hlo", "clean.hlo", "raising.py:x")
        assert result.exit_code == 1
        assert "ring" in result.stdout
        assert "broken.hlo:2:21: this is not a valid shape" in result.stderr
        assert 'raising.py", line 1' in result.stderr
        result = xbuild(command, "clean.hlo", "none.hlo")
        assert (result.exit_code, "there is no file 'none.hlo'" in result.stderr) == (2, True)
    facts = json.loads(xbuild("lint", "broken.hlo", "fault.hlo", "--format", "json").stdout)
    assert [each["target"] for each in facts["programs"]] == ["broken.hlo", "fault.hlo"]
    assert [(each["target"], each["rule"]) for each in facts["issues"]] == [
        ("broken.hlo", "syntax"),
        ("fault.hlo", "permutation_zeros"),
    ]


def test_all_stages_of_a_dump(folder: Path) -> None:
    Path("dump/module_0001.jit_f1.cpu_after_optimizations.txt").write_text(CLEAN)
    Path("dump/module_0001.jit_f1.0002.pipeline.after_dce.before_cse.txt").write_text(FAULT)
    assert xbuild("lint", "dump").stdout.count("permutation_zeros") == 0
    result = xbuild("lint", "dump", "clean.hlo", "--all")
    assert result.exit_code == 1
    titles = [line for line in result.stdout.splitlines() if line.startswith(("dump", "clean"))]
    assert len(titles) == 6
    assert sum("unread" in each for each in titles) == 1
    assert result.stdout.count("permutation_zeros") == 2
    assert all(each.startswith("dump#") for each in titles[:-1])
    facts = json.loads(xbuild("lint", "dump", "--all", "--format", "json").stdout)
    assert len({each["target"] for each in facts["programs"]}) == 5
    assert xbuild("lint", facts["programs"][0]["target"]).exit_code in (0, 1)


def test_documents(folder: Path) -> None:
    facts = json.loads(xbuild("lint", "fault.hlo", "--format", "json").stdout)
    assert (facts["schema"], facts["target"], facts["machine"]) == ("xbuild.lint/1", "fault.hlo", "h100")
    (issue,) = facts["issues"]
    assert (issue["rule"], issue["line"], issue["devices"]) == ("permutation_zeros", 5, [0])
    assert issue["facts"] == {"bytes": 32, "seconds": pytest.approx(1e-6, rel=1e-3)}
    facts = json.loads(xbuild("lint", "dump", "--format", "json").stdout)
    assert len(facts["programs"]) == 3
    log = json.loads(xbuild("lint", "fault.hlo", "--format", "sarif").stdout)
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == RULES["permutation_zeros"].meaning
    assert xbuild("lint", "fault.hlo", "--format", "github").stdout.startswith("::warning file=fault.hlo,line=5,")


def test_options(folder: Path) -> None:
    assert "on v5e" in xbuild("lint", "fault.hlo", "--machine", "v5e").stdout
    assert xbuild("lint", "fault.hlo", "--rule", "reduced_twice").exit_code == 0
    assert xbuild("lint", "fault.hlo", "--rule", "reduced_twice", "--rule", "permutation_zeros").exit_code == 1
    assert "is not one of 'permutation_zeros'" in usage(xbuild("lint", "fault.hlo", "--rule", "zeros"))
    assert "is not a percentage from 0 to 100" in usage(xbuild("lint", "fault.hlo", "--least", "101"))
    assert "is not a percentage from 0 to 100" in usage(xbuild("lint", "fault.hlo", "--least", "nan"))
    assert xbuild("lint", "fault.hlo", "--machine", "h1000").exit_code == 2
    assert "there is no file" in usage(xbuild("lint", "none.hlo"))
    named = FAULT.replace("{2,3}}", '{2,3}}, metadata={source_file="a.py" source_line=1}')
    Path("named.hlo").write_text(named)
    Path("a.py").write_text("x = 1  # xbuild: allow permutation_zeros\n")
    assert xbuild("lint", "named.hlo").exit_code == 1
    assert xbuild("lint", "named.hlo", "--source-root", ".").exit_code == 0


@pytest.mark.parametrize("rule", [*RULES, UNNEEDED])
def test_every_rule_is_explained(rule: str) -> None:
    result = xbuild("explain", rule)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{rule}: ")
    assert "docs/lint.md" in result.stdout
    document = Path(__file__).parents[2].joinpath("docs", "lint.md").read_text()
    assert f"### {rule}\n" in document
