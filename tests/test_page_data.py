"""What a page holds: values in as much detail as there is room for, coarser before fewer, and it says so."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np
import pytest

import xbuild as xb
from interpreter import trace
from tests.browser import pages
from xbuild.page import framed, page_text
from xbuild.page.fitting import LEVELS, fitted
from xbuild.trace import Trace


def _long(count: int = 60) -> Trace:
    @xb.computation(xb.f32[12, 10])
    def program(x: xb.Value) -> xb.Value:
        for _ in range(count):
            x = xb.tanh(x)
        return x

    inputs = np.random.default_rng(0).standard_normal((2, 1, 12, 10)).astype(np.float32)
    return trace(xb.Module("long", program, num_replicas=2), list(inputs))


@pytest.mark.parametrize("room", [200_000, 40_000, 20_000, 12_000, 5_000, 1_000])
def test_values_take_no_more_than_the_room(room: int) -> None:
    found = fitted(_long(), room)
    assert len(found.data["bytes"]) <= room
    assert ("to keep it small" in found.left_out) == (room < 200_000)
    assert ("step" in found.left_out) == (room < 12_000)
    assert any(ref >= 0 for ref in found.refs)


def test_what_is_left_is_spread_over_time() -> None:
    run = _long()
    found = fitted(run, 2_000)
    steps = sorted({int(run.time[number]) for number, ref in enumerate(found.refs) if ref >= 0})
    assert len(set(np.diff(steps))) == 1
    assert steps[0] <= len(run) // 4
    assert steps[-1] > 0.7 * run.end


def test_coarser_levels_take_less() -> None:
    sizes = [len(fitted(_long(), room).data["bytes"]) for room in (200_000, 40_000, 20_000, 12_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert [level.whole for level in LEVELS] == sorted((level.whole for level in LEVELS), reverse=True)


def _data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def test_all_types_of_values_are_in_the_page() -> None:
    types = [xb.pred, xb.s8, xb.u16, xb.s64, xb.u64, xb.bf16, xb.f16, xb.f64, xb.c64, xb.c128]
    program = xb.computation(*(each[2] for each in types))(lambda *xs: xb.tuple_(xs))
    values = [np.array([1, 0]).astype(each.dtype) for each in types]
    data = _data(page_text(trace(xb.Module("types", program), [values])))
    kinds = {kind["t"]: kind["f"] for kind in data["values"]["kinds"] if "t" in kind}
    assert kinds == {
        "pred": "u1", "s8": "i4", "u16": "u4", "s64": "i8", "u64": "u8", "bf16": "f4", "f16": "f4", "f64": "f8",
        "c64": "c8", "c128": "c16",
    }  # fmt: skip
    assert base64.b64decode(data["values"]["bytes"])


def test_what_a_program_says_cannot_end_the_script() -> None:
    @xb.custom_call_target("</script><b>")
    def odd(x: Any) -> Any:
        return x

    program = xb.computation(xb.f32[1])(lambda x: xb.custom_call(x, custom_call_target="</script><b>", shape=xb.f32[1]))
    text = page_text(trace(xb.Module("odd", program), [[np.zeros(1, np.float32)]]))
    assert text.count("</script>") == 2


def test_a_frame_for_notebooks() -> None:
    html = pages.loop()._repr_html_()
    assert html == framed(pages.loop())
    assert html.startswith("<iframe ")
    assert "<!doctype" not in html
