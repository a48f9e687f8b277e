"""Keys by which the collectives of several devices meet in one rendezvous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xbuild.checking.structure.collective_matching import unique_channels
from xbuild.core.graph import Module

from ..compiler.requests import Request


class RendezvousKeys:
    """Keys of collectives: in one program for all devices the call path; across programs a channel id or the names.

    Two collectives match if their keys are equal, whatever the order of arrival; the check for deadlock uses the same
    rule.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        distinct = dict.fromkeys(modules)
        self._alone = len(distinct) == 1
        self._unique = {} if self._alone else {module: unique_channels(module) for module in distinct}

    def of(self, module: Module, request: Request) -> Any:
        if self._alone:
            return request.key
        channel = request.attributes["channel_id"]
        if channel in self._unique[module]:
            return channel
        return tuple((place.instruction.name, place.branch) for place in request.path)
