"""Texts of one computation for tests of the reader: the module, its root, or the fault that is found."""

from __future__ import annotations

import pytest

import xbuild as xb

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def entry(body: str, before: str = "") -> xb.Module:
    return xb.parse_hlo(f"{before}\nENTRY main {{\n  x = f32[4] parameter(0)\n{body}\n}}\n")


def root(body: str, before: str = "") -> xb.Instruction:
    return entry(body, before).entry.root


def fault(text: str) -> xb.HloParseError:
    with pytest.raises(xb.HloParseError) as caught:
        xb.parse_hlo(text, "model.hlo")
    return caught.value
