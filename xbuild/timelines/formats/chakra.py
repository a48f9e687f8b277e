"""A time line as Chakra execution traces, one file for each device, which ASTRA-sim reads."""

from __future__ import annotations

import json
from pathlib import Path

from ...files.results import replacing
from ..record import Timeline
from .dependencies import Node, all_nodes
from .wire import chosen, delimited, integer, message, packed, text

VERSION = "0.0.4"
COMP, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
_KINDS = {"work": COMP, "send": SEND, "recv": RECV, "collective": COLLECTIVE}
COLLECTIVES = {
    "all_reduce": 0, "all_gather": 2, "collective_broadcast": 5, "all_to_all": 6, "ragged_all_to_all": 6,
    "reduce_scatter": 7,
}  # fmt: skip
"""The number of each collective in CollectiveCommType; a permute is written as its sends and recvs."""

_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29


def write_chakra(timeline: Timeline, folder: str | Path) -> list[Path]:
    """Write `program.N.et` for each device N, and `groups.json` with the devices of each group by its name.

    The files hold GlobalMetadata and then a Node each, all with their lengths in front. Work has its microseconds, as
    the machine has them; collectives and transfers their bytes. Raises limit_trips where devices do too many things.

    Source: MLCommons Chakra, schema/protobuf/et_def.proto.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[int, ...], str] = {}
    files = []
    for device, nodes in all_nodes(timeline):
        body = b"".join(delimited(_node(each, groups)) for each in nodes)
        files.append(place / f"program.{device}.et")
        with replacing(files[-1]) as file:
            file.write(delimited(text(1, VERSION)) + body)
    table = {name: list(group) for group, name in groups.items()}
    with replacing(place / "groups.json") as file:
        file.write(f"{json.dumps(table)}\n".encode())
    return files


def _node(node: Node, groups: dict[tuple[int, ...], str]) -> bytes:
    """The bytes of a Node."""
    micros = round(node.seconds * 1e6)
    head = integer(1, node.number) + text(2, node.name) + integer(3, _KINDS[node.kind])
    return head + packed(5, node.after) + integer(7, micros) + _attributes(node, groups)


def _attributes(node: Node, groups: dict[tuple[int, ...], str]) -> bytes:
    """The attributes that ASTRA-sim reads."""
    found = _attribute("is_cpu_op", chosen(_BOOL, 0))
    if node.cost is None:
        return found + _attribute("runtime_ns", chosen(_INT64, round(node.seconds * 1e9)))
    found += _attribute("comm_size", chosen(_INT64, node.cost.payload))
    if node.kind == "collective":
        kind = node.cost.instruction.opcode.removesuffix("_start")
        name = groups.setdefault(node.group, str(len(groups)))
        return (
            found
            + _attribute("comm_type", chosen(_INT64, COLLECTIVES[kind]))
            + _attribute("pg_name", text(_STRING, name))
        )
    source, target = node.group
    ends = {"comm_src": source, "comm_dst": target, "comm_tag": node.tag}
    return found + b"".join(_attribute(name, chosen(_INT32, number)) for name, number in ends.items())


def _attribute(name: str, value: bytes) -> bytes:
    return message(10, text(1, name) + value)
