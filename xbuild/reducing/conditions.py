"""Conditions of a reduction: what must still hold for the smaller program, as a user states it in words.

Sections:

    What a condition finds, and conditions of programs
    Conditions of real XLA
    Conditions of a command
    Reading a condition
"""

from __future__ import annotations

import re
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, field, frozen

from shape_inference import Shape
from shape_inference.trees import leaves

from ..checking import check
from ..core.diagnostics import BuildError
from ..core.graph import Module
from ..costs import cost
from ..files import temporary
from ..process.limits import DeadlineError, within
from ..text.reader import parse_hlo
from ..text.scanner import HloParseError

# ----------------------------------------------------------------------------
# What a condition finds, and conditions of programs


@frozen
class Found:
    """Whether a condition holds, what was found in words, and what must not change during the reduction."""

    holds: bool
    what: str
    signature: str = ""


Modules: TypeAlias = Sequence[Any]
"""The program and, for some conditions, the one with which it is compared."""


@define
class Condition(ABC):
    """A condition on the texts of a program.

    `expected` is the signature that was found for the program that is reduced. With `as_text`, the text need not be a
    program, if the condition `reads_text`.
    """

    spelled: str
    expected: str | None = field(default=None, init=False)
    as_text: bool = field(default=False, init=False)
    child: Any = field(default=None, init=False)

    @property
    def reads_text(self) -> bool:
        """Whether the condition also applies to a text that is not read as a program."""
        return False

    @property
    def takes_groups(self) -> bool:
        """Whether the condition also applies to one program for each device."""
        return False

    def find(self, texts: Sequence[str], seconds: float) -> Found:
        """What the condition finds; raises what its parts raise."""
        with within(seconds):
            return self.judge([] if self.as_text else [parse_hlo(text) for text in texts], texts, seconds)

    @abstractmethod
    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        """What the condition finds for programs; `modules` is empty if the text need not be a program."""

    def holds(self, texts: Sequence[str], seconds: float) -> bool:
        """Whether the condition holds for a smaller program; it does not if the program is refused or too slow."""
        try:
            found = self.find(texts, seconds)
        except (DeadlineError, Exception):
            return False
        return found.holds and (self.expected is None or found.signature == self.expected)

    def close(self) -> None:
        """End the process in which the condition runs what may crash, if it has one."""
        if self.child is not None:
            self.child.stop()
            self.child = None


@define
class Deadlocks(Condition):
    """The check says that the program deadlocks, with the kind and the cause that the first finding of TARGET has."""

    @property
    def takes_groups(self) -> bool:
        return True

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        verdict = check(modules[0])
        holds = verdict.kind == "deadlock"
        first = f"{verdict.findings[0].kind} {verdict.findings[0].cause}" if holds else ""
        return Found(holds, f"the verdict of the check is {verdict.kind}", first)


@define
class IsRefused(Condition):
    """Reading or the check refuses the program, with a finding of this kind if one is stated."""

    kind: str = ""

    @property
    def reads_text(self) -> bool:
        return True

    @property
    def takes_groups(self) -> bool:
        return True

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        if self.as_text:
            try:
                modules = [parse_hlo(texts[0])]
            except HloParseError as error:
                return Found(self.kind in ("", error.kind), f"reading refuses the text ({error.kind})", error.kind)
        verdict = check(modules[0])
        kinds = [finding.kind for finding in verdict.findings]
        holds = verdict.kind in ("error", "deadlock") and (not self.kind or self.kind in kinds)
        return Found(holds, f"the verdict of the check is {verdict.kind} ({', '.join(kinds) or 'no findings'})")


@define
class Differs(Condition):
    """The program and the one with which it is compared compute different functions."""

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        from ..running import Limits, equivalent

        verdict = equivalent(*modules, limits=Limits(seconds=seconds))
        return Found(verdict.kind == "different", f"the verdict of xb.equivalent is {verdict.kind}")


@define
class PeakExceeds(Condition):
    """A device holds more than this number of bytes at once."""

    bytes: int = 0

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        peak = cost(modules[0]).peak_memory
        return Found(peak > self.bytes, f"the peak is {peak:,} bytes")


# ----------------------------------------------------------------------------
# Conditions of real XLA, which runs in a process of its own

_MOST_ARGUMENTS = 1 << 30
"""The bytes of arguments with which a program is run; one with more is only compiled."""

_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|%[\w.-]+|\S*[\[{(<]\S*|\S*\d\S*")
_CHECK = re.compile(r"([\w/.-]+\.(?:cc|h)):(\d+)\]")


@define
class OnXla(Condition):
    """Real XLA ends its process, refuses the program, or computes other results than the interpreter.

    `word` is crashes, refuses or differs. If `text` is empty, the message of XLA must stay the same, but for names and
    numbers.
    """

    word: str = "crashes"
    text: str = ""
    seed: int = 0
    _devices: int = field(default=1, init=False)

    @property
    def reads_text(self) -> bool:
        return self.word != "differs"

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        from ..running import engines

        module = modules[0] if modules else None
        arguments = None if module is None else _arguments(module, self.seed)
        rows: list[Any] = [()] if module is None else [()] * module.num_devices
        if module is not None and arguments is not None:
            rows = engines.outcomes.argument_leaves([module] * module.num_devices, [*map(tuple, arguments)])
        counts = (1, 1) if module is None else (module.num_replicas, module.num_partitions)
        text = texts[0] if module is None else engines.programs.as_engine_reads(module).to_hlo()
        outcome = self._run(engines.process.Job(text, rows, *counts), seconds)
        if not isinstance(outcome, engines.process.Failure):
            if self.word == "differs" and module is not None and arguments is not None:
                return self._compare(module, arguments, outcome, seconds)
            return Found(False, "real XLA runs the program")
        if outcome.kind == "misfit":
            raise BuildError("missing_extra", f"xbuild cannot use this version of jaxlib: {outcome.message}")
        words = {"died": "crashes", "refused": "refuses"}
        holds = words.get(outcome.kind) == self.word and self.text in outcome.message
        what = f"real XLA {words.get(outcome.kind, 'gives no answer')}: {outcome.message[:400]}"
        return Found(holds, what, "" if self.text else _signature(outcome.kind, outcome.message))

    def _run(self, job: Any, seconds: float) -> Any:
        from ..running import engines

        engines.xla.require_jaxlib()
        devices = job.num_replicas * job.num_partitions
        if self.child is None or self.child.is_dead or devices > self._devices:
            self.close()
            self._devices = max(devices, self._devices)
            self.child = engines.process.Child(self._devices, forks=True)
        return self.child.run(job, seconds)

    def _compare(self, module: Module, arguments: Any, outcome: Any, seconds: float) -> Found:
        from ..running import Limits, engines, execute

        shape = module.entry.root.shape
        theirs = [engines.outcomes.value_of(shape, iter(device)) for device in outcome]
        ours = execute(module, arguments, limits=Limits(seconds=seconds))
        compared = engines.compare(ours, theirs, [shape] * module.num_devices)
        wrong = next((each for each in compared if not each.same), None)
        return Found(wrong is not None, str(wrong) if wrong is not None else "real XLA computes the same results")


def _arguments(module: Module, seed: int) -> list[list[Any]] | None:
    """Random arguments for each device; None if they would take too much memory."""
    from ..files.arrays import random_arguments

    shapes = [parameter.shape for parameter in module.entry.parameters]
    held = sum(leaf.bytes for shape in shapes for leaf in leaves(shape) if isinstance(leaf, Shape))
    if held * module.num_devices > _MOST_ARGUMENTS:
        return None
    return [list(row) for row in random_arguments(seed, [shapes] * module.num_devices, _MOST_ARGUMENTS)]


def _signature(kind: str, message: str) -> str:
    """What stays the same in the message of a failure when the program changes."""
    if kind == "died":
        check = _CHECK.search(message)
        return f"{message.partition(chr(10))[0]} {check[1] + ':' + check[2] if check else ''}"
    return " ".join(_DETAIL.sub("", message.partition("\n")[0]).split())[:80]


# ----------------------------------------------------------------------------
# Conditions of a command


@define
class CommandSucceeds(Condition):
    """A command exits with status 0, with the name of a file that has the text in place of `{}`, or at its end."""

    command: tuple[str, ...] = ()

    @property
    def reads_text(self) -> bool:
        return True

    def find(self, texts: Sequence[str], seconds: float) -> Found:
        return self.judge((), texts, seconds)

    def judge(self, modules: Modules, texts: Sequence[str], seconds: float) -> Found:
        with temporary.folder() as folder:
            names = []
            for number, text in enumerate(texts):
                path = Path(folder) / ("program.hlo" if not number else f"other{number}.hlo")
                path.write_text(text, encoding="utf-8")
                names.append(str(path))
            words = [word.replace("{}", names[0]) for word in self.command]
            if words == list(self.command):
                words.append(names[0])
            try:
                ended = subprocess.run(
                    words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=seconds, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return Found(False, f"the command did not end within {seconds:g} s")
            except OSError as error:
                return Found(False, f"the command cannot be started: {error.strerror}")
        return Found(ended.returncode == 0, f"the command ended with status {ended.returncode}")


# ----------------------------------------------------------------------------
# Reading a condition

FORMS = (
    "deadlock", "refused [KIND]", "different OTHER", "xla crashes|refuses|differs [TEXT]", "peak > BYTES",
    "command COMMAND",
)  # fmt: skip
"""The forms of a condition."""

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_AMOUNT = re.compile(r"([\d_,]+(?:\.\d+)?)\s*([kmg]?i?b?)", re.IGNORECASE)


def read_condition(text: str) -> Condition:
    """The condition that a text states. Raises ValueError with the forms if it states none.

    >>> read_condition("peak > 2 GiB").bytes
    2147483648
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    first, rest = (words[0], words[1:]) if words else ("", [])
    read = _READERS.get(first)
    condition = None if read is None else read(text, rest)
    if condition is None:
        raise ValueError(f"{text!r} is not a condition: expected {', '.join(FORMS)}")
    return condition


def _read_xla(text: str, words: list[str]) -> Condition | None:
    if not words or words[0] not in ("crashes", "refuses", "differs"):
        return None
    return OnXla(text, words[0], " ".join(words[1:]))


def _read_peak(text: str, words: list[str]) -> Condition | None:
    match = _AMOUNT.fullmatch(" ".join(words).removeprefix(">").strip())
    if match is None or not words[0].startswith(">") or match[2].lower() not in _UNITS:
        return None
    return PeakExceeds(text, int(float(match[1].replace(",", "").replace("_", "")) * _UNITS[match[2].lower()]))


def _read_command(text: str, words: list[str]) -> Condition | None:
    command = shlex.split(words[0]) if len(words) == 1 else words
    return CommandSucceeds(text, tuple(command)) if command else None


_READERS: dict[str, Callable[[str, list[str]], Condition | None]] = {
    "deadlock": lambda text, words: None if words else Deadlocks(text),
    "refused": lambda text, words: None if len(words) > 1 else IsRefused(text, *words),
    "different": lambda text, words: None if len(words) > 1 else Differs(text),
    "xla": _read_xla,
    "peak": _read_peak,
    "command": _read_command,
}
