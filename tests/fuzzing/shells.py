"""Completion in real shells, in a terminal, of hostile names: Tab, then Enter, runs nothing, and the name stays."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pty
import random
import select
import shlex
import shutil
import signal
import socketserver
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from xbuild.cli import completion, main

ROOT = Path(__file__).parents[2]
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUP = {
    "bash": 'eval "$(xbuild completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(xbuild completion zsh)"',
    "fish": "xbuild completion fish | source",
}
PIECES = (
    "$(touch PWN)", "`touch PWN`", ";touch PWN;", "|touch PWN|", "&touch PWN&", "\ntouch PWN\n", "'", '"', "\\", "$",
    "(", ")", "<(touch PWN)", ">PWN", "*", "?", "[a]", "{a,b}", "~", "#", "!", "!!", " ", "\t", "\n", "\x1b[A", "\x03",
    "=", "@", ",", "%", "${IFS}", "$HOME", "-", "--help", ":", "::", ".py:", "é", "\u202e", "plain,",
    "\nplain,$(touch PWN)", "\nplain\n", "=(touch PWN)", "$'\\n'", "^a^b", "a", "zz", "(touch PWN)", "\\$(touch PWN)",
    "'$(touch PWN)'", '"$(touch PWN)"',
)  # fmt: skip
TEXT = "program = 1\n\ndef program_two():\n    pass\n"
WAIT = 4.0


def names(seed: int) -> Iterator[str]:
    """Names of files that hold what a shell would run or take apart: each piece first, then random ones."""
    yield from (f"zz{each}" for each in PIECES)
    generator = random.Random(seed)
    while True:
        yield "zz" + "".join(generator.choices(PIECES, k=generator.randint(1, 5)))


@frozen
class Terminal:
    """An interactive shell in a terminal of its own."""

    process: int
    handle: int

    def send(self, keys: str) -> None:
        os.write(self.handle, keys.encode("utf-8", "surrogateescape"))

    def read(self, seconds: float) -> str:
        """What the shell has written, until it is quiet for these seconds."""
        found = b""
        while select.select([self.handle], [], [], seconds)[0]:
            try:
                more = os.read(self.handle, 1 << 16)
            except OSError:  # the shell has ended
                break
            if not more:
                break
            found += more
        return found.decode(errors="replace")


@contextmanager
def terminal(shell: str, folder: Path, path: str) -> Iterator[Terminal]:
    environment = {
        "HOME": str(folder), "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8", "PS1": "> ", "HISTFILE": "",
        "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config"),
        "RECORD": str(folder / "record"),
    }  # fmt: skip
    process, handle = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe(SHELLS[shell][0], SHELLS[shell], environment)
    found = Terminal(process, handle)
    try:
        found.read(1.0)
        found.send(f"{SETUP[shell]}; echo $RECO''RD-is-set\n")
        said, end = "", time.monotonic() + WAIT
        while "record-is-set" not in said and time.monotonic() < end:
            said += found.read(0.3)
        yield found
    finally:
        os.kill(process, signal.SIGKILL)
        os.close(handle)
        os.waitpid(process, 0)


class _Answers(socketserver.StreamRequestHandler):
    """Answers a request for completions as the command does, without a start of Python for each."""

    def handle(self) -> None:
        shell, folder, line = self.rfile.read().decode("utf-8", "surrogateescape").split("\0")
        os.chdir(folder)
        os.environ["COMP_LINE"] = line
        kind = completion.get_completion_class(shell)
        assert kind is not None
        self.wfile.write(kind(main, {}, "xbuild", "_XBUILD_COMPLETE").complete().encode())


_ASK = """\
import os, socket, sys
c = socket.socket(socket.AF_UNIX); c.connect({server!r})
shell, line = os.environ["_XBUILD_COMPLETE"].partition("_")[0], os.environ["COMP_LINE"]
c.sendall(os.fsencode("\\0".join((shell, os.getcwd(), line)))); c.shutdown(1)
while part := c.recv(65536): sys.stdout.buffer.write(part)
print()
"""

_MAIN = "from xbuild.cli import main; main(prog_name='xbuild')"

_COMMAND = """\
#!/bin/sh
if [ -n "$_XBUILD_COMPLETE" ]; then {ask}; echo >> "$RECORD.answers"; exit; fi
[ "$1" = completion ] && exec {python} -m xbuild "$@"
printf '%s\\0' "$@" > "$RECORD.part" && mv "$RECORD.part" "$RECORD"
"""


@contextmanager
def commands(folder: Path, serves: bool) -> Iterator[str]:
    """A PATH on which `xbuild` completes, and else keeps the words that it is given in the file RECORD."""
    python = shlex.quote(sys.executable)
    (folder / "bin").mkdir()
    ask = folder / "bin" / "ask.py"
    server = socketserver.UnixStreamServer(str(folder / "server"), _Answers)
    # A process of its own, for an answer changes the working directory; a fork, so that tests may patch what answers.
    answering = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    answering.start()
    ask.write_text(_ASK.format(server=str(folder / "server")))
    command = folder / "bin" / "xbuild"
    complete = f"{python} -S -E {shlex.quote(str(ask))}" if serves else f"{python} -c {shlex.quote(_MAIN)}"
    command.write_text(_COMMAND.format(ask=complete, python=python))
    command.chmod(0o755)
    try:
        yield f"{folder / 'bin'}:{os.environ['PATH']}"
    finally:
        answering.kill()
        answering.join()
        server.server_close()


def _wait(file: Path) -> bool:
    """Wait until there is a file; whether there is."""
    end = time.monotonic() + WAIT
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return file.exists()


def _words(record: Path) -> list[str]:
    """The words that the shell has given to the command, once it has."""
    if not _wait(record):
        return []
    found = os.fsdecode(record.read_bytes()).split("\0")[:-1]
    record.unlink()
    return found


@frozen
class Found:
    """What came of a name: what is wrong, and whether the shell completed it."""

    fault: str
    is_whole: bool


def tried(shell: Terminal, place: Path, name: str) -> Found:
    """Complete `FILE.py`, then `FILE.py:program`, then an option behind it, and press Enter."""
    shell.read(0.0)
    file = f"{name}.py"
    place.mkdir()
    (place / file).write_text(TEXT)
    before = {*os.listdir(place)}
    shell.send(f"cd {place}\n")
    answers = place.parent / "record.answers"
    for keys in ("xbuild check zz\t", "\x7f:program_t\t", "--jso\t"):
        answers.unlink(missing_ok=True)
        shell.send(keys)
        _wait(answers)
        shell.read(0.1)  # zsh drops what it completes when keys wait
    shell.send("\n")
    words = _words(place.parent / "record")
    if not words:
        shell.send("\x03")
    shell.read(0.1)
    if made := {*os.listdir(place)} - before:
        return Found(f"it made {sorted(made)}", False)
    if "PWN" in os.listdir(place.parent):
        return Found("it ran", False)
    is_whole = words == ["check", f"{file}:program_two", "--json"]
    return Found("" if is_whole or not file.isprintable() or not words else f"the words became {words}", is_whole)


def faults(shell: str, wanted: Sequence[str], folder: Path, serves: bool = True) -> tuple[list[str], int]:
    """What is wrong with these names in a shell, and how many it completed."""
    folder.mkdir()
    found, whole = [], 0
    with commands(folder, serves) as path, terminal(shell, folder, path) as opened:
        for number, name in enumerate(wanted):
            came = tried(opened, folder / f"d{number}", name)
            whole += came.is_whole
            found += [f"{shell}: {name!r}: {came.fault}"] * bool(came.fault)
    return found, whole


def main_(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.shells", description=__doc__)
    parser.add_argument("--names", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shell", action="append", choices=[*SHELLS])
    chosen = parser.parse_args(arguments)
    source = names(chosen.seed)
    wanted = [next(source) for _ in range(chosen.names)]
    counts, found = Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for shell in chosen.shell or SHELLS:
            if shutil.which(shell) is None:
                print(f"{shell}: not on this machine, not tried")
                continue
            wrong, whole = faults(shell, wanted, Path(folder) / shell)
            counts[f"{shell} names"], counts[f"{shell} completed"] = len(wanted), whole
            found += wrong
    print(*(f"{what:16} {count:6,}" for what, count in counts.items()), *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main_())
