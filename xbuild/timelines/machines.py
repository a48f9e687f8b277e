"""Machines: how fast a device computes, reads its memory and sends; presets from vendors' figures; calibration.

Sections:

    Machine and Link
    Presets, and machine files
    Calibration: the machine that this process runs on
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, evolve, field, frozen

from shape_inference import XbuildError, refuse
from shape_inference.types import PRIMITIVES

from ..files.arrays import ArchiveError, read_text, replacing
from ..process.limits import memory

# ----------------------------------------------------------------------------
# Machine and Link


def _check_positive(owner: Any, attribute: Any, value: Any) -> None:
    """An attrs validator: a number above zero, which may be infinite."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        name = f"{type(owner).__name__}: {attribute.name}"
        refuse(
            "invalid_attribute",
            f"{name} is {value!r}; expected a number above 0",
            "bandwidths are in bytes per second, and memory is in bytes",
        )


def _check_seconds(owner: Any, attribute: Any, value: Any) -> None:
    """An attrs validator: a number of seconds, which may be zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        name = f"{type(owner).__name__}: {attribute.name}"
        refuse("invalid_attribute", f"{name} is {value!r}; expected a number of seconds", f"{attribute.name}=1e-6")


@frozen(kw_only=True)
class Link:
    """The links along an axis of a mesh, in the alpha-beta model.

    `alpha` is the time of a step in seconds. `bandwidth` is the number of bytes per second that a device sends in one
    direction (1 / beta). `launch` is the time in seconds that a collective takes before its first step. If `wraps` is
    not 0, devices are linked only to neighbours: an axis whose size is a multiple of `wraps` closes into a ring, which
    carries data both ways at once. Raises invalid_attribute if a number is negative.

    >>> Link(alpha=1e-6, bandwidth=4.5e10, wraps=4)
    Link(alpha=1e-06, bandwidth=45000000000.0, launch=0.0, wraps=4)

    Source: R. W. Hockney, The communication challenge for MPP (1994); for rings How To Scale Your Model, Part 3.
    """

    alpha: float = field(default=0.0, validator=_check_seconds)
    bandwidth: float = field(default=float("inf"), validator=_check_positive)
    launch: float = field(default=0.0, validator=_check_seconds)
    wraps: int = 0

    def ways(self, size: int) -> int:
        """Return the number of directions in which a ring of this many devices sends at once."""
        return 2 if self.wraps and size % self.wraps == 0 else 1


FREE = Link()
"""Links that take no time."""


def _convert_flops(given: float | Mapping[str, float]) -> Mapping[str, float]:
    found = dict(given) if isinstance(given, Mapping) else {"f32": given}
    for name, peak in found.items():
        if name not in PRIMITIVES:
            refuse("invalid_attribute", f"Machine: flops contains {name!r}, which is not an element type",
                   "flops={'bf16': 1e14}")  # fmt: skip
        if isinstance(peak, bool) or not isinstance(peak, int | float) or not peak > 0:
            refuse("invalid_attribute", f"Machine: flops for {name} is {peak!r}; expected a number above 0",
                   "flops={'bf16': 1e14}")  # fmt: skip
    if not found:
        refuse(
            "invalid_attribute",
            "Machine: flops is empty; expected FLOP/s for at least one element type",
            "pass flops={'bf16': 1e14}, or a single number for all types",
        )
    return found


def _convert_links(given: Link | Mapping[str, Link] | None) -> Mapping[str, Link]:
    found = given if isinstance(given, Mapping) else {"": given if given is not None else FREE}
    for name, link in found.items():
        if not isinstance(link, Link):
            raise TypeError(
                f"Machine: links: expected a Link for axis {name!r}, such as xb.Link(alpha=1e-6), got {link!r}"
            )
    return dict(found)


@frozen(kw_only=True)
class Machine:
    """A device and its links: peak FLOPs per second by element type, memory bandwidth, memory, and links by mesh axis.

    `flops` is one number for all types, or a number for each type that the vendor states. `memory_bandwidth` is
    in bytes per second and `memory` is in bytes. `links` is one Link for all axes, or a mapping from axis names to
    Links, with "" for all other axes. Machines made of nodes have `node` devices in each node, `links` inside a node,
    and `network` between nodes, where each device has its own port. Raises invalid_attribute if a number is not
    positive, or if a name is not an element type.

    >>> Machine(flops={"bf16": 2e14, "s8": 4e14}, memory_bandwidth=8e11).peak("f16")
    200000000000000.0
    """

    name: str = "machine"
    flops: Mapping[str, float] = field(converter=_convert_flops)
    memory_bandwidth: float = field(validator=_check_positive)
    memory: float | None = field(default=None, validator=_check_positive)
    links: Mapping[str, Link] = field(default=None, converter=_convert_links)
    network: Link | None = None
    node: int | None = field(default=None, validator=_check_positive)

    def peak(self, dtype: str) -> float:
        """Return the peak FLOP/s of an element type.

        If the type has no stated number, the number of the next wider type is used; if no wider type has one, that of
        the widest type is used. Among types of equal width, the slowest is used.
        """
        if dtype in self.flops:
            return self.flops[dtype]
        wanted, widths = _width(dtype), {name: _width(name) for name in self.flops}
        wider = [width for width in widths.values() if width >= wanted]
        nearest = min(wider) if wider else max(widths.values())
        return min(self.flops[name] for name, width in widths.items() if width == nearest)

    def link(self, axes: Iterable[str] = ()) -> Link:
        """Return the link along the given axis; for several axes, return the slowest of their links."""
        rest = self.links.get("", FREE)
        found = [self.links.get(axis, rest) for axis in axes] or [rest]
        return max(found, key=lambda each: (1 / each.bandwidth, each.alpha))

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain data, in the form of a machine file."""
        facts = asdict(self, filter=lambda _, value: value is not None and value != float("inf"))
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in facts.items()}

    def write(self, path: str | Path) -> None:
        """Write a machine file, which `machine` reads."""
        with replacing(Path(path)) as file:
            file.write(f"{json.dumps(self.to_dict(), indent=2)}\n".encode())

    def free(self) -> Machine:
        """Return the same device with links that take no time."""
        return evolve(self, links={"": FREE}, network=None, node=None)


def _width(dtype: str) -> int:
    return PRIMITIVES[dtype].bits if dtype in PRIMITIVES else 32


def machine_from_data(data: Any, name: str) -> Machine:
    """The machine that plain data describe; refused if they do not describe one."""
    try:
        facts = dict(data)
        links = {axis: Link(**each) for axis, each in (facts.pop("links", None) or {"": {}}).items()}
        network = facts.pop("network", None)
        facts.setdefault("name", name)
        return Machine(**facts, links=links, network=Link(**network) if network else None)
    except XbuildError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        refuse("invalid_attribute", f"machine {name}: {error}",
               "a machine file is a JSON object with flops, memory_bandwidth, memory and links; see "
                   "docs/cost.md")  # fmt: skip
        raise


# ----------------------------------------------------------------------------
# Presets, from figures that vendors publish, and machine files

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
Gbit/s (DGX H100, DGX B200). On v5e and v6e an axis of 16 closes into a ring, on v4 and v5p each multiple of 4 (Part 2).
"""


def machine(name: str) -> Machine:
    """Return a machine by its name (v4, v5e, v5p, v6e, a100, h100 or b200) or by the path of its machine file.

    Raises invalid_attribute if the machine does not exist, or if the file does not describe a machine.

    >>> machine("v5e").memory_bandwidth
    819000000000.0

    Source: `MACHINES`, which cites what each figure is from.
    """
    if name in MACHINES:
        return MACHINES[name]
    try:
        data = json.loads(read_text(Path(name), _MOST_BYTES).decode("utf-8"))
    except (ArchiveError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ArchiveError) else f"{name!r} is not JSON: {error}"
        known = ", ".join(MACHINES)
        refuse("invalid_attribute", f"machine {name!r} is neither one of {known} nor a machine file: {reason}",
               "to measure this machine and write such a file, run xbuild cost --calibrate > here.json")  # fmt: skip
    return machine_from_data(data, Path(name).stem)


# ----------------------------------------------------------------------------
# Calibration: the machine that this process runs on, measured by products and copies of NumPy

_EXTENT = 768
_COPIED = 64 << 20
_ROUNDS = 5


def calibrate() -> Machine:
    """This machine: the best of several products in f32 and f64, and of several copies. Takes about a second.

    Without links: programs of several devices need them in the machine file.

    Source: none; these are measurements, of as many threads as NumPy's products use.
    """
    flops = {name: _product_flops(dtype) for name, dtype in (("f32", np.float32), ("f64", np.float64))}
    source = np.ones(_COPIED, dtype=np.uint8)
    target = np.empty_like(source)
    seconds = _fastest(lambda: np.copyto(target, source))
    return Machine(
        name=platform.node() or "this machine", flops=flops, memory_bandwidth=2 * _COPIED / seconds, memory=memory()
    )


def _product_flops(dtype: type) -> float:
    """FLOPs per second of a product of two square matrices."""
    square: np.ndarray = np.ones((_EXTENT, _EXTENT), dtype=dtype)
    return 2 * _EXTENT**3 / _fastest(lambda: np.matmul(square, square))


def _fastest(work: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls."""
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
