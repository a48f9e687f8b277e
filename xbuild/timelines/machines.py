"""`Machine` and `Link`: how fast a device computes, reads its memory, and sends to others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from shape_inference import XbuildError, refuse
from shape_inference.types import PRIMITIVES


def _check_positive(owner: Any, attribute: Any, value: Any) -> None:
    """An attrs validator: a number above zero, which may be infinite."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        name = f"{type(owner).__name__}: {attribute.name}"
        refuse(
            "invalid_attribute", f"{name} is {value!r}, and a number above 0 is wanted", "give bytes, or bytes a second"
        )


def _check_seconds(owner: Any, attribute: Any, value: Any) -> None:
    """An attrs validator: a number of seconds, which may be zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        name = f"{type(owner).__name__}: {attribute.name}"
        refuse("invalid_attribute", f"{name} is {value!r}, and a number of seconds is wanted", f"{attribute.name}=1e-6")


@frozen(kw_only=True)
class Link:
    """The links along an axis of a mesh, as the alpha-beta model has them.

    `alpha` is the seconds of a step; `bandwidth` the bytes a second that a device sends in one direction (1 / beta);
    `launch` the seconds that a collective takes before its first step. Where `wraps` is not 0 devices are linked to
    neighbours only: axes whose size is a multiple of it close to a ring, which carries data both ways at once.
    Raises invalid_attribute where a number is negative.

    >>> Link(alpha=1e-6, bandwidth=4.5e10, wraps=4)
    Link(alpha=1e-06, bandwidth=45000000000.0, launch=0.0, wraps=4)

    Source: R. W. Hockney, The communication challenge for MPP (1994); for rings How To Scale Your Model, Part 3.
    """

    alpha: float = field(default=0.0, validator=_check_seconds)
    bandwidth: float = field(default=float("inf"), validator=_check_positive)
    launch: float = field(default=0.0, validator=_check_seconds)
    wraps: int = 0

    def ways(self, size: int) -> int:
        """In how many directions a ring of this many devices sends at once."""
        return 2 if self.wraps and size % self.wraps == 0 else 1


FREE = Link()
"""Links that take no time."""


def _peaks(given: float | Mapping[str, float]) -> Mapping[str, float]:
    found = dict(given) if isinstance(given, Mapping) else {"f32": given}
    for name, peak in found.items():
        if name not in PRIMITIVES:
            refuse(
                "invalid_attribute", f"Machine: flops names {name!r}, which is no element type", "flops={'bf16': 1e14}"
            )
        if isinstance(peak, bool) or not isinstance(peak, int | float) or not peak > 0:
            refuse("invalid_attribute", f"Machine: flops of {name} are {peak!r}, and a number above 0 is wanted",
                   "flops={'bf16': 1e14}")  # fmt: skip
    if not found:
        refuse("invalid_attribute", "Machine: flops is empty", "flops={'bf16': 1e14}, or one number for all types")
    return found


def _links(given: Link | Mapping[str, Link] | None) -> Mapping[str, Link]:
    found = given if isinstance(given, Mapping) else {"": given if given is not None else FREE}
    for name, link in found.items():
        if not isinstance(link, Link):
            raise TypeError(f"Machine: links has {link!r} for axis {name!r}, and a Link is wanted: xb.Link(alpha=1e-6)")
    return dict(found)


@frozen(kw_only=True)
class Machine:
    """A device and its links: peak FLOPs a second by element type, memory bandwidth, memory, links by mesh axis.

    `flops` is one number for all types, or a number for each that the vendor states. `memory_bandwidth` and `memory`
    are in bytes. `links` is one Link for all axes, or one by axis name with "" for the rest. Machines made of nodes
    have `node` devices in each, `links` inside of a node, and `network` between nodes, where each device has its own
    port. Raises invalid_attribute where a number is not above 0, or a name is no element type.

    >>> Machine(flops={"bf16": 2e14, "s8": 4e14}, memory_bandwidth=8e11).peak("f16")
    200000000000000.0
    """

    name: str = "machine"
    flops: Mapping[str, float] = field(converter=_peaks)
    memory_bandwidth: float = field(validator=_check_positive)
    memory: float | None = field(default=None, validator=_check_positive)
    links: Mapping[str, Link] = field(default=None, converter=_links)
    network: Link | None = None
    node: int | None = field(default=None, validator=_check_positive)

    def peak(self, dtype: str) -> float:
        """FLOPs a second in an element type: as stated, else of the next wider type, else of the widest.

        Among types of equal width the slower counts.
        """
        if dtype in self.flops:
            return self.flops[dtype]
        wanted, widths = _width(dtype), {name: _width(name) for name in self.flops}
        wider = [width for width in widths.values() if width >= wanted]
        nearest = min(wider) if wider else max(widths.values())
        return min(self.flops[name] for name, width in widths.items() if width == nearest)

    def link(self, axes: Iterable[str] = ()) -> Link:
        """The links along these axes; along several the slowest of them."""
        rest = self.links.get("", FREE)
        found = [self.links.get(axis, rest) for axis in axes] or [rest]
        return max(found, key=lambda each: (1 / each.bandwidth, each.alpha))

    def to_dict(self) -> dict[str, Any]:
        """The machine as plain data, as a machine file has it."""
        facts = asdict(self, filter=lambda _, value: value is not None and value != float("inf"))
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in facts.items()}

    def write(self, path: str | Path) -> None:
        """Write a machine file, which `machine` reads."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n")

    def free(self) -> Machine:
        """The same device with links that take no time."""
        return evolve(self, links={"": FREE}, network=None, node=None)


def _width(dtype: str) -> int:
    return PRIMITIVES[dtype].bits if dtype in PRIMITIVES else 32


def machine_of(data: Any, name: str) -> Machine:
    """The machine that plain data describe; refused where they describe none."""
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
               "a machine file is an object with flops, memory_bandwidth, memory, links; see docs/cost.md")  # fmt: skip
        raise
