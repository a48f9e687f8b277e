"""What a guard does with each program: check it, say what was found, and stop what would hang."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from shape_inference import XbuildError
from shape_inference.escaping import printable

from ..checking import Verdict, check
from ..process.limits import DeadlineError, within
from ..properties.effects import COMMUNICATION, spelling
from ..text.reader import parse_hlo

if TYPE_CHECKING:
    from ..runtimes.record import Runtime
    from .compilation import DeviceId

MODES = ("stop", "strict", "warn", "report")
SECONDS = 10.0
"""The most time for one program; beyond, it runs without a verdict."""

_said: set[str] = set()


def say(text: str) -> None:
    """Print a message of the guard on stderr."""
    print(f"xbuild guard: {printable(text)}", file=sys.stderr, flush=True)


def say_once(text: str) -> None:
    """Print a message unless the process has printed it; no warning, which a user's filter could turn into an error."""
    if text not in _said:
        _said.add(text)
        say(text)


class ProgramRefused(SystemExit):
    """Raised instead of running a program that is stopped; a script that does not catch it ends with status 1."""

    def __init__(self, program: GuardedProgram) -> None:
        super().__init__(1)
        self.program = program

    def __str__(self) -> str:
        return f"{self.program.name}: {self.program.verdict}"


@define(eq=False)
class GuardedProgram:
    """A program that JAX compiled, and what the guard found. Programs are numbered from 1 in the order of compilation.

    `verdict` is None if the check failed, and `problem` then says why. `seconds` is the time that the guard took.
    """

    number: int
    name: str
    devices: tuple[DeviceId, ...]
    text: str = field(repr=False)
    verdict: Verdict | None = field(default=None, repr=False)
    problem: str = ""
    seconds: float = 0.0

    @property
    def is_refused(self) -> bool:
        return self.verdict is not None and self.verdict.refused

    @property
    def may_hang(self) -> bool:
        return self.verdict is not None and self.verdict.may_hang

    @property
    def kind(self) -> str:
        """The kind of the verdict; "unread" if there is none."""
        return "unread" if self.verdict is None else self.verdict.kind


@define(eq=False)
class Guard:
    """The programs of a process in one mode; `report` keeps their texts for its folder.

    `since` is when the run began: the folders that other processes have written since then are kept. `written` is the
    folder of this process, once it is written: before each refused program runs, since that may never end.
    """

    mode: str
    folder: Path | None = None
    programs: list[GuardedProgram] = field(factory=list)
    process: int = 0
    since: float = field(factory=time.time)
    written: Path | None = field(default=None, init=False)
    _places: Counter[str] = field(factory=Counter, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _writing: threading.Lock = field(factory=threading.Lock, init=False)

    def see(self, name: str, text: str, devices: tuple[DeviceId, ...]) -> None:
        """Check a program; raises ProgramRefused for one that the mode stops."""
        with self._lock:
            program = GuardedProgram(len(self.programs) + 1, name, devices, text)
            self.programs.append(program)
        judge(program)
        if not program.is_refused and len({each.process for each in devices}) > 1:
            self._compare(program)
        if self.mode != "report":
            program.text = ""
        if program.problem:
            say_once(f"{program.name} runs without a verdict: {program.problem}")
        elif program.is_refused:
            ending = "it was stopped before it ran" if self.mode in ("stop", "strict") else "it runs anyway"
            say(f"{program.name} is refused; {ending}{self._write()}\n{program.verdict}")
            if self.mode in ("stop", "strict"):
                raise ProgramRefused(program)
        elif program.may_hang and self.mode == "strict":
            say(f"{program.name} may hang: the data decide; it was stopped before it ran\n{program.verdict}")
            raise ProgramRefused(program)
        elif program.may_hang:
            hint = "; --strict (XBUILD_GUARD=strict) stops such programs" if self.mode == "stop" else ""
            say_once(f"{program.name} may hang: the data decide; it runs{hint}{self._write()}\n{program.verdict}")

    def _compare(self, program: GuardedProgram) -> None:
        """Compare a program with those that the other processes compiled in its place."""
        from . import processes

        job = processes.distributed()
        if job is None:
            return
        store, self.process = job
        members = "-".join(map(str, sorted({each.process for each in program.devices})))
        with self._lock:
            self._places[members] += 1
            place = f"xbuild_guard/{members}/{self._places[members]}"
        found = processes.compare(store, place, self.process, program.name, program.text, program.devices)
        if found.is_refused:
            program.verdict = found.verdict
            say(str(found))
        elif found.absent:
            say(f"{found}{self._write()}")

    def finish(self) -> None:
        """Say what was checked, if there was anything; in mode "report" write the folder."""
        if self.programs:
            wrote = self._write()
            say(f"{self.summary()}{wrote}")

    def _write(self) -> str:
        """In mode "report" write the folder with the programs so far; the words that say so, or why it failed."""
        if self.folder is None:
            return ""
        try:
            from .folder import write_folder

            with self._writing:
                return f"; wrote {write_folder(self, self.folder, self.process)}"
        except OSError as error:
            return f"; cannot write {self.folder}: {error.strerror or error}"
        except Exception as error:  # a fault of xbuild must not end the user's program
            return f"; cannot write {self.folder}: {error!r}"

    def summary(self) -> str:
        """One sentence: how many programs, how many were refused, may hang or were not read, and the time they took."""
        refused = sum(each.is_refused for each in self.programs)
        hanging = sum(each.may_hang for each in self.programs)
        unread = sum(each.verdict is None for each in self.programs)
        return summarize(len(self.programs), refused, hanging, unread, sum(each.seconds for each in self.programs))


def summarize(programs: int, refused: int, hanging: int, unread: int, seconds: float) -> str:
    """One sentence on programs: `hanging` is how many of them hang on some data."""
    parts = [
        f"{refused} refused" if refused else "none refused",
        *([f"{hanging} may hang, depending on the data"] if hanging else []),
        *([f"{unread} without a verdict"] if unread else []),
    ]
    return f"{programs} program{'s' * (programs != 1)} checked in {seconds:.2f} s, {', '.join(parts)}"


_COMMUNICATES = re.compile(rf"\b(?:{'|'.join(map(spelling, sorted(COMMUNICATION)))})\(")
"""An op in HLO text that needs another device or the host."""

SILENT = Verdict("ok", "every", summary="the program communicates with no device and no host")
"""The verdict on compiled text without such an op, which the guard does not read: most programs of JAX."""


def guarded_runtime() -> Runtime | None:
    """The runtime that XBUILD_GUARD_RUNTIME names: a preset or a file. Raises invalid_attribute for another name."""
    name = os.environ.get("XBUILD_GUARD_RUNTIME")
    if not name:
        return None
    from ..runtimes.record import runtime_of

    return runtime_of(name)


def judge(program: GuardedProgram) -> None:
    """Read and check a program; whatever goes wrong becomes its problem."""
    begin = time.perf_counter()
    try:
        runtime = guarded_runtime()
        is_silent = program.text.startswith("HloModule") and _COMMUNICATES.search(program.text) is None
        if is_silent and runtime is None:
            program.verdict = SILENT
            return
        with within(SECONDS):
            program.verdict = check(parse_hlo(program.text, f"<{program.name}>", origins=True), runtime=runtime)
    except DeadlineError:
        program.problem = f"the guard stopped after {SECONDS:g} s"
    except XbuildError as error:
        program.problem = str(error).splitlines()[0]
    except Exception as error:  # a fault of xbuild must not end the user's program
        program.problem = repr(error)
    finally:
        program.seconds = time.perf_counter() - begin
