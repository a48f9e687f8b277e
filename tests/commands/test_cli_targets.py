"""Targets of commands: a file and a name in it, or a sentence that says what is wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.commands.command_line import usage, xbuild
from xbuild.files import arrays


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "programs.py:totl",
            "programs.py has no 'totl'; did you mean 'total'?",
        ),
        ("programs.py:zzz", "programs.py has no 'zzz'; it has total, "),
        (
            "programs.py:wants",
            "wants takes x; expected a function without arguments, such as one that returns jax.jit(wants).l",
        ),
        ("programs.py:number", "programs.py:number is 3, of type int; expected a Computation, Module or ModuleGroup"),
        ("program.py:total", "there is no file 'program.py'; did you mean 'programs.py'?"),
        ("programs.py", "'programs.py' is a Python file; expected programs.py:NAME; it has total, summed, "),
        ("total", "'total' is not a target: expected FILE.hlo, FILE.mlir, FILE.txt, FILE.pb, FILE.py:NAME, a folder, "),
        ("", "'' is not a target: "),
        ("absent.hlo", "there is no file 'absent.hlo'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_target_that_names_no_program(target: str, message: str) -> None:
    assert usage(xbuild("show", target)).startswith(message)


@pytest.mark.usefixtures("folder")
def test_an_error_in_the_file_is_shown_in_its_own_lines() -> None:
    result = xbuild("show", "programs.py:fails")
    assert result.exit_code == 1
    assert "return inner / 0" in result.stderr
    assert result.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "targets.py" not in result.stderr


@pytest.mark.usefixtures("folder")
def test_a_refused_op_is_shown_with_its_report() -> None:
    result = xbuild("show", "programs.py:refused")
    assert result.exit_code == 1
    assert "extents 2 and 3 of dimension 0 differ" in result.stderr
    assert "in _infer" not in result.stderr
    assert "return builder.build(xb.ops.add(x, y))" in result.stderr


def test_an_error_while_the_file_is_read(folder: Path) -> None:
    (folder / "broken.py").write_text("import xbuild\nx = 1 +\n")
    result = xbuild("show", "broken.py:x")
    assert result.exit_code == 1
    assert "broken.py" in result.stderr
    assert "SyntaxError" in result.stderr


def test_the_folder_of_the_file_can_be_imported_from(folder: Path) -> None:
    (folder / "using.py").write_text("from programs import total as mine\n")
    assert xbuild("show", "using.py:mine").exit_code == 0


def test_a_compressed_text_is_a_target(folder: Path) -> None:
    (folder / "total.hlo.gz").write_bytes(gzip.compress(xbuild("show", "programs.py:total").stdout.encode()))
    assert "ROOT" in xbuild("show", "total.hlo.gz").stdout


def test_a_file_that_is_no_gzip_is_told(folder: Path) -> None:
    whole = gzip.compress(b"HloModule m" + b" " * 1000)
    for name, content in {"text.hlo.gz": b"HloModule m", "cut.hlo.gz": whole[:-9]}.items():
        (folder / name).write_bytes(content)
        assert f"'{name}' cannot be read as gzip: " in usage(xbuild("show", name))


def test_a_compressed_text_that_grows_beyond_the_limit_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "MOST_UNPACKED", 100)
    (folder / "large.hlo.gz").write_bytes(gzip.compress(b" " * 1000))
    assert "unpacks to more than 100 bytes" in usage(xbuild("show", "large.hlo.gz"))
