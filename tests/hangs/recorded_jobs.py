"""Runs drawn jobs on a model of blocking ranks, and writes what NCCL's Flight Recorder would write: synthetic dumps.

A collective completes when all members of its group are at it under the same number and agree; a message completes when
both sides are at it. The layout is that of real dumps of version 2.9.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

NAMES = {"float32": "Float", "int32": "Int", "float64": "Double", "int64": "Long"}


def run(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The dump of each rank when no rank can go on."""
    programs, groups = job["programs"], job["groups"]
    place, dead = [0] * len(programs), set()
    entries: list[list[dict[str, Any]]] = [[] for _ in programs]
    at: list[dict[str, Any] | None] = [None] * len(programs)
    collectives = [dict.fromkeys(range(len(groups)), 0) for _ in programs]
    messages = [0] * len(programs)
    has_moved = True
    while has_moved:
        has_moved = False
        for rank, program in enumerate(programs):
            if at[rank] is None and rank not in dead and place[rank] < len(program):
                call = program[place[rank]]
                if call["op"] in ("sleeps", "dies"):
                    dead.add(rank)
                    continue
                at[rank] = _launch(job, rank, call, collectives[rank], messages, entries[rank])
                has_moved = True
        for rank, entry in enumerate(at):
            if entry is None or entry["state"] == "completed":
                continue
            others = _partners(job, rank, entry, at, programs, place)
            if others is not None:
                for other in (rank, *others):
                    done = at[other]
                    assert done is not None
                    done["state"], done["time_discovered_completed_ns"] = "completed", 1
                has_moved = True
        for rank, entry in enumerate(at):
            if entry is not None and entry["state"] == "completed":
                at[rank] = None
                place[rank] += 1
    return [_dump(job, rank, entries[rank], collectives[rank]) for rank in range(len(programs))]


def _launch(
    job: dict[str, Any],
    rank: int,
    call: dict[str, Any],
    collectives: dict[int, int],
    messages: list[int],
    entries: list[dict[str, Any]],
) -> dict[str, Any]:
    is_message = call["op"] in ("send", "recv")
    if is_message:
        messages[rank] += 1
        name = f"nccl:{call['op']} {rank}{'->' if call['op'] == 'send' else '<-'}{call['peer']}"
    else:
        collectives[call["group"]] += 1
        name = f"nccl:{call['op']}"
    sizes = [] if call["op"] == "barrier" else [[call["size"]]]
    entry = {
        "record_id": len(entries), "pg_id": call["group"],
        "process_group": (str(call["group"]), f"group {call['group']}"),
        "collective_seq_id": collectives[call["group"]], "p2p_seq_id": messages[rank] if is_message else 0,
        "op_id": len(entries) + 1, "profiling_name": name, "time_created_ns": 1000 + len(entries),
        "input_sizes": sizes, "output_sizes": sizes, "input_dtypes": [NAMES[call["dtype"]]] * len(sizes),
        "output_dtypes": [NAMES[call["dtype"]]] * len(sizes), "state": "scheduled", "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": is_message,
        "frames": [{"name": "train", "filename": "train.py", "line": call["line"]}],
    }  # fmt: skip
    entries.append(entry)
    return entry


def _partners(
    job: dict[str, Any],
    rank: int,
    entry: dict[str, Any],
    at: list[dict[str, Any] | None],
    programs: list[list[dict[str, Any]]],
    place: list[int],
) -> list[int] | None:
    """The other ranks with which the operation completes now; None if it does not."""
    call = programs[rank][place[rank]]
    if entry["is_p2p"]:
        other = call["peer"]
        theirs = at[other]
        if theirs is None or not theirs["is_p2p"] or theirs["state"] == "completed":
            return None
        their_call = programs[other][place[other]]
        fits = their_call["peer"] == rank and {call["op"], their_call["op"]} == {"send", "recv"}
        return [other] if fits and _content(entry) == _content(theirs) else None
    members = job["groups"][call["group"]]
    for other in members:
        theirs = at[other]
        if theirs is None or theirs["is_p2p"] or theirs["pg_id"] != entry["pg_id"]:
            return None
        if (
            theirs["collective_seq_id"] != entry["collective_seq_id"]
            or theirs["profiling_name"] != entry["profiling_name"]
        ):
            return None
        if _content(theirs) != _content(entry):
            return None
    return [other for other in members if other != rank]


def _content(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry["input_sizes"], entry["input_dtypes"]


def _dump(job: dict[str, Any], rank: int, entries: list[dict[str, Any]], collectives: dict[int, int]) -> dict[str, Any]:
    config, status = {}, {}
    for number, members in enumerate(job["groups"]):
        if rank in members:
            config[str(number)] = {"name": str(number), "desc": f"group {number}", "ranks": str(members)}
            done = [
                each["collective_seq_id"]
                for each in entries
                if each["pg_id"] == number and not each["is_p2p"] and each["state"] == "completed"
            ]
            status[str(number)] = {
                "last_enqueued_collective": collectives[number],
                "last_started_collective": -1,
                "last_completed_collective": max(done, default=-1),
            }
    return {
        "version": "2.9",
        "nccl_version": "2.27.3",
        "pg_config": config,
        "pg_status": status,
        "entries": entries,
    }


def write(dumps: list[dict[str, Any]], folder: Path, form: str = "pickle") -> Path:
    """Write the dumps as files, one for each rank."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, dump in enumerate(dumps):
        if form == "pickle":
            (folder / f"_dump_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
        else:
            rows = [{key: value for key, value in entry.items() if key != "frames"} for entry in dump["entries"]]
            (folder / f"trace_rank_{rank}.json").write_text(json.dumps({**dump, "entries": rows}))
    return folder
