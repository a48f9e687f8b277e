"""Removes paths, hosts and names from what dumps say, so that a report can be passed on; ranks and numbers stay."""

from __future__ import annotations

import re

from attrs import define, evolve, field

from .records import Group, Launch, Root, StackFrame, StuckJob

_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}\b")
_HOST = re.compile(r"\b(host|node) ([^\s,;]+)")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\\/][^\s:,;'\"]+|\b[\w.-]+\.(?:py|log|json|pkl|txt|gz)\b")


@define
class Redaction:
    """Replaces each name by a word and a number: the same name always by the same."""

    _known: dict[tuple[str, str], str] = field(factory=dict)

    def name(self, word: str, text: str) -> str:
        """The replacement of a name; an empty name stays empty."""
        if not text:
            return text
        number = 1 + sum(each[0] == word for each in self._known)
        return self._known.setdefault((word, text), f"{word}{number}")

    def frame(self, frame: StackFrame) -> StackFrame:
        return StackFrame(self.name("file", frame.file), frame.line, self.name("function", frame.function))

    def group(self, text: str) -> str:
        """The replacement of the name of a group; a number says nothing and stays."""
        return text if text.isdigit() else self.name("group", text)

    def operation(self, operation: Launch) -> Launch:
        return evolve(
            operation,
            group=self.group(operation.group),
            name=operation.name if operation.name in _COMMON else self.name("operation", operation.name),
            frames=tuple(map(self.frame, operation.frames)),
        )

    def sentence(self, text: str) -> str:
        """A sentence without addresses, hosts and paths, and without the names that were replaced before."""
        for (word, name), hidden in self._known.items():
            if word in ("operation", "group", "function"):
                text = text.replace(name, hidden)
        text = _HOST.sub(lambda match: f"{match[1]} {self.name('host', match[2])}", text)
        text = _ADDRESS.sub(lambda match: self.name("host", match[0]), text)
        return _PATH.sub(lambda match: self.name("file", match[0]), text)


_COMMON = frozenset((
    "all_gather", "all_reduce", "all_to_all", "alltoall", "barrier", "broadcast", "coalesced", "collective", "gather",
    "operation", "recv", "reduce", "reduce_scatter", "scatter", "send", "AllGather", "AllReduce", "AllToAll",
    "Broadcast",
    "Gather", "Recv", "Reduce", "ReduceScatter", "Scatter", "Send",
))  # fmt: skip
"""Names of operations that say nothing about a program."""


def redact_job(job: StuckJob) -> StuckJob:
    """The job without paths, hosts and names: each is replaced by a word and a number."""
    redaction = Redaction()
    found = StuckJob(formats=dict(job.formats), rendezvous=list(job.rendezvous), is_failed=job.is_failed)
    for rank, record in job.ranks.items():
        copy = evolve(
            record,
            source=f"dump of rank {rank}",
            launched={redaction.group(name): number for name, number in record.launched.items()},
            completed={redaction.group(name): number for name, number in record.completed.items()},
        )
        copy.replace_operations(map(redaction.operation, record.operations))
        found.ranks[rank] = copy
    for name, group in job.groups.items():
        hidden = redaction.group(name)
        found.groups[hidden] = Group(hidden, "default_pg" if group.description == "default_pg" else "", group.members)
    found.dead = {rank: redaction.sentence(text) for rank, text in job.dead.items()}
    found.ended = {rank: redaction.sentence(text) for rank, text in job.ended.items()}
    found.different = {rank: _redact_root(redaction, root) for rank, root in job.different.items()}
    if job.guarded:
        found.add_limit("the reports of the guard are left out, because they contain names and paths")
    found.guarded = [evolve(each, program=redaction.name("program", each.program), report=()) for each in job.guarded]
    found.facts = [redaction.sentence(text) for text in job.facts]
    found.limits += [redaction.sentence(text) for text in job.limits]
    return found


def _redact_root(redaction: Redaction, root: Root) -> Root:
    group = None if root.group is None else redaction.group(root.group)
    reason = root.reason.partition(":")[0]
    return evolve(root, group=group, frames=tuple(map(redaction.frame, root.frames)), reason=redaction.sentence(reason))
