"""Groups of a collective as they are written, in every form, and which devices meet by that."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from .scene import Groups, Scene, grouped

EQUAL = ("all-gather", "reduce-scatter", "all-to-all")
CHANNELLED = ("all-reduce", "all-gather", "reduce-scatter")


@frozen(eq=False)
class Spelled:
    """Groups as they are written, and which devices meet by that."""

    attributes: str
    groups: Groups
    pairs: Groups
    channel: int


def expanded(ids: Sequence[int], mode: str, replicas: int, partitions: int) -> list[tuple[int, ...]]:
    """The devices that a list of ids brings together, in the order in which their parts are put side by side."""
    if mode == "replica":
        return [tuple(r * partitions + p for r in ids) for p in range(partitions)]
    if mode == "partition":
        return [tuple(r * partitions + p for p in ids) for r in range(replicas)]
    if mode == "both":
        return [tuple(r * partitions + p for p in range(partitions) for r in ids)]
    return [tuple(ids)]


def spelled(scene: Scene, kind: str, *, is_exact: bool = False) -> Spelled | None:
    """Groups that most often part no devices that come alike, and join none that do not."""
    drawing = scene.drawing
    if kind == "collective-permute":
        return _permutation(scene)
    is_wild = drawing.chance(drawing.wild) and not is_exact
    for _ in range(8):
        mode = _mode(scene, kind)
        lists = _lists(scene, kind, mode, is_wild=is_wild, is_exact=is_exact)
        if lists is None:
            continue
        grid = drawing.replicas, drawing.partitions
        groups = tuple(group for ids in lists for group in expanded(ids, mode, *grid))
        if is_wild or _fits(scene, groups, is_exact=is_exact):
            return _written(scene, mode, tuple(lists), groups)
    return None


def _mode(scene: Scene, kind: str) -> str:
    """How ids are read: channels are told apart by what the kind makes of them."""
    drawing = scene.drawing
    if not drawing.is_one:
        return drawing.rng.choice(("flat", "both")) if kind in CHANNELLED else "replica"
    if kind in CHANNELLED:
        modes = ["flat", "flat", "flat", "replica"] + ["both"] * (kind != "reduce-scatter" or drawing.partitions == 1)
        return drawing.rng.choice(modes)
    return drawing.rng.choice(("replica", "partition")) if drawing.partitions > 1 else "replica"


def _lists(scene: Scene, kind: str, mode: str, *, is_wild: bool, is_exact: bool) -> list[tuple[int, ...]] | None:
    drawing = scene.drawing
    count = {"flat": len(drawing.devices), "partition": drawing.partitions}.get(mode, drawing.replicas)
    if mode != "flat":
        sizes = [size for size in range(1, count + 1) if count % size == 0]
        if is_exact:
            return [tuple(range(count))]
        return grouped(drawing.rng, range(count), drawing.rng.choice(sizes) if kind in EQUAL else 0)
    if is_wild:
        scope = [drawing.devices]
    else:
        absent = tuple(device for device in drawing.devices if device not in scene.active)
        scope = [each for each in (*scene.cohorts, absent) if each]
    if is_exact:
        return [*map(tuple, scope)]
    size = 0
    if kind in EQUAL:
        sizes = [n for n in range(1, count + 1) if all(len(each) % n == 0 for each in scope)]
        size = drawing.rng.choice(sizes)
    return [group for each in scope for group in grouped(drawing.rng, each, size)]


def _fits(scene: Scene, groups: Groups, *, is_exact: bool) -> bool:
    """Whether those who meet come alike (or not at all)."""
    active = set(scene.active)
    sets = [*map(set, scene.cohorts)]
    inside = all(not active & set(group) or any(set(group) <= each for each in sets) for group in groups)
    return inside and (not is_exact or all(any(each <= set(group) for group in groups) for each in sets))


def _written(scene: Scene, mode: str, lists: Groups, groups: Groups, pairs: Groups = ()) -> Spelled:
    drawing = scene.drawing
    channel = drawing.next_channel() if mode != "replica" else 0
    text = f", channel_id={channel}" * bool(channel)
    is_all = len(lists) == 1 and lists[0] == tuple(range(len(lists[0]))) and mode != "flat"
    names = "{}" if is_all and drawing.chance(0.5) else braces(lists)
    text += f", source_target_pairs={braces(lists)}" if pairs else f", replica_groups={names}"
    text += ", use_global_device_ids=true" * (mode == "flat")
    return Spelled(text, groups, pairs, 0 if drawing.is_one else channel)


def _permutation(scene: Scene) -> Spelled | None:
    """All must come to a permutation, those that give and take nothing too."""
    drawing = scene.drawing
    mode = "partition" if drawing.is_one and drawing.partitions > 1 and drawing.chance(0.7) else "replica"
    count = drawing.partitions if mode == "partition" else drawing.replicas
    grid = drawing.replicas, drawing.partitions
    groups = tuple(expanded(range(count), mode, *grid))
    if not drawing.chance(drawing.wild) and not _fits(scene, groups, is_exact=False):
        return None
    sources, targets = [*range(count)], [*range(count)]
    drawing.rng.shuffle(sources)
    drawing.rng.shuffle(targets)
    few = drawing.rng.randint(1, count)
    ids = tuple(zip(sources[:few], targets[:few], strict=True))
    pairs = tuple(pair for each in ids for pair in zip(*_columns(each, mode, grid), strict=True))
    return _written(scene, mode, ids, groups, pairs)


def _columns(pair: tuple[int, int], mode: str, grid: tuple[int, int]) -> list[tuple[int, ...]]:
    rows = expanded(pair, mode, *grid)
    return [tuple(row[0] for row in rows), tuple(row[1] for row in rows)]


def braces(lists: Groups) -> str:
    return "{" + ",".join("{" + ",".join(map(str, each)) + "}" for each in lists) + "}"
