"""Completion of what strangers have made: no name runs, files are read in bounded time, options do nothing."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class

from tests.fuzzing import shells
from xbuild.cli import candidates, completion, main
from xbuild.cli.candidates import split_line

SHELLS = ("bash", "zsh", "fish")
NAMES = ("zz$(touch PWN)", "zz;touch PWN;'\"", "zz`touch PWN` (a)&{b,c}", "zz\n$(touch PWN)", "zzplain,é=~!$HOME*?")


def completed(line: str, shell: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COMP_LINE", line)
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(main, {}, "xbuild", "_XBUILD_COMPLETE").complete().split("\n")


@pytest.mark.forks
@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_names_in_a_real_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"wants {shell}")
    found, whole = shells.faults(shell, NAMES, tmp_path / shell)
    assert found == []
    assert whole == len(NAMES) - 1  # all but that with a line break


@pytest.mark.forks
@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_name_in_a_real_shell_by_the_command_itself(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"wants {shell}")
    assert shells.faults(shell, NAMES[:1], tmp_path / shell, serves=False) == ([], 1)


@pytest.mark.forks
@pytest.mark.slow
def test_what_runs_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle: with a completion that gives the whole word as it is, the name is run."""
    monkeypatch.setattr(
        completion._Bash, "format_completion", lambda self, item: f"{item.type},;touch PWN;{item.value}"
    )
    found, _ = shells.faults("bash", NAMES[:1], tmp_path / "bash")
    assert "PWN" in found[0] or "ran" in found[0]


LINES = (
    ("xbuild check a", ["xbuild", "check"], "a", "", "$b c", r"\$b\ c"),
    (r"xbuild check a\ \$b", ["xbuild", "check"], "a $b", "", "'", r"\'"),
    ("xbuild check 'a $b", ["xbuild", "check"], "a $b", "'", "c'd", r"c'\''d"),
    ('xbuild check "a \\$b', ["xbuild", "check"], "a $b", '"', '$c"`d\\', r"\$c\"\`d\\"),
    ('xbuild "a\\b" ', ["xbuild", r"a\b"], "", "", "#", r"\#"),
    ("xbuild a\\", ["xbuild"], "a", "", "b", "b"),
    ("xbuild ''", ["xbuild"], "", "", "b", "b"),
    ("", [], "", "", "b", "b"),
)


@pytest.mark.parametrize(("line", "words", "last", "quote", "more", "quoted"), LINES)
def test_lines_are_read_as_a_shell_reads_them(
    line: str, words: list[str], last: str, quote: str, more: str, quoted: str
) -> None:
    typed = split_line(line)
    assert (list(typed.words), typed.last, typed.quote, typed.quoted(more)) == (words, last, quote, quoted)


@pytest.mark.parametrize("shell", SHELLS)
def test_candidates_of_hostile_files(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, within a second, and nothing is raised."""
    monkeypatch.chdir(tmp_path)
    for ending in ("hlo", "py"):
        os.mkfifo(f"pipe.{ending}")
        Path(f"zero.{ending}").symlink_to("/dev/zero")
        Path(f"loop.{ending}").symlink_to(f"loop.{ending}")
        Path(f"folder.{ending}").mkdir()
        Path(f"lines.{ending}").write_text("\n" * 1_000_000)
        Path(f"spaces.{ending}").write_text(" " * 1_000_000)
        Path(f"long.{ending}").write_text("a" * 1_000_000)
        Path(f"null.{ending}").write_text("o = 1\0")
        Path(f"large.{ending}").write_text(f"o = 1\n{' ' * candidates.MOST_BYTES}")
    Path("deep.py").write_text("x = " + "-" * 90_000 + "1\n")
    Path("nested.py").write_text("o = " + "(" * 500 + ")" * 500)
    Path("escape.py").write_text("p = '\\d'\n")
    Path("many").mkdir()
    for number in range(300):
        Path(f"many/{number}.hlo").write_text(f"  o.{number} = f32[] x()\n")
    Path("half.hlo").write_bytes(b"  o\xff = f32[] x()\n  \xc3o = f32[] x()\n")
    begin = time.process_time()
    for each in sorted(Path().iterdir()):
        if each.name not in ("many", "null.hlo"):
            assert completed(f"xbuild explain {each} --of o", shell, monkeypatch) == [""]
            if each.suffix == ".py":
                assert completed(f"xbuild check {each}:o", shell, monkeypatch) == [""]
    assert time.process_time() < begin + 10
    assert (
        1
        <= sum("o." in each or "." in each for each in completed("xbuild explain many --of o", shell, monkeypatch))
        <= 64
    )


def test_options_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    called = []
    for command in main.commands.values():
        for each in command.params:
            if each.callback is not None:
                monkeypatch.setattr(each, "callback", lambda *given: called.append(given))
                words = (
                    [each.opts[-1], "pipe"] if isinstance(each, click.Option) and not each.is_flag else [each.opts[-1]]
                )
                completed(" ".join(["xbuild", command.name or "", *words, "x", "--m"]), "bash", monkeypatch)
    assert called == []


def test_a_value_of_an_option_completes_as_a_whole_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("xbuild show x --style=f", "bash", monkeypatch) == ["plain,ull"]
    assert completed("xbuild show x --style=f", "fish", monkeypatch) == ["plain,--style=full"]
    assert completed("xbuild show x --style=f", "zsh", monkeypatch) == ["plain", "--style=full", "_"]


def test_the_limit_of_a_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> list[object]:
        time.sleep(60)
        return []

    monkeypatch.setattr(completion, "SECONDS", 0.2)
    monkeypatch.setattr(main.commands["check"].params[0], "_custom_shell_complete", slow)
    assert completed("xbuild check a", "bash", monkeypatch) == [""]
