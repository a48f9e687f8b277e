"""What the tests of `xb.tpu` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shape_inference import XbuildError

F32 = np.float32


def refused(kind: str, call: Callable[[], Any], *words: str, error: type[BaseException] = ValueError) -> str:
    """The message of a refusal of this kind, which names these words and the line of the test."""
    with pytest.raises(XbuildError) as caught:
        call()
    text = str(caught.value)
    assert caught.value.kind == kind, text
    assert isinstance(caught.value, error), type(caught.value)
    assert all(word in text for word in words), text
    assert "tests/tpu/" in text, text
    return text


def plain(result: Any) -> Any:
    """Arrays as lists, at any depth."""
    if isinstance(result, dict):
        return {key: plain(each) for key, each in result.items()}
    if isinstance(result, list | tuple):
        return (
            type(result)(*map(plain, result))
            if hasattr(result, "_fields")
            else type(result)([plain(each) for each in result])
        )
    return result.tolist() if isinstance(result, np.ndarray | np.generic) else result
