"""Messages between the child process of an engine and its parent: arrays of every element type, and refusals."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import interpreter.engines
from interpreter.engines.process import DONE, receive, send
from shape_inference import PRIMITIVES, PrimitiveType


@pytest.mark.parametrize("dims", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=repr)
@pytest.mark.parametrize("dtype", PRIMITIVES.values(), ids=repr)
def test_an_array_of_each_type_comes_back(dtype: PrimitiveType, dims: tuple[int, ...]) -> None:
    array = np.arange(np.prod(dims)).reshape(dims).astype(dtype.dtype)
    pipe = io.BytesIO()
    send(pipe, DONE, {3: [array, array.T], 0: []})
    send(pipe, {"refused": "\udc80 no"})
    pipe.seek(0)
    words, leaves = receive(pipe)
    assert words == DONE
    assert leaves[0] == []
    for sent, found in zip((array, array.T), leaves[3], strict=True):
        assert found.dtype is dtype.dtype or found.dtype == dtype.dtype
        assert found.shape == sent.shape
        assert found.tobytes() == sent.tobytes()
        assert found.flags.writeable
    assert receive(pipe) == ({"refused": "\udc80 no"}, {})
    with pytest.raises(EOFError):
        receive(pipe)


@pytest.mark.parametrize("count", [3, 100_000])
def test_arrays_go_through_a_pipe(count: int) -> None:
    """A pipe has no position, which NumPy asks a file for."""
    reading, writing = os.pipe()
    array = np.arange(count, dtype=np.float32)
    with open(reading, "rb") as source, open(writing, "wb") as sink, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send, sink, DONE, {0: [array]})
        words, leaves = receive(source)
        sent.result()
    assert words == DONE
    np.testing.assert_array_equal(leaves[0][0], array, strict=True)


def test_objects_are_not_sent() -> None:
    with pytest.raises(TypeError, match="is not an XLA element type"):
        send(io.BytesIO(), DONE, {0: [object()]})


def test_no_engine_reads_pickles() -> None:
    files = Path(interpreter.engines.__file__).parent.glob("*.py")
    assert not [file.name for file in files if "import pickle" in file.read_text(encoding="utf-8")]
