"""Another project's package `interpreter`: a warning at `import xbuild`, a refusal where a program is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import interpreter
import xbuild as xb
from xbuild.process.package_conflict import PackageConflict, conflict, refuse_conflict

ROOT = Path(__file__).parents[2]
OTHER = "raise SystemExit('the other package was imported')\n"

PROGRAM = """
import sys
import xbuild as xb
double = xb.computation(xb.f32[2])(lambda x: x + x)
print(xb.parse_hlo(str(xb.Module("double", double))).name)
for name in ("evaluate", "Limits", "engines"):
    try:
        getattr(xb, name)
    except ImportError as error:
        print(error.kind, error)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "interpreter").mkdir()
    (folder / "interpreter" / "__init__.py").write_text(OTHER)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole path of imports, where no `interpreter` has been imported."""
    monkeypatch.delitem(sys.modules, "interpreter")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if finder.__class__ is type])
    return tmp_path


def test_our_own_package_is_known() -> None:
    assert conflict() is None
    refuse_conflict()


def test_another_package_is_warned_of_and_never_imported(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    first, *refusals = done.stdout.splitlines()
    assert first == "double"
    assert len(refusals) == 3
    place = str(tmp_path / "interpreter" / "__init__.py")
    sentence = f"the package 'interpreter' at {place} is not xbuild's (open-interpreter installs one of this name)"
    assert all(line.startswith(f"package_conflict {sentence}, so programs can be") for line in refusals)
    assert f"<string>:3: RuntimeWarning: {sentence}" in done.stderr


def test_a_command_that_runs_a_program_ends_with_the_sentence(tmp_path: Path) -> None:
    (tmp_path / "double.hlo").write_text(str(xb.Module("double", xb.computation(xb.f32[2])(lambda x: x + x))))
    done = run(tmp_path, "-W", "ignore", "-m", "xbuild", "run", "double.hlo", "--random", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("the package 'interpreter' at ")
    assert "Traceback" not in done.stderr


def test_a_package_that_an_uninstall_has_emptied_is_missing(elsewhere: Path) -> None:
    assert "'interpreter' is missing" in str(conflict())
    (elsewhere / "interpreter" / "runtime").mkdir(parents=True)  # a folder without __init__.py: a namespace package
    with pytest.raises(PackageConflict, match="'interpreter' is missing") as raised:
        refuse_conflict()
    assert raised.value.kind == "package_conflict"


def test_a_single_file_is_another_package(elsewhere: Path) -> None:
    (elsewhere / "interpreter.py").write_text(OTHER)
    assert str(elsewhere / "interpreter.py") in str(conflict())


def test_our_own_package_is_known_in_a_zip_file(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(elsewhere / "all.zip", "w") as packed:
        packed.write(interpreter.__file__, "interpreter/__init__.py")
    monkeypatch.setattr(sys, "path", [str(elsewhere / "all.zip")])
    assert conflict() is None


def test_a_module_without_a_spec_is_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("interpreter")
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "interpreter", module)
    assert "an unknown place" in str(conflict())
