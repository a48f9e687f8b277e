"""Traces of strangers: each is read, or refused in a sentence; nothing else is raised, hangs, or takes the memory."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter.tracing import run_traced
from tests.fuzzing.trace_edits import CHANGES, Tamperer
from tests.fuzzing.trace_seeds import Files, seeds, written
from tests.fuzzing.traces import main, tampered, verdict, wrong
from tests.ops.test_cases import CASES
from xbuild.traces import Trace, TraceError, forms
from xbuild.traces.questions import compare_traces

DELETED = object()


def test_tampered_traces_are_read_or_refused() -> None:
    counts, wrong = tampered(range(200))
    assert wrong == {}
    assert counts["refused"] > 100
    assert counts["read"] > 10, "what is always refused says little"


@pytest.mark.parametrize("name", seeds())
def test_seeds_are_read(name: str, tmp_path: Path) -> None:
    assert verdict(written(seeds()[name], tmp_path / "t")) == "read"


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_each_change_changes_traces(change: Callable[[Tamperer, Files], None]) -> None:
    whole = seeds()["loop"]
    changed = 0
    for seed in range(20):
        files = dict(whole)
        change(Tamperer(seed), files)
        changed += files != whole
    assert changed > 5


def test_what_is_neither_read_nor_refused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Any) -> Trace:
        raise KeyError(folder)

    monkeypatch.setattr(Trace, "load", broken)
    counts, wrong = tampered(range(2))
    assert counts == {"wrong": 2}
    assert "KeyError" in wrong[0]


def test_the_search_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "0.2", "--seed", "7"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["wrong", "0"]


def index_with(path: list[Any], value: Any) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        index = json.loads((place / "index.json").read_text())
        holder = index
        for key in path[:-1]:
            holder = holder[key]
        if value is DELETED:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
        (place / "index.json").write_text(json.dumps(index))

    return change


def column_with(name: str, key: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        with np.load(place / name) as archive:
            columns = {each: archive[each] for each in archive.files}
        file = io.BytesIO()
        np.savez(file, **(columns | {key: change(columns[key])}))  # type: ignore[arg-type]
        (place / name).write_bytes(file.getvalue())

    return changed


def _kinds(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return column_with("chunk-00000.npz", "kinds", lambda told: np.array(json.dumps(change(json.loads(str(told))))))


def _set(place: Any, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        found = array.copy()
        found[place] = value
        return found

    return change


CHUNK, TIME = "chunk-00000.npz", "time.npz"
REFUSED = {
    "no format": (index_with(["format"], DELETED), "index.json has an unknown format"),
    "a format of long ago": (index_with(["format"], "xbuild trace 1"), "index.json has an unknown format"),
    "many chunks": (index_with(["chunks"], 10**8), "chunk-00001.npz is missing, although index.json lists it"),
    "a negative count": (index_with(["programs"], -1), "index.programs is -1; expected a number of 1..999999999"),
    "a truth value": (index_with(["events"], True), "index.events is True; expected a number of at least 0"),
    "other events": (index_with(["events"], 7), "index.events is 7, but the chunks have"),
    "a negative row": (index_with(["spots", 0, "at"], [-1, -1, -1]), "index.spots[0].at[0] is -1"),
    "a row that is not": (index_with(["spots", 0, "at"], [0, 0, 999]), "index.spots[0].at[2] is 999"),
    "a way to nowhere": (index_with(["spots", 0, "path"], ["while.9"]), "is 'while.9'; expected a path to parameter.1"),
    "a branch that is not": (index_with(["spots", 0, "path"], ["while.4 branch 7"]), "expected a path to parameter.1"),
    "a source of numbers": (index_with(["spots", 0, "source"], [1, "x", None, ""]), "index.spots[0].source[0] is 1"),
    "a surrogate": (index_with(["left_out"], "\ud800"), "without lone surrogates"),
    "a verdict of nothing": (index_with(["verdict"], {}), "index.verdict has no 'findings'"),
    "a stop of nothing": (index_with(["stop"], {"text": 5}), "index.stop has no 'cause'"),
    "what is not known": (index_with(["more"], 5), "index has the unknown key 'more'"),
    "an event of a finding": (
        index_with(["findings"], [{"kind": "x", "what": "x", "text": "x", "event": 10**9, "index": None, "values": {},
                                   "further": 0, "device": 0}]), "index.findings[0].event is 1000000000"),
    "a device": (column_with(CHUNK, "device", _set(0, 9)), "device[0] is 9; expected 0..1"),
    "a spot": (column_with(CHUNK, "spot", _set(2, -1)), "spot[2] is -1"),
    "fewer spots": (column_with(CHUNK, "spot", lambda a: a[:-1]), "have different numbers of entries"),
    "an event": (column_with(CHUNK, "refs", _set((0, 0), 999)), "events of refs[0] is 999"),
    "a value": (column_with(CHUNK, "refs", _set((0, 1), 999)), "values of refs[0] is 999"),
    "an order": (column_with(CHUNK, "refs", lambda a: a[::-1].copy()), "refs must list each event once, in order"),
    "objects": (column_with(CHUNK, "device", lambda a: a.astype(object)), "device"),
    "a wider type": (column_with(CHUNK, "device", lambda a: a.astype(np.int64)), "has type '<i8'; expected int32[*]"),
    "a shape too large": (_kinds(lambda kinds: [{**each, "d": [10**12]} if "d" in each else each for each in kinds]),
                          "the kinds need at least"),
    "an extent below 0": (_kinds(lambda kinds: [{**kinds[0], "d": [-1]}, *kinds[1:]]), "d[0] is -1"),
    "a type that is none": (_kinds(lambda kinds: [{**kinds[0], "t": "f33"}, *kinds[1:]]), "'f33'; expected an element"),
    "a tuple of many": (_kinds(lambda kinds: [*kinds[1:], {"of": 10**9}]), "bytes, but column `letters` has"),
    "a place of bytes": (column_with(CHUNK, "at", _set(1, 1)), "at[1] is 1; expected"),
    "a time before": (column_with(TIME, "time", _set(0, 3)), "does not increase from one event to the next"),
    "a time of no end": (column_with(TIME, "time", lambda a: a + 2**40), "time[0] is"),
    "a count": (column_with(TIME, "count", lambda a: a + 1), "count must be the number of times"),
    "a waiting": (column_with(TIME, "since", lambda a: a - 1), "does not increase from one event to the next"),
    "a meeting": (column_with(TIME, "meetings", _set((0, 2), 0)), "does not return the result of"),
    "a group": (column_with(TIME, "members", _set(0, 1)), "has a participant outside its group, or lists"),
    "who met": (column_with(TIME, "met", _set(0, 10**6)), "met[0] is 1000000"),
    "too few results": (column_with("results.npz", "refs", lambda a: a[:1]), "expected 2 results, one for each device"),
    "a chunk more": (lambda place: (place / "chunk-00001.npz").write_bytes(b""), "index.json lists only 1 chunks"),
    "no results": (lambda place: (place / "results.npz").unlink(), "results.npz is missing"),
    "a pipe": (lambda place: _pipe(place / CHUNK), "chunk-00000.npz is not a regular file"),
    "a pipe for an index": (lambda place: _pipe(place / "index.json"), "index.json is not a regular file"),
    "a link": (lambda place: ((place / "program-0.hlo").unlink(), (place / "program-0.hlo").symlink_to("/etc/passwd")),
               "is a link, and links are not allowed"),
    "a deep index": (lambda place: (place / "index.json").write_text("[" * 10**6), "index.json cannot be read as JSON"),
    "a long number": (
        lambda place: (place / "index.json").write_text('{"a": ' + "9" * 10**5 + "}"),
        "cannot be read as JSON",
    ),
    "NaN": (
        lambda place: (place / "index.json").write_text('{"a": NaN}'),
        "index.json contains NaN, which is not valid JSON",
    ),
    "a key twice": (lambda place: (place / "index.json").write_text('{"a": 1, "a": 2}'), "has a duplicate key"),
    "many parts": (lambda place: (place / "index.json").write_text("[" + "0," * (forms.NODES + 1) + "0]"), "parts"),
    "a program of many": (lambda place: _replace(place, "replica_count=2", "replica_count=999999"),
                          "999,999 devices"),
    "another program": (lambda place: _replace(place, "f32[2]", "f32[3]"), "does not have the shape of"),
    "no text": (lambda place: (place / "program-0.hlo").write_bytes(b"\xff\xfe"), "program-0.hlo"),
}  # fmt: skip


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _replace(place: Path, before: str, after: str) -> None:
    path = place / "program-0.hlo"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.mark.parametrize("name", REFUSED)
def test_each_claim_is_held_against_what_there_is(name: str, tmp_path: Path) -> None:
    change, words = REFUSED[name]
    place = written(seeds()["loop"], tmp_path / "t")
    change(place)  # type: ignore[operator]
    begin = time.perf_counter()
    with pytest.raises(TraceError) as error:
        Trace.load(place)
    assert words in str(error.value)
    assert time.perf_counter() - begin < 10


def test_elements_have_bytes_of_their_type(tmp_path: Path) -> None:
    """A truth value of 7 and a number of four bits that takes eight are none."""
    files = seeds()["kinds"]
    assert np.array([True, False]).tobytes() in files[CHUNK]
    for part in (np.array([True, False]).tobytes(), np.array([-8, 0, 7]).astype(xb.s4.dtype).tobytes()):
        place = written(files, tmp_path / "t")
        column_with(CHUNK, "letters", lambda a, part=part: _with(a.tobytes(), part))(place)
        with pytest.raises(TraceError, match=r"has a byte that is invalid for this type"):
            Trace.load(place)


def _with(letters: bytes, part: bytes) -> Any:
    place = letters.index(part)
    return np.frombuffer(letters[:place] + b"\x57" + letters[place + 1 :], np.uint8)


def test_a_program_that_no_device_runs_is_told(tmp_path: Path) -> None:
    """Of a group whose devices were given one program of two."""
    assert wrong(5000438, tmp_path / "t") == ("refused", "")


def test_values_that_events_share_are_one(tmp_path: Path) -> None:
    place = written(seeds()["loop"], tmp_path / "t")
    found = Trace.load(place)
    numbers = [*found.values]
    assert found.values[numbers[0]] is found.values[numbers[0]]


@pytest.mark.parametrize("start", range(10))
def test_a_trace_of_each_op_is_read_as_it_was_written(start: int, tmp_path: Path) -> None:
    """Of those, too, that text says in several instructions."""
    for case in [each.values[0] for each in CASES[start::150]]:
        program = xb.Module("m", case.computation())  # type: ignore[attr-defined]
        wanted, _ = run_traced(program, [list(case.arguments)], check=False)  # type: ignore[attr-defined]
        found = Trace.load(wanted.save(tmp_path / "t"))
        opcodes = [[spot.instruction.opcode for spot in each.spots] for each in (found, wanted)]
        assert [spot.path for spot in found.spots] == [spot.path for spot in wanted.spots]
        if not any(opcode in ("all_to_all", "clamp") for opcode in opcodes[1]):
            assert opcodes[0] == opcodes[1]
        compared = compare_traces(found, wanted)
        assert compared.difference is None
        assert found.values.keys() == wanted.values.keys()
