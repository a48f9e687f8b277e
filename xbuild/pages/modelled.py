"""The lanes of a step page in the proportions of modelled time, for both themes, and the switch that shows them."""

from __future__ import annotations

from ..pictures.svg.time_lanes import time_svg
from ..pictures.timelines.laying import time_picture
from ..timelines import Machine, timeline
from ..traces import Trace

_SWITCH = """<span class="switch" role="group" aria-label="which time the lanes show">\
<button id="logical" type="button" aria-pressed="true" title="one step after the other">logical</button>\
<button id="modelled" type="button" aria-pressed="false" title="in the proportions of a model of the machine">modelled\
</button></span>"""


def modelled(trace: Trace, machine: Machine | str | None) -> dict[str, str]:
    """The parts of the page: the switch, and the lanes; both empty where no machine is given."""
    if machine is None:
        return {"switch": "", "modelled": ""}
    picture = time_picture(timeline(trace.program, machine))
    lanes = "".join(f'<div class="of-{theme}">{time_svg(picture, theme)}</div>' for theme in ("light", "dark"))
    label = 'tabindex="0" role="region" aria-label="lanes of the devices over modelled time"'
    return {"switch": _SWITCH, "modelled": f'<div id="timed" {label} hidden>{lanes}</div>'}
