"""Readers of logs: XLA's rendezvous and progress lines, TPU digests, and lines that say that a rank has ended.

Source: XLA, xla/service/rendezvous.cc (read from a stuck run of jaxlib 0.10.2) and
xla/backends/gpu/runtime/thunk_executor.cc; the coordination service of XLA; torch.distributed.elastic;
docs/megascale/debugging_workflow.md of openxla.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from .guard_messages import read_guard_messages
from .records import DumpError, Launch, RankRecord, Root, StuckJob, XlaRendezvous, name_ranks, ranges

MOST_TASKS = 1 << 20

# ----------------------------------------------------------------------------
# XLA's rendezvous: each thread that waits says for what

_WAITING = re.compile(
    r"(?:\[id=(?P<id>\d+)\] )?(?:This thread has been waiting for|Termination timeout for)"
    r"[^`\n]*`(?P<what>[^`\n]*?)\s*RendezvousKey\{(?P<key>[^}\n]*)\}`"
)
_OLD_WAITING = re.compile(
    r"participant [^\n]*?\b(?:rank|device(?:_ordinal)?)=(?P<rank>\d+)[^\n]*?RendezvousKey\{(?P<key>[^}\n]*)\}"
)
_DEVICES = re.compile(r"global_devices=\[([\d, ]*)\]")
_PARTICIPANTS = re.compile(r"num_local_participants=(\d+)")
_OP = re.compile(r"op_id=(-?\d+)")
_UNSTUCK = re.compile(r"This thread is unstuck waiting for[^`\n]*`[^`\n]*?RendezvousKey\{([^}\n]*)\}`")


def _read_rendezvous(text: str) -> Iterator[XlaRendezvous]:
    waiting: dict[str, set[int]] = defaultdict(set)
    names: dict[str, str] = {}
    for match in _WAITING.finditer(text):
        key = match["key"]
        waiting[key].add(int(match["id"] or len(waiting[key])))
        names[key] = match["what"]
    for key in _UNSTUCK.findall(text):
        waiting.pop(key, None)
    for key, ids in waiting.items():
        devices, participants, op = _DEVICES.search(key), _PARTICIPANTS.search(key), _OP.search(key)
        listed = tuple(int(each) for each in re.findall(r"\d{1,7}", devices[1])) if devices else ()
        count = int(participants[1][:7]) if participants else len(listed)
        yield XlaRendezvous(names[key], listed, count, len(ids), int(op[1][:18]) if op else None)


def _read_old_rendezvous(job: StuckJob, text: str, source: str) -> bool:
    """Older releases name the rank of each participant that waits."""
    waiting: dict[str, set[int]] = defaultdict(set)
    for match in _OLD_WAITING.finditer(text):
        waiting[match["key"]].add(int(match["rank"][:7]))
    for key, ranks in waiting.items():
        devices, op = _DEVICES.search(key), _OP.search(key)
        members = tuple(int(each) for each in re.findall(r"\d{1,7}", devices[1])) if devices else tuple(sorted(ranks))
        number = int(op[1][:18]) if op else 1
        group = job.group(f"devices {ranges(members)}")
        group.members = members
        for rank in members:
            record = job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True, is_ordered=False))
            if rank in ranks:
                record.launched[group.name] = number
                record.replace_operations([
                    *record.operations, Launch(group.name, number, "collective", len(record.operations), False)
                ])  # fmt: skip
    return bool(waiting)


# ----------------------------------------------------------------------------
# XLA:GPU's progress: the thunks, named as HLO instructions, that each device has not completed

_TITLE = re.compile(r"\[(\d+)\] (?P<title>(?:Completed|Pending|Last completed|First pending|Last pending) thunks)")
_THUNK = re.compile(r"- exec\[(\d+)\] thunk\[(\d+)/(\d+)\] (\w+): (\S+) at ")
PROGRESS = "thunks"


def _read_progress(job: StuckJob, text: str, source: str) -> bool:
    first: dict[int, tuple[int, str]] = {}
    device, title = None, ""
    for line in text.splitlines():
        if match := _TITLE.search(line):
            device, title = int(match[1][:7]), match["title"]
        elif (match := _THUNK.search(line)) and device is not None and title == "First pending thunks":
            place = (int(match[1][:15]), match[5])
            first[device] = min(first.get(device, place), place)
    if not first:
        return False
    group = job.group(PROGRESS)
    group.members = tuple(sorted({*(group.members or ()), *first}))
    for rank, (number, name) in first.items():
        record = job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True))
        record.launched[PROGRESS] = number
        record.completed[PROGRESS] = number - 1
        record.replace_operations([Launch(PROGRESS, number, name, 0, False)])
    job.add_limit("untried on real output: no progress lines of XLA:GPU were at hand when the reader was written")
    return True


# ----------------------------------------------------------------------------
# TPU digests: which module and HLO instruction each core is in

_CAUSES = (
    "Bad TPU chip", "Networking", "Different module", "Fingerprint mismatch for HLO module", "Data input stall",
    "Unrecoverable",
)  # fmt: skip
_MODULE = re.compile(r"\bModule:?\s+([^\s,;]+)")
_FINGERPRINT = re.compile(r"\bFingerprint:?\s+([0-9a-zA-Z]+)")
_CORES = re.compile(r"(\d+)@([^\s(]*)\s*\(([^)\n]*)\):\s*\[([^\]\n]*)\]")
_CORE = re.compile(r"(\d+):([^@\s,]+)@(\d+):(\d+)")


def _read_digest(job: StuckJob, text: str, source: str) -> bool:
    module, fingerprint = "", ""
    at: dict[tuple[int, str, int, int], tuple[str, str, str]] = {}
    for line in text.splitlines():
        if match := _MODULE.search(line):
            module = match[1]
        if match := _FINGERPRINT.search(line):
            fingerprint = match[1]
        for match in _CORES.finditer(line):
            for each in _CORE.finditer(match[4]):
                at[int(each[1][:7]), each[2], int(each[3][:7]), int(each[4][:7])] = (module, fingerprint, match[3])
    if not at or not ("TPU states" in text or "breakdown" in text):
        return False
    numbers = {core: number for number, core in enumerate(sorted(at))}
    by_program: dict[tuple[str, str], list[int]] = defaultdict(list)
    by_place: dict[str, list[int]] = defaultdict(list)
    group = job.group("TPU cores")
    group.members = tuple(numbers.values())
    for core, rank in numbers.items():
        by_program[at[core][:2]].append(rank)
        by_place[at[core][2]].append(rank)
        record = job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True))
        record.launched[group.name] = 0
        record.replace_operations([Launch(group.name, 0, at[core][2], 0, False)])
        job.facts.append(
            f"rank {rank} is task {core[0]}, host {core[1]}, chip {core[2]}, core {core[3]}, at {at[core][2]}"
        )
    is_other_program = len(by_program) > 1
    classes = {str(key): ranks for key, ranks in by_program.items()} if is_other_program else dict(by_place)
    most = max(map(len, classes.values()))
    is_tie = sum(len(ranks) == most for ranks in classes.values()) > 1
    for what, ranks in classes.items():
        if len(classes) > 1 and (is_tie or len(ranks) < most):
            kind = "wrong_op" if is_other_program else "not_completed"
            reason = f"runs another module: {what}" if is_other_program else f"is at {what}"
            for rank in ranks:
                job.different[rank] = Root(rank, kind, group.name, None, (), None, reason)
    job.facts += [f"the digest names the cause: {cause}" for cause in _CAUSES if cause in text]
    job.add_limit("untried on real output: no TPU digest of a real job was at hand when the reader was written")
    return True


# ----------------------------------------------------------------------------
# Lines that say that a rank has ended

_ROOT_CAUSE = re.compile(
    r"Root Cause \(first observed failure\):.{0,400}?rank\s*:\s*(\d{1,7}) .{0,200}?exitcode\s*:\s*(-?\d{1,5})",
    re.DOTALL,
)
_SIGNALLED = re.compile(
    r"process rank (?P<mpi>\d{1,7}) with PID [^\n]{0,80}? exited on signal (?P<signal>\d{1,3})"
    r"|srun: error: [^\n]{0,80}?: tasks? (?P<slurm>\d{1,7}): (?P<why>Killed|Segmentation fault|Bus error|Out Of Memory)"
    r"|\b[Rr]ank[ :=]{1,3}(?P<plain>\d{1,7})\b[^\n]{0,60}?\b(?:exit\w*|killed|ended|terminated|died)\b[^\n]{0,40}?"
    r"(?:SIG(?P<name>KILL|SEGV|BUS|ILL|FPE)|-(?P<code>4|7|8|9|11))\b"
    r"|failed \(exitcode: -(?P<elastic>4|7|8|9|11)\) local_rank: (?P<local>\d{1,7}) "
)
_BY_OTHERS = {-15: "SIGTERM", -2: "SIGINT", -6: "SIGABRT"}
_SIGNALS = {-9: "SIGKILL", -11: "SIGSEGV", -7: "SIGBUS", -4: "SIGILL", -8: "SIGFPE"}


_ABORTED = re.compile(r"\brank\s*:\s*(\d{1,7}) [^\n]{0,80}\n\s*exitcode\s*:\s*-6\b")
_DISCONNECTED = re.compile(r"Connection (?:closed|reset) by peer")
_GLOO_FAILED = re.compile(r"Gloo ([a-z][a-z-]{1,30}) failed: ")
_RECEIVED = re.compile(r"op\.preamble\.length <= op\.nbytes\. (\d{1,15}) vs (\d{1,15})")


def _read_ends(job: StuckJob, text: str) -> bool:
    found = False
    for match in _RECEIVED.finditer(text):
        found = True
        job.is_failed = True
        job.received.append((int(match[1]), int(match[2])))
        fact = f"gloo ended a rank that received {match[1]} bytes where it expected {match[2]}"
        if fact not in job.facts:
            job.facts.append(fact)
    if found:
        job.aborted |= {int(match[1]) for match in _ABORTED.finditer(text)}
    if _DISCONNECTED.search(text):
        job.is_disconnected = True
    for collective in dict.fromkeys(_GLOO_FAILED.findall(text)):
        found = job.is_failed = True
        fact = f"gloo: the {collective} of a process failed"
        if fact not in job.facts:
            job.facts.append(fact)
    for rank, code in ((int(match[1]), int(match[2])) for match in _ROOT_CAUSE.finditer(text)):
        found = True
        if code in _BY_OTHERS:
            continue  # the launcher or a watchdog ended it
        if code < 0:
            job.dead[rank] = f"the launcher saw it end first, by {_SIGNALS.get(code, f'signal {-code}')}"
        elif code:
            job.ended[rank] = f"the launcher saw it end first, with exit code {code}"
    for match in _SIGNALLED.finditer(text):
        rank = next(int(match[name]) for name in ("mpi", "slurm", "plain", "local") if match[name])
        signal = match["signal"] or match["code"] or match["elastic"]
        if signal is None or -int(signal) not in _BY_OTHERS:
            how = match["why"] or (match["name"] and f"SIG{match['name']}") or _SIGNALS.get(-int(signal or 0), "")
            job.dead.setdefault(rank, f"a log says that it was ended by {how or f'signal {signal}'}")
            found = True
    return found


# ----------------------------------------------------------------------------
# XLA's coordination service, which jax.distributed starts: barriers that time out, and heartbeats that stop

_TASK = r"(?:/job:\w+/replica:\d+/task:)?\d{1,7}"
_BARRIER = re.compile(
    r"Barrier timed out\. Id: (?P<name>[^\s]{1,200}?)(?:::\d+)*\. [^\n]*\n"
    r"# of tasks that reached the barrier: (?P<arrived>\d{1,7})/(?P<all>\d{1,7})\.\s*\n"
    rf"The first task at the barrier: (?P<first>{_TASK})\. Some timed out task names:\s*\n(?P<missing>(?:{_TASK}\n)*)"
)
_HEARTBEAT = re.compile(rf"\b(?:Task )?({_TASK}) (?:heartbeat timeout|is unhealthy)")
_UNHEALTHY = re.compile(rf"tasks are unhealthy \(stopped sending heartbeats\):\s*((?:{_TASK}\s+)+)")


def _read_coordination(job: StuckJob, text: str, source: str) -> bool:
    """Read which tasks never reached a barrier, and whose heartbeats stopped.

    Tasks end after a barrier has timed out, so later heartbeats of those that never came are no cause. The service's
    barrier after a signal to end says nothing of the program.
    """
    barriers = [each for each in _BARRIER.finditer(text) if not each["name"].startswith("PREEMPTION_SYNC_BARRIER")]
    if barriers:
        _add_barrier(job, barriers[0], source)
    stopped = {number: match.start() for match in _HEARTBEAT.finditer(text) for number in _task_numbers(match[1])}
    for match in _UNHEALTHY.finditer(text):
        for number in _task_numbers(match[1]):
            stopped[number] = min(stopped.get(number, match.start()), match.start())
    first = barriers[0].start() if barriers else len(text)
    for number, place in sorted(stopped.items()):
        if place < first:
            job.dead[number] = "its heartbeats to the coordination service stopped"
        else:
            job.facts.append(f"the heartbeats of rank {number} stopped after the barrier had timed out")
    return bool(barriers or stopped)


def _task_numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"(?:^|\s|task:)(\d{1,7})\b(?!/)", text)]


def _add_barrier(job: StuckJob, barrier: re.Match[str], source: str) -> None:
    """Add a barrier as a group of all tasks; those that are not listed as missing have come if the list is complete."""
    size, arrived = int(barrier["all"]), int(barrier["arrived"])
    if size > MOST_TASKS:
        raise DumpError(f"{source}: a barrier of {size:,} tasks; the limit is {MOST_TASKS:,}")
    missing = {*_task_numbers(barrier["missing"])}
    group = job.group(barrier["name"])
    group.members = tuple(range(size))
    is_complete = len(missing) == size - arrived
    came = {*range(size)} - missing if is_complete else {*_task_numbers(barrier["first"])}
    for rank in sorted(missing | came):
        record = job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True, is_ordered=False))
        if rank in came:
            record.launched[group.name] = 1
            record.replace_operations([
                *record.operations, Launch(group.name, 1, "barrier", len(record.operations), False)
            ])  # fmt: skip
    if group.name.startswith("Shutdown"):
        job.add_limit(
            f"a process reaches this barrier when its script ends: {name_ranks(came)} ended while "
            f"{name_ranks(missing)} still ran, perhaps in a program that needs the others; `xbuild check` on the dumps "
            "of all processes compares their programs"
        )
    if not is_complete:
        job.add_limit(f"the log lists {len(missing):,} of the {size - arrived:,} tasks that never reached the barrier")


# ----------------------------------------------------------------------------
# All of them


def read_log(job: StuckJob, text: str, source: str) -> bool:
    """Read what a log says about a hang into the job; False if it says nothing."""
    found = False
    rendezvous = [*_read_rendezvous(text)]
    if rendezvous:
        job.rendezvous += rendezvous
        job.facts += [f"{each}, {source}" for each in map(str, rendezvous)]
        job.add_limit("XLA's rendezvous lines say how many participants arrived, not which of them are missing")
        found = _count(job, "XLA rendezvous")
    if _read_old_rendezvous(job, text, source):
        found = _count(job, "XLA rendezvous")
    if _read_progress(job, text, source):
        found = _count(job, "XLA progress")
    if _read_digest(job, text, source):
        found = _count(job, "TPU digest")
    if _read_coordination(job, text, source):
        found = _count(job, "coordination service")
    if read_guard_messages(job, text, source):
        found = _count(job, "xbuild guard")
    if _read_ends(job, text):
        found = _count(job, "log of a launcher")
    return found


def _count(job: StuckJob, name: str) -> bool:
    job.formats[name] = job.formats.get(name, 0) + 1
    return True
