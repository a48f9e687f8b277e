"""Marks on the time axis of a step page: births of NaN and infinity, findings of a strict run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..traces import Trace
from ..traces.births import births, is_stated

MOST = 2000
"""The greatest number of births that a page marks."""


def marks(trace: Trace, place: Sequence[int]) -> Mapping[int, list[list[Any]]]:
    """For each device its marks: the place of the event on the lane, and the text."""
    found = {
        (birth.event, birth.what): f"{birth.what} is born in {trace.standing(birth.event)}" for birth in _born(trace)
    }
    for finding in trace.findings:
        if finding["event"] is not None:
            what = {"nan_born": "NaN", "inf_born": "infinity"}.get(finding["kind"], finding["kind"])
            found[finding["event"], what] = f"{finding['kind']}: {_words(finding)}"
    by_device: dict[int, list[list[Any]]] = {}
    for (event, _), text in sorted(found.items()):
        by_device.setdefault(int(trace.device[event]), []).append([place[event], text])
    return by_device


def _born(trace: Trace) -> Sequence[Any]:
    """The births of a trace without constant infinities, such as the init value of a maximum or a mask."""
    return [birth for birth in births(trace) if not is_stated(trace, birth)][:MOST]


def _words(finding: Mapping[str, Any]) -> str:
    """The text of a finding, such as `operand -3.0, gives nan, and 2 more`."""
    values = [f"{name} {value}" for name, value in finding["values"].items()]
    index = [f"at {finding['index']}"] if finding["index"] else []
    further = [f"and {finding['further']:,} more"] if finding["further"] else []
    return ", ".join([*index, *values, finding["what"], *further])
