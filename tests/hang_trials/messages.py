"""Jobs of send and recv: real calls, logged in NCCL's layout because gloo records no messages (synthetic dumps).

As a module (`python -m tests.hang_trials.messages PLAN.json`, under torchrun) it is the script of a rank.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import time
import traceback
from typing import Any

Plan = list[list[Any]]  # of one rank: [what, peer, numel, dtype]
KINDS = ("wrong_peer", "missing_recv", "both_send_first", "unequal", "sleep", "missing_send")


def draw_messages(rng: random.Random, kind: str) -> dict[str, Any]:
    """A job: the plan of each rank, and what is at fault; for some faults the table of docs/hangs.md fits two kinds."""
    if kind == "both_send_first":
        return _exchange(rng)
    pattern = _pipeline if kind in ("wrong_peer", "missing_recv") else rng.choice((_pipeline, _server))
    steps = rng.randint(2, 4)
    plans = pattern(rng, steps)
    # After the first step, so that what worked is known.
    places = [
        (rank, place) for rank, plan in enumerate(plans) for place in _places(plan, kind) if place >= len(plan) // steps
    ]
    rank, place = rng.choice([each for each in places if kind != "wrong_peer" or _strangers(plans, each[0])])
    what, peer, size, dtype = plans[rank][place]
    fault = {"kind": kind, "rank": rank, "call": place, "was": plans[rank][place]}
    truth: dict[str, Any] = {"ranks": [rank], "kinds": ["never_launched", "unmatched"]}
    if kind == "wrong_peer":
        wrong = rng.choice(_strangers(plans, rank))
        plans[rank][place] = [what, wrong, size, dtype]
        truth["kinds"] = ["unmatched"]
    elif kind in ("missing_recv", "missing_send"):
        del plans[rank][place]
    elif kind == "sleep":
        plans[rank].insert(place, ["sleep", 0, 0, ""])
    else:
        by_type = rng.random() < 0.5
        plans[rank][place] = [what, peer, size, "int32"] if by_type else [what, peer, size + 8, dtype]
        truth = {"ranks": sorted((rank, peer)), "kinds": ["wrong_type" if by_type else "wrong_size"]}
    return {"pattern": pattern.__name__.strip("_"), "world": len(plans), "plans": plans, "fault": fault, "truth": truth}


def _strangers(plans: list[Plan], rank: int) -> list[int]:
    """The ranks that never receive from a rank."""
    return [
        each
        for each, plan in enumerate(plans)
        if each != rank and ("recv", rank) not in {tuple(call[:2]) for call in plan}
    ]


def _places(plan: Plan, kind: str) -> list[int]:
    expected = {"wrong_peer": ("send",), "missing_recv": ("recv",), "missing_send": ("send",)}.get(
        kind, ("send", "recv")
    )
    return [place for place, call in enumerate(plan) if call[0] in expected]


def _pipeline(rng: random.Random, steps: int) -> list[Plan]:
    """Activations go up, gradients come back, all ranks sum at the end of a step."""
    ranks, batches, numel = rng.randint(3, 6), rng.randint(1, 4), rng.randint(8, 200)
    plans: list[Plan] = [[] for _ in range(ranks)]
    for rank, plan in enumerate(plans):
        for _ in range(steps):
            for _ in range(batches):
                plan += [["recv", rank - 1, numel, "float32"]] if rank else []
                plan += [["send", rank + 1, numel, "float32"]] if rank < ranks - 1 else []
            for _ in range(batches):
                plan += [["recv", rank + 1, numel, "float32"]] if rank < ranks - 1 else []
                plan += [["send", rank - 1, numel, "float32"]] if rank else []
            plan += [["all_reduce", 0, 1, "float32"]]
    return plans


def _server(rng: random.Random, steps: int) -> list[Plan]:
    """Rank 0 collects gradients from the workers and sends parameters back."""
    ranks, numel = rng.randint(2, 5), rng.randint(8, 200)
    plans: list[Plan] = [[] for _ in range(ranks)]
    for _ in range(steps):
        plans[0] += [["recv", worker, numel, "float32"] for worker in range(1, ranks)]
        plans[0] += [["send", worker, numel + 3, "float32"] for worker in range(1, ranks)]
        for plan in plans[1:]:
            plan += [["send", 0, numel, "float32"], ["recv", 0, numel + 3, "float32"]]
    return plans


def _exchange(rng: random.Random) -> dict[str, Any]:
    """Neighbours exchange: one of them has to receive first, and one that has to sends first."""
    ranks, numel, steps = rng.choice((2, 4, 6)), rng.randint(8, 200), rng.randint(2, 4)
    odd = rng.choice(range(1, ranks, 2))
    plans: list[Plan] = []
    for rank in range(ranks):
        pair = [["send", rank ^ 1, numel, "float32"], ["recv", rank ^ 1, numel, "float32"]]
        plans += [(pair if rank % 2 == 0 or rank == odd else pair[::-1]) * steps]
    fault = {"kind": "both_send_first", "rank": odd, "call": 0}
    truth = {"ranks": [odd - 1, odd], "kinds": ["unmatched", "wrong_order"]}
    return {"pattern": "exchange", "world": ranks, "plans": plans, "fault": fault, "truth": truth}


def _run(plan: Plan) -> None:
    import torch
    import torch.distributed as dist

    from . import recording

    dist.init_process_group("gloo")
    world = dist.get_world_size()
    recording._mark("ready", json.dumps({"world": ["0", "default_pg", list(range(world))]}))
    log = Log(recording.RANK, world)
    recording.watch(lambda: None)
    for what, peer, numel, dtype in plan:
        if what == "sleep":
            recording.stall()
        time.sleep(random.random() * 0.01)
        tensor = torch.ones(numel, dtype=getattr(torch, dtype))
        entry = log.launch(what, peer, numel, dtype)
        recording.dump(log.data())
        try:
            if what == "send":
                dist.send(tensor, peer)
            elif what == "recv":
                dist.recv(tensor, peer)
            else:
                dist.all_reduce(tensor)
        except RuntimeError:
            traceback.print_exc()
            time.sleep(1000)
        log.complete(entry)
        recording.dump(log.data())
    recording._mark("end")
    time.sleep(1000)  # the end of a script closes connections, and peers would end with an error instead of waiting


class Log:
    """The calls of a rank as NCCL's Flight Recorder writes them."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self.entries: list[dict[str, Any]] = []
        self.messages = self.collectives = 0

    def launch(self, what: str, peer: int, numel: int, dtype: str) -> dict[str, Any]:
        is_message = what in ("send", "recv")
        self.messages += is_message
        self.collectives += not is_message
        arrow = {"send": f" {self.rank}->{peer}", "recv": f" {self.rank}<-{peer}"}.get(what, "")
        frames = [
            {"name": each.name, "filename": each.filename, "line": each.lineno}
            for each in reversed(traceback.extract_stack(limit=6)[:-1])
        ]
        entry = {
            "frames": frames,
            "record_id": len(self.entries),
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "thread_name": "python3",
            "thread_id": "140212390972288",
            "collective_seq_id": self.collectives,
            "p2p_seq_id": self.messages,
            "op_id": len(self.entries) + 1,
            "profiling_name": f"nccl:{what}{arrow}",
            "time_created_ns": time.time_ns(),
            "input_sizes": [[numel]],
            "input_dtypes": [{"float32": "Float", "int32": "Int"}[dtype]],
            "output_sizes": [[numel]],
            "output_dtypes": [{"float32": "Float", "int32": "Int"}[dtype]],
            "state": "started",
            "time_discovered_started_ns": time.time_ns(),
            "time_discovered_completed_ns": None,
            "retired": False,
            "timeout_ms": 600000,
            "is_p2p": is_message,
        }
        self.entries.append(entry)
        return entry

    def complete(self, entry: dict[str, Any]) -> None:
        entry.update(state="completed", time_discovered_completed_ns=time.time_ns(), retired=True)

    def data(self) -> bytes:
        done = sum(entry["state"] == "completed" for entry in self.entries)
        count = len(self.entries)
        status = {
            "last_enqueued_collective": count,
            "last_started_collective": count,
            "last_completed_collective": done,
        }
        ranks = str(list(range(self.world)))
        return pickle.dumps(
            {
                "version": "2.10",
                "comm_lib_version": "2.27.3",
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
                "pg_status": {"0": status},
                "entries": self.entries,
            },
            protocol=2,
        )


if __name__ == "__main__":
    import os
    from pathlib import Path

    _run(json.loads(Path(sys.argv[1]).read_text())[int(os.environ["RANK"])])
