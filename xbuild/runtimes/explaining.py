"""Why devices stop under a runtime, and why two calls do not fit: the sentences of verdicts and of stopped runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from ..checking.model.describe import calls_text, payload
from ..checking.model.program import Extent, devices_text
from ..checking.structure.collective_matching import same_reducer
from ..core.graph import Instruction
from ..properties.device_groups import Group, pairs_of
from ..properties.effects import base_of, spelling
from .calls import (
    ARRIVAL,
    BEGIN_SEND,
    CREATION,
    DRAIN,
    ITEM,
    LAUNCH,
    LOCK,
    MEET,
    RECV,
    ROOM,
    SEND,
    SPLIT,
    STREAM,
    TAKE,
    THREADS,
    TRANSFER,
    TURN,
    LaneStep,
    RuntimeCall,
)
from .machine import CallsDiffer, Differ, MachineStop
from .record import Runtime

# ----------------------------------------------------------------------------
# Calls that meet and do not fit


def comparison(runtime: Runtime, extent: Extent, notes: dict[str, None] | None = None) -> Differ:
    """The function that compares two calls that meet: what differs, or None.

    It adds to `notes` what a user should know about calls that a runtime accepts.
    """

    def differ(device: int, call: RuntimeCall, other: int, second: RuntimeCall) -> str | None:
        if call.kind in (SEND, RECV, BEGIN_SEND):
            return _difference_of_transfers(call, second)
        found = _difference_of_collectives(runtime, extent, call, second)
        if found is None and notes is not None and runtime.own_pairs and _have_other_pairs(extent, call, second):
            names = " and ".join(sorted(each.instruction.name for each in (call, second)))
            notes[
                f"{names} meet with different pairs; each device receives by its own, from none if they name none"
            ] = None
        return found

    return differ


def _difference_of_transfers(a: RuntimeCall, b: RuntimeCall) -> str | None:
    if a.launch != b.launch:
        return "programs"
    if a.channel != b.channel:
        return "channels"
    assert a.part is not None
    assert b.part is not None
    return None if payload(a.part).plain() == payload(b.part).plain() else "shapes"


def _difference_of_collectives(runtime: Runtime, extent: Extent, a: RuntimeCall, b: RuntimeCall) -> str | None:
    first, second = a.part, b.part
    assert first is not None
    assert second is not None
    if first is second:
        return None
    if base_of(first) != base_of(second):
        return "kinds"
    if a.launch != b.launch:
        return "programs"
    if a.channel is not None and b.channel is not None and a.channel != b.channel:
        return "channels"
    if payload(first).plain() != payload(second).plain():
        return "shapes"
    if not same_reducer(*(getattr(each.attributes, "to_apply", None) for each in (first, second))):
        return "reducers"
    if not runtime.own_pairs and _have_other_pairs(extent, a, b):
        return "pairs"
    has_channel = a.channel is not None and b.channel is not None
    return None if has_channel or a.identity == b.identity else "names"


def _have_other_pairs(extent: Extent, a: RuntimeCall, b: RuntimeCall) -> bool:
    """Whether these are collective permutes between different pairs of devices."""
    assert a.part is not None
    assert b.part is not None
    if a.part is b.part or not hasattr(a.part.attributes, "source_target_pairs"):
        return False
    return {*pairs_of(a.part, *extent)} != {*pairs_of(b.part, *extent)}


_KINDS = {
    "kinds": "channel_kind_mix",
    "channels": "mispaired",
    "names": "mispaired",
    "programs": "mispaired",
    "shapes": "shape_mismatch",
    "reducers": "reducer_mismatch",
    "pairs": "group_disagreement",
}


@frozen
class StopExplanation:
    """Why devices stop: the kind of finding, a sentence, the rule of the runtime, the fix, and a word for the cause."""

    kind: str
    message: str
    rule: str
    repair: str
    cause: str


def explain_difference(runtime: Runtime, error: CallsDiffer) -> StopExplanation:
    """Why two calls that meet do not fit."""
    (device, call), (other, second) = sorted((error.first, error.second), key=lambda each: each[0])
    assert call.part is not None
    assert second.part is not None
    what = "transfer" if call.kind in (SEND, RECV, BEGIN_SEND) else "collective"
    sides = (f"{each.instruction.name} of device {d}" for d, each in ((device, call), (other, second)))
    values = _values(error.what, call, second)
    message = f"{' and '.join(sides)} form one {what}, but their {error.what} differ{values}"
    about = TRANSFER if what == "transfer" else ARRIVAL
    fix = (
        f"run the {what}s of these devices in the same order"
        if error.what in ("channels", "names", "kinds", "programs")
        else f"give both sides of the {what} the same {error.what}"
    )
    return StopExplanation(_KINDS[error.what], message, _RULES[about](runtime, call), fix, "MATCHING")


def _values(what: str, a: RuntimeCall, b: RuntimeCall) -> str:
    assert a.part is not None
    assert b.part is not None
    if what == "kinds":
        return f": {spelling(base_of(a.part))} and {spelling(base_of(b.part))}"
    if what in ("channels", "programs"):
        one, other = (a.channel, b.channel) if what == "channels" else (a.launch, b.launch)
        return f": {one} and {other}"
    return f": {payload(a.part)} and {payload(b.part)}" if what == "shapes" else ""


# ----------------------------------------------------------------------------
# Stops


def _rule_of_collectives(runtime: Runtime, call: RuntimeCall | None) -> str:
    if runtime.collectives == "order":
        return f"{runtime.name} matches collectives by order on a communicator, not by channel"
    if runtime.collectives == "channel":
        return f"{runtime.name} matches collectives by channel and group, in the order of each device"
    return "a collective begins once every member of its group has reached it"


def _rule_of_transfers(runtime: Runtime, call: RuntimeCall | None) -> str:
    eager = f"; a send of at most {runtime.eager_bytes:g} bytes ends at once" if runtime.eager_bytes else ""
    if runtime.transfers == "order":
        return f"{runtime.name} matches the sends and recvs of two devices by order, not by channel{eager}"
    return f"a send ends once its recv is posted{eager}"


def _rule_of_creation(runtime: Runtime, call: RuntimeCall | None) -> str:
    if runtime.communicators == "start":
        return f"{runtime.name} creates communicators at the start of the program, and a creation waits for all members"
    return f"{runtime.name} creates a communicator at its first use, and the creation waits for all members"


def _rule_of_splits(runtime: Runtime, call: RuntimeCall | None) -> str:
    return (
        f"{runtime.name} creates the communicators of a collective by a split, which waits for the members of all its "
        "groups, and a device that has its communicator takes no part"
    )


def _rule_of_draining(runtime: Runtime, call: RuntimeCall | None) -> str:
    target = "" if call is None else getattr(call.instruction.attributes, "custom_call_target", "")
    return f"{target} waits until all collectives that its device has started end"


_RULES: dict[str, Callable[[Runtime, RuntimeCall | None], str]] = {
    ROOM: lambda runtime, _: (
        f"a device runs at most {_number(runtime.resident, 'collective')} at the same time, and a collective that "
        "waits for others keeps its place"
    ),
    THREADS: lambda runtime, _: (
        f"a host has {_number(runtime.threads, 'thread')}, and a device holds one while it waits in a collective or "
        "runs a custom call"
    ),
    LOCK: lambda *_: (
        "a host creates one communicator at a time, and a creation that waits for other hosts keeps the lock"
    ),
    DRAIN: _rule_of_draining,
    TURN: lambda *_: "a host launches the program of a device after that of the device before it has ended",
    SPLIT: _rule_of_splits,
    CREATION: _rule_of_creation,
    LAUNCH: lambda *_: "the collectives of a device begin in the order of their launches",
    STREAM: lambda *_: "a stream runs its collectives in the order of their launches",
    TRANSFER: _rule_of_transfers,
    ARRIVAL: _rule_of_collectives,
    ITEM: lambda *_: "a device whose infeed is empty hangs, and so does every device that waits for it",
}
"""The rule behind each kind of step, the most specific first."""

_REPAIRS = {
    ROOM: "launch these collectives in one order on all devices and on one stream, or wait for one before the next",
    THREADS: "give the host more threads than devices that wait at the same time",
    LOCK: "create the communicators in the same order on all hosts",
    DRAIN: "call it before the first collective, or after the collectives have ended",
    TURN: "launch the programs of all devices before waiting for one of them",
    SPLIT: "create the communicators in the same order on all devices, before the first use",
    CREATION: "use the groups in the same order on all devices, or create their communicators in advance",
    STREAM: "start the collectives in the same order on all devices",
}


def _number(count: float, noun: str) -> str:
    return f"{count:g} {noun}{'s' * (count != 1)}"


def explain_stop(runtime: Runtime, stop: MachineStop) -> StopExplanation:
    """Why devices stop: which calls wait for each other or for a device that has ended, and by which rule."""
    steps = [step for _, step in stop.steps]
    abouts = [about for about in _RULES if any(step.about == about for step in steps)]
    calls = [(lane[0], step.call) for lane, step in stop.steps if step.call is not None]
    calls += [(lane[0], call) for lane, call in stop.holders]
    if ITEM in abouts:
        starved = devices_text(lane[0] for lane, step in stop.steps if step.about == ITEM)
        message = f"the infeed of {starved} holds fewer items than the program takes"
        return StopExplanation("infeed_starved", message, _RULES[ITEM](runtime, None), "", "STARVED")
    unlaunched = [lane[0] for lane, step in stop.steps if step.about == TURN]
    named = calls_text(_unique((device, call.instruction) for device, call in calls)) if calls else "the devices"
    several = len({device for device, _ in calls}) > 1
    if unlaunched and calls:
        whose = f"whose program{'s' * (len(unlaunched) > 1)} the host has not launched"
        message = f"{named} wait{'' if several else 's'} for {devices_text(unlaunched)}, {whose}"
    elif stop.missing:
        what = _awaited_text(steps[0], stop.missing)
        message = f"{named} wait{'' if several else 's'} for {devices_text(stop.missing)}{what}"
    else:
        message = f"{named} wait for each other" if len({*calls}) > 1 else f"{named} waits for itself"
    orders = _orders_of_one_group(calls)
    if orders is not None and not stop.missing:
        rule = f"{orders}; the same devices in another order are another group"
        return StopExplanation("deadlock", message, rule, "list the devices of the group in one order", "GROUP_ORDER")
    own = [about for about in abouts if about not in (ARRIVAL, TRANSFER)] or abouts  # rules that HLO does not have
    rules = [_RULES[about](runtime, next(s.call for s in steps if s.about == about)) for about in own[:2]]
    repair = next((_REPAIRS[about] for about in abouts if about in _REPAIRS), "")
    cause = (
        (abouts[0] if abouts else ARRIVAL).upper() if not stop.missing or abouts[0] in _REPAIRS else "MISSING_MEMBER"
    )
    return StopExplanation("deadlock", message, "; ".join(rules), repair, cause)


def _orders_of_one_group(calls: Iterable[tuple[int, RuntimeCall]]) -> str | None:
    """How two devices list the devices of one group, if they list them in different orders."""
    first: dict[frozenset[int], tuple[int, Group]] = {}
    for device, call in calls:
        other, group = first.setdefault(frozenset(call.group), (device, call.group))
        if group != call.group:
            one, two = (",".join(map(str, each)) for each in (group, call.group))
            return f"the group is {{{one}}} on device {other} and {{{two}}} on device {device}"
    return None


def _awaited_text(step: LaneStep, missing: Sequence[int]) -> str:
    """What devices that have ended never did."""
    ends = f", which end{'s' * (len(missing) == 1)} first"
    if step.about == CREATION:
        return f"{ends}, to create the communicator of {devices_text(step.members)}"
    return f"{ends}, to take part in a split" if step.about == SPLIT else ends


def _unique(calls: Iterable[tuple[int, Instruction]]) -> list[tuple[int, Instruction]]:
    return [*dict.fromkeys(calls)]


def waits_text(stop: MachineStop, device: int) -> str:
    """What a stopped device waits for."""
    step, others = stop.at[device], stop.awaited[device]
    members = [member for member in step.members if member != device]
    if step.act == TAKE:
        things = {ROOM: "room on the device", LOCK: "the lock of its host", THREADS: "a thread of its host"}
        return things[step.about]
    if step.about == ARRIVAL or (step.about == STREAM and step.call is not None and step.call.kind == MEET and others):
        members = members or list(others)
        return f"{devices_text(members)} to reach it"
    if step.about == CREATION:
        return f"{devices_text(members)} to create the communicator of {devices_text(step.members)}"
    if step.about == SPLIT:
        return f"{devices_text(members)} to take part in the split of {devices_text(step.members)}"
    if step.about == TRANSFER:
        return f"{devices_text(members)} to reach the other side"
    if step.about == TURN:
        return f"the program of {devices_text(members)} to end"
    if step.about == ITEM:
        return "an item of its infeed, which is empty"
    return f"a collective that it has started{f', and so for {devices_text(others)}' if others else ''}"


def row_facts(stop: MachineStop) -> list[tuple[int, RuntimeCall, str]]:
    """For each stopped device that has begun its program: the call at which it stops, and what it waits for."""
    return [(d, step.call, waits_text(stop, d)) for d, step in sorted(stop.at.items()) if step.call is not None]
