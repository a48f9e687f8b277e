"""`trace --differ`, `trace --element`, `check --strict`, `check --repair` without a schedule, help, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import xbuild as xb
from tests.commands.command_line import usage, xbuild
from xbuild.cli import main
from xbuild.cli.candidates import instructions, targets, words

DEPENDS = """
HloModule m, replica_count=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
yes { x = f32[] parameter(0)  ROOT r = f32[] all-reduce(x), to_apply=add }
no { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }
ENTRY e { p = pred[] parameter(0)  x = f32[] parameter(1)
          ROOT c = f32[] conditional(p, x, x), true_computation=yes, false_computation=no }
"""
UNSCHEDULED = ("pipeline", "parameter_server")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four replicas, the third of which has weights of its own."""
    folder = tmp_path_factory.mktemp("kept")

    @xb.computation(xb.f32[2], xb.f32[2])
    def moved(x: xb.Value, w: xb.Value) -> xb.Value:
        return xb.subtract(w, xb.cross_replica_sum(x * w), name="new")

    program = folder / "moved.hlo"
    program.write_text(xb.Module("moved", moved, num_replicas=4).to_hlo())
    arrays = {f"d{n}_arg0": np.array([n, 1], np.float32) for n in range(4)}
    np.savez(folder / "in.npz", **arrays, arg1=np.ones(2, np.float32), d2_arg1=np.zeros(2, np.float32))
    result = xbuild("run", program, "--inputs", folder / "in.npz", "--trace", folder / "run")
    assert result.exit_code == 0, result.output
    assert f"wrote {folder / 'run'}: the trace; " in result.stdout
    return folder / "run"


def test_differ(kept: Path) -> None:
    found = xbuild("trace", kept, "--differ", "--apart", "parameter.1")
    assert found.exit_code == 1
    assert found.stdout.startswith("device 2 differs from the other 3 in parameter.2, step 2")
    assert "  device 2: [0., 0.]" in found.stdout
    assert xbuild("trace", kept, "--differ", "--apart", "parameter.1", "--apart", "parameter.2").exit_code == 0
    assert "has no parameter with this name; it has parameter.1" in usage(
        xbuild("trace", kept, "--differ", "--apart", "y")
    )
    assert usage(xbuild("trace", kept, "--apart", "y")) == "--apart has no effect without --differ"
    assert "omit --of, --devices and OTHER" in usage(xbuild("trace", kept, "--differ", "--of", "new"))


def test_element(kept: Path) -> None:
    lines = xbuild("trace", kept, "--of", "new", "--element", "1", "--depth", "1").stdout.splitlines()
    assert lines[0].startswith("-2.  subtract new[1] on device 0, step ")
    assert [line.split()[0] for line in lines[1:]] == ["1.", "3."]
    across = xbuild("trace", kept, "--of", "all-reduce.7", "--element", "0").stdout
    assert all(f"on device {n}" in across for n in range(4))
    assert "expected an index for each dimension" in usage(xbuild("trace", kept, "--of", "new", "--element", "2"))
    assert "applies only to the values of one instruction" in usage(xbuild("trace", kept, "--element", "0"))


def test_strict_makes_depends_fail(tmp_path: Path) -> None:
    path = tmp_path / "depends.hlo"
    path.write_text(DEPENDS)
    assert xbuild("check", path).exit_code == 0
    strict = xbuild("check", path, "--strict")
    assert strict.exit_code == 1
    assert strict.stdout.startswith("depends: ")
    assert xbuild("check", "examples/ring.py:program", "--strict").exit_code == 0


@pytest.mark.parametrize("name", UNSCHEDULED)
def test_a_program_without_a_schedule_is_mended(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mended"
    refused = xbuild("check", f"examples/deadlocks/{name}.py:program", "--repair", folder)
    assert refused.exit_code == 1
    assert "gives instructions that waited for each other separate tokens" in refused.stderr
    assert xbuild("check", folder).stdout.startswith("ok: the given schedule runs to completion")
    assert xbuild("run", folder, "--random", "0").exit_code == 0


def test_the_order_that_was_found_is_written(tmp_path: Path) -> None:
    path = tmp_path / "ring.hlo"
    assert xbuild("check", "examples/ring.py:program", "--repair", path).exit_code == 0
    assert "is_scheduled=true" in path.read_text()
    assert xbuild("check", path).stdout.startswith("ok: the given schedule runs to completion")


def test_explain_an_instruction() -> None:
    text = xbuild("explain", "examples/ring.py:program", "--of", "dynamic-slice.12").stdout
    assert "shape       dimension 0: 4, stated by dynamic_slice_sizes, of 16 in" in text
    assert "made by     examples/ring.py:" in text
    assert "has no instruction %nothing" in usage(xbuild("explain", "examples/ring.py:program", "--of", "nothing"))
    assert "to explain an instruction of a program, add --of NAME" in usage(
        xbuild("explain", "examples/ring.py:program")
    )
    assert usage(xbuild("explain", "dot", "--json")).startswith("--json applies only to an instruction of a program")


@pytest.mark.parametrize("name", main.commands)
def test_help_has_whole_sentences(name: str) -> None:
    command = main.commands[name]
    assert command.help is not None
    for option in command.params:
        if isinstance(option, click.Option):
            text = (option.help or "").partition("  [")[0]
            assert text[:1].isupper(), option.name
            assert text.endswith("."), option.name
    text = xbuild(name, "--help", terminal_width=80).stdout
    assert "..." not in text.partition("\n")[2]  # the first line may have an argument such as DUMPS...
    assert max(map(len, text.splitlines())) <= 80


def test_the_list_of_commands_has_whole_sentences() -> None:
    listed = xbuild("--help", terminal_width=80).stdout.partition("Commands:")[2]
    assert "..." not in listed
    assert listed.count(".\n") == len(main.commands)


def values(candidates: list[click.shell_completion.CompletionItem]) -> list[str]:
    return [each.value for each in candidates]


def test_candidates(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, parameter = click.Context(main), click.Argument(["x"])
    assert values(targets(context, parameter, "examples/ring.py:pro")) == ["examples/ring.py:program"]
    assert targets(context, parameter, "exa")[0].type == "file"
    assert {"all-reduce", "all-reduce-start"} <= {*values(words(context, parameter, "all-re"))}
    monkeypatch.setenv("COMP_LINE", f"xbuild trace {kept} --of ")
    assert {"new", "parameter.1"} <= {*values(instructions(context, parameter, ""))}


def test_completion_in_bash() -> None:
    """The function gives what was typed since bash's last word began, and the rest of the candidate."""
    script = xbuild("completion", "bash").stdout
    assert "complete -o nosort -F _xbuild_completion xbuild" in script
    for shell in ("zsh", "fish"):
        assert "_XBUILD_COMPLETE" in xbuild("completion", shell).stdout
    folder = str(Path(sys.executable).parent)
    typed = "xbuild show examples/ring.py:pr"
    tried = f"{script}\nCOMP_LINE='{typed}' COMP_POINT={len(typed)}\n_xbuild_completion xbuild pr\n"
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f'{tried}echo "${{COMPREPLY[@]}}"'], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "program\n", done.stderr
