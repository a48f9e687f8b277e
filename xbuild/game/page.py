"""The page of a level: one HTML file with all states and repairs, on which a reader moves the devices."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from attrs import frozen

from shape_inference.escaping import filled, in_html, in_json, policy

from ..core.graph import Instruction
from .level import Case, Level, case_data
from .repairing import repairs_of


@frozen
class Telling:
    """The texts of a page: its title, what the level shows, and whether the reader repairs the program."""

    title: str
    text: str = ""
    is_repair: bool = False


def level_page(level: Level, telling: Telling | None = None, links: str = "") -> str:
    """The page of a level as HTML, in one file that needs no network; `links` is HTML for its top.

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
        "links": links,
        "plain": "".join(map(_plain, level.cases)),
        "style": _asset("game.css"),
        "data": in_json(_data(level, telling)),
        "script": script,
    }
    return filled(_asset("game.html"), parts)


def _plain(case: Case) -> str:
    """The text of a case for readers without JavaScript: the instructions of each device, and how the case can end."""
    ends = {(True, False): "Every order finishes.", (True, True): "Some orders finish, and others hang.",
            (False, True): "Every order hangs."}[case.can_end[0], case.can_hang[0]]  # fmt: skip
    rows = (
        f"<dt>device {device}</dt>" + "".join(f"<dd>{in_html(_item(item.instruction))}</dd>" for item in items)
        for device, items in case.board.items.items()
    )
    words = f"<p>With {in_html(case.words)}:</p>" if case.words else ""
    return f"{words}<dl>{''.join(rows)}</dl><details><summary>How it can end</summary><p>{ends}</p></details>"


def _item(instruction: Instruction) -> str:
    return f"{instruction.opcode.replace('_', '-')} {instruction.name}"


def _data(level: Level, telling: Telling) -> dict[str, Any]:
    found = level.to_dict()
    if telling.is_repair:
        found["repairs"] = [
            {"words": repair.words, "is_right": repair.is_right, "case": case_data(repair.case)}
            for repair in repairs_of(level.cases[0].board)
        ]
    return found


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
