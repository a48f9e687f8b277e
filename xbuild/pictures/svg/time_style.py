"""Colours of time lines: bars without a border, exposed communication, waits, the critical path; light and dark."""

from __future__ import annotations


def _rules(exposed: str, stripe: str, wait: str, path: str, dim: str) -> str:
    rules = (
        ".tb path{stroke-width:.6}",
        f".t-exposed path{{fill:{exposed};stroke:{stripe}}}",
        f".t-exposed text{{fill:{stripe}}}",
        f".t-wait path{{fill:{wait};stroke:none}}",
        f".t-wait text{{fill:{dim}}}",
        f".t-path path{{fill:{path};stroke:none}}",
        f".tick,.xb .rail{{stroke:{dim};stroke-width:1;opacity:.22;fill:none}}",
        ".tl path{stroke:none}",
        f".mark{{stroke:{dim};stroke-width:1.2;fill:none}}",
    )
    return "".join(f".xb {rule}" for rule in rules)


EXTRA = (
    _rules("#ffcf9f", "#d84f00", "#e9edf0", "#c62828", "#5f6b73"),
    _rules("#74400f", "#ff9d5c", "#262c30", "#ff6b6b", "#9aa7ae"),
)
