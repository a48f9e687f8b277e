"""Which text is kept under which name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import xbuild as xb

from . import programs

FOLDER = Path(__file__).parent


def picture(program: xb.Module | xb.ModuleGroup, form: str) -> str:
    """The picture without the places in this tree, which differ from one to another."""
    text = xb.viz(program, form)
    assert isinstance(text, str)
    return re.sub(r"(&#10;|\n)\S+programs\.py:\d+ in (\w+|<\w+>|&lt;\w+&gt;)", "", text)


TEXTS: dict[str, Callable[[], str]] = {
    "attributes.hlo": lambda: programs.attributes().to_hlo(),
    "devices.hlo": lambda: programs.devices().to_hlo(),
    "devices_percent.hlo": lambda: programs.devices().to_hlo(style="percent", layouts=True, entry_layout=True),
    "training_step.hlo": lambda: programs.training_step().to_hlo(),
    "training_step.dot": lambda: picture(programs.training_step(), "dot"),
    "loop.dot": lambda: picture(programs.loop(), "dot"),
    "loop.txt": lambda: picture(programs.loop(), "txt"),
    "ring.txt": lambda: picture(programs.ring(2), "txt"),
    "ring.svg": lambda: picture(programs.ring(2), "svg"),
    "ring.mmd": lambda: picture(programs.ring(2), "mermaid"),
    "loop.svg": lambda: picture(programs.loop(), "svg"),
    "ring.dot": lambda: picture(programs.ring(2), "dot"),
}
