"""What a notebook shows of results: a report with colours, and a picture where there is one; names are text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any

import pytest

import xbuild as xb
from shape_inference.escaping import in_html
from xbuild.core.hooks import reported
from xbuild.core.report_text import headed

BEFORE = """HloModule step, num_partitions=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,64] all-reduce(y), replica_groups={{0,1}}, to_apply=add, use_global_device_ids=true, channel_id=1
}"""
AFTER = BEFORE.replace("dot(x, x)", "dot(x, w)").replace("  y =", "  w = f32[64,64] tanh(x)\n  y =")


def program() -> xb.Module:
    return xb.parse_hlo(BEFORE)


RESULTS: Mapping[str, Callable[[], Any]] = {
    "cost": lambda: xb.cost(program()),
    "diff": lambda: xb.diff(program(), xb.parse_hlo(AFTER)),
    "equal": lambda: xb.equivalent(program(), program()),
    "different": lambda: xb.equivalent(program(), xb.parse_hlo(AFTER)),
    "explanation": lambda: xb.explain(program(), "z"),
    "lint": lambda: xb.lint(program()),
    "module": program,
    "replication": lambda: xb.replication(program()),
    "timeline": lambda: xb.timeline(program(), "h100"),
    "verdict": lambda: xb.check(program()),
}
DRAWN = {"module", "timeline", "verdict"}


class Reader(HTMLParser):
    """The elements and the text of HTML; the texts of style sheets and pictures are left out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "pre" in self.open:
            self.text += data


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_shows_the_report_and_the_picture(name: str) -> None:
    result = RESULTS[name]()
    shown = Reader(result._repr_html_())
    assert ("svg" in shown.tags) == (name in DRAWN)
    assert "script" not in shown.tags
    if name != "module":
        first = str(result).partition("\n")[0]
        assert shown.text.strip().startswith(first)
    if name not in DRAWN:
        assert shown.text == str(result)


def test_a_difference_has_the_colours_of_the_terminal() -> None:
    html = xb.diff(program(), xb.parse_hlo(AFTER))._repr_html_()
    assert re.search(r'<span class="r-good">  \+ w = f32\[64,64\] tanh\(x\)', html)
    assert re.search(r'<span class="r-waits">  ~ y = ', html)
    assert "(was" not in html


def test_a_name_is_text() -> None:
    name = "<script>alert(1)</script>"
    shown = reported(headed([name, f"  {name}"]))
    assert shown.count(in_html(name)) == 2
    assert "<script" not in shown


def test_a_long_table_is_folded() -> None:
    text = "".join(f"  x.{n} = f32[] negate(x.{n - 1})\n" for n in range(1, 300))
    found = xb.replication(
        xb.parse_hlo(f"HloModule m, replica_count=2\nENTRY e {{\n  x.0 = f32[] parameter(0)\n{text}}}")
    )
    shown = Reader(found._repr_html_()).text.splitlines()
    assert len(shown) == 201
    assert shown[-1].startswith("  ... and 103 more lines; print(replication) shows them")
