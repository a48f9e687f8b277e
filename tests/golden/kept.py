"""The kept texts by the names of their files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import xbuild as xb

from . import programs

FOLDER = Path(__file__).parent
_FORMS = {"dot": "dot", "mmd": "mermaid", "svg": "svg", "txt": "txt"}


def picture(program: xb.Module | xb.ModuleGroup, form: str, **options: Any) -> str:
    """The picture without the places in this tree, which differ from one to another."""
    text = xb.viz(program, form, **options)
    assert isinstance(text, str)
    return re.sub(r"(&#10;|\n)\S+programs\.py:\d+ in (\w+|<\w+>|&lt;\w+&gt;)", "", text)


def with_data(form: str) -> str:
    """Numbers and a text over a loop whose body is folded."""
    data = {"x": 64, "reduce.23": 4, "while.20": 68, "all-reduce.13": 2048, "multiply.16": 2.5, "tuple.2": "kept"}
    return picture(programs.loop(), form, data=data, data_name="bytes", fold=("next",))


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
    **{f"loop_data.{ending}": partial(with_data, form) for ending, form in _FORMS.items()},
    "ring.dot": lambda: picture(programs.ring(2), "dot"),
}
