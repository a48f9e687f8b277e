"""What a program costs, told for thousands of devices: seconds and peak bytes of `xb.cost` and its memory."""

from __future__ import annotations

import gzip
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import xbuild as xb
from benchmarks.conftest import Row

FOLDER = Path(os.environ.get("XBUILD_PROGRAMS", "../shared/cases/xla_programs"))
"""Where real programs lie as NAME.hlo.gz; without the folder those rows are left out."""

MESH = xb.Mesh(a=16, b=16, c=16)


def layers(count: int) -> xb.Module:
    """A program of `count` instructions on 4,096 devices, whose collectives go along three axes in turn."""
    builder = xb.Builder("layers")
    x = xb.parameter(builder, number=0, shape=xb.f32[256, 256])
    groups = [MESH.groups((axis,)) for axis in MESH.axes]
    while len(builder.instructions) < count:
        y = xb.tanh(xb.dot(x, x))
        x = xb.all_reduce(y + x, xb.add, replica_groups=groups[len(builder.instructions) % 3])
    return xb.Module("layers", builder.build(x), num_replicas=MESH.num_devices)


def real(name: str, devices: int) -> xb.Module:
    text = gzip.decompress((FOLDER / f"{name}.hlo.gz").read_bytes()).decode()
    module: xb.Module = xb.parse_hlo(text)
    return module
