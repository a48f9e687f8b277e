"""Every command that takes a target, on every file of a folder of attacks: bounded, no traceback, all or nothing.

The commands and their options are those of the command line itself: first each command, then each with one option, then
with several. Files of code are left out, since a Python target is a program of the user's. Each command runs in a
process of its own, forked from one that has imported xbuild.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
from attrs import define, field, frozen

import interpreter as interpreter
import xbuild.pages as pages
import xbuild.pictures as pictures
from tests.support.processes import family, peak, seconds_of
from xbuild.cli import completion, main
from xbuild.cli.candidates import instructions

SECONDS, GIGABYTES = 20.0, 1.0
"""The most that a command may take of the processor, and of resident memory."""

IDLE, KILLED = 60.0, 1800.0
"""Seconds by the clock after which a command is ended: of waiting without work, and in all."""

CODE = (".py", ".sh")
CODES = (0, 1, 2, 3)
TARGET, OUT = "TARGET", "OUT"
SUFFIXES = (".html", ".hlo", ".npz")


def limited(words: Sequence[str], seconds: int | None) -> list[str]:
    """A command line with this limit of seconds, where the command has one and the line has none."""
    has_one = any(each.name == "max_seconds" for each in main.commands[words[0]].params)
    return [*words, *(["--max-seconds", str(seconds)] if seconds and has_one and "--max-seconds" not in words else [])]


def commands(seed: int, is_random: bool = False) -> Iterator[list[str]]:
    """Each command that takes a target; then with each of its options; then, without an end, with several of them."""
    taking = {name: each for name, each in main.commands.items() if TARGET in "".join(_arguments(name, each))}
    yield from () if is_random else (_arguments(name, each) for name, each in taking.items())
    single = [[*_arguments(name, each), *option] for name, each in taking.items() for option in _options(each)]
    generator = random.Random(seed)
    generator.shuffle(single)
    yield from () if is_random else single
    while True:
        name = generator.choice([*taking])
        chosen = generator.choices([*_options(taking[name])], k=generator.randint(2, 4))
        yield [*_arguments(name, taking[name]), *(word for option in chosen for word in option)]


def _arguments(name: str, command: click.Command) -> list[str]:
    """A command with all its arguments, and with those options without which it does next to nothing."""
    found = [name]
    for each in command.params:
        if isinstance(each, click.Argument):
            found += [_word(each)] * max(each.nargs, 1)
        elif each.name == "seed" and "--random" in each.opts:
            found += ["--random", "0"]
        elif each.name == "condition":
            found += ["--while", "refused", "--jobs", "1", "--max-seconds", "10"]  # it uses all its time
        elif each.name == "attempt":  # the file of a learner
            found += ["--check", TARGET]
    return found


def _word(each: click.Argument) -> str:
    if isinstance(each.type, click.Choice):
        return str(each.type.choices[0])
    is_name = each._custom_shell_complete is instructions
    is_target = isinstance(each.type, click.types.StringParamType | click.Path)
    return "x" if is_name else TARGET if is_target else "1"


def _options(command: click.Command) -> Iterator[list[str]]:
    """The options of a command, each with a value that may fit, alone and beside a machine."""
    for each in command.params:
        if not isinstance(each, click.Option) or each.name in ("help", "serve"):
            continue
        name = each.opts[-1]
        for words in [[name]] if each.is_flag else [[name, *[value] * each.nargs] for value in _values(each)]:
            yield words
            if each.name != "machine" and any(other.name == "machine" for other in command.params):
                yield [*words, "--machine", "h100"]


def _values(each: click.Option) -> Sequence[str]:
    kind = each.type
    if each.name == "machine":
        return ("h100", TARGET)
    if each.name == "shape":
        return ("b=999999999",)
    if isinstance(kind, click.Choice):
        return [*map(str, kind.choices)]
    if isinstance(kind, click.Path) and not kind.exists:
        return [*(f"{OUT}{suffix}" for suffix in SUFFIXES if kind.file_okay), *((OUT,) if kind.dir_okay else ())]
    if isinstance(kind, click.Path):
        return (TARGET,) if kind.file_okay else (".",)
    if isinstance(kind, click.types.StringParamType):
        return ("x", TARGET)
    if each.name == "max_bytes":
        return ("2", "1000000")
    return ("10",) if each.name in ("seconds", "max_seconds") else ("2",)


@frozen
class Job:
    """A command on a file: its words, or the line for completion."""

    file: Path
    words: Sequence[str]
    line: str = ""

    @property
    def told(self) -> str:
        return self.line or " ".join(self.words).replace(TARGET, self.file.name)

    def run(self) -> None:
        """Do it in this process."""
        if self.line:
            for shell in ("bash", "zsh", "fish"):
                os.environ["COMP_LINE"] = self.line
                kind = completion.get_completion_class(shell)
                assert kind is not None
                kind(main, {}, "xbuild", "_XBUILD_COMPLETE").complete()
        else:
            main([each.replace(TARGET, str(self.file)) for each in self.words], prog_name="xbuild")


def jobs(files: Sequence[Path], seed: int, is_random: bool, limit: int | None = None) -> Iterator[Job]:
    """Completion on all files; then on each file that is no code each command, first without and then with options.

    At random: commands with several options, each on one of the files.
    """
    if is_random:
        generator, fitting = random.Random(seed), [each for each in files if each.suffix not in CODE]
        yield from (Job(generator.choice(fitting), limited(words, limit)) for words in commands(seed, True))
    for file in files:
        yield Job(file, (), f"xbuild check {file.name}:")
        yield Job(file, (), f"xbuild explain {file.name} --of x")
    for words in commands(seed):
        yield from (Job(file, limited(words, limit)) for file in files if file.suffix not in CODE)


@define
class Running:
    """A job in a process of its own, in a folder of its own."""

    job: Job
    folder: Path
    process: int
    begin: float = field(factory=time.monotonic)
    megabytes: float = 0.0
    seconds: float = 0.0
    worked: float = field(factory=time.monotonic)

    @staticmethod
    def start(job: Job, folder: Path) -> Running:
        folder.mkdir()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            code = 70
            with contextlib.suppress(BaseException):
                code = _child(job, folder)
            os._exit(code)
        return Running(job, folder, process)

    def faults(self) -> list[str] | None:
        """What was wrong with it, once it has ended; ends it where it takes too long."""
        self.megabytes = max(self.megabytes, peak(self.process))
        is_late = self._is_late()
        if is_late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
        process, status, used = os.wait4(self.process, 0 if is_late else os.WNOHANG)
        if process == 0:
            return None
        seconds = self.seconds = used.ru_utime + used.ru_stime
        code = os.waitstatus_to_exitcode(status)
        said = (self.folder.parent / f"{self.folder.name}.txt").read_text(errors="replace")
        found = [f"it took {seconds:.1f} s of the processor"] * (seconds > SECONDS) + [
            f"it was ended after {seconds:.0f} s of the processor"
        ] * is_late
        found += [f"it took {self.megabytes:,.0f} MB"] * (self.megabytes > 1024 * GIGABYTES)
        found += [f"exit code {code}"] * (code not in CODES and not is_late)
        if "Traceback (most recent" in said:
            found.append(f"a traceback: {said.strip().splitlines()[-1][:160]}")
        found += [] if is_late else half_written(self.folder)
        shutil.rmtree(self.folder)
        return found

    def _is_late(self) -> bool:
        now, seconds = time.monotonic(), sum(map(seconds_of, family(self.process)))
        if seconds != self.seconds:
            self.seconds, self.worked = seconds, now
        return seconds > SECONDS or now > self.worked + IDLE or now > self.begin + KILLED


def _child(job: Job, folder: Path) -> int:
    """Run a job with its output in a file beside its folder; gives the exit code."""
    os.setpgid(0, 0)
    out = os.open(f"{folder}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for handle, to in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
        os.dup2(handle, to)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["XDG_DATA_HOME"] = str(folder / "data")
    os.chdir(job.file.parent if job.line else folder)
    try:
        job.run()
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 70
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()


def half_written(folder: Path) -> list[str]:
    """The files of a folder that are not whole: those of a run that was not finished, and those that do not read."""
    found = []
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if ".xbuild-" in name or name.endswith((".part", ".tmp")):
            found.append(f"{name} is left over")
        elif file.is_file() and not _reads(file):
            found.append(f"{name} does not read")
    return found


def _reads(file: Path) -> bool:
    """Whether a file is whole, by what it begins as: an option writes its own format whatever the ending."""
    data = file.read_bytes()
    try:
        if data.startswith(b"PK"):
            with np.load(file) as arrays:
                return all(arrays[each] is not None for each in arrays)
        if data.startswith(b"{"):
            return json.loads(data) is not None
        if data.startswith(b"<svg"):
            return ElementTree.fromstring(data) is not None
        return bool(data) and (not data.startswith(b"<!doctype") or data.endswith(b"</html>\n"))
    except (ValueError, OSError, SyntaxError, zipfile.BadZipFile):
        return False


def attacked(
    files: Sequence[Path],
    scratch: Path,
    seconds: float,
    seed: int = 0,
    most: int = 1 << 60,
    is_random: bool = False,
    limit: int | None = None,
) -> Iterator[tuple[Job, list[str]]]:
    """Jobs that have ended, with what was wrong with each, until `most` jobs are done.

    No job is begun after these seconds of the processor: so much work is done on a busy machine, too.
    """
    wanted, running, number = jobs(files, seed, is_random, limit), list[Running](), 0
    while True:
        while len(running) < (os.cpu_count() or 1) and seconds > 0 and number < most:
            running.append(Running.start(next(wanted), scratch / str(number)))
            number += 1
        if not running:
            return
        for each in [*running]:
            if (found := each.faults()) is not None:
                running.remove(each)
                seconds -= each.seconds
                yield each.job, found
        time.sleep(0.005)


def is_wrong_again(job: Job, folder: Path) -> bool:
    """Whether a job is wrong also when it runs alone, and not only beside others on a busy machine."""
    running = Running.start(job, folder)
    while (found := running.faults()) is None:
        time.sleep(0.005)
    if not found:
        print(f"{job.told}: not wrong when it runs again, alone", flush=True)
    return bool(found)


def files_of(folder: Path, scratch: Path) -> list[Path]:
    """Copies of all files of a folder, and files that never end: a pipe, a link to a device, one to itself."""
    shutil.copytree(folder, scratch, symlinks=True)
    found = sorted(each for each in scratch.rglob("*") if each.is_file())
    (scratch / "special").mkdir()
    special = [scratch / "special" / name for name in ("pipe.hlo", "zero.hlo", "pipe.py", "zero.py", "loop.hlo")]
    for each in special:
        if each.stem == "pipe":
            os.mkfifo(each)
        else:
            each.symlink_to("/dev/zero" if each.stem == "zero" else each.name)
    return [*found, *special]


def main_(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.attack", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=480, help="of the processor, after which none is begun")
    parser.add_argument("--most", type=int, default=1 << 60, help="number of commands")
    parser.add_argument("--seed", type=int, default=0, help="of the order and choice of options")
    parser.add_argument("--limit", type=int, metavar="S", help="given to each command as --max-seconds")
    parser.add_argument("--random", action="store_true", help="commands with several options alone")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        print(f"{chosen.folder}: there is no such folder, and nothing was attacked")
        return 0
    assert [*main.commands.values(), pages, pictures]  # imported before the first fork
    count, wrong, begin = 0, list[Job](), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        files = files_of(chosen.folder, Path(scratch) / "files")
        code = [each.name for each in files if each.suffix in CODE]
        print(f"{len(files)} files; not as targets, since they are code: {', '.join(code)}")
        how = (chosen.seconds, chosen.seed, chosen.most, chosen.random, chosen.limit)
        for job, found in attacked(files, Path(scratch), *how):
            count += 1
            if found:
                print(f"{job.told}: {'; '.join(found)}", flush=True)
                wrong.append(job)
        wrong = [job for number, job in enumerate(wrong) if is_wrong_again(job, Path(scratch) / f"again_{number}")]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = used.ru_utime + used.ru_stime
    print(f"{count:,} commands in {time.monotonic() - begin:.0f} s, {work:.0f} of the processor, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main_())
