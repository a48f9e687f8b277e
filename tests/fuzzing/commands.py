"""Random command lines of every command, right and wrong, each from a seed; and their permitted outcomes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from click.testing import CliRunner

from tests.fuzzing.verdict import Hang
from xbuild.cli import main

SECONDS = 60
REPORT = 200_000
CODES = (0, 1, 2, 3, 130)

_BODY = "  k = f32[4] constant({1, nan, inf, -2})\n  y = f32[4] multiply(x, k)\n  ROOT z = f32[4] negate(y)\n}\n"
_PROGRAM = f"ENTRY e {{\n  x = f32[4] parameter(0)\n{_BODY}"
_ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
_PAIRS = "channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}"
_STUCK = (
    "HloModule m, replica_count=2\nENTRY e {\n  x = f32[4] parameter(0)\n  t = token[] after-all()\n"
    f"  s = (f32[4], u32[], token[]) send(x, t), {_PAIRS}\n  d = token[] send-done(s), channel_id=1\n"
    f"  r = (f32[4], u32[], token[]) recv(d), {_PAIRS}\n  g = (f32[4], token[]) recv-done(r), channel_id=1\n"
    "  ROOT v = f32[4] get-tuple-element(g), index=0\n}\n"
)
_LOOP = (
    "c {\n  n = s32[] parameter(0)\n  k = s32[] constant(3)\n  ROOT l = pred[] compare(n, k), direction=LT\n}\n"
    "b {\n  n = s32[] parameter(0)\n  o = s32[] constant(1)\n  ROOT m = s32[] add(n, o)\n}\n"
    "ENTRY e {\n  n = s32[] parameter(0)\n  ROOT w = s32[] while(n), condition=c, body=b\n}\n"
)
_FED = (
    "ENTRY e {\n  t = token[] after-all()\n  i = (f32[4], token[]) infeed(t)\n"
    "  ROOT x = f32[4] get-tuple-element(i), index=0\n}\n"
)
_SUM = (
    f"HloModule m, replica_count=2\n{_ADD}ENTRY e {{\n  x = f32[4] parameter(0)\n"
    "  ROOT y = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add\n}\n"
)
_OWN = "import pathlib\nimport xbuild as xb\nP = xb.parse_hlo(pathlib.Path('p.hlo').read_text())\n"
TEXTS = {
    "p.hlo": _PROGRAM, "p.txt": _PROGRAM, "loop.hlo": _LOOP, "fed.hlo": _FED, "stuck.hlo": _STUCK, "sum.hlo": _SUM,
    "bad.hlo": _PROGRAM.replace("multiply", "multiplied"), "empty.hlo": "", "data.json": '{"y": 1.5}', "own.py": _OWN,
    "large.hlo": _PROGRAM.replace("[4] constant({1, nan, inf, -2})", "[] constant(1)").replace("[4]", "[400000000000]"),
    "group/device0.hlo": _PROGRAM, "group/device1.hlo": _PROGRAM, "gap/device1.hlo": _PROGRAM, "list.json": "[1]",
    "deep.json": "[" * 100_000, "raises.py": "raise SystemExit(3)\n", "wrong.py": "def f(:\n",
    "odd.py": "X = 1\ndef f(x): pass\n",
}  # fmt: skip
TARGETS = (
    *("p.hlo", "p.txt", "loop.hlo", "fed.hlo", "stuck.hlo", "sum.hlo", "group", "own.py:P") * 6,
    "bad.hlo", "empty.hlo", "large.hlo", "gap", "none.hlo", "p.hl", "own.py", "own.py:Q", "raises.py:f", "wrong.py:f",
    "odd.py:X", "odd.py:f", "pipe.hlo", "kept", "", ":", ".py:", ".", "/", "hard.hlo", "soft.hlo", "./p.hlo",
    "ring.hlo", "/dev/null",
)  # fmt: skip
FILES = (
    *("in.npz", "feed.npz", "data.json") * 4, "other.npz", "p.hlo", "pipe", "/dev/zero", ".", "none.npz", "bad.npz",
    "soft.npz", "hard.npz", "deep.json", "list.json",
)  # fmt: skip
_ENDINGS = ("npz", "html", "svg", "hlo", "txt", "dot", "mmd")
OUTPUTS = (
    *(f"out/a.{ending}" for ending in _ENDINGS * 3), *(f"./out/../out/b.{ending}" for ending in _ENDINGS), "out/kept",
    "out", "none/a.svg", "/dev/null", "/dev/full", "pipe", "in.npz", "p.hlo", "hard.hlo", "soft.hlo", "p.txt", "group",
    "page.html", "kept",
)  # fmt: skip
_FITTING = {"page": ".html", "outputs": ".npz", "picture": ".svg", "repair": ".hlo", "folder": "kept"}
NAMES = ("x", "y", "z", "w", "e", "c", "all-reduce", "%y", "y.1", "none", "")
ODD = (
    "", "-", "--", "---", "-1", "0", "1", "2", "99999999999999999999999", "1e400", "nan", "-inf", "0.0001", "1_0",
    "\u0663", "--help", "-h", "--version", "@p.hlo", "~", "*", "$HOME", "a" * 5000, "\udcff", "\x1b[31m", "\u202e",
    "\n", "\u00e9", "=", "--=1", "{}", "%s", "-o", "-o=", "--random=", "--json=1", "true",
)  # fmt: skip
STEPS = (
    "next", "next 3", "back", "back 2", "to y", "to none", "until any(isnan(v))", "until", "until abs(v, v)", "trip 2",
    "device 0", "device 7", "where", "view", "program", "list", "devices", "print y", "print y[0]", "watch y",
    "unwatch y", "diff", "comm", "part", "help", "help next", "quit", "", "?", "!", "next " + "9" * 30, "nex",
    "until " + "(" * 500, "print y" + "[0]" * 200, "\x1b[A", "\u00e9",
)  # fmt: skip

Line: TypeAlias = tuple[list[str], str]


class Commands:
    """Makes the command line of one seed; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def line(self) -> Line:
        """The words after `xbuild`, and what is typed on stdin."""
        name = self.random.choice(
            ("run", "run", "check", "viz", "extract", "diff", "show", "step", "trace", "ops", "explain")
        )
        command = main.commands.get(name) or self.random.choice([*main.commands.values()])
        words = [name, *self._words(command)]
        for _ in range(self.random.choice((0, 0, 0, 0, 1, 3))):
            self._changed(words)
        return words, "".join(f"{self.random.choice(STEPS)}\n" for _ in range(self.random.randrange(6)))

    def _words(self, command: click.Command) -> list[str]:
        options = [
            each for each in command.params if isinstance(each, click.Option) and each.name not in ("help", "serve")
        ]
        chosen = self.random.sample(options, min(len(options), self.random.choice((0, 1, 1, 2, 2, 3, 5))))
        found = [word for option in chosen for word in self._option(option)]
        if command.name in ("run", "step") and not {"--inputs", "--random"} & {*found} and self.random.random() < 0.9:
            found += self.random.choice((["--random", "1"], ["--inputs", "in.npz"]))
        for each in command.params:
            if isinstance(each, click.Argument):
                count = self.random.choice((1, 1, 2)) if each.nargs < 0 else each.nargs
                found[:0] = [self._argument(command.name or "") for _ in range(count)]
        return found

    def _argument(self, command: str) -> str:
        if command == "explain":
            return self.random.choice(("add", "all-reduce", "invalid_group", "deadlock", "psum", "nothing", *NAMES))
        if command == "trace" and self.random.random() < 0.8:
            return self.random.choice(("kept", "./kept", "again"))
        return self.random.choice(TARGETS)

    def _option(self, option: click.Option) -> list[str]:
        name = self.random.choice([*option.opts, *option.secondary_opts])
        if option.is_flag:
            return [name]
        values = [self._value(option) for _ in range(option.nargs)]
        is_joined = name.startswith("--") and option.nargs == 1 and self.random.random() < 0.2
        return [f"{name}={values[0]}"] if is_joined else [name, *values]

    def _value(self, option: click.Option) -> str:
        kind = option.type
        if self.random.random() < 0.05:
            return self.random.choice(ODD)
        if isinstance(kind, click.Choice):
            return self.random.choice([str(each) for each in kind.choices if each not in ("xla", "both")])
        if isinstance(kind, click.Path) or option.name in ("repair", "output"):
            reads = option.name in ("inputs", "infeed", "data", "source_root")
            fitting = [each for each in OUTPUTS if each.endswith(_FITTING.get(option.name or "", ""))]
            return self.random.choice(FILES if reads else self.random.choice((fitting, OUTPUTS)))
        if isinstance(kind, click.IntRange | click.FloatRange | click.types.IntParamType):
            return self.random.choice((*("0", "1", "2", "3", "10") * 4, "1000000", "-1", "1.5", "x", "1e400", "9" * 25))
        return self.random.choice(NAMES)

    def _changed(self, words: list[str]) -> None:
        place = self.random.randrange(len(words) + 1)
        change = self.random.choice(("insert", "insert", "drop", "double", "swap", "part", "replace"))
        if change == "insert":
            words.insert(place, self.random.choice((*ODD, *NAMES, *TARGETS, *OUTPUTS)))
        elif place < len(words):
            word = words[place]
            other = self.random.randrange(len(words))
            if change == "swap":
                words[place], words[other] = words[other], word
            else:
                odd = self.random.choice(ODD)
                words[place : place + 1] = {"drop": [], "double": [word] * 2, "part": [word[:-1]], "replace": [odd]}[
                    change
                ]


class Place:
    """A folder of small files of every kind that commands read, which is as it was after each command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in TEXTS.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, arrays in _arrays().items():
            np.savez(folder / name, **arrays)  # type: ignore[arg-type]
        (folder / "bad.npz").write_bytes((folder / "in.npz").read_bytes()[:-30])
        for file, end in (("p.hlo", "hlo"), ("in.npz", "npz")):
            os.link(folder / file, folder / f"hard.{end}")
            os.symlink(file, folder / f"soft.{end}")
        os.symlink("ring.hlo", folder / "ring.hlo")
        os.symlink("kept/index.json", folder / "page.html")
        os.mkfifo(folder / "pipe")
        os.mkfifo(folder / "pipe.hlo")
        (folder / "out").mkdir()
        for name, target in (("kept", "p.hlo"), ("again", "sum.hlo")):
            with within(folder):
                CliRunner().invoke(main, ["run", target, "--random", "1", "--trace", name])
        self.files = self._files()
        self.own = {each for path in folder.rglob("*") for each in (path, *path.parents)} - {folder / "out"}

    def _files(self) -> Mapping[Path, bytes]:
        found = (path for path in self.folder.rglob("*") if "out" not in path.parts and path.is_file())
        return {path: path.read_bytes() for path in found}

    def tidied(self, read: Mapping[str, bytes]) -> list[str]:
        """Put back what a command changed; which of the files that it was to read it did not leave alone."""
        lost = [name for name, data in read.items() if not _has(self.folder / name, data)]
        for path in self.folder.iterdir():
            if path not in self.own:
                _removed(path)
        (self.folder / "out").mkdir(exist_ok=True)
        for path, data in self.files.items():
            if not _has(path, data):
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        return lost

    def inputs(self, words: list[str]) -> dict[str, bytes]:
        """The files that a command line names to be read: its target, and those after options that read."""
        found = [word for before, word in zip(["", *words], words, strict=False) if before in _READING]
        found += [word for word in words[1:2] if not word.startswith("-")]
        return {name: (self.folder / name).read_bytes() for name in found if name and _is_file(self.folder / name)}


_READING = ("--inputs", "--infeed", "--data")


def _arrays() -> dict[str, dict[str, Any]]:
    four = np.ones(4, np.float32)
    return {"in.npz": {"arg0": four}, "feed.npz": {"infeed0": four}, "other.npz": {"arg0": np.ones(3)}}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _has(path: Path, data: bytes) -> bool:
    return _is_file(path) and path.stat().st_size == len(data) and path.read_bytes() == data


def _removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def within(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield Place(Path(folder).resolve())


@contextmanager
def ended(seconds: float) -> Iterator[None]:
    """Hang where it takes longer by the clock, though it waits for something; on POSIX alone."""
    thread = threading.get_ident()
    before: Any = signal.signal(signal.SIGUSR1, _hang)
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(thread, signal.SIGUSR1))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


def _hang(*_: object) -> None:
    raise Hang


def verdict(line: Line, where: Place, seconds: float = SECONDS) -> str:
    """The command and its exit code; AssertionError where it ends otherwise, or changed what it was to read."""
    words, typed = line
    read = where.inputs(words)
    try:
        with within(where.folder), ended(seconds):
            done = CliRunner().invoke(main, words, input=typed)
    finally:
        lost = where.tidied(read)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in CODES, f"exit code {done.exit_code}: {words}"
    assert "Traceback (most recent call last)" not in done.output or any("py:" in word for word in words), words
    assert len(done.output) < REPORT, f"{len(done.output)} characters of output: {words}"
    assert done.exit_code in (0, 1) or done.stderr, f"no word of why: {words}"
    assert not lost, f"{lost} changed: {words}"
    return f"{words[0] if words and words[0] in main.commands else 'no command'} {done.exit_code}"
