"""What is found about a stuck job: the ranks at fault, those that wait for them, and what the dumps cannot tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from attrs import define, field

from shape_inference.escaping import in_line

from ..core.report_text import MORE, WIDTH, Line, StyledText, folded, indented, join_words, labelled, more_line, plain
from .records import Launch, Root, StuckJob, name_ranks
from .roots import find_roots, reach_roots
from .waits import JobWaits, build_waits

_SAID = {
    "never_launched": "never launched {op}",
    "not_completed": "did not complete {op}",
    "wrong_op": "launched a different operation",
    "wrong_size": "launched {op} with a different size",
    "wrong_type": "launched {op} with a different element type",
    "wrong_order": "launched operations in a different order",
    "unmatched": "{be} at messages without a partner",
    "dead": "ended",
    "unknown": "left no dump",
}
_FIXES = {
    "never_launched": "let all ranks of the group launch the operation, also those with fewer batches or another path",
    "not_completed": "look at the machine, the GPU and the network of these ranks; the program launched the operation",
    "wrong_op": "let all ranks of the group launch the same operation at this place",
    "wrong_size": "give all ranks of the group arrays with as many elements",
    "wrong_type": "give all ranks of the group arrays of the same element type",
    "wrong_order": "launch the operations of all groups in the same order on all ranks",
    "unmatched": "let each send name the rank of the recv that it belongs to, in the same order on both sides",
    "dead": "look at the log of the rank; after it has ended, all others wait for it",
    "unknown": "collect the dump of these ranks as well; without them, nobody knows whether these ranks are at fault",
}


@define(eq=False)
class Diagnosis:
    """What is found about a stuck job. `roots` are the ranks at fault, by rank.

    `waiting` has, for each rank that waits because of them, the ranks at fault for which it waits, directly or not.
    """

    job: StuckJob = field(repr=False)
    waits: JobWaits = field(repr=False)
    roots: tuple[Root, ...]
    waiting: dict[int, list[int]]

    @cached_property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if not self.roots:
            read = ", ".join(self.job.formats)
            if self.job.rendezvous:
                why = str(self.job.guarded[0]) if self.job.guarded else "the log does not name the missing ones"
                return in_line(f"{self.job.rendezvous[0]}; {why}")
            if self.job.guarded:
                return in_line(str(self.job.guarded[0]))
            if self.job.is_failed and not self.job.ranks:
                return f"a collective failed, so its processes ended; no dump says where each rank was ({read})"
            if not self.job.ranks:
                return f"the logs do not say for which rank another one waits ({read})"
            return f"no rank waits for another one in {len(self.job.ranks):,} dumps ({read})"
        parts = []
        for roots in self._by_kind():
            groups = [*dict.fromkeys(root.group for root in roots if root.group is not None)]
            labels = f" of group{'s' * (len(groups) > 1)} {join_words(map(self._label, groups[:3]))}" if groups else ""
            operation = f"{_operation_text(roots[0])}{labels}"
            be = "is" if len(roots) == 1 else "are"
            said = _SAID[roots[0].kind].format(op=operation, be=be)
            parts.append(f"{name_ranks(root.rank for root in roots)} {said}")
        waiting = f"; {name_ranks(self.waiting)} wait{'s' * (len(self.waiting) == 1)}" if self.waiting else ""
        return in_line(f"{', and '.join(parts)}{waiting}")

    def _by_kind(self) -> Iterator[list[Root]]:
        """The roots of each kind at operations of the same name and number."""
        found: dict[tuple[str, str], list[Root]] = defaultdict(list)
        for root in self.roots:
            found[root.kind, _operation_text(root) if "{op}" in _SAID[root.kind] else ""].append(root)
        yield from found.values()

    def _label(self, group: str) -> str:
        return self.job.groups[group].label if group in self.job.groups else group

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """The lines of the report: the answer, the ranks at fault with their lines, the waits, the fix and notes."""
        yield (StyledText(self.sentence, "bad" if self.roots else "title"),)
        shown, rest = folded(self.roots, all)
        for root in shown:
            yield from self._root_lines(root, width)
        if rest:
            yield more_line(rest, more, "rank")
        if self.waiting:
            yield ()
            yield from self._waiting_lines(all, width, more)
        for fix in dict.fromkeys(_FIXES[root.kind] for root in self.roots):
            yield from labelled("fix", fix, width)
        for message in self.job.guarded:
            yield from labelled("guard", in_line(f"{message.program} {message.what}"), width)
            yield from ((f"    {in_line(line)}".rstrip(),) for line in message.report)
        facts, rest = folded(self.job.facts, all)
        for fact in facts:
            yield from labelled("fact", in_line(fact), width, title="dim")
        if rest:
            yield more_line(rest, more, "fact")
        for limit in self.limits:
            yield from labelled("note", in_line(limit), width, "dim")

    def _root_lines(self, root: Root, width: int) -> Iterator[Line]:
        where = f"group {self._label(root.group)}" if root.group is not None else ""
        text = "; ".join(filter(None, (root.reason, where)))
        yield ("  ", StyledText(f"rank {root.rank}", "bad"), f"  {root.kind}  ", in_line(text))
        for frame in root.frames[:3]:
            yield ("          ", StyledText(in_line(f"{frame.file}:{frame.line} {frame.function}"), "name"))

    def _waiting_lines(self, all: bool, width: int, more: str) -> Iterator[Line]:
        yield (StyledText("waiting", "title"),)
        together: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
        for rank, roots in self.waiting.items():
            together[self._place_text(rank), tuple(roots)].append(rank)
        rows, rest = folded([*together.items()], all)
        for (place, because), ranks in rows:
            text = f"{name_ranks(ranks)} {place}, because of {name_ranks(because)}"
            yield from indented(in_line(text), width, "waits")
        if rest:
            yield more_line(rest, more, "row")

    def _place_text(self, rank: int) -> str:
        frontier = self.waits.frontiers.get(rank)
        if not frontier:
            return "at no recorded operation"
        return f"at {frontier[0]} of group {self._label(frontier[0].group)}"

    @cached_property
    def limits(self) -> tuple[str, ...]:
        """What the dumps cannot tell."""
        found = [*self.job.limits]
        if self.job.absent:
            found.append(f"{name_ranks(self.job.absent)} left no dump")
        overwritten = [record.rank for record in self.job.ranks.values() if record.is_partial]
        if overwritten and "Flight Recorder" in self.job.formats:
            found.append(
                f"the rings of {name_ranks(overwritten)} hold the last operations only; earlier disagreements are not "
                "visible"
            )
        if "Flight Recorder" in self.job.formats and len(self.job.ranks) > 1:
            found.append("clocks of different hosts may differ, so times of different ranks are not compared")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain data, as `xbuild hang --json` prints it."""
        return {
            "sentence": self.sentence,
            "roots": [
                {
                    "rank": root.rank,
                    "kind": root.kind,
                    "group": root.group,
                    "sequence": root.sequence,
                    "frames": [frame.to_dict() for frame in root.frames],
                    "operation": None if root.operation is None else str(root.operation),
                    "reason": root.reason,
                }
                for root in self.roots
            ],
            "waiting": {str(rank): roots for rank, roots in self.waiting.items()},
            "ranks": len(self.job.ranks),
            "formats": dict(self.job.formats),
            "guard": [
                {
                    "program": each.program,
                    "what": each.what,
                    "stopped": each.is_stopped,
                    "report": "\n".join(each.report),
                }
                for each in self.job.guarded
            ],
            "facts": list(self.job.facts),
            "limits": list(self.limits),
        }

    def __str__(self) -> str:
        return plain(self.lines())


def _operation_text(root: Root) -> str:
    operation: Launch | None = root.operation
    return "an operation" if operation is None else str(operation)


def diagnose(job: StuckJob) -> Diagnosis:
    """Find the ranks at fault in a stuck job."""
    waits = build_waits(job)
    roots = find_roots(waits)
    return Diagnosis(job, waits, tuple(roots), reach_roots(waits, roots))
