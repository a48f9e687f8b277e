"""Programs of the model, written by hand: their ops and decisions, and two devices that send in crossed orders."""

from __future__ import annotations

from typing import Any

from tests.model.programs import Decision, Op, Ops, Program


def send(channel: int, source: int, target: int) -> Ops:
    pairs = ((source, target),)
    start = Op("send", f"send{channel}", channel, pairs)
    return start, Op("send_done", f"sent{channel}", channel, pairs, after=frozenset({start.name}))


def recv(channel: int, source: int, target: int) -> Ops:
    pairs = ((source, target),)
    start = Op("recv", f"recv{channel}", channel, pairs)
    return start, Op("recv_done", f"taken{channel}", channel, pairs, after=frozenset({start.name}))


def meet(channel: int, devices: int = 2) -> Op:
    return Op("meet", f"all{channel}", channel, groups=(tuple(range(devices)),))


def loop(name: str, decision: Decision, *body: Op) -> Op:
    return Op("loop", name, decision=decision, inside=((), body))


def choice(name: str, decision: Decision, *first: Op) -> Op:
    return Op("choice", name, decision=decision, inside=(first, ()))


def many(*lists: Ops, given: bool = True, **more: Any) -> Program:
    return Program(lists, False, given, **more)


def times(*counts: int) -> Decision:
    return Decision("known", known=counts)


OWN = Decision("own", 0)
CROSSED = ((*send(1, 0, 1), *recv(2, 1, 0)), (*send(2, 1, 0), *recv(1, 0, 1)))
TRIPS: dict[str, Any] = {"domains": ((0, 1, 2),)}
