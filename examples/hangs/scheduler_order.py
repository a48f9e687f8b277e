"""A scheduler places every receive before every send; nothing in the program asks for this order."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

WORD = xb.u32[()]


def broken() -> xb.ModuleGroup:
    def proc(number: int, mine: int, theirs: int) -> xb.Module:
        def step(word: xb.Value) -> xb.Value:
            token = xb.after_all(builder=word.builder)
            posted = xb.recv(token, shape=WORD, channel_id=theirs)
            received, _ = xb.recv_done(posted, channel_id=theirs, name="receive")
            xb.send_done(xb.send(word, token, channel_id=mine, name="send"), channel_id=mine)
            return word + received

        return xb.Module(f"proc{number}", xb.computation(WORD)(step), is_scheduled=True)

    return xb.ModuleGroup({0: proc(0, mine=1, theirs=2), 1: proc(1, mine=2, theirs=1)})


def fixed() -> xb.ModuleGroup:
    def proc(number: int, mine: int, theirs: int) -> xb.Module:
        def step(word: xb.Value) -> xb.Value:
            token = xb.after_all(builder=word.builder)
            posted = xb.recv(token, shape=WORD, channel_id=theirs)
            xb.send_done(xb.send(word, token, channel_id=mine, name="send"), channel_id=mine)
            received, _ = xb.recv_done(posted, channel_id=theirs, name="receive")
            return word + received

        return xb.Module(f"proc{number}", xb.computation(WORD)(step), is_scheduled=True)

    return xb.ModuleGroup({0: proc(0, mine=1, theirs=2), 1: proc(1, mine=2, theirs=1)})


STORY = Story(
    title="A correct program deadlocks after scheduling: sends as late as possible",
    threads=("google/xls#717",),
    symptom="A test of a C++ compiler deadlocks as soon as the interpreter runs sends as late as possible.",
    cause=(
        "The compiler does not order a send and a receive that are independent. One legal order makes both "
        "processes wait for a value that neither has sent."
    ),
    fix="State the order: send, then wait. `xbuild check --repair` writes such an order.",
    omitted="XLS: a proc is a device here, and its schedule is binding. Without `is_scheduled`, the verdict is ok.",
    hanging=Inputs("any arguments", [[np.uint32(1)], [np.uint32(2)]]),
    results=[np.uint32(3)] * 2,
)
