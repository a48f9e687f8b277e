"""Check and lint of a text in a process of their own, which is killed at the next edit or at a limit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from shape_inference.bounds import CHILD_BYTES, CONVERSION

from ..process.limits import bound_child
from .text import Text

_CHILD = Path(__file__).with_name("analysis_child.py")
_MOST_OUTPUT = 1 << 24
"""Bytes of one line of a child's output; a longer one ends the analysis."""


async def analysed(text: Text, file: str, seconds: float) -> AsyncGenerator[tuple[str, list[dict[str, Any]]], None]:
    """The issues of each stage, `check` and then `lint`, as they are known.

    Raises TimeoutError after the number of seconds, and ChildProcessError if the process ends without an answer. The
    process is killed where the iteration ends.
    """
    request = json.dumps({"text": text.source, "file": file, "seconds": seconds}).encode()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(_CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_MOST_OUTPUT,
    )
    try:
        bound_child(child.pid, CHILD_BYTES + CONVERSION * len(request))
        async with asyncio.timeout(seconds):
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(OSError):  # the process has ended, which its output tells
                child.stdin.write(request)
                await child.stdin.drain()
                child.stdin.close()
            stages = 0
            while line := await _line(child.stdout):
                answer = json.loads(line)
                stages += 1
                yield answer["stage"], answer["issues"]
            if not stages:
                raise ChildProcessError
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # the line is longer than the limit
        return b""
