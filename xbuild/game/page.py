"""The page of a level: one HTML file with all states, on which a reader moves the devices."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from attrs import frozen

from shape_inference.escaping import filled, in_html, in_json, policy

from ..core.graph import Instruction
from .level import Case, Level
from .repairs import MOST_REPAIRS, edges, outcome


@frozen
class Telling:
    """What a page tells beside the states: the title, what there is to see, and whether the reader is to repair."""

    title: str
    text: str = ""
    is_repair: bool = False


def level_page(level: Level, telling: Telling | None = None) -> str:
    """The page of a level as HTML, in one file without a network.

    >>> import xbuild as xb
    >>> from xbuild.game import level_of
    >>> total = xb.Module("total", xb.computation(xb.f32[2])(xb.cross_replica_sum), num_replicas=2)
    >>> level_page(level_of(total)).splitlines()[0]
    '<!doctype html>'
    """
    telling = telling or Telling(level.name)
    script = _asset("game.js")
    parts = {
        "policy": policy(script),
        "title": in_html(telling.title),
        "text": "".join(f"<p>{in_html(each)}</p>" for each in telling.text.split("\n\n") if each.strip()),
        "plain": "".join(map(_plain, level.cases)),
        "style": _asset("game.css"),
        "data": in_json(_data(level, telling)),
        "script": script,
    }
    return filled(_asset("game.html"), parts)


def _plain(case: Case) -> str:
    """What a reader without JavaScript sees of a case: the instructions of each device, and how the case can end."""
    ends = {(True, False): "Every order ends.", (True, True): "Some orders end, and some hang.",
            (False, True): "Every order hangs."}[case.can_end[0], case.can_hang[0]]  # fmt: skip
    rows = (
        f"<dt>device {device}</dt>" + "".join(f"<dd>{in_html(_item(item.instruction))}</dd>" for item in items)
        for device, items in case.board.items.items()
    )
    words = f"With {case.words}: " if case.words else ""
    return f"<p>{in_html(words)}{ends}</p><dl>{''.join(rows)}</dl>"


def _item(instruction: Instruction) -> str:
    return f"{instruction.opcode.replace('_', '-')} {instruction.name}"


def _data(level: Level, telling: Telling) -> dict[str, Any]:
    found = level.to_dict()
    if telling.is_repair:
        found["repairs"] = [outcome(repair) for repair in [*edges(level.cases[0].board)][:MOST_REPAIRS]]
    return found


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
