"""How long a collective or a transfer takes on the links of a machine: alpha for each step, beta for each byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import evolve, frozen

from ..costs.algorithms import Algorithm
from ..costs.collectives import CollectiveCost
from .machines import Link, Machine


@frozen
class CollectiveTime:
    """The seconds of a collective, the algorithm that takes them, and the axes whose links carry it."""

    seconds: float
    algorithm: str
    axes: tuple[str, ...]


def collective_time(
    collective: CollectiveCost, machine: Machine, sizes: Mapping[str, int], groups: Sequence[Sequence[int]] = ()
) -> CollectiveTime:
    """The fastest of the algorithms that fit the links: launch + alpha for each step + beta for each byte on a link.

    `sizes` are those of the mesh's axes, `groups` the devices that meet, which tell whether they share a node. Where
    devices are linked to neighbours alone, rings count; a group along several axes uses the links of all of them.

    Source: Thakur, Rabenseifner and Gropp (2005); How To Scale Your Model, Parts 3 (tori) and 12 (nodes).
    """
    axes = _axes(collective)
    link = _link(machine, axes, groups)
    if collective.group_size <= 1:
        return CollectiveTime(0.0, "none", axes)
    if link.wraps:
        return _on_torus(collective, link, axes, [sizes[axis] for axis in axes] or [collective.group_size])
    times = ((_seconds(way, collective.payload, link), way.name) for way in collective.algorithms)
    return CollectiveTime(*min(times, key=lambda each: each[0]), axes)


def _axes(collective: CollectiveCost) -> tuple[str, ...]:
    """The axes that the text of a collective names."""
    word, _, names = collective.axes.partition(" ")
    return tuple(names.split(", ")) if word in ("axis", "axes") else ()


def _link(machine: Machine, axes: Sequence[str], groups: Sequence[Sequence[int]]) -> Link:
    """The links inside of a node, or between nodes, where all ports of a node's members work side by side."""
    inside, network, node = machine.link(axes), machine.network, machine.node
    if network is None or node is None or not groups:
        return inside
    members = max(_members(group, node) for group in groups)
    if members is None or all(len(set(np.asarray(group) // node)) == 1 for group in groups):
        return inside
    return evolve(network, bandwidth=min(network.bandwidth * members, inside.bandwidth))


def _members(group: Sequence[int], node: int) -> int:
    """How many of a group stand in one node, at most."""
    return int(np.unique(np.asarray(group) // node, return_counts=True)[1].max())


def _seconds(way: Algorithm, payload: int, link: Link) -> float:
    """A step of a tree passes the whole array on, and begins when the one before has ended."""
    sent = way.steps * payload if way.name == "tree" else way.link_bytes
    return link.launch + way.steps * link.alpha + sent / link.bandwidth


def _on_torus(collective: CollectiveCost, link: Link, axes: tuple[str, ...], sizes: Sequence[int]) -> CollectiveTime:
    """On rings along axes: each axis has links of its own, and a closed ring carries data both ways."""
    kind, size = collective.instruction.opcode.removesuffix("_start"), collective.group_size
    ways = min(link.ways(each) for each in sizes)
    steps, axis_links = sum(-(-(each - 1) // ways) for each in sizes), ways * len(sizes)
    if "all_to_all" in kind:
        # Each cut through a ring is crossed by a quarter of all that is sent, shared by its closed ends.
        sent = collective.payload * max(sizes) / 4
        return CollectiveTime(link.launch + steps * link.alpha + sent / (ways * link.bandwidth), "ring", axes)
    if kind in ("all_reduce", "all_gather", "reduce_scatter"):
        rounds = 2 if kind == "all_reduce" else 1
        sent = rounds * (size - 1) * collective.payload / size
        seconds = link.launch + rounds * steps * link.alpha + sent / (axis_links * link.bandwidth)
        return CollectiveTime(seconds, "ring", axes)
    if kind == "collective_broadcast":
        seconds = link.launch + steps * link.alpha + collective.payload / (axis_links * link.bandwidth)
        return CollectiveTime(seconds, "ring", axes)
    way = collective.algorithms[0]
    return CollectiveTime(_seconds(way, collective.payload, link), way.name, axes)
