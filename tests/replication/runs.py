"""Runs of a program, and where they breach what was inferred: values that were to be equal and are not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field

import xbuild as xb
from interpreter import Limits, Stopped, execute
from interpreter.compiler.lines import Path
from interpreter.runtime.observers import PathObserver
from interpreter.runtime.run import modules_of
from shape_inference import AnyShape, Shape, TupleShape

Place = tuple[Any, ...]


@define
class Seen(PathObserver):
    """What each device has had at each place, time by time, leaf by leaf; `marks` tell arrays apart by their bytes."""

    values: dict[Place, dict[int, list[list[Any]]]] = field(factory=lambda: defaultdict(lambda: defaultdict(list)))
    _places: dict[int, Place] = field(factory=dict)
    _kept: list[Any] = field(factory=list)

    def __call__(self, device: int, path: Path, value: Any) -> None:
        place = self._places.get(id(path))
        if place is None:
            place = (path[-1].instruction, *((each.instruction, each.branch) for each in path[:-1]))
            self._places[id(path)] = place
            self._kept.append(path)
        self.values[place][device].append([*_leaves(value)])


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield None if value is None else np.asarray(value).tobytes()


def random_inputs(program: Any, values: xb.Replication, seed: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Arguments, and items for infeeds, for each device: equal where that was given, drawn for each part otherwise."""
    rng = np.random.default_rng(seed)
    modules = modules_of(program)
    known: dict[Any, Any] = {}
    rows = [
        [_drawn(rng, values, p, p.shape, (), device, known) for p in module.entry.parameters]
        for device, module in enumerate(modules)
    ]
    feeds = [[i for i in values.values() if i.opcode == "infeed"] for _ in modules]
    items = [
        [_drawn(rng, values, i, i.shape.elements[0], (0,), device, known) for i in infeeds] * 8  # type: ignore[union-attr]
        for device, infeeds in enumerate(feeds)
    ]
    return rows, items


def _drawn(
    rng: Any, values: xb.Replication, of: xb.Instruction, shape: AnyShape, at: tuple[int, ...], device: int, known: Any
) -> Any:
    """Parameters by their number, so that several programs that are promised equal ones get these."""
    if isinstance(shape, TupleShape):
        return tuple(_drawn(rng, values, of, each, (*at, n), device, known) for n, each in enumerate(shape.elements))
    assert isinstance(shape, Shape)
    group = next(group for group in values.groups(of, at) if device in group)
    key = of.name, at, group
    if key not in known:
        known[key] = rng.integers(-1, 4, shape.dims).astype(shape.dtype.dtype)
    return known[key]


@define
class Compared:
    """What a run shows: breaches, and what was compared."""

    breaches: list[str]
    counts: Counter[str]


def breaches(program: Any, values: xb.Replication, rows: Any, items: Any = ()) -> list[str]:
    """What a run shows that is not as inferred; of a run that stops, until there."""
    return compared(program, values, rows, items).breaches


def compared(program: Any, values: xb.Replication, rows: Any, items: Any = ()) -> Compared:
    """The run of a program, and each pair of devices that were to hold equal values compared."""
    seen, is_over = Seen(), True
    try:
        execute(program, rows, infeed=items, observer=seen, check=False, limits=Limits(seconds=600))
    except Stopped as stopped:
        is_over = False
        if stopped.report.kind != "deadlock":
            return Compared([f"the run ends {stopped.report.kind}"], Counter())
    counts = Counter({"runs to the end": int(is_over), "runs that stop on the way": int(not is_over)})
    return Compared([*_breaches(values, seen, is_over, counts)], counts)


def _breaches(values: xb.Replication, seen: Seen, is_over: bool, counts: Counter[str]) -> Iterator[str]:
    claims: dict[Any, Any] = {}
    for place, by_device in seen.values.items():
        instruction = place[0]
        if instruction not in claims:
            claims[instruction] = _claims(values, instruction)
        for number, groups in enumerate(claims[instruction]):
            for group in groups:
                rows = {device: [each[number] for each in by_device.get(device, ())] for device in group}
                counts["values compared"] += sum(map(len, rows.values()))
                if wrong := _apart(rows, is_over):
                    yield f"{instruction.name}, leaf {number}, {group}: {wrong}"


def _claims(values: xb.Replication, instruction: xb.Instruction) -> list[Any]:
    """For each leaf the groups of more than one device."""
    part = [each for each in values.parts if instruction in each.labels]
    found = []
    for number in range(len(part[0].labels[instruction]) if part else 0):
        groups: dict[Any, list[int]] = {}
        for n, each in enumerate(part):
            for device, label in zip(each.devices, each.labels[instruction][number], strict=True):
                groups.setdefault((n, label), []).append(device)
        found.append([group for group in groups.values() if len(group) > 1])
    return found


def _apart(rows: dict[int, list[Any]], is_over: bool) -> str | None:
    (first, mine), *others = rows.items()
    for device, theirs in others:
        if is_over and len(mine) != len(theirs):
            return f"device {first} comes there {len(mine)} times, device {device} {len(theirs)} times"
        if any(a != b for a, b in zip(mine, theirs, strict=False)):
            return f"devices {first} and {device} differ"
    return None
