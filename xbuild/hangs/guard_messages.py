"""Reads what `xbuild guard` printed into the log of a job: its verdicts, and for which processes it waited.

Source: `xbuild/guard/programs.py` and `processes.py`, which print the messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .records import GuardMessage, Launch, RankRecord, StuckJob, name_ranks

_MESSAGE = re.compile(r"^(?P<prefix>[^\n]{0,80}?)xbuild guard: (?P<text>[^\n]*)$", re.MULTILINE)
_VERDICT = re.compile(
    r"(?P<name>\S+) (?P<what>is refused|may hang: the data decide); (?P<ending>it (?:was stopped|runs)[^;\n]*)"
)
_DIFFERENT = re.compile(r"(?P<parts>process\S* .*) compiled different programs, and the job (?P<how>would hang\b.*)$")
_WAITING = re.compile(
    r"process (?P<waiting>\d+) waits for process(?:es)? (?P<absent>[\d, ]+) to compile (?P<name>\S+), at most "
)
_CAME = re.compile(r"process (?P<waiting>\d+) goes on: all have compiled (?P<name>\S+), ")
_ABSENT = re.compile(
    r"process(?:es)? (?P<absent>[\d, ]+) compiled no program here in [\d.]+ s: "
    r"process(?:es)? (?P<waiting>[\d, ]+) will wait in (?P<name>\S+)"
)
_UNREAD = re.compile(r"(?P<name>\S+) runs without a verdict: (?P<why>.*)")
_IS_REPORT = re.compile(r"(?:deadlock|error|depends): ")
_MOST_LINES = 60
_GROUP = " on all processes"
"""The end of the name of a group of processes that compile one program."""


def read_guard_messages(job: StuckJob, text: str, source: str) -> bool:
    """Read the guard's messages in a log into the job; False without any."""
    waiting: dict[tuple[str, int], tuple[int, ...]] = {}
    found = False
    for match in _MESSAGE.finditer(text):
        found, said = True, match["text"]
        if verdict := _VERDICT.match(said):
            report = tuple(_report_after(text, match))
            is_stopped = verdict["ending"].startswith("it was stopped")
            _add(job, GuardMessage(verdict["name"], verdict["what"].partition(":")[0], is_stopped, report))
        elif different := _DIFFERENT.match(said):
            words = f"{different['parts']} compiled different programs"
            _add(job, GuardMessage(words, f"and the job {different['how']}", False, ()))
        elif waits := _WAITING.match(said):
            waiting[waits["name"], int(waits["waiting"])] = _numbers(waits["absent"])
        elif came := _CAME.match(said):
            waiting.pop((came["name"], int(came["waiting"])), None)
        elif absent := _ABSENT.match(said):
            ranks = _numbers(absent["waiting"])
            waiting = {key: value for key, value in waiting.items() if key[0] != absent["name"] or key[1] not in ranks}
            _add_absent(job, absent["name"], _numbers(absent["absent"]), ranks, source)
        elif unread := _UNREAD.match(said):
            job.facts.append(f"the guard could not check {unread['name']}: {unread['why']}")
    for (name, rank), missing in waiting.items():
        _add_absent(job, name, missing, (rank,), source)
    return found


def _add(job: StuckJob, message: GuardMessage) -> None:
    if message not in job.guarded:
        job.guarded.append(message)


def _report_after(text: str, message: re.Match[str]) -> Iterator[str]:
    """The lines of the report below a message: a verdict, and the indented lines and empty ones after it."""
    blank = 0
    for number, line in enumerate(text[message.end() + 1 :].split("\n", _MOST_LINES)[:_MOST_LINES]):
        words = line.removeprefix(message["prefix"])
        if number == 0 and not _IS_REPORT.match(words):
            return
        if number and words.strip() and not words.startswith("  "):
            return
        if not words.strip():
            blank += 1
            continue
        yield from [""] * blank
        blank = 0
        yield words.rstrip()


def _add_absent(job: StuckJob, name: str, absent: tuple[int, ...], waiting: tuple[int, ...], source: str) -> None:
    """Add the compilation of a program as a group of processes, at which some wait for those that are absent."""
    group = job.group(f"{name}{_GROUP}")
    group.members = tuple(sorted({*(group.members or ()), *absent, *waiting}))
    for rank in sorted({*absent, *waiting}):
        record = job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True, is_ordered=False))
        if rank in waiting and group.name not in record.launched:
            record.launched[group.name] = 1
            compiled = Launch(group.name, 1, f"compilation of {name}", len(record.operations), False)
            record.replace_operations([*record.operations, compiled])


def leave_out_shutdown(job: StuckJob) -> None:
    """Remove the barrier at the end of scripts if a process that the guard waited for is at it: it only ended."""
    absent = {
        rank
        for name, group in job.groups.items()
        if name.endswith(_GROUP)
        for rank in group.members or ()
        if name not in job.ranks[rank].launched
    }
    for name in [each for each in job.groups if each.startswith("Shutdown")]:
        ended = sorted(rank for rank in absent if name in job.ranks[rank].launched)
        if ended:
            job.facts.append(f"{name_ranks(ended)} ended without compiling the program that the others compiled")
            del job.groups[name]
            for record in job.ranks.values():
                record.launched.pop(name, None)
                record.replace_operations([each for each in record.operations if each.group != name])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d{1,7}", text))
