"""Machines whose figures their vendors publish, and `machine`, which names one or reads a machine file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from shape_inference import refuse

from ..files.npz import ArchiveError, read_text
from .machines import Link, Machine, machine_of

_HOP = 1e-6
"""Seconds of a step over a link: How To Scale Your Model, Part 3 ("typically around 1us")."""

_NETWORK = 5e-6
"""Seconds of a step over InfiniBand. No vendor publishes the figure for a whole step of a collective: an assumption."""


def _tpu(name: str, flops: dict[str, float], bandwidth: float, memory: float, link: float, wraps: int) -> Machine:
    links = Link(alpha=_HOP, bandwidth=link, wraps=wraps)
    return Machine(name=name, flops=flops, memory_bandwidth=bandwidth, memory=memory, links=links)


def _gpu(name: str, flops: dict[str, float], bandwidth: float, memory: float, link: float, port: float) -> Machine:
    return Machine(
        name=name,
        flops=flops,
        memory_bandwidth=bandwidth,
        memory=memory,
        links=Link(alpha=_HOP, bandwidth=link),
        network=Link(alpha=_NETWORK, bandwidth=port),
        node=8,
    )


_MOST_BYTES = 1 << 20
"""The largest machine file that is read."""

MACHINES: Mapping[str, Machine] = {
    each.name: each
    for each in (
        _tpu("v4", {"bf16": 2.75e14, "s8": 2.75e14}, 1.2e12, 32e9, 4.5e10, 4),
        _tpu("v5p", {"bf16": 4.59e14, "s8": 9.18e14}, 2.765e12, 95e9, 1e11, 4),
        _tpu("v5e", {"bf16": 1.97e14, "s8": 3.93e14}, 8.19e11, 16e9, 5e10, 16),
        _tpu("v6e", {"bf16": 9.18e14, "s8": 1.836e15}, 1.64e12, 32e9, 1e11, 16),
        _gpu("a100", {"f64": 1.95e13, "f32": 1.95e13, "bf16": 3.12e14, "f16": 3.12e14, "s8": 6.24e14},
             2.039e12, 80e9, 3e11, 2.5e10),
        _gpu("h100", {"f64": 6.7e13, "f32": 6.7e13, "bf16": 9.89e14, "f16": 9.89e14, "f8e4m3fn": 1.979e15,
                       "s8": 1.979e15},
             3.35e12, 80e9, 4.5e11, 5e10),
        _gpu("b200", {"f32": 8e13, "bf16": 2.25e15, "f16": 2.25e15, "f8e4m3fn": 4.5e15, "s8": 4.5e15},
             8e12, 192e9, 9e11, 5e10),
    )
}  # fmt: skip
"""Machines by name. Peaks are those of dense products; a type that is not stated takes that of the next wider one.

Sources: of v4, v5p, v5e and v6e Google Cloud's TPU documentation (key specifications of each version), and for the
bandwidth of links, one way, and int8 of v5p How To Scale Your Model, Part 2 (tables of chips and links); of a100 the
NVIDIA A100 Tensor Core GPU data sheet (SXM, 80 GB); of h100 the H100 data sheet (SXM, without sparsity); of b200 How To
Scale Your Model, Part 12, and the Blackwell architecture brief; ports between nodes are 200 Gbit/s (DGX A100) and 400
Gbit/s (DGX H100, DGX B200). On v5e and v6e an axis of 16 closes to a ring, on v4 and v5p each multiple of 4 (Part 2).
"""


def machine(name: str) -> Machine:
    """The machine with this name (v4, v5e, v5p, v6e, a100, h100, b200), or of the machine file with this path.

    Raises invalid_attribute where there is none, or the file describes none.

    >>> machine("v5e").memory_bandwidth
    819000000000.0

    Source: `MACHINES`, which cites what each figure is from.
    """
    if name in MACHINES:
        return MACHINES[name]
    try:
        data = json.loads(read_text(Path(name), _MOST_BYTES).decode("utf-8"))
    except (ArchiveError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ArchiveError) else f"{name!r} is no JSON: {error}"
        refuse("invalid_attribute", f"machine {name!r} is none of {', '.join(MACHINES)}, and no machine file: {reason}",
               "xbuild cost --calibrate > here.json measures this machine and writes such a file")  # fmt: skip
    return machine_of(data, Path(name).stem)


def names() -> Iterator[str]:
    """The names of all presets."""
    yield from MACHINES
