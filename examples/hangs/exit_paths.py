"""A job has four ways to end, and one of them has a barrier."""

from __future__ import annotations

import numpy as np

import xbuild as xb
from examples.hangs.story import Inputs, Story

STEPS, PATH = xb.s32[()], xb.s32[()]


def broken() -> xb.Module:
    def leave(steps: xb.Value, path: xb.Value) -> xb.Value:
        paths = (
            lambda steps: xb.all_reduce(steps, xb.minimum, name="barrier"),  # finished
            lambda steps: steps,  # stopped
            lambda steps: steps,  # out of data
            lambda steps: steps - 1,  # an I/O error: the last step is not saved
        )
        return xb.conditional(path, [steps] * 4, branch_computations=paths, name="exit")

    return xb.Module("leave", xb.computation(STEPS, PATH)(leave), num_replicas=4)


def fixed() -> xb.Module:
    def leave(steps: xb.Value, path: xb.Value) -> xb.Value:
        paths = (
            lambda steps: steps,  # finished
            lambda steps: steps,  # stopped
            lambda steps: steps,  # out of data
            lambda steps: steps - 1,  # an I/O error: the last step is not saved
        )
        saved = xb.conditional(path, [steps] * 4, branch_computations=paths, name="exit")
        return xb.all_reduce(saved, xb.minimum, name="barrier")

    return xb.Module("leave", xb.computation(STEPS, PATH)(leave), num_replicas=4)


def ranks(*paths: int) -> list[list[object]]:
    return [[np.int32(100), np.int32(path)] for path in paths]


STORY = Story(
    title="The job hangs at exit: only one of several exit paths has a barrier",
    threads=("marin-community/marin#8480",),
    symptom="One rank meets an I/O error while the job ends, and the other ranks wait in a barrier.",
    cause="One of four exit paths has a barrier. An error on one rank makes that rank take another path.",
    fix="Put the barrier where all paths lead, and reduce the state of each rank in it.",
    omitted="Exceptions. The path of each rank is an argument, and the barrier is an all-reduce.",
    hanging=Inputs("path 3 on rank 2, path 0 on the others", ranks(0, 0, 3, 0)),
    harmless=Inputs("path 0 on all ranks", ranks(0, 0, 0, 0)),
    results=[np.int32(99)] * 4,
)
