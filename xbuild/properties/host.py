"""Functions of the host that a program sends values to and receives results from, on channels of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from shape_inference import AnyShape

from ..core.graph import Instruction

RENDEZVOUS = "_xla_host_transfer_rendezvous"
HANDLER = "_xla_host_transfer_handler_name"
OURS = "xbuild"
"""The handler of transfers whose other end is a Python function of this process."""

_ANNOTATION = "host_function"


@frozen(eq=False, slots=False)
class HostFunction:
    """A Python function at the other end of host transfers, called once for each round of values on its channels.

    `rendezvous` names it in HLO text, `label` in reports. `sends` are the channels of its operands in order, `receives`
    those of its results with their shapes. `function` takes the list of operands, and gives the list of results.
    """

    rendezvous: str
    label: str
    function: Callable[[list[Any]], list[Any]]
    sends: tuple[int, ...]
    receives: Mapping[int, AnyShape] = field(factory=dict)

    def annotations(self) -> dict[str, Any]:
        """The annotations of its transfers: what HLO text states, and the function itself, which keeps it alive."""
        return {"frontend_attributes": {HANDLER: OURS, RENDEZVOUS: self.rendezvous}, _ANNOTATION: self}


def rendezvous_of(transfer: Instruction) -> str | None:
    """The name of the host function at the other end of a send or recv; None where there is none of this kind."""
    if not transfer.attributes.is_host_transfer:
        return None
    attributes = transfer.annotations.get("frontend_attributes", {})
    return attributes.get(RENDEZVOUS) if attributes.get(HANDLER) == OURS else None


def host_function_of(transfer: Instruction) -> HostFunction | None:
    """The function at the other end of a send or recv to the host; None where it was read from text, which names one.

    A name in text finds no function: a stranger's program may not call what it likes.
    """
    found = transfer.annotations.get(_ANNOTATION)
    return found if isinstance(found, HostFunction) else None
