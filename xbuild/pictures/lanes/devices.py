"""Choice of the devices that get a lane of their own; devices that are alike share a lane."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

from attrs import frozen

from ...checking.model.program import devices_text
from . import Lane

MOST = 8
_ALONE = 4  # devices with a lane of their own, where others share lanes


@frozen
class Rows:
    """The lane of each device, the device that stands for each lane, and the lanes' titles."""

    lane_of: Mapping[int, int]
    shown: Sequence[int]
    lanes: tuple[Lane, ...]


def rows(alike: Mapping[int, Hashable], first: Collection[int]) -> Rows:
    """The lanes of devices: those with an equal value in `alike` share a lane, and those of `first` come first."""
    if len(alike) <= MOST:
        groups = [[device] for device in alike]
    else:
        alone = _alone(alike, first)
        rest: dict[Hashable, list[int]] = {}
        for device, mark in alike.items():
            if device not in alone:
                rest.setdefault(mark, []).append(device)
        groups = [*([device] for device in alone), *rest.values()]
    others = sorted(device for group in groups[MOST - 1 :] for device in group) if len(groups) > MOST else []
    lanes = [*map(_lane, groups[: MOST - 1] if others else groups)]
    if others:
        groups = [*groups[: MOST - 1], others]
        lanes.append(Lane(devices_text(others), f"+{len(others):,} devices"))
    lane_of = {device: lane for lane, group in enumerate(groups) for device in group}
    return Rows(lane_of, [group[0] for group in groups], tuple(lanes))


def _alone(alike: Mapping[int, Hashable], first: Collection[int]) -> list[int]:
    """The devices that get a lane of their own where others share one."""
    if first:
        return sorted(first)[:_ALONE]
    seen: dict[Hashable, int] = {}
    found: list[int] = []
    for device, mark in alike.items():
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] <= max(1, _ALONE - 1) and len(found) < _ALONE:
            found.append(device)
    return found


def _lane(group: Sequence[int]) -> Lane:
    """The lane of a group of devices that are alike."""
    if len(group) == 1:
        return Lane(f"device {group[0]}")
    return Lane(devices_text(group), f"+{len(group):,} devices alike")
