"""Commands of `xbuild step` for a partitioned program: the tile that a value is, and the global array of all tiles."""

from __future__ import annotations

import textwrap

from shape_inference import Shape
from shape_inference.escaping import in_line

from ..sharding.partition import Partitioned, Tiling, joined
from ..sharding.propagation import short
from .face import Piece
from .looking import Looking

_WIDE = 96


class Tiles(Looking):
    """The commands that show of which global array a value is a tile, and why a collective was inserted."""

    partitioned: Partitioned | None = None

    def _place(self) -> None:
        super()._place()
        event = self.walk.event
        if self.partitioned is None or event is None:
            return
        name = event.instruction.name
        if held := self.partitioned.held.get(name):
            self.face.say(Piece(f"    {_tile(held, self.walk.device)}", "dim"))
        for each in self.partitioned.communications:
            if each.name == name:
                for line in textwrap.wrap(f"inserted: {in_line(each.reason)}", _WIDE):
                    self.face.say(Piece(f"    {line}", "meets"))

    def do_whole(self, line: str) -> None:
        """whole [NAME] (g): print the global array of which a value is a tile.

        It is put together from the tiles that all devices have by this step, in a run with --partition.
        """
        event = self.walk.event
        name = line.strip().lstrip("%") or (event.instruction.name if event is not None else "")
        held = None if self.partitioned is None else self.partitioned.held.get(name)
        if self.partitioned is None:
            self.fault("the program was not partitioned by this command: `xbuild step TARGET --partition` does it")
        elif held is None:
            self.fault(f"{name} is no tile of a global array" if name in self.names else self.unknown(name))
        elif held.sharding.unreduced:
            self.fault(f"each device has a part of %{held.value} in {name}, which the next collective joins")
        else:
            self._whole(name, held)

    def _whole(self, name: str, held: Tiling) -> None:
        try:
            parts = [self.walk.value_of(name, device) for device in range(self.trace.num_devices)]
        except KeyError:
            self.fault(f"not all devices have come to {name} by now")
            return
        assert isinstance(held.shape, Shape)
        if any(getattr(part, "shape", None) != held.local for part in parts):
            self.fault(f"the values of {name} were not kept in full")
            return
        self._picture(f"%{held.value} {short(held.sharding)}", joined(parts, held.shape, held.sharding))


def _tile(held: Tiling, device: int) -> str:
    """Where the tile of a device stands in its global array."""
    spans = held.ranges(tuple(held.place[device].tolist()))
    places = (":" if parts == 1 else f"{low}:{high}" for parts, (low, high) in zip(held.tiles, spans, strict=True))
    part = ", still to be joined" if held.sharding.unreduced else ""
    return f"tile [{', '.join(places)}] of %{in_line(held.value)} {held.shape} {in_line(short(held.sharding))}{part}"
