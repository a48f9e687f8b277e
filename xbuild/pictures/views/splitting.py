"""Splitting of groups of boxes so that folding each group into one box makes no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.picture import Box, Edge


def split(groups: Mapping[str, list[Box]], edges: Iterable[Edge]) -> dict[str, list[Box]]:
    """The groups, split where groups depend on each other in a cycle; a part of one box is no group."""
    if not groups:
        return {}
    group_of = {box.id: key for key, boxes in groups.items() for box in boxes}
    lines = [(edge.tail, edge.head) for edge in edges if edge.what != "channel"]
    found: dict[str, list[Box]] = {}
    for key, boxes in groups.items():
        found[key] = boxes
    for component in _cycles(group_of, lines):
        for key in component & groups.keys():
            del found[key]
        found |= _parts({key: groups[key] for key in groups if key in component}, component, group_of, lines)
    return {key: boxes for key, boxes in found.items() if len(boxes) > 1}


def _cycles(group_of: Mapping[str, str], lines: list[tuple[str, str]]) -> list[set[str]]:
    """The strongly connected components of groups and boxes."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    ends = ((group_of.get(tail, tail), group_of.get(head, head)) for tail, head in lines)
    graph.add_edges_from((tail, head) for tail, head in ends if tail != head)
    return [component for component in nx.strongly_connected_components(graph) if len(component) > 1]


def _parts(
    groups: Mapping[str, list[Box]], component: set[str], group_of: Mapping[str, str], lines: list[tuple[str, str]]
) -> dict[str, list[Box]]:
    """The groups of a component, split by depth: how often the path to a box that changes groups most does so."""
    inside = {box for box, key in group_of.items() if key in component} | component
    before: dict[str, list[str]] = {}
    for tail, head in lines:
        if tail in inside and head in inside:
            before.setdefault(head, []).append(tail)
    depth: dict[str, int] = {}
    for start in before:
        _set_depths(start, before, group_of, depth)
    found: dict[str, list[Box]] = {}
    for key, boxes in groups.items():
        parts = {each: part for part, each in enumerate(sorted({depth.get(box.id, 0) for box in boxes}))}
        for box in boxes:
            part = parts[depth.get(box.id, 0)]
            found.setdefault(f"{key} {part + 1}" if part else key, []).append(box)
    return found


def _set_depths(
    start: str, before: Mapping[str, list[str]], group_of: Mapping[str, str], depth: dict[str, int]
) -> None:
    """Compute the depth of a box and of all its predecessors, without recursion; edges that close a cycle count 0."""
    stack, entered = [start], set()
    while stack:
        box = stack[-1]
        waiting = [each for each in before.get(box, ()) if each not in depth and each not in entered]
        if box in depth or not waiting:
            stack.pop()
            own = group_of.get(box, box)
            depth.setdefault(
                box,
                max((depth.get(e, 0) + (group_of.get(e, e) != own) for e in before.get(box, ())), default=0),
            )
        else:
            entered.add(box)
            stack += waiting
