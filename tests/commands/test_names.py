"""Hostile names in programs, data and files: in each medium they appear as text, and have no other effect."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from interpreter import Refused, Stopped, StrictFailure, trace
from shape_inference import XbuildError
from shape_inference.escaping import Harmless, filled, hlo_string, hlo_text, in_json, in_line, printable
from tests.fuzzing.names import HOSTILE, PLACES, faults_of_text, in_hlo, shown, text_of
from xbuild.cli import main
from xbuild.files.arrays import ArchiveError
from xbuild.files.targets import TargetError, UserError
from xbuild.pages import framed, page_text
from xbuild.pictures import ViewError
from xbuild.pictures.graphviz import DrawingError
from xbuild.stepping.conditions import ConditionError
from xbuild.traces import TraceError

from ..fuzzing import names

ROOT = Path(__file__).parents[2]
EACH_IN_EACH_PLACE = [
    [HOSTILE[(n + place) % len(HOSTILE)] for place in range(len(PLACES))] for n in range(len(HOSTILE))
]


def harmless(text: str) -> bool:
    """Whether a terminal that shows it does nothing else."""
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_each_medium_takes_each_name_in_each_place() -> None:
    assert [*faults_of_text(EACH_IN_EACH_PLACE)] == []


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_string_of_hlo_reads_back(name: str) -> None:
    text = hlo_string(name)
    assert text.isprintable()
    assert hlo_text(text[1:-1]) == name == hlo_text(in_hlo(name))


def test_a_string_of_hlo_keeps_bytes_that_are_no_text() -> None:
    assert hlo_text(r"\377a\303") == "\udcffa\udcc3"
    assert hlo_string("\udcffa\udcc3") == r'"\377a\303"'


@pytest.mark.oracle
def test_real_xla_reads_the_same_strings() -> None:
    """In a process of its own; half a surrogate pair is none of UTF-8."""
    texts = [name for name in HOSTILE if name and not any(0xD800 <= ord(each) <= 0xDFFF for each in name)]
    program = (
        "import json, sys\nfrom jaxlib import _hlo\nfor text in json.load(sys.stdin):\n"
        "    module = _hlo.hlo_module_from_text(text)\n"
        "    print(json.dumps(module.as_serialized_hlo_module_proto().hex()))\n"
    )
    heads = [
        f"HloModule m\nENTRY e {{ ROOT y = f32[] custom-call(), custom_call_target={hlo_string(t)} }}" for t in texts
    ]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(heads),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    protos = [bytes.fromhex(json.loads(line)) for line in done.stdout.splitlines()]
    assert [text for text, proto in zip(texts, protos, strict=True) if text.encode() not in proto] == []


COMMANDS = (
    "show", "show --style percent", "show --style full", "show --only collectives", "show --plan", "check",
    "check --json", "check --format sarif", "cost --format json",
    "viz", "viz --data {data} --data-name {name}", "run --random 1", "run --random 1 --strict", "run --inputs {npz}",
    "run --random 1 --infeed {npz}", "run --random 1 --trace {folder}", "diff {other}", "viz --around {name}",
    "viz --fold {name}", "extract --around {name}", "run --random 1 --platform {name} --engine xla",
)  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """Files with hostile names in each place, whose own names are hostile, too."""
    odd = tmp_path / "\x1b[31m\u202e\u200b"
    odd.mkdir()
    target, other, data, npz = (odd / f"a\x1b[2J.{ending}" for ending in ("hlo", "b.hlo", "json", "npz"))
    other.write_text(text_of(EACH_IN_EACH_PLACE, True), encoding="ascii")
    target.write_text(text_of(EACH_IN_EACH_PLACE, False), encoding="ascii")
    data.write_text(json.dumps({f"n{n}": name for n, name in enumerate(HOSTILE, 1)}))
    np.savez(npz, **{name: np.zeros(1) for name in ("\x1b]0;title\x07", "\u202earg", "infeed\x1b[2J")})
    name = "\x1b[2J\u202e\x9b31m"
    return {"target": str(target), "other": str(other), "data": str(data), "npz": str(npz), "name": name,
            "folder": str(odd / "trace")}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_tell_names_and_obey_none(command: str, hostile: dict[str, str]) -> None:
    word, *rest = (each.format(**hostile) if "{" in each else each for each in command.split(" "))
    done = CliRunner().invoke(main, [word, hostile["target"], *rest])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.output
    assert harmless(done.output)


def test_a_trace_of_hostile_names_is_asked_and_stepped_through(hostile: dict[str, str]) -> None:
    runner = CliRunner()
    assert runner.invoke(main, ["run", hostile["target"], "--random", "1", "--trace", hostile["folder"]]).exit_code == 0
    asked = ["trace", hostile["folder"]]
    for words in (asked, [*asked, "--of", "n3"], [*asked, "--of", hostile["name"]], ["explain", hostile["name"]]):
        done = runner.invoke(main, words)
        assert done.output
        assert harmless(done.output)
    script = f"where\nprogram\nlist\ndevices\nprint n1\nto n5\nto {hostile['name']}\nuntil \x1b[2J\nview full\nnext\n"
    done = runner.invoke(main, ["step", hostile["folder"]], input=script)
    assert "n5" in done.output
    assert harmless(done.output)


def test_what_is_printed_reads_back_as_the_same_program(hostile: dict[str, str]) -> None:
    for style in ("short", "percent", "full"):
        done = CliRunner().invoke(main, ["show", "--style", style, hostile["other"]])
        again = xb.parse_hlo(done.output)
        assert again.to_hlo(style=style) == done.output
        assert [i.attributes.custom_call_target for i in again.entry.instructions[1:]] == [
            row[PLACES.index("target")] for row in EACH_IN_EACH_PLACE
        ]


def test_words_that_are_kept_as_they_are_read_hide_nothing() -> None:
    text = (
        'HloModule m, frontend_attributes={a="x\x1b[2J\u202e"}\n\nENTRY e {\n  x = f32[2] parameter(0), '
        'sharding={replicated metadata={op_name="\x9b\u2066"}}\n  ROOT y = f32[2] negate(x), '
        'frontend_attributes={b={c="\x07"}}, backend_config={"json": "\u202e"}\n}\n'
    )
    module = xb.parse_hlo(text)
    printed = module.to_hlo(style="percent")
    assert harmless(printed)
    again = xb.parse_hlo(printed)
    assert again.annotations == module.annotations
    assert [i.annotations for i in again.entry.instructions] == [i.annotations for i in module.entry.instructions]
    assert again.entry.root.annotations["backend_config"] == '{"json": "\u202e"}'


def test_placeholders_are_filled_in_one_pass() -> None:
    assert filled("<!--a-->|<!--b-->", {"a": "<!--b--><!--a-->", "b": "$1\\1"}) == "<!--b--><!--a-->|$1\\1"


def test_a_page_grows_with_the_names_and_no_faster() -> None:
    """Of which each stands in a page a few times."""
    sizes = []
    for name in ("<!--script-->", "<!--data-->", "<!--graph-->", "plain words..."):
        rows = [[name * 20] * len(PLACES) for _ in range(30)]
        found = trace(xb.parse_hlo(text_of(rows, False), origins=True), [[np.float32(1)]])
        sizes.append(len(page_text(found)))
        assert page_text(found).count("<script>") == 1
        assert len(framed(found)) < 2 * sizes[-1]
    assert max(sizes) < 1.5 * min(sizes)


def test_json_in_a_script_holds_what_a_person_sees() -> None:
    for name in HOSTILE:
        text = in_json({name: [name, f"\\{name}\\"]})
        assert text.isprintable()
        assert "<" not in text
        ((key, values),) = json.loads(text).items()
        assert key == printable(name) == values[0]
        assert values[1] == printable(f"\\{name}\\")


@pytest.mark.parametrize(
    "error",
    [XbuildError, ArchiveError, ConditionError, DrawingError, Refused, Stopped, StrictFailure, TargetError, TraceError,
     UserError, ViewError, xb.ScheduleError],
)  # fmt: skip
def test_errors_can_be_shown(error: Any) -> None:
    assert issubclass(error, Harmless)


@pytest.mark.parametrize("name", [each for each in HOSTILE if each and not each.isidentifier()], ids=ascii)
def test_a_refusal_of_a_name_can_be_shown(name: str) -> None:
    for wrong in (
        lambda: xb.Builder(name),
        lambda: xb.parse_hlo(f"HloModule {name}"),
        lambda: xb.parse_hlo(f"ENTRY e {{ ROOT x = f32[] {name}() }}"),
        lambda: xb.viz(xb.computation(xb.f32[2])(xb.exp), around=name),
    ):
        with pytest.raises((XbuildError, ViewError)) as caught:
            wrong()
        assert harmless(str(caught.value))


def test_a_name_ends_no_line_of_a_report() -> None:
    text = text_of([["op\nok: no deadlock"] * len(PLACES)], False)
    source = xb.parse_hlo(text, origins=True).entry.root.source
    assert str(source) == "op\\nok: no deadlock:3 in op\\nok: no deadlock"


def test_functions_of_stack_frames_are_text() -> None:
    text = (
        'HloModule m\nFileNames\n1 "a\\033[2J.py"\nFunctionNames\n1 "f\\342\\200\\256</script>"\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=47 end_line=47}\nStackFrames\n"
        "1 {file_location_id=1 parent_frame_id=1}\n\nENTRY e {\n"
        "  ROOT x = f32[] parameter(0), metadata={stack_frame_id=1}\n}\n"
    )
    module = xb.parse_hlo(text, origins=True)
    assert str(module.entry.root.source) == "a\\x1b[2J.py:47 in f\\u202e</script>"
    raw = xb.parse_hlo(text.replace("\\033", "\x1b"), origins=True)
    assert raw.to_hlo(metadata=True) == module.to_hlo(metadata=True)


def test_what_is_shown_is_told_twice() -> None:
    """The fuzzer's own rule, by categories of Unicode, against the one of the writers."""
    every = "".join(map(chr, (*range(0x3000), *range(0x3000, 0x110000, 7))))
    assert in_line(every) == shown(every)


def test_one_module_escapes() -> None:
    """Others take it from there: none has HTML's escapes of its own, and one alone writes to the terminal."""
    found = {
        (path.relative_to(ROOT).as_posix(), call)
        for package in ("shape_inference", "xbuild", "interpreter")
        for path in (ROOT / package).rglob("*.py")
        for call in re.findall(r"\b(?:html\.escape|click\.s?echo|click\.style)\b", path.read_text())
    }
    assert found == {
        ("shape_inference/escaping.py", "html.escape"),
        ("xbuild/cli/outputs.py", "click.echo"),
        ("xbuild/cli/outputs.py", "click.style"),
    }


def test_the_campaign_goes_through_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "ROWS", 3)
    assert names.main(["--seconds", "0.01", "--seed", "7", "--no-browser"]) == 0
    assert "programs" in capsys.readouterr().out
