"""Draws jobs with a fault: a program for each rank as a list of calls, and what a reader of the dumps should find.

The programs are plain data, so that `torch_jobs.py` can run them on real processes, and `recorded_jobs.py` on a model
of the recorder. A seeded generator puts each fault in before anything is run.
"""

from __future__ import annotations

import random
from typing import Any

FAULTS = ("skip", "swap", "size", "type", "dies", "sleeps", "uneven")
KINDS = {
    "skip": "never_launched", "swap": "wrong_order", "size": "wrong_size", "type": "wrong_type", "dies": "dead",
    "sleeps": "never_launched", "uneven": "never_launched",
}  # fmt: skip
OPS = ("all_reduce", "broadcast", "all_gather", "reduce", "barrier")
TYPES = ("float32", "int32", "float64")


def _call(op: str, group: int = 0, size: int = 4, dtype: str = "float32", **more: int) -> dict[str, Any]:
    return {"op": op, "group": group, "size": size, "dtype": dtype, "step": 0, "line": 99, **more}


def draw_job(seed: int) -> dict[str, Any]:
    """A job of two to eight ranks with one fault.

    `programs[rank]` is a list of calls with op, group, size and element type; `groups` lists the members of each group,
    the first two with all ranks. `truth` has the ranks and the kind.
    """
    draw = random.Random(seed)
    world = draw.choice([2, 3, 4, 4, 6, 8])
    fault = FAULTS[seed % len(FAULTS)]
    everyone = [*range(world)]
    groups = [everyone, everyone]
    if world >= 4:
        groups += [everyone[: world // 2], everyone[world // 2 :]]
    body = []
    for line in range(draw.randint(2, 4)):
        number = draw.choice([0, 0, 1, 2]) if world >= 4 else draw.choice([0, 0, 1])
        body.append(_call(draw.choice(OPS), number, draw.choice([4, 8, 16]), draw.choice(TYPES), line=line))
    if all(call["group"] for call in body):
        body.append(_call("all_reduce"))
    steps = draw.randint(3, 6)
    bad = draw.randrange(world)
    programs: list[list[dict[str, Any]]] = [[] for _ in everyone]
    for step in range(steps):
        for call in body:
            for rank in everyone:
                group = call["group"] if call["group"] < 2 else (2 if rank in groups[2] else 3)
                programs[rank].append({**call, "group": group, "step": step})
    at_step = draw.randrange(1, steps - 1)
    mine, ranks = programs[bad], [bad]
    in_step = [number for number, call in enumerate(mine) if call["step"] == at_step and call["group"] == 0]
    if fault == "uneven":
        programs[bad] = [call for call in mine if call["step"] < steps - 1]
    elif fault in ("dies", "sleeps"):
        mine.insert(draw.randrange(len(body), len(mine) - 1), _call(fault))
    elif fault == "skip":
        del mine[draw.choice(in_step)]
    elif fault == "swap":
        pair = [_call("all_reduce", 0, step=at_step), _call("all_reduce", 1, step=at_step)]
        for rank in everyone:
            place = next(number for number, call in enumerate(programs[rank]) if call["step"] == at_step)
            programs[rank][place:place] = reversed(pair) if rank == bad else pair
    else:
        candidates = [number for number in in_step if mine[number]["op"] != "barrier"]
        if not candidates:
            for program in programs:
                program.insert(0, _call("all_reduce", size=8))
            candidates = [0]
        place = draw.choice(candidates)
        # The rank launches last, and nothing smaller than the others, so that its dump is written before a rank ends.
        changed = {**mine[place], "late": 1}
        if fault == "size":
            changed["size"] *= 3
        else:
            changed["dtype"] = {"float32": "int32", "int32": "float64", "float64": "int64"}[changed["dtype"]]
        mine[place] = changed
    if fault in ("swap", "size", "type") and world == 2:
        ranks = everyone
    truth = {"ranks": ranks, "kind": KINDS[fault]}
    return {"seed": seed, "fault": fault, "groups": groups, "programs": programs, "truth": truth}


MESSAGE_FAULTS = ("wrong_peer", "no_recv", "both_send", "size", "type", "sleeps")


def draw_messages(seed: int) -> dict[str, Any]:
    """A pipeline of ranks that pass messages along, with one fault; each rank then meets all others in a barrier."""
    draw = random.Random(seed)
    world, fault = draw.choice([3, 4, 5, 6]), MESSAGE_FAULTS[seed % len(MESSAGE_FAULTS)]
    everyone = [*range(world)]
    programs: list[list[dict[str, Any]]] = [[] for _ in everyone]
    for step in range(draw.randint(2, 4)):
        for rank in everyone:
            if rank:
                programs[rank].append(_call("recv", peer=rank - 1, step=step))
            if rank < world - 1:
                programs[rank].append(_call("send", peer=rank + 1, step=step))
            programs[rank].append(_call("barrier", step=step))
    bad = draw.randrange(1, world - 1)
    mine = programs[bad]
    place = draw.choice([number for number, call in enumerate(mine) if call["op"] == "recv" and call["step"]])
    ranks, kind = [bad], "unmatched"
    if fault == "wrong_peer":
        mine[place]["peer"] = bad + 1
    elif fault == "no_recv":
        del mine[place]
        kind = "never_launched"  # it received in the steps before
    elif fault == "both_send":
        call = _call("send", peer=bad + 1, step=9)
        programs[bad].insert(place, call)
        programs[bad + 1].insert(
            next(n for n, each in enumerate(programs[bad + 1]) if each["step"] == mine[place + 1]["step"]),
            _call("send", peer=bad, step=9),
        )
        ranks, kind = [bad, bad + 1], "wrong_order"
    elif fault == "sleeps":
        mine.insert(place, _call("sleeps"))
        kind = "never_launched"
    else:
        mine[place] = {**mine[place], **({"size": 12} if fault == "size" else {"dtype": "int32"})}
        ranks, kind = [bad - 1, bad], f"wrong_{fault}"
    truth = {"ranks": ranks, "kind": kind}
    return {"seed": seed, "fault": fault, "groups": [everyone], "programs": programs, "truth": truth}
