"""What tests of recording share: a parameter as a value, and the refusal of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xbuild as xb


def value(builder: xb.Builder, number: int = 0, shape: Any = None, name: str | None = None) -> xb.Value:
    return xb.parameter(builder, number=number, shape=xb.f32[3] if shape is None else shape, name=name)


def refused(kind: str, call: Callable[[], object]) -> xb.XbuildError:
    with pytest.raises(xb.XbuildError) as caught:
        call()
    assert caught.value.kind == kind, caught.value
    return caught.value
