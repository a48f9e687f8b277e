"""Every output of every command where links are planted in its place: what they lead to is not touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.commands.command_line import xbuild
from tests.fuzzing import attack

TEXT = (
    "HloModule m, replica_count=2\n"
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
    "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add\n}\n"
)
INSIDE = (
    "groups.json", "program.0.et", "index.json", "program-0.hlo", "xbuild-trace.txt", "lessons", "puzzles", "examples",
)  # fmt: skip
LEFT_ALONE = {"mine": "mine"}
"""The files to which the links lead, with their texts."""


def writing() -> Iterator[list[str]]:
    """The command lines that name an output, by each option that takes the path of one."""
    for name, command in attack.main.commands.items():
        begin = attack._arguments(name, command)
        for option in attack._options(command):
            if any(word.startswith(attack.OUT) for word in option):
                kept = begin if attack.TARGET in begin and name not in ("learn", "puzzle") else [name]
                yield [each.replace(attack.TARGET, "p.hlo") for each in (*kept, *option)]
            elif name == "learn" and option[0] in ("--page", "--notebook"):
                yield from ([name, "1", option[0], "-o", f"{attack.OUT}{suffix}"] for suffix in attack.SUFFIXES)


def faults(commands: Iterable[Sequence[str]], folder: Path) -> Iterator[str]:
    """What the commands did to files that links in the places of their outputs lead to."""
    for words in commands:
        folder.mkdir()
        os.chdir(folder)
        Path("p.hlo").write_text(TEXT)
        for name, text in LEFT_ALONE.items():
            Path(name).write_text(text)
        Path("folder").mkdir()
        for suffix in attack.SUFFIXES:
            Path(f"{attack.OUT}{suffix}").symlink_to("mine")
        Path(attack.OUT).mkdir()
        for name in INSIDE:
            (Path(attack.OUT) / name).symlink_to("../folder" if "." not in name else "../mine")
        done = xbuild(*words)
        told = " ".join(words)
        if done.exit_code not in attack.CODES or (done.exception and not isinstance(done.exception, SystemExit)):
            yield f"{told}: exit code {done.exit_code}: {done.exception!r}"
        yield from (f"{told}: wrote to {name}" for name, text in LEFT_ALONE.items() if Path(name).read_text() != text)
        if any(Path("folder").iterdir()):
            yield f"{told}: wrote to a folder through a link"
        if gone := [name for name in INSIDE if not (Path(attack.OUT) / name).is_symlink()]:
            yield f"{told}: took the links {gone} away"
        os.chdir(folder.parent)
        shutil.rmtree(folder)
