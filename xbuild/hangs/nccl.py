"""Readers of NCCL's own reports: RAS as text and as JSON, and the records of the Inspector plug-in.

RAS counts the operations that each rank launched in each communicator, without their order across communicators. The
Inspector writes each operation after it has completed.

Source: NCCL, src/ras/client_support.cc (2.28 to 2.30) and plugins/profiler/inspector (format v4.0); untried on real
output.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from .flight_recorder import MOST_RANKS
from .records import DumpError, Launch, RankRecord, Root, StuckJob

UNTRIED = "untried on real output: no {} of a real job was at hand when the reader was written"


@define(eq=False)
class Communicator:
    """The ranks of a communicator, and the number of operations of each kind that each has launched or completed."""

    name: str
    counts: dict[int, Counter[str]] = field(factory=dict)
    is_complete: bool = True
    """Whether all ranks answered."""

    def total(self, rank: int) -> int:
        return sum(self.counts[rank].values())


def _record(job: StuckJob, rank: int, source: str) -> RankRecord:
    if not 0 <= rank < MOST_RANKS:
        raise DumpError(f"rank {rank} is not between 0 and {MOST_RANKS:,}")
    return job.ranks.setdefault(rank, RankRecord(rank, source, is_partial=True, is_ordered=False))


def add_communicators(job: StuckJob, communicators: Iterable[Communicator], source: str, launched: bool) -> None:
    """Add the counts of communicators to the job.

    Ranks that are ahead wait at the first operation that a rank of the communicator has not launched, or completed.
    """
    for each in communicators:
        group = job.group(each.name)
        members = tuple(sorted(each.counts))
        group.members = members if group.members is None else tuple(sorted({*group.members, *members}))
        least = min(map(each.total, members), default=0)
        for rank in members:
            record = _record(job, rank, source)
            total = each.total(rank)
            record.launched[each.name] = total
            if not launched:
                record.completed[each.name] = total
                record.is_completion_count = True
            if total > least:
                name = _differing_name(each, rank, least)
                record.replace_operations(
                    [*record.operations, Launch(each.name, least + 1, name, len(record.operations), False)]
                )
        _flag_different(job, each)


def _differing_name(communicator: Communicator, rank: int, least: int) -> str:
    """The kind of operation that a rank ahead has launched more often than a rank with the least operations."""
    behind = next(other for other in communicator.counts if communicator.total(other) == least)
    more = communicator.counts[rank] - communicator.counts[behind]
    return max(more, key=lambda name: more[name], default="operation")


def _flag_different(job: StuckJob, communicator: Communicator) -> None:
    """Ranks with as many operations as the others, but of other kinds: the minority launched something else."""
    by_total: dict[int, dict[tuple[tuple[str, int], ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, counts in communicator.counts.items():
        by_total[sum(counts.values())][tuple(sorted(counts.items()))].append(rank)
    for total, classes in by_total.items():
        most = max(map(len, classes.values()))
        is_tie = sum(len(ranks) == most for ranks in classes.values()) > 1
        usual = dict(max(classes.items(), key=lambda item: len(item[1]))[0])
        for kinds, ranks in classes.items():
            if not is_tie and len(ranks) == most:
                continue
            listed = ", ".join(f"{count} {name}" for name, count in kinds if is_tie or usual.get(name) != count)
            reason = f"launched {listed}, unlike other ranks of the communicator"
            for rank in ranks:
                job.different[rank] = Root(rank, "wrong_op", communicator.name, total, (), None, reason)


# ----------------------------------------------------------------------------
# RAS as JSON


def is_ras(data: Any) -> bool:
    """Whether plain data have the layout of RAS's report."""
    return isinstance(data, dict) and isinstance(data.get("communicators"), list)


def read_ras(job: StuckJob, data: Mapping[str, Any], source: str) -> None:
    """Read RAS's report as JSON, which covers all ranks. A rank is numbered as in the largest communicator."""
    listed = [each for each in data["communicators"] if isinstance(each, dict)]
    numbers = _ranks_of_processes(listed)
    communicators: list[Communicator] = []
    for each in listed:
        name = str(each.get("hash", len(communicators)))
        communicator = Communicator(name)
        for row in _rows(each, "ranks"):
            rank = numbers.get(_process(row), row.get("rank"))
            counts = row.get("collective_counts")
            if isinstance(rank, int) and isinstance(counts, dict):
                numbers_of = {
                    str(kind): count for kind, count in counts.items() if isinstance(count, int) and count > 0
                }
                communicator.counts[rank] = Counter(numbers_of)
            status = row.get("status")
            if isinstance(rank, int) and isinstance(status, dict) and status.get("async_error"):
                job.facts.append(
                    f"RAS: rank {rank} of communicator {name} has the asynchronous error {status['async_error']}"
                )
        for row in _rows(each, "missing_ranks"):
            rank, status = numbers.get(_process(row), row.get("rank")), row.get("status")
            if not isinstance(rank, int) or not isinstance(status, dict):
                continue
            communicator.is_complete = False
            if status.get("considered_dead"):
                job.dead[rank] = "RAS considers its process dead"
            else:
                job.facts.append(f"RAS: rank {rank} of communicator {name} did not answer")
            group = job.group(name)
            group.members = tuple(sorted({*(group.members or ()), rank}))
        communicators.append(communicator)
    add_communicators(job, communicators, source, launched=True)
    job.formats["NCCL RAS"] = job.formats.get("NCCL RAS", 0) + 1
    job.add_limit("NCCL RAS counts launches: not which of them completed, nor their order across communicators")
    job.add_limit(UNTRIED.format("report of RAS"))


def _rows(communicator: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = communicator.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _process(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(row.get("host")), str(row.get("pid")), str(row.get("cuda_dev"))


def _ranks_of_processes(communicators: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], int]:
    """The rank of each process and GPU in the largest communicator."""
    rows = [[*_rows(each, "ranks"), *_rows(each, "missing_ranks")] for each in communicators]
    largest = max(rows, key=len, default=[])
    return {_process(row): row["rank"] for row in largest if isinstance(row.get("rank"), int)}


# ----------------------------------------------------------------------------
# RAS as text

_BLOCK = re.compile(r"^\s*#(\d+-\d+)\s+\(([0-9a-fA-Fx:]+)\)\s+(\w+)")
_LAUNCHED = re.compile(r"(\d+) ranks? (?:have |has )?launched up to operation (\d+)")
_KIND = re.compile(r"different (\w+) operation counts")
_RANK = re.compile(r"^\s*Ranks?\s+([\d,\s-]+?)(?:\s+--|\s*$)")


def is_ras_text(text: str) -> bool:
    """Whether a text is RAS's report."""
    return "NCCL version" in text and ("Communicators..." in text or "Job summary" in text)


def read_ras_text(job: StuckJob, text: str, source: str) -> None:
    """Read RAS's report as text, which names the ranks that are behind, and the processes that do not answer."""
    communicators: list[Communicator] = []
    name, kind, bucket = "", "", None
    buckets: dict[int, tuple[int, list[int]]] = {}

    def close() -> None:
        size = sum(count for count, _ in buckets.values())
        if len(buckets) < 2 or not 0 < size <= MOST_RANKS:
            return
        named = {rank for _, ranks in buckets.values() for rank in ranks}
        rest = [rank for rank in range(size) if rank not in named]
        found = Communicator(name)
        for number, (count, ranks) in buckets.items():
            for rank in ranks or rest[:count]:
                found.counts[rank] = Counter({kind or "collective": number})
        communicators.append(found)

    is_dead = False
    for line in text.splitlines():
        if match := _BLOCK.match(line):
            close()
            name, kind, bucket, buckets = match[2], "", None, {}
            is_dead = match[3] == "DEAD"
        elif match := _KIND.search(line):
            if buckets:
                close()
                buckets = {}
            kind = match[1] if match[1] != "collective" else ""
        elif match := _LAUNCHED.search(line):
            bucket = int(match[2])
            buckets[bucket] = (int(match[1]), [])
        elif match := _RANK.match(line):
            ranks = [int(part) for part in re.findall(r"\d{1,7}", match[1])]
            if bucket is not None:
                buckets[bucket][1].extend(ranks)
            elif is_dead or "dead" in line.lower():
                job.dead.update(dict.fromkeys(ranks, "RAS considers its process dead"))
        elif "considered dead" in line:
            is_dead = True
            job.facts.append(f"RAS: {line.strip()}")
    close()
    add_communicators(job, communicators, source, launched=True)
    job.formats["NCCL RAS"] = job.formats.get("NCCL RAS", 0) + 1
    job.add_limit("RAS's text numbers ranks as in their communicator; with several communicators, take the JSON form")
    job.add_limit(UNTRIED.format("report of RAS"))


# ----------------------------------------------------------------------------
# NCCL Inspector


def is_inspector(data: Any) -> bool:
    """Whether plain data are a record of NCCL Inspector, or a list of them."""
    rows = data if isinstance(data, list) else [data]
    return bool(rows) and all(
        isinstance(row, dict) and isinstance(row.get("header"), dict) and ("coll_perf" in row or "p2p_perf" in row)
        for row in rows
    )


def read_inspector(job: StuckJob, data: Any, source: str) -> None:
    """Read the records of NCCL Inspector: the last completed collective of each rank in each communicator."""
    last: dict[str, dict[int, tuple[int, str]]] = defaultdict(dict)
    for row in data if isinstance(data, list) else [data]:
        header, collective = row["header"], row.get("coll_perf")
        rank = header.get("rank")
        if not isinstance(collective, dict) or not isinstance(rank, int):
            continue
        number = collective.get("coll_sn")
        if isinstance(number, int):
            name = str(header.get("comm_name") or header.get("id", "0"))
            kind = str(collective.get("coll", "collective"))
            last[name][rank] = max(last[name].get(rank, (-1, "")), (number, kind))
    for name, ranks in last.items():
        for rank, (number, kind) in ranks.items():
            known = job.inspected.setdefault(name, {})
            known[rank] = max(known.get(rank, (-1, "")), (number, kind))
    job.formats["NCCL Inspector"] = job.formats.get("NCCL Inspector", 0) + 1
    job.add_limit(
        "NCCL Inspector writes completed operations only: it cannot tell a rank that never launched one from a rank "
        "whose operation did not complete"
    )
    job.add_limit(UNTRIED.format("output of NCCL Inspector"))


def add_inspected(job: StuckJob) -> None:
    """Add what all files of NCCL Inspector hold together."""
    communicators = []
    for name, ranks in job.inspected.items():
        found = Communicator(name)
        for rank, (number, _) in ranks.items():
            found.counts[rank] = Counter({"operation": number})
        communicators.append(found)
    add_communicators(job, communicators, "NCCL Inspector", launched=False)
