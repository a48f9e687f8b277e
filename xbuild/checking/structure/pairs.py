"""Faults of source-target pairs, of a transfer or of a collective permute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...properties.device_groups import Pairs
from ...properties.effects import is_in_place
from ...properties.sites import Site
from ..model.describe import finding
from ..model.verdict import Finding


def pair_faults(
    devices: tuple[int, ...], site: Site, pairs: Pairs, count: int, what: str, named: Pairs | None = None
) -> Iterator[Finding]:
    """Faults of pairs: ids out of range (in the pairs `named`, if given), sources or targets that occur twice."""
    asked = pairs if named is None else named
    name, shown = site.instruction.name, ", ".join(f"({s},{t})" for s, t in pairs)
    for place, role in ((0, "source"), (1, "target")):
        for each, times in Counter(pair[place] for pair in pairs).items():
            if not 0 <= each < count and any(pair[place] == each for pair in asked):
                yield finding(
                    "device_out_of_range",
                    f"{name} names {what} {each} as a {role}, out of 0..{count - 1}; its pairs are {shown}",
                    (devices, site),
                    cause_text=f"there is no {what} {each}: the program has {count} {what}{'s' * (count != 1)}",
                    repair_text=f"name a {what} that there is in the pairs of {name}, or run the program on more",
                )
            elif times > 1 and not is_in_place(site.instruction):  # several slices have pairs of their own
                yield finding(
                    "bad_pairs",
                    f"{name} names {what} {each} as a {role} {times} times; its pairs are {shown}",
                    (devices, site),
                    cause_text="each source sends once, and each target gets one value",
                )
