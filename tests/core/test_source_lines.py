"""Source lines of instructions: from running code, and kept with traces; no file that input names is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import xbuild as xb
from interpreter import trace
from xbuild.cli import main
from xbuild.core.graph import KeptSource, MetadataSource, RecordedSource, Source, TextSource
from xbuild.core.source_lines import line_of
from xbuild.pages import page_text
from xbuild.traces import Trace

ROOT = Path(__file__).parents[2]
TEXT = """HloModule m

ENTRY e {{
  x = f32[2] parameter(0), metadata={{op_name="a" source_file="{file}" source_line=1}}
  ROOT y = f32[2] negate(x), metadata={{op_name="b" source_file="{file}" source_line=2}}
}}
"""
FRAMES = """HloModule m

FileNames
1 "{file}"

FunctionNames
1 "f"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}


ENTRY e {{
  x = f32[2] parameter(0), metadata={{op_name="a" stack_frame_id=1}}
  ROOT y = f32[2] negate(x), metadata={{op_name="b" stack_frame_id=1}}
}}
"""


def call(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret" / "words.txt"
    path.parent.mkdir()
    path.write_text("tell-nobody-1\ntell-nobody-2\n")
    return path


def named(file: Path, place: Path) -> Path:
    """A trace of a stranger, whose spots are said to be lines of a file."""
    program = place.with_suffix(".hlo")
    program.write_text(TEXT.format(file=file))
    assert call("run", program, "--random", 1, "--trace", place).exit_code == 0
    index = json.loads((place / "index.json").read_text())
    for spot in index["spots"]:
        spot["source"] = [str(file), 1, "f", ""]
    (place / "index.json").write_text(json.dumps(index))
    return place


WATCHED = r"""
    import sys
    from click.testing import CliRunner
    from xbuild.cli import main
    import interpreter.tracing, xbuild.pages, xbuild.pictures, xbuild.stepping

    opened = []
    sys.addaudithook(lambda event, given: event == "open" and opened.append(str(given[0])))
    import xbuild
    from xbuild.pages import page_text
    from interpreter import trace
    place, text, secret = sys.argv[1:]
    commands = [["trace", place], ["trace", place, "--page", place + ".html"], ["trace", place, "--json"],
        ["trace", place, "--of", "y"], ["step", place], ["trace", place, place], ["show", text], ["check", text],
        ["show", text, "--style", "full"], ["viz", text], ["viz", text, "-o", place + ".svg"],
        ["check", text, "--page", place + ".html"], ["run", text, "--random", "1", "--page", place + ".html"]]
    told = []
    for words in commands:
        done = CliRunner().invoke(main, words, input="where\nprogram\nlist\nprint\n")
        assert done.exit_code == 0, (words, done.output, done.exception)
        told.append(done.output)
    for frames in open(text).read(), open(text + ".frames").read():
        module = xbuild.parse_hlo(frames, origins=True)
        assert all(type(i.source).__name__ == "MetadataSource" for i in module.entry.instructions)
        told += [str(xbuild.check(module)), page_text(trace(module, [[[1.0, 2.0]]])), module._repr_html_() or ""]
        assert "words.txt" in told[-2]
    told.append(open(place + ".html").read())
    assert not any("tell-nobody" in each for each in told)
    assert not [each for each in opened if "words.txt" in each], "no file that input names is opened"
"""


def test_no_file_that_input_names_is_opened(secret: Path, tmp_path: Path) -> None:
    place, text = named(secret, tmp_path / "kept"), tmp_path / "m.hlo"
    text.write_text(TEXT.format(file=secret))
    (tmp_path / "m.hlo.frames").write_text(FRAMES.format(file=secret))
    done = subprocess.run(
        [sys.executable, "-c", dedent(WATCHED), str(place), str(text), str(secret)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_line_is_kept_with_the_trace_of_ones_own_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import xbuild as xb\n\n@xb.computation(xb.f32[2])\ndef program(x):\n    return -x  # my line\n")
    assert call("run", f"{path}:program", "--random", 1, "--trace", tmp_path / "kept").exit_code == 0
    path.unlink()
    import linecache

    linecache.clearcache()
    assert call("trace", tmp_path / "kept", "--page", tmp_path / "page.html").exit_code == 0
    assert "return -x  # my line" in (tmp_path / "page.html").read_text()


def test_a_root_lets_files_be_read_that_are_under_it(secret: Path, tmp_path: Path) -> None:
    place, page = named(secret, tmp_path / "kept"), tmp_path / "page.html"
    for root, is_told in ((secret.parent, True), (tmp_path, True), (place, False), (ROOT, False)):
        assert call("trace", place, "--page", page, "--source-root", root).exit_code == 0
        assert ("tell-nobody-1" in page.read_text()) is is_told
        assert "tell-nobody-2" not in page.read_text()
    wrong = call("trace", place, "--source-root", tmp_path)
    assert (wrong.exit_code, "--source-root has no effect without --page" in wrong.output) == (2, True)


def test_a_root_is_not_left(secret: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.py").symlink_to(secret)
    (root / "away").symlink_to(secret.parent)
    (root / "mine.py").write_text("mine\r\n")
    os.mkfifo(root / "pipe.py")
    (root / "vast.py").write_bytes(b"")
    os.truncate(root / "vast.py", 1 << 33)
    files = {
        "mine.py": "mine", str(root / "mine.py"): "mine", "./x/../mine.py": "", "link.py": "", "away/words.txt": "",
        "../secret/words.txt": "", str(secret): "", "pipe.py": "", "vast.py": "", ".": "", "": "", "a\0b": "",
        "x" * 9999: "", "none.py": "",
    }  # fmt: skip
    [_, instruction] = xb.parse_hlo(TEXT.format(file="a")).entry.instructions
    for kind in (Source, MetadataSource, KeptSource):
        for file, line in files.items():
            object.__setattr__(instruction, "where", kind(file, 1, "f"))
            assert line_of(instruction) == ""
            assert line_of(instruction, root) == line
    for number in (0, -1, 2, 10**30):
        object.__setattr__(instruction, "where", MetadataSource("mine.py", number, "f"))
        assert line_of(instruction, root) == ""


def test_each_kind_of_source_is_told_its_way(tmp_path: Path) -> None:
    recorded = xb.computation(xb.f32[2])(lambda x: -x).root  # this line
    assert type(recorded.source) is RecordedSource
    assert line_of(recorded).endswith("# this line")
    read = xb.parse_hlo(TEXT.format(file="a")).entry.root
    assert type(read.source) is TextSource
    assert line_of(read).startswith("y = f32[2] negate(x)")
    program = xb.Module("m", xb.computation(xb.f32[2])(lambda x: -x))  # and this
    place = trace(program, [[np.ones(2, np.float32)]]).save(tmp_path / "kept")
    [_, spot] = Trace.load(place).spots
    assert type(spot.instruction.source) is KeptSource
    assert line_of(spot.instruction).endswith("# and this")
    assert "# and this" in page_text(Trace.load(place))


def test_one_module_opens_source_files() -> None:
    opening = ("linecache", "getsource", "tokenize.open")
    modules = [
        path for package in ("xbuild", "interpreter", "shape_inference") for path in (ROOT / package).rglob("*.py")
    ]
    found = {path.name for path in modules if any(f"{word}" in path.read_text() for word in opening)}
    assert found == {"source_lines.py"}
