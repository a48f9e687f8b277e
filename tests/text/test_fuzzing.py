"""Any bytes give a module that is printed, read again and checked, or a refusal with a position, in little time."""

from __future__ import annotations

import re
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.fuzzing.__main__ import archived, commanded, main, mutated
from tests.fuzzing.archives import Archives
from tests.fuzzing.commands import Commands, place
from tests.fuzzing.edits import Slip
from tests.fuzzing.mutations import MUTATIONS, Mutator, corpus, rejects
from tests.fuzzing.seeds import SEEDS
from tests.fuzzing.vast import vast
from tests.fuzzing.verdict import Hang, bounded, verdict

from ..fuzzing import commands, disagreements

VAST = vast(100_000)


def test_mutated_texts_are_read_or_refused() -> None:
    counts, wrong = mutated(range(500))
    assert wrong == {}
    assert counts["read"] > 50, "what is always refused at once says little"
    assert len(counts) > 15, "kinds of refusal"


@settings(max_examples=500)
@given(st.one_of(st.text(max_size=80), st.binary(max_size=80)))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    assert verdict(text)


@pytest.mark.parametrize("name", VAST)
def test_no_text_takes_long(name: str) -> None:
    begin = time.perf_counter()
    assert verdict(VAST[name])
    assert time.perf_counter() - begin < 60, "no text may hold a reader for long, on the slowest machine"


def test_a_seed_makes_one_text() -> None:
    texts = corpus(1000)
    first, second = ([Mutator(seed, texts).text() for seed in range(50)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 45


@pytest.mark.parametrize("mutation", dict.fromkeys(MUTATIONS), ids=lambda mutation: mutation.__name__)
def test_each_mutation_changes_texts(mutation: object) -> None:
    assert callable(mutation)
    texts = corpus(1000)
    assert any(mutation(Mutator(seed, texts), texts[0]) != texts[0] for seed in range(20))


def test_a_slip_tells_what_it_changed() -> None:
    text = corpus(600)[-1]
    slips = [slip for seed in range(200) if (slip := Slip(seed, text)).what]
    assert len({slip.what for slip in slips}) > 8
    for slip in slips:
        before, after = slip.lines
        assert text.replace(before, after, 1) == slip.text or before in text


def test_what_is_neither_read_nor_refused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, file: str | None = None, *, origins: bool = False) -> xb.Module:
        raise KeyError(text)

    monkeypatch.setattr(xb, "parse_hlo", broken)
    counts, wrong = mutated(range(2))
    assert counts == {"wrong": 2}
    assert "KeyError" in wrong[0]


@pytest.mark.slow
def test_the_search_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.__main__.guided", lambda seconds, seed: [])
    assert main(["--inputs", "20", "--vast", "2000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split() == ["wrong", "0"]
    assert [line.split()[0] for line in lines if "in all" in line] == [
        "text", "mlir", "bytecode", "npz", "commands", "growth",
    ]  # fmt: skip
    assert all(int(line.split()[3].strip(",")) == 20 for line in lines if "in all" in line)


def test_mutated_archives_are_read_or_refused() -> None:
    counts, wrong = archived(range(400))
    assert wrong == {}
    assert counts["refused, refused"] > 50
    assert counts["read, refused"] + counts["refused, read"] > 20, "what is always refused at once says little"


def test_command_lines_end_with_their_codes() -> None:
    counts, wrong = commanded(range(60))
    assert wrong == {}
    assert len(counts) > 10, "commands and exit codes"


def test_a_seed_makes_one_archive_and_one_command_line() -> None:
    assert [Archives(seed).file() for seed in range(20)] == [Archives(seed).file() for seed in range(20)]
    assert [Commands(seed).line() for seed in range(20)] == [Commands(seed).line() for seed in range(20)]


def test_a_fault_of_the_reader_of_arrays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise zipfile.BadZipFile

    monkeypatch.setattr("xbuild.files.arrays._zip", broken)
    counts, wrong = archived(range(3))
    assert counts == {"wrong": 3}
    assert "BadZipFile" in wrong[0]


def test_faults_of_commands_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign exception, a file that is lost, and a command that waits for ever."""

    def none(path: Path, *_: object) -> None:
        raise KeyError(path)

    def lost(path: Path, *_: object) -> xb.Module:
        module = xb.parse_hlo(path.read_text())
        path.write_text("lost")
        return module

    def waiting(path: Path, *_: object) -> None:
        time.sleep(60)

    with place() as where:
        for error, fault in {KeyError: none, AssertionError: lost, Hang: waiting}.items():
            monkeypatch.setattr("xbuild.files.targets._read_program", fault)
            with pytest.raises(error):
                commands.verdict((["show", "p.hlo"], ""), where, seconds=0.5)
        monkeypatch.undo()
        assert commands.verdict((["show", "p.hlo"], ""), where) == "show 0"


@pytest.mark.parametrize("text", SEEDS)
def test_seeds_are_read(text: str) -> None:
    assert verdict(text) == "read"


@pytest.mark.parametrize("text", rejects())
def test_odd_texts_are_read_or_refused_well(text: str) -> None:
    assert verdict(text)


@pytest.mark.slow
@pytest.mark.oracle
def test_slips_are_judged_by_real_xla_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    assert disagreements.main(["--edits", "20", "--largest", "300", "--out", str(tmp_path / "found")]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[1-9]\d* of \d+ programs compile", first)
    counts = {row.rsplit(maxsplit=1)[0]: int(row.rsplit(maxsplit=1)[1]) for row in rows}
    assert counts["XLA refuses, refused here"] > 0


def test_a_hang_that_python_drops_is_raised_again() -> None:
    """Whatever a finalizer raises is dropped; pytest fails a test that drops an exception."""

    class Slow:
        def __del__(self) -> None:
            while True:
                pass

    def wait(times: int) -> None:
        Slow()
        while times:
            pass

    for times in (0, 1):
        with pytest.raises(Hang), bounded(0.05):
            wait(times)
