"""Small programs in the format of the deadlock cases: transfers, collectives, and two sides that cross."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]


def transfer(channel: int, source: int, target: int) -> tuple[list[Item], list[Item]]:
    """The two sides of a transfer."""
    ends = {"channel": channel, "shape": "f32[4]", "deps": []}
    send = {"op": "send", "name": f"send{channel}", "to": target, **ends}
    sent = {"op": "send-done", "name": f"sent{channel}", "channel": channel, "deps": [send["name"]]}
    recv = {"op": "recv", "name": f"recv{channel}", "from": source, **ends}
    taken = {"op": "recv-done", "name": f"taken{channel}", "channel": channel, "deps": [recv["name"]]}
    return [send, sent], [recv, taken]


def all_reduce(number: int) -> Item:
    return {
        "op": "all-reduce",
        "name": f"ar{number}",
        "collective": number,
        "groups": None,
        "deps": [],
        "shape": "f32[4]",
    }


def case_of(*programs: list[Item], schedule: str = "given", **more: Any) -> dict[str, Any]:
    listed = {str(n): items for n, items in enumerate(programs)}
    return {"id": "x.1", "devices": len(programs), "schedule": schedule, "programs": listed, "verdict": "ok", **more}


def crossed(schedule: str = "given") -> dict[str, Any]:
    (send1, recv1), (send2, recv2) = transfer(1, 0, 1), transfer(2, 1, 0)
    return case_of([*send1, *recv2], [*send2, *recv1], schedule=schedule, verdict="deadlock")
