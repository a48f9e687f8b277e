"""Reader of PyTorch's Flight Recorder: pickle and JSON, versions 2.4 to 2.10, of NCCL, gloo, HCCL, XCCL and others.

Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp; torch_npu and others write the same layout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .records import DumpError, Launch, RankRecord, StackFrame, StuckJob

MOST_ENTRIES = 1_000_000
MOST_RANKS = 1 << 20
_PAIR = re.compile(r"(\d+)\s*(->|<-)\s*(\d+)")
_RANKS = re.compile(r"\s*\[[\d\s,]*\]\s*")
_BATCH = "coalesced"


def is_flight_recorder(data: Any) -> bool:
    """Whether plain data have the layout of a dump of the Flight Recorder."""
    return isinstance(data, dict) and "entries" in data and ("version" in data or "pg_config" in data)


def read_flight_recorder(job: StuckJob, data: Mapping[str, Any], rank: int, source: str) -> RankRecord:
    """Read the dump of one rank into the job; raises DumpError for data of another layout."""
    version = str(data.get("version", ""))
    if version and not version.startswith("2."):
        raise DumpError(f"{source}: version {version} of the Flight Recorder; xbuild reads versions 2.4 to 2.10")
    entries = data.get("entries") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DumpError(f"{source}: the entries of the dump are not a list of dicts")
    if len(entries) > MOST_ENTRIES:
        raise DumpError(f"{source}: the dump has {len(entries):,} entries; the limit is {MOST_ENTRIES:,}")
    record = RankRecord(rank, source)
    names = _read_groups(job, data, entries)
    frames: dict[tuple[str, int, str], StackFrame] = {}
    raw = sorted(entries, key=lambda entry: _number(entry.get("record_id"), 0))
    _read_counts(job, record, data, raw, names)
    record.is_partial = not raw or _number(raw[0].get("record_id"), 0) > 0
    record.newest = _number(raw[-1].get("record_id"), -1) if raw else -1
    record.replace_operations(_finish_batches(_operations(job, record, raw, frames)))
    for each in record.operations:
        if each.pair is None:
            record.launched[each.group] = max(record.launched.get(each.group, -1), each.sequence)
    job.ranks[rank] = record
    return record


# ----------------------------------------------------------------------------
# Groups, and how far the rank came in each


def _read_groups(job: StuckJob, data: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Add the groups of a dump to the job; returns the name of the group of each number that the rank uses for it."""
    named: list[str] = []
    config = data.get("pg_config")
    for key, value in (config if isinstance(config, dict) else {}).items():
        if not isinstance(value, dict):
            continue
        name = str(value.get("name", key))
        members = _member_ranks(value.get("ranks"))
        if not members:
            continue  # gloo writes one group without a name and without ranks
        group = job.group(name)
        group.members = members if group.members is None else tuple(sorted({*group.members, *members}))
        group.description = group.description or str(value.get("desc", ""))
        named.append(name)
    names: dict[int, str] = {}
    for entry in entries:
        found, description = _process_group(entry)
        names[_number(entry.get("pg_id"), -1)] = found
        group = job.group(found)
        group.description = group.description or description
    # Groups without entries: numbers and names both follow the order in which the groups were made.
    status = data.get("pg_status")
    numbers = sorted(_number(key, -1) for key in status) if isinstance(status, dict) else []
    if len(numbers) == len(named) and all(name.isdigit() for name in named):
        by_order = dict(zip(numbers, sorted(named, key=int), strict=True))
        if all(by_order.get(number) == name for number, name in names.items()):
            return by_order
    elif not named:  # gloo: the number is the name
        return {**{number: str(number) for number in numbers}, **names}
    return names


def _process_group(entry: Mapping[str, Any]) -> tuple[str, str]:
    found = entry.get("process_group")
    if isinstance(found, (list, tuple)) and found:
        return str(found[0]), str(found[1]) if len(found) > 1 else ""
    return str(entry.get("pg_id", "0")), ""


def _member_ranks(text: Any) -> tuple[int, ...]:
    """The ranks of a group, which the recorder writes as text."""
    if isinstance(text, (list, tuple)):
        found = [rank for rank in text if isinstance(rank, int)]
    elif isinstance(text, str) and _RANKS.fullmatch(text):
        found = [int(part) for part in re.findall(r"\d{1,9}", text)]
    else:
        return ()
    if len(found) > MOST_RANKS or any(not 0 <= rank < MOST_RANKS for rank in found):
        raise DumpError(
            f"the dump lists a group of {len(found):,} ranks, the highest of which is rank {max(found):,}; "
            f"the limit is {MOST_RANKS:,}"
        )
    return tuple(found)


def _read_counts(
    job: StuckJob,
    record: RankRecord,
    data: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
) -> None:
    """Read the last launched and completed number of each group.

    In a group with messages these numbers count the messages instead, so they are used only for other groups.
    """
    status = data.get("pg_status")
    if not isinstance(status, dict):
        return
    with_messages = {_process_group(entry)[0] for entry in entries if _is_message(entry)}
    for key, value in status.items():
        name = names.get(_number(key, -1))
        if name is None or name in with_messages or not isinstance(value, dict):
            continue
        job.group(name)
        record.launched[name] = _number(value.get("last_enqueued_collective"), -1)
        record.completed[name] = _number(value.get("last_completed_collective"), -1)


# ----------------------------------------------------------------------------
# Operations


def _operations(
    job: StuckJob,
    record: RankRecord,
    entries: Sequence[Mapping[str, Any]],
    frames: dict[tuple[str, int, str], StackFrame],
) -> Iterator[Launch]:
    """The operations of a rank.

    NCCL retires what has timed out, too, so a retired operation has completed only where a back end keeps no states.
    """
    batches: dict[tuple[str, int, int], int] = {}
    has_states = any(_is_started(entry) for entry in entries)
    for place, entry in enumerate(entries):
        group, _ = _process_group(entry)
        name = str(entry.get("profiling_name", "unknown"))
        collective, message = _number(entry.get("collective_seq_id"), -1), _number(entry.get("p2p_seq_id"), -1)
        is_message = _is_message(entry)
        sequence = message if is_message else collective
        is_done = (
            entry.get("state") == "completed"
            or bool(entry.get("time_discovered_completed_ns"))
            or (entry.get("retired") is True and not has_states and not name.startswith("nccl"))
        )
        pair = _pair_of(name, job.groups[group].members) if is_message else None
        yield Launch(
            group,
            sequence,
            _plain_name(name),
            place,
            is_done,
            _is_started(entry) if has_states else None,
            pair,
            _counts(entry.get("input_sizes")),
            _counts(entry.get("output_sizes")),
            _texts(entry.get("input_dtypes")) or _texts(entry.get("output_dtypes")),
            _frames(entry.get("frames"), frames),
            batches.setdefault((group, collective, message), place) if is_message or _BATCH in name else place,
        )


def _is_started(entry: Mapping[str, Any]) -> bool:
    return entry.get("state") in ("started", "completed") or bool(entry.get("time_discovered_started_ns"))


def _is_message(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("is_p2p")) and _PAIR.search(str(entry.get("profiling_name", ""))) is not None


def _finish_batches(operations: Iterator[Launch]) -> Iterator[Launch]:
    """Messages of a batch end with it: the recorder keeps the state of a batch in the entry that closes it."""
    from attrs import evolve

    kept = [*operations]
    closed = {each.batch: each.is_done for each in kept if _BATCH in each.name}
    for each in kept:
        if _BATCH in each.name and each.pair is None:
            continue
        yield evolve(each, is_done=True) if not each.is_done and closed.get(each.batch) else each


def _plain_name(name: str) -> str:
    """The name of an operation without back end and spelling: `nccl:_all_gather_base` is all_gather."""
    plain = name.rpartition(":")[2].strip().partition(" ")[0].lower().removeprefix("_")
    for ending in ("_base", "_single", "_into_tensor", "_tensor", "_coalesced"):
        plain = plain.removesuffix(ending) if plain != _BATCH else plain
    return {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all"}.get(plain, plain)


def _pair_of(name: str, members: tuple[int, ...] | None) -> tuple[int, int] | None:
    """The sender and the receiver as ranks of the job; the name has their places in the group."""
    match = _PAIR.search(name)
    if match is None:
        return None
    first, second = (
        members[place] if members is not None and place < len(members) else place
        for place in (int(match[1][:9]), int(match[3][:9]))
    )
    return (first, second) if match[2] == "->" else (second, first)


def _counts(sizes: Any) -> tuple[int, ...]:
    """The number of elements of each array."""
    if not isinstance(sizes, (list, tuple)):
        return ()
    rows = sizes if not sizes or isinstance(sizes[0], (list, tuple)) else [sizes]
    return tuple(
        math.prod(extent for extent in row if isinstance(extent, int)) for row in rows if isinstance(row, (list, tuple))
    )


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, (list, tuple)) else ()


def _frames(values: Any, known: dict[tuple[str, int, str], StackFrame]) -> tuple[StackFrame, ...]:
    if not isinstance(values, (list, tuple)):
        return ()
    found = []
    for value in values:
        if isinstance(value, dict):
            key = (str(value.get("filename", "")), _number(value.get("line"), 0), str(value.get("name", "")))
            found.append(known.setdefault(key, StackFrame(*key)))
    return tuple(found)


def _number(value: Any, default: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
