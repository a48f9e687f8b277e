"""What a stuck job left, in one form for all formats: the operations of each rank, and how far it came in each group.

A rank *launches* the operations of a group in order, and each gets the next sequence number of the group; later the
operation *completes*. Recorders that keep only counts give the counts without operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field, frozen

from shape_inference.escaping import Harmless


class DumpError(Harmless):
    """The error for a dump that is refused: of no known format, damaged, hostile, or too large."""


@frozen
class StackFrame:
    """A line of Python on the stack of a launch; innermost frames come first."""

    file: str
    line: int
    function: str

    @property
    def is_of_user(self) -> bool:
        """Whether the frame is in the user's code and not in an installed package or in Python itself."""
        parts = self.file.replace("\\", "/").split("/")
        return not (
            {"site-packages", "dist-packages"} & {*parts}
            or self.file.startswith("<")
            or "torch/distributed" in self.file
        )

    def to_dict(self) -> dict[str, object]:
        """The frame as plain data."""
        return {"file": self.file, "line": self.line, "function": self.function}


def user_frames(frames: Sequence[StackFrame]) -> tuple[StackFrame, ...]:
    """The frames in the user's code; all frames if none is."""
    return tuple(frame for frame in frames if frame.is_of_user) or tuple(frames)


@frozen
class Launch:
    """One launch of a rank. `place` orders the launches of the rank; those of one `batch` were launched together.

    `pair` is the sender and the receiver of a message, as ranks of the job; it is None for a collective. `sequence`
    is the number of the collective in its group, or of the message among those of the group. Counts are numbers of
    elements. `is_started` is None if the recorder does not tell.
    """

    group: str
    sequence: int
    name: str
    place: int
    is_done: bool
    is_started: bool | None = None
    pair: tuple[int, int] | None = None
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    batch: int = -1

    @property
    def key(self) -> tuple[str, int]:
        return self.group, self.sequence

    def __str__(self) -> str:
        if self.pair is not None:
            return f"{self.name} {self.pair[0]} -> {self.pair[1]}"
        return f"{self.name} #{self.sequence}"


KINDS = (
    "never_launched", "not_completed", "wrong_op", "wrong_size", "wrong_type", "wrong_order", "unmatched", "dead",
    "unknown",
)  # fmt: skip


@frozen
class Root:
    """A rank at fault. `operation` is the operation that is missing or at which the rank is; `reason` a sentence."""

    rank: int
    kind: str
    group: str | None
    sequence: int | None
    frames: tuple[StackFrame, ...] = ()
    operation: Launch | None = None
    reason: str = ""


@define(eq=False)
class Group:
    """A group of ranks that execute collectives together. `members` is None if no dump lists them.

    `unseen` are ranks that may be members as well, and that are missing if they are.
    """

    name: str
    description: str = ""
    members: tuple[int, ...] | None = None
    unseen: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The name, with the description if there is one."""
        generic = ("", "undefined", self.name)
        return self.name if self.description in generic else f"{self.name} ({self.description})"


@define(eq=False)
class RankRecord:
    """What one rank recorded.

    `launched` and `completed` are the last sequence number of each group, where they are known. `is_partial` says that
    the recorder does not hold the first operations of the rank, and `newest` is the number of its last record.
    `is_ordered` is False if the recorder does not tell in which order the rank launched operations of different groups.
    With `is_completion_count` it knows completed operations only.
    """

    rank: int
    source: str = ""
    operations: list[Launch] = field(factory=list)
    launched: dict[str, int] = field(factory=dict)
    completed: dict[str, int] = field(factory=dict)
    is_partial: bool = False
    newest: int = -1
    is_ordered: bool = True
    is_completion_count: bool = False
    _by_key: dict[tuple[str, int], Launch] | None = field(default=None, init=False)

    def find(self, group: str, sequence: int) -> Launch | None:
        """The collective with this number in a group; None if it is not recorded."""
        if self._by_key is None:
            self._by_key = {each.key: each for each in self.operations if each.pair is None}
        return self._by_key.get((group, sequence))

    def replace_operations(self, operations: Iterable[Launch]) -> None:
        """Set the operations."""
        self.operations, self._by_key = [*operations], None

    @property
    def has_only_pending(self) -> bool:
        """Whether the dump leaves out what has completed."""
        return self.is_partial and not any(each.is_done for each in self.operations)

    @property
    def pending(self) -> list[Launch]:
        """The operations that were launched and have not completed, in the order of the launches."""
        return [each for each in self.operations if not each.is_done]

    @property
    def frontier(self) -> list[Launch]:
        """The operations at which the rank is blocked: the first one that has not completed, and those of its batch.

        If the recorder keeps no order, these are all that have not completed.
        """
        pending = self.pending
        if not pending or not self.is_ordered:
            return pending
        return [each for each in pending if each.batch == pending[0].batch or each is pending[0]]


@frozen
class XlaRendezvous:
    """A collective at which some participants wait: how many have come, of how many, and its channel id."""

    what: str
    devices: tuple[int, ...]
    participants: int
    arrived: int
    channel: int | None

    @property
    def opcode(self) -> str:
        """The opcode of the instruction: XLA writes it with spaces."""
        return self.what.strip().replace(" ", "-") or "collective"

    def __str__(self) -> str:
        number = f" with channel id {self.channel}" if self.channel is not None else ""
        return (
            f"{self.arrived} of {self.participants} participants reached {self.opcode}{number} of devices "
            f"{ranges(self.devices)}"
        )


@frozen
class GuardMessage:
    """What `xbuild guard` said: of which program, what, whether it stopped it, and the lines of its report."""

    program: str
    what: str
    is_stopped: bool
    report: tuple[str, ...]

    def __str__(self) -> str:
        verdict = f": {self.report[0].removeprefix('depends: ')}" if self.report else ""
        ending = "; it was stopped before it ran" if self.is_stopped else ""
        return f"the guard says that {self.program} {self.what}{verdict}{ending}"


@define(eq=False)
class StuckJob:
    """All ranks and groups of a job, and what the dumps say beyond them.

    `dead` has the evidence that a rank has ended, by rank. `ended` are ranks that ended without a signal, `aborted`
    those that the back end ended because of what they received, and `received` the bytes that came and those that were
    expected. `is_disconnected` and `is_failed` say that a log reports lost connections, and a collective that failed.

    `absent` are ranks that other dumps name and that left no dump, and `unlisted` groups whose members no dump lists.
    `different` are roots that a format states itself. `inspected` has the last operation of each rank in each
    communicator of NCCL Inspector, and `rendezvous` what XLA's logs say about collectives at which participants wait.
    `guarded` is what `xbuild guard` said about programs.

    `formats` are the formats that were read, `limits` sentences on what these dumps cannot tell, and `facts` sentences
    that dumps state and that concern no single rank. `programs` are the files that are programs.
    """

    ranks: dict[int, RankRecord] = field(factory=dict)
    groups: dict[str, Group] = field(factory=dict)
    dead: dict[int, str] = field(factory=dict)
    ended: dict[int, str] = field(factory=dict)
    aborted: set[int] = field(factory=set)
    received: list[tuple[int, int]] = field(factory=list)
    is_disconnected: bool = False
    is_failed: bool = False
    different: dict[int, Root] = field(factory=dict)
    inspected: dict[str, dict[int, tuple[int, str]]] = field(factory=dict)
    rendezvous: list[XlaRendezvous] = field(factory=list)
    guarded: list[GuardMessage] = field(factory=list)
    formats: dict[str, int] = field(factory=dict)
    limits: list[str] = field(factory=list)
    facts: list[str] = field(factory=list)
    unlisted: list[str] = field(factory=list)
    programs: list[str] = field(factory=list)

    def group(self, name: str) -> Group:
        """The group with this name, added if it is missing."""
        if name not in self.groups:
            self.groups[name] = Group(name)
        return self.groups[name]

    @property
    def absent(self) -> list[int]:
        """The ranks that the groups list or that lie between ranks with a dump, without a dump of their own."""
        named = {rank for group in self.groups.values() for rank in group.members or ()}
        return sorted((named | {*range(max(self.ranks, default=-1) + 1)}) - {*self.ranks})

    def add_limit(self, sentence: str) -> None:
        """Add a sentence on what the dumps cannot tell, once."""
        if sentence not in self.limits:
            self.limits.append(sentence)


def ranges(ranks: Iterable[int]) -> str:
    """Ranks as text, with runs of neighbours shortened.

    >>> ranges([0, 1, 2, 5, 8, 7])
    '0-2, 5, 7, 8'
    """
    runs: list[list[int]] = []
    for rank in sorted({*ranks}):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def name_ranks(ranks: Iterable[int]) -> str:
    """Ranks with their noun.

    >>> name_ranks([3]), name_ranks([3, 4])
    ('rank 3', 'ranks 3, 4')
    """
    found = sorted({*ranks})
    return f"rank{'s' * (len(found) != 1)} {ranges(found)}"
