"""The step page: one self-contained HTML file that replays a run, or shows where a program is stuck."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from shape_inference.escaping import filled, in_html, in_json, policy

from ..files.arrays import replacing
from ..pictures.time_lanes import time_picture, time_svg
from ..process.progress import during
from ..sharding.partition import Partitioned
from ..timelines import Machine, timeline
from ..traces import Trace

__all__ = ["framed", "page_text", "write_page"]

_SCRIPTS = (
    "decoding.js", "sizes.js", "blocks.js", "lanes.js", "strip.js", "values.js", "tiles.js", "far.js", "stuck.js",
    "side.js", "around.js", "culling.js", "graph.js", "modelled.js", "app.js",
)  # fmt: skip


def page_text(
    trace: Trace,
    *,
    source_root: str | os.PathLike[str] | None = None,
    machine: Machine | str | None = None,
    partitioned: Partitioned | None = None,
) -> str:
    """The page of a run as HTML: lanes over logical time, the program, and each instruction with its values.

    With a `machine`, as `xb.timeline` takes it, the page also has lanes drawn in proportion to modelled time. Source
    lines of a loaded trace, and of metadata in HLO text, are those that the trace or the text stores; the page opens
    the files that they name only under `source_root`. `partitioned` is the result of `xb.shard.partition`. For a run of
    its `module`, the page shows each value as a global array with the tiles of the devices, and the reason for its
    sharding.
    Raises: invalid_operand if the run is of a different program.

    >>> import xbuild as xb
    >>> run = xb.trace(xb.Module("double", xb.computation(xb.f32[2])(lambda x: x + x)), [[[1.0, 2.0]]], origins=True)
    >>> page_text(run).splitlines()[0]
    '<!doctype html>'
    """
    from .data import page_data

    data = page_data(trace, None if source_root is None else Path(source_root), partitioned)
    script = script_text()
    parts = {
        "policy": policy(script),
        "title": in_html(data["title"]),
        "style": asset("page.css"),
        "graph": data.pop("graph"),
        **modelled(trace, machine),
        "data": in_json(data),
        "script": script,
    }
    return filled(asset("page.html"), parts)


def write_page(
    trace: Trace,
    path: str | os.PathLike[str],
    *,
    source_root: str | os.PathLike[str] | None = None,
    machine: Machine | str | None = None,
    partitioned: Partitioned | None = None,
) -> Path:
    """Write the step page to a file atomically: an interrupted write leaves the old file unchanged.

    `source_root` is the folder from which source files may be shown. With a `machine`, the page also has lanes drawn in
    proportion to modelled time. `partitioned` is the result of `xb.shard.partition`; the page then shows global arrays
    with the tiles of the devices.
    """
    target = Path(path)
    with during("writing the page"):
        text = page_text(trace, source_root=source_root, machine=machine, partitioned=partitioned)
    with replacing(target) as file:
        file.write(text.encode())
    return target


def framed(trace: Trace, height: int = 720) -> str:
    """The step page in an iframe of this height in pixels, for notebooks.

    The frame is ASCII: a host page of any encoding shows it.
    """
    text = in_html(page_text(trace)).encode("ascii", "xmlcharrefreplace").decode()
    style = f"width:100%;height:{height}px;border:1px solid #8884;border-radius:6px"
    return f'<iframe title="{in_html(repr(trace))}" style="{style}" srcdoc="{text}"></iframe>'


def script_text() -> str:
    """The script of every step page; a page that frames step pages must allow this script in its own policy."""
    return "\n".join(map(asset, _SCRIPTS))


@cache
def asset(name: str) -> str:
    """The text of a file in the folder `assets`."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# Lanes in proportion to modelled time

_SWITCH = """<span class="switch" role="group" aria-label="which time the lanes show">\
<button id="logical" type="button" aria-pressed="true" title="one step after another">logical</button>\
<button id="modelled" type="button" aria-pressed="false" title="in proportion to modelled time">modelled\
</button></span>"""


def modelled(trace: Trace, machine: Machine | str | None) -> dict[str, str]:
    """The switch and the lanes of modelled time; both are empty without a machine."""
    if machine is None:
        return {"switch": "", "modelled": ""}
    picture = time_picture(timeline(trace.program, machine))
    lanes = "".join(f'<div class="of-{theme}">{time_svg(picture, theme)}</div>' for theme in ("light", "dark"))
    label = 'tabindex="0" role="region" aria-label="lanes of the devices over modelled time"'
    return {"switch": _SWITCH, "modelled": f'<div id="timed" {label} hidden>{lanes}</div>'}
