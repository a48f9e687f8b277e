"""Pages whose Python and commands are run, and whose printed output is theirs.

`python -m tests.transcripts` runs the pages of docs/first_steps and writes the output that their programs print;
`python -m tests.transcripts PAGE` prints one page anew, and leaves the file as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from xbuild.cli import main as command_line

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "first_steps").glob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def rewritten(page: Path) -> str:
    """The page with the output that its programs print now, run in a process of its own."""
    command = [sys.executable, "-m", "tests.transcripts", str(page)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout


def _run(text: str) -> str:
    """The page run here: in a folder of its own, with one namespace."""
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        return "".join(_parts(text))


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _parts(text: str) -> Iterator[str]:
    """The page in parts: prose, programs, and a block of output after each program that prints."""
    space: dict[str, Any] = {"__name__": "page"}
    end, is_output_next = 0, False
    for block in _BLOCK.finditer(text):
        between = text[end : block.start()]
        is_old_output = is_output_next and block[1] == "" and not between.strip()
        end, is_output_next = block.end(), False
        if is_old_output:
            continue
        yield between
        printed = None
        if block[1] == "python":
            printed = _printed(block[2], space)
            is_output_next = True
        elif block[1] == "console":
            yield f"```console\n{''.join(_commands(block[2]))}```\n"
            continue
        elif block[1] == "text" and "# saved as " in block[2].splitlines()[0]:
            _save(block[2])
        yield block[0]
        if printed:
            yield f"\n```\n{printed}```\n"
    yield text[end:]


def _printed(program: str, space: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "page", "exec"), space)
    return _plain(out.getvalue())


def _commands(session: str) -> Iterator[str]:
    """Each command after `$`, and what it prints; a page shows what a terminal of 110 columns shows."""
    for line in session.splitlines():
        if line.startswith("$ xbuild "):
            result = CliRunner().invoke(command_line, shlex.split(line[9:]), env={"COLUMNS": "110"})
            yield f"{line}\n{_plain(result.output)}"
        elif line.startswith("$ cat "):
            yield f"{line}\n{Path(line[6:]).read_text()}"


def _save(text: str) -> None:
    """A text whose first line says `# saved as FILE`, or `// saved as FILE`, is that file."""
    head, _, body = text.partition("\n")
    Path(head.partition("saved as ")[2].strip()).write_text(body)


def _plain(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def main(pages: list[str]) -> None:
    for page in pages:
        sys.stdout.write(_run(Path(page).read_text()))
    if not pages:
        for path in PAGES:
            path.write_text(rewritten(path))


if __name__ == "__main__":
    main(sys.argv[1:])
