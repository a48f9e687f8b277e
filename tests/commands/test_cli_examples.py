"""`xbuild examples` and `xbuild demo`: what ships, copied and run from where it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from xbuild.cli import main
from xbuild.files import shipped

ROOT = Path(__file__).parents[2]


def test_each_example_is_listed_with_a_sentence_and_its_extras() -> None:
    found = {each.name: each for each in shipped.examples()}
    assert {"ring", "digits", "deadlocks.ring", "shard_map", "two_processes"} <= found.keys()
    assert not {"extras", "gallery"} & found.keys()
    assert all(each.sentence.endswith((".", "`.")) or ":" in each.sentence for each in found.values())
    assert {name: each.extras for name, each in found.items() if each.extras} == {
        "digits": ("demo",), "miscompiled": ("xla",), "notebook": ("test",), "shard_map": ("xla",),
        "tpu_digits": ("demo",), "two_processes": ("xla",),
    }  # fmt: skip
    listed = CliRunner().invoke(main, ["examples"])
    assert listed.exit_code == 0
    assert "ring                        All-reduce as a ring of send and recv" in listed.output
    assert "(needs 'xbuild-hlo[xla]')" in listed.output


def test_copies_run_and_are_targets(tmp_path: Path) -> None:
    made = CliRunner().invoke(main, ["examples", "--copy", str(tmp_path / "here")])
    folder = tmp_path / "here" / "examples"
    assert (made.exit_code, made.output) == (
        0,
        f"wrote {folder}: {sum(p.is_file() for p in folder.rglob('*'))} files\n",
    )
    assert not (folder / "gallery").exists()
    assert not [*folder.rglob("__pycache__")]
    assert [path.name for path in folder.parent.iterdir()] == ["examples"]
    command = [sys.executable, "-m", "xbuild", "check", "examples/ring.py:program"]
    done = subprocess.run(command, cwd=folder.parent, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stdout.startswith("ok: ")
    again = CliRunner().invoke(main, ["examples", "--copy", str(folder.parent)])
    assert again.exit_code == 2
    assert "a file or folder with this name already exists" in again.output


def test_an_example_that_imports_others_is_a_target_anywhere(tmp_path: Path) -> None:
    shipped.copy(tmp_path)
    (tmp_path / "examples" / "own.py").write_text("from examples.ring import program as whole\nprogram = whole\n")
    command = [sys.executable, "-P", "-m", "xbuild", "check", str(tmp_path / "examples" / "own.py:program")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert done.stdout.startswith("ok: "), done.stderr


def test_the_demo_takes_its_options(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("rich")
    command = [sys.executable, "-m", "xbuild", "demo", "--epochs", "1", "--replicas", "2", "--picture", "step.svg"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (tmp_path / "step.svg").read_text().startswith("<svg")
    assert "epoch   1" in done.stdout
    assert "2 replicas" in done.stdout
    assert done.returncode == 1, "it has learned too little after one epoch"


def test_a_demo_without_its_extra_says_so() -> None:
    code = "import sys; sys.modules['rich'] = None; from xbuild.cli import main; main(['demo'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "this example needs rich, which is not installed: pip install 'xbuild-hlo[demo]'\n"
