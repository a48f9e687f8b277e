"""`xb.lint` and its report: comments that allow, what is worth a report, what is merged, and errors."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xbuild as xb
from shape_inference import XbuildError
from xbuild.linting.rules import UNNEEDED

PROGRAM = """
import xbuild as xb


def build(comment=""):
    return xb.Module("twice", xb.computation(xb.f32[1024])(twice), num_replicas=4)


def twice(x):
    once = xb.cross_replica_sum(x)
    return xb.cross_replica_sum(once){first}


def fixed(x):
    return xb.cross_replica_sum(x){second}


program = build()
fixed_program = xb.Module("fixed", xb.computation(xb.f32[1024])(fixed), num_replicas=4)
"""


def imported(folder: Path, name: str, first: str = "", second: str = "") -> ModuleType:
    """A module of the user's with comments on the lines of its collectives."""
    path = folder / f"{name}.py"
    path.write_text(PROGRAM.format(first=first, second=second))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_report_names_the_line_the_cost_and_the_fix(tmp_path: Path) -> None:
    report = xb.lint(imported(tmp_path, "plain").program)
    (issue,) = report.issues
    assert not report
    assert (issue.rule, issue.level) == ("reduced_twice", "warning")
    assert (issue.source.line, issue.source.function) == (11, "twice")  # type: ignore[union-attr]
    assert issue.facts["bytes"] == 4096
    assert 0 < issue.facts["seconds"] < report.seconds
    lines = str(report).splitlines()
    assert lines[0].startswith("twice: 1 issue, which cost ")
    assert lines[0].endswith(" on h100")
    assert lines[2].startswith("reduced_twice  ")
    assert lines[2].endswith("plain.py:11 in twice")
    assert any(line.startswith("  fix    remove one of the two reductions") for line in lines)
    assert json.loads(json.dumps(report.to_dict()))["issues"][0]["line"] == 11


@pytest.mark.parametrize("comment", ["  # xbuild: allow reduced_twice", "  #xbuild:allow not_reduced, reduced-twice"])
def test_a_comment_allows_an_issue(tmp_path: Path, comment: str) -> None:
    report = xb.lint(imported(tmp_path, "allowing", comment).program)
    unneeded = [each for each in report.issues if each.rule == UNNEEDED]
    assert report.allowed == 1
    assert [*report.issues] == unneeded
    assert len(unneeded) == comment.count("not_reduced")
    assert "comments allow 1" in str(report)


def test_a_comment_that_allows_nothing_is_reported(tmp_path: Path) -> None:
    module = imported(tmp_path, "mended", "", "  # xbuild: allow reduced_twice")
    (issue,) = xb.lint(module.fixed_program).issues
    assert (issue.rule, issue.level, issue.fix) == (UNNEEDED, "note", "remove the comment")
    assert issue.source.line == 15  # type: ignore[union-attr]
    (other, _) = xb.lint(imported(tmp_path, "other", "  # xbuild: allow nothing").program).issues[::-1]
    assert "names no rule; the rules are permutation_zeros" in other.message


def test_a_comment_on_a_line_of_another_program_is_not_reported(tmp_path: Path) -> None:
    module = imported(tmp_path, "both", "  # xbuild: allow reduced_twice", "  # xbuild: allow reduced_twice")
    assert xb.lint(module.program)


NAMED = """HloModule m, num_partitions=2

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  one = f32[64] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT two = f32[64] all-reduce(one), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add,
    metadata={op_name="jit(f)/psum" source_file="FILE" source_line=2}
}
"""


def test_files_that_text_names_are_read_only_below_a_source_root(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "train.py").write_text("import jax\nx = 1  # xbuild: allow reduced_twice\n")
    for name in ("train.py", str(inside / "train.py")):
        text = NAMED.replace("FILE", name)
        assert not xb.lint(text)
        assert not xb.lint(text, source_root=outside) or name == "train.py"
        assert xb.lint(text, source_root=inside)
    assert not xb.lint(NAMED.replace("FILE", str(outside / "train.py")), source_root=inside)
    assert not xb.lint(NAMED.replace("FILE", "../outside/train.py"), source_root=inside)
    assert not xb.lint(NAMED.replace("FILE", json.__file__))


ROOT = "  ROOT two ="
ALLOW = "  // xbuild: allow reduced_twice"

# The text, the number of issues that its comments allow, and the lines of the comments that allow none.
COMMENTED = {
    "on the line": (NAMED.replace("to_apply=add,", f"to_apply=add,{ALLOW}"), 1, []),
    "on the second line of the instruction": (NAMED.replace("source_line=2}", f"source_line=2}}{ALLOW}"), 1, []),
    "with another rule": (NAMED.replace("to_apply=add,", f"to_apply=add,{ALLOW}, not-reduced"), 1, [7]),
    "on another instruction": (
        NAMED.replace("parameter(0)\n", f"parameter(0){ALLOW}\n"),
        0,
        [5],
    ),
    "on a line of its own": (NAMED.replace(ROOT, f"{ALLOW}\n{ROOT}"), 0, [7]),
    "of an unknown rule": (
        NAMED.replace(ROOT, f"  // xbuild: allow fast\n{ROOT}"),
        0,
        [7],
    ),
    "without metadata": (NAMED[: NAMED.index(",\n    metadata")] + f"{ALLOW}\n}}\n", 1, []),
    "after the last instruction": (f"{NAMED}{ALLOW}\n", 0, [10]),
}


@pytest.mark.parametrize("case", COMMENTED)
def test_comments_in_hlo_text(case: str) -> None:
    text, allowed, unneeded = COMMENTED[case]
    for program in (text, xb.parse(text)):
        report = xb.lint(program)
        assert report.allowed == allowed
        assert [each.source.line for each in report.issues if each.source and each.rule == UNNEEDED] == unneeded
        assert [each.rule for each in report.issues if each.rule != UNNEEDED] == ["reduced_twice"] * (1 - allowed)
    assert "xbuild" not in xb.parse(text).to_hlo()
    messages = [each.message for each in xb.lint(text).issues if each.rule == UNNEEDED]
    assert not unneeded or f"<hlo>:{unneeded[0]}\n" in str(xb.lint(text))
    assert all(each.startswith("`// xbuild: allow ") for each in messages)
    assert (case == "of an unknown rule") == any("names no rule" in each for each in messages)


MLIR = """module @m attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %p = "stablehlo.collective_permute"(%x) <{  // xbuild: allow permutation_zeros
      source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<64xf32>) -> tensor<64xf32>
    %y = stablehlo.add %p, %x : tensor<64xf32>
    return %y : tensor<64xf32>
  }
}
"""


def test_comments_in_stablehlo_text() -> None:
    report = xb.lint(MLIR)
    assert (bool(report), report.allowed) == (True, 1)
    (issue,) = xb.lint(MLIR.replace("permutation_zeros", "not_reduced"), rules=["not_reduced"]).issues
    assert (issue.rule, issue.source.line if issue.source else 0) == (UNNEEDED, 3)
    assert [each.rule for each in xb.lint(MLIR.replace("//", "// no")).issues] == ["permutation_zeros"]


JAX = """
import jax, jax.numpy as jnp, numpy as np, xbuild as xb
def f(x):
    return jax.pure_callback(np.asarray, x, x)  # xbuild: allow blocking_callback
lowered = jax.jit(f).lower(jnp.ones(8))
if __name__ == "__main__":
    print(bool(xb.lint(lowered)), xb.lint(lowered).allowed, bool(xb.lint(lowered.as_text(dialect="hlo"))))
"""


@pytest.mark.slow
def test_comments_count_in_the_files_of_a_jax_program_of_this_process(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    file = tmp_path / "step.py"
    file.write_text(JAX)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "1", "False"]
    command = [sys.executable, "-m", "xbuild", "lint", f"{file}:lowered"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "clean: jit_f has nothing to report; comments allow 1\n"), done


def many(count: int, metadata: str = "") -> str:
    """A program that sums a value once more in `count` lines."""
    lines = [
        f"  r{n + 1} = f32[64] all-reduce(r{n}), channel_id={n + 2}, replica_groups={{{{0,1}}}}, "
        f"use_global_device_ids=true, to_apply=add{metadata.replace('LINE', str(n + 1))}"
        for n in range(count)
    ]
    head = NAMED.split("  one =")[0] + "  r0 = f32[64] all-reduce(x), channel_id=1, replica_groups={{0,1}}, "
    first = "use_global_device_ids=true, to_apply=add\n"
    return head + first + "\n".join(lines).replace(f"  r{count} =", f"  ROOT r{count} =") + "\n}\n"


def test_issues_of_one_line_are_one_issue() -> None:
    (issue,) = xb.lint(many(12, ', metadata={op_name="jit(f)/psum" source_file="a.py" source_line=7}')).issues
    assert issue.facts["count"] == 12
    assert issue.facts["bytes"] == 12 * 256
    report = xb.lint(many(30, ', metadata={op_name="jit(f)/psum" source_file="a.py" source_line=LINE}'))
    assert len(report.issues) == 30
    assert str(report).splitlines()[-1] == "  ... and 20 more issues; report(all=True) shows them"
    assert report.report(all=True).count("reduced_twice") == 30


def test_costs_below_the_least_share_are_left_out() -> None:
    text = """HloModule m, num_partitions=2

ENTRY e {{
  x = bf16[64] parameter(0)
  big = f32[{side},{side}] parameter(1)
  wide = f32[64] convert(x)
  ring = f32[64] collective-permute(wide), channel_id=1, source_target_pairs={{{{0,1}},{{1,0}}}}
  product = f32[{side},{side}] dot(big, big), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = (f32[64], f32[{side},{side}]) tuple(ring, product)
}}
"""
    assert not xb.lint(text.format(side=64))
    assert xb.lint(text.format(side=8192))
    assert not xb.lint(text.format(side=8192), least=0)
    assert xb.lint(text.format(side=64), rules=["reduced_twice"])
    assert not xb.lint(text.format(side=64), rules=["f32-from-bf16"])


def test_programs_of_several_devices_are_examined_once() -> None:
    module = xb.parse_hlo(many(2))
    group = xb.ModuleGroup({0: module, 1: module})
    report = xb.lint(group)
    assert report.name == "2 programs"
    assert len(report.issues) == len({each.source for each in report.issues})


def test_errors_name_what_is_expected() -> None:
    module = xb.parse_hlo(many(2))
    with pytest.raises(XbuildError, match="unknown rule 'reduce_twice'"):
        xb.lint(module, rules=["reduce_twice"])
    with pytest.raises(XbuildError, match="least is 2; expected a share from 0 to 1"):
        xb.lint(module, least=2)
    with pytest.raises(XbuildError, match="h1000"):
        xb.lint(module, "h1000")
    with pytest.raises(TypeError, match="expected a program"):
        xb.lint(3)
    with pytest.raises(TypeError, match="expected the name of a machine"):
        xb.lint(module, 3)  # type: ignore[arg-type]


def test_an_annotated_program_that_cannot_be_partitioned_has_a_note() -> None:
    text = """HloModule m, num_partitions=2

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[8] custom-call(x), custom_call_target="unknown"
}
"""
    report = xb.lint(text)
    assert bool(report)
    assert not report.notes or "was not partitioned" in report.notes[0]
