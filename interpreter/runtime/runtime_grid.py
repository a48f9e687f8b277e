"""The grid of a run under a runtime: devices wait as the machine of the runtime says, which the check uses, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from attrs import define, evolve, field

from xbuild.checking import Verdict
from xbuild.checking.model.program import program_of
from xbuild.checking.scenarios.runtime_stage import uses_of
from xbuild.core.graph import Module, ModuleGroup
from xbuild.properties.device_groups import is_member
from xbuild.properties.effects import start_of
from xbuild.runtimes.calls import (
    ARRIVAL,
    AWAIT,
    CUSTOM,
    DONE,
    INFEED,
    MEET,
    POST,
    RECV,
    RECV_DONE,
    SEND,
    START,
    Launched,
    Launcher,
    RuntimeCall,
    collective_call,
    is_waiting_call,
    transfer_call,
)
from xbuild.runtimes.explaining import comparison, explain_difference, explain_stop, waits_text
from xbuild.runtimes.launches import launch_of
from xbuild.runtimes.machine import CallsDiffer, Interleaving, LaneMachine, stop_of
from xbuild.runtimes.record import Runtime

from ..compiler.requests import Request
from ..kernels.values import zeros
from .device import Device
from .ends import device_states, let_through
from .grid import PARKED, Grid
from .host import is_with_host
from .meetings import Rendezvous
from .report import DONES, DeviceState, Report

Answer = Callable[[], Any]


@define(eq=False)
class Meeting:
    """One execution of a collective, which its members may have reached at different instructions."""

    rendezvous: Rendezvous
    requests: dict[int, Request] = field(factory=dict)
    operands: dict[int, Any] = field(factory=dict)
    outcome: dict[int, Any] | None = None

    def join(self, device: int, request: Request, values: tuple[Any, ...]) -> None:
        self.rendezvous.join(device, values)
        self.requests[device], self.operands[device] = request, values

    def results(self) -> dict[int, Any]:
        """The result of each member; of a collective-permute by the pairs that the member states."""
        found: dict[int, Any] = {}
        for request in {id(each.instruction): each for each in self.requests.values()}.values():
            results = evolve(self.rendezvous, request=request).results()
            mine = [device for device, each in self.requests.items() if each.instruction is request.instruction]
            found |= {device: results[device] for device in mine}
        return found


@define(eq=False, repr=False, slots=False)
class RuntimeGrid(Grid):
    """A grid whose devices wait as a runtime makes them wait, and take places as in one of `interleavings` that fits.

    Each request of a device becomes steps of the machine, and the device is answered once its lane has done them.
    """

    runtime: Runtime = field(kw_only=True)
    program: Module | ModuleGroup = field(kw_only=True)
    interleavings: Sequence[Interleaving] = field(default=(), kw_only=True)
    machine: LaneMachine = field(init=False)
    launchers: list[Launcher] = field(init=False)
    answers: dict[int, Answer] = field(factory=dict, init=False)
    meetings: dict[Hashable, Meeting] = field(factory=dict, init=False)
    sent: dict[tuple[Hashable, int], Any] = field(factory=dict, init=False)
    numbers_sent: Counter[Hashable] = field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        self.machine = LaneMachine(self.runtime, comparison(self.runtime, self.extent))
        self.launchers = [Launcher(self.runtime, device.number, self.send_buffers) for device in self.devices]

    # The run: devices are resumed while any can be; then a call that waits for a place takes it.

    def run(self, arguments: Sequence[tuple[Any, ...]]) -> None:
        numbers, whole = range(len(self.devices)), program_of(self.program)
        for device, values in zip(self.devices, arguments, strict=True):
            self.running = device
            launcher = self.launchers[device.number]
            device.start(values)
            uses = uses_of(device.module.entry, device.number, whole) if self.runtime.communicators == "start" else []
            self.machine.add(launcher.lane, launcher.begin(uses, numbers))
            if device.ended:
                self.machine.add(launcher.lane, launcher.end())
            else:
                self.answers[device.number] = lambda: None
        self._settle()
        while self.ready or self.callbacks.pending or self._grant():
            if not self.ready and self.callbacks.pending:
                self.running = None
                self._wait_for_callbacks()
            if self.ready:
                self.running, answer = self.ready.popleft()
                self._drive(self.running, answer)
        self.running = None

    def _drive(self, device: Device, answer: Any) -> None:
        super()._drive(device, answer)
        if device.ended:
            launcher = self.launchers[device.number]
            self.machine.add(launcher.lane, launcher.end())
            self._settle()

    def _settle(self) -> None:
        """Do what the machine can do, and make ready the devices whose calls have ended."""
        self.machine.settle()
        rested, self.machine.rested = self.machine.rested, []
        for device, stream in rested:
            if stream is None and device in self.answers and self.machine.is_idle((device, None)):
                answer = self.answers.pop(device)()
                if answer is not PARKED:
                    self.ready.append((self.devices[device], answer))

    def _grant(self) -> bool:
        """Let one call take the place that it waits for: the next in an interleaving, or else one that is not in it."""
        takers = {lane: self.machine.at[lane] for lane in self.machine.takers()}
        if not takers:
            return False
        if len(self.interleavings) > 1:
            self.interleavings = [each for each in self.interleavings if each.fits(self.machine)]
        grants = self.interleavings[0].grants if self.interleavings else ()
        open_grants = [(lane, at) for lane, at in grants if self.machine.at.get(lane, 0) <= at]
        chosen = next((lane for lane, at in open_grants[:1] if takers.get(lane) == at), None)
        if chosen is None:
            others = (lane for lane, at in takers.items() if (lane, at) not in open_grants)
            chosen = next(others, next(iter(takers)))
        self.machine.grant(chosen)
        self._settle()
        return True

    # Requests

    def _serve(self, device: Device, request: Request, values: tuple[Any, ...]) -> Any:
        instruction = request.instruction
        if instruction.opcode == "custom_call":
            if not is_waiting_call(self.runtime, instruction):
                return super()._serve(device, request, values)
            return self._launch(device, RuntimeCall(CUSTOM, instruction), lambda: self._call(device, request, values))
        if request.collective is not None:
            return self._arrive(device, request, values, START if request.is_start else MEET)
        if instruction.opcode in DONES:
            return self._complete(device, request, values[0])
        if instruction.opcode in ("send", "recv", "recv_done") and not is_with_host(request):
            return self._transfer(device, request, values, instruction.opcode)
        answer = super()._serve(device, request, values)
        if answer is PARKED and instruction.opcode == "infeed":
            return self._launch(device, RuntimeCall(INFEED, instruction), lambda: PARKED)
        return answer

    def _launch(self, device: Device, call: RuntimeCall, answer: Answer) -> Any:
        return self._add(device, (*self.launchers[device.number].launch(call),), answer)

    def _add(self, device: Device, launched: Sequence[Launched], answer: Answer) -> Any:
        """Give the machine the steps of a call; `answer` is the answer once the device has done its own."""
        self.answers[device.number] = answer
        for lane, steps in launched:
            self.machine.add(lane, steps)
        self._settle()
        return PARKED

    def _arrive(self, device: Device, request: Request, values: tuple[Any, ...], kind: str) -> Any:
        """Join a rendezvous, whose results its last member computes."""
        assert request.collective is not None
        identity = self.rendezvous_keys.key_of(device.module, request)
        instruction = request.instruction
        launch = launch_of([place.instruction for place in request.path])
        call = collective_call(
            kind, instruction, device.number, self.extent, begun=None, identity=identity, launch=launch
        )
        launched = (*self.launchers[device.number].launch(call),)
        key = next(s.key for _, steps in launched for s in steps if s.act == POST and s.about == ARRIVAL)
        if key not in self.meetings:
            is_named = is_member(request.collective, device.number, *self.extent)
            self.meetings[key] = Meeting(Rendezvous(request, call.group, is_named))
        meeting = self.meetings[key]
        meeting.join(device.number, request, values)
        if len(meeting.requests) == len(call.group):
            del self.meetings[key]
        self.logs[device.number].append(request)
        answer: Answer = (lambda: meeting) if kind == START else (lambda: self._result(device, meeting))
        return self._add(device, launched, answer)

    def _complete(self, device: Device, request: Request, meeting: Meeting) -> Any:
        """Wait for a started collective."""
        start = start_of(request.instruction)
        assert start is not None
        call = collective_call(DONE, request.instruction, device.number, self.extent, begun=start, identity=None)
        return self._launch(device, call, lambda: self._result(device, meeting))

    def _result(self, device: Device, meeting: Meeting) -> Any:
        """The result of a member of a collective that all members have reached; the first one computes all."""
        if meeting.outcome is None:
            meeting.outcome = meeting.results()
            if device.ledger is not None:
                request = meeting.requests[device.number]
                device.ledger.check_collective(request, meeting.operands, meeting.outcome, device)
            meeting.operands.clear()
        return meeting.outcome.pop(device.number)

    def _transfer(self, device: Device, request: Request, values: tuple[Any, ...], kind: str) -> Any:
        """Send, post a recv or receive; a device that is at neither end of the transfer continues."""
        instruction = request.instruction
        if kind == "send":
            peer = self.peers.target(request, device.number)
            half, made = instruction, SEND
        else:
            half, made = request.transfer, RECV if kind == "recv" else RECV_DONE
            peer = self._source(device, request, values, kind)
        if peer is None:
            if kind == "recv_done":
                return zeros(instruction.shape.elements[0]), None  # type: ignore[union-attr]
            return None, 0, None
        launch = launch_of([place.instruction for place in request.path])
        call = transfer_call(made, instruction, half, device.number, peer, launch=launch)
        launcher = self.launchers[device.number]
        ends = launcher.ends_of(call)
        launched = (*launcher.launch(call),)
        if kind == "send":
            self.numbers_sent[ends] += 1
            self.sent[ends, self.numbers_sent[ends]] = values[0]
        if kind != "recv_done":
            return self._add(device, launched, lambda: (call, call.channel, None))
        number = next(step.count for _, steps in launched for step in steps if step.act == AWAIT)
        return self._add(device, launched, lambda: (self.sent.pop((ends, number)), None))

    def _source(self, device: Device, request: Request, values: tuple[Any, ...], kind: str) -> int | None:
        """The source of a recv; of a recv-done that of the recv whose context it gets."""
        if kind == "recv":
            return self.peers.source(request, device.number)
        started: RuntimeCall | None = values[0][0]
        return None if started is None else started.source

    # Reports

    def waits_of(self, device: Device) -> tuple[str, tuple[int, ...]] | None:
        if device.number not in self.answers:
            return None
        stop = stop_of(self.machine)
        if device.number not in stop.at:
            return "", ()
        return waits_text(stop, device.number), stop.awaited[device.number]

    def stuck_report(self, verdict: Verdict | None) -> Report:
        stop = stop_of(self.machine)
        why = explain_stop(self.runtime, stop)
        states = []
        for device in self.devices:
            is_stopped = device.number in stop.at
            text = waits_text(stop, device.number) if is_stopped else ""
            missing = stop.awaited.get(device.number, ())
            standing = None if device.ended else device.position()
            is_cause = device.number in stop.causes
            states.append(DeviceState(device.number, device.ended, standing, text, missing, is_cause))
        cause = f"{why.message}: {why.rule}"
        open_to_run = let_through(verdict, other_than="STARVED" if why.kind == "infeed_starved" else "")
        return Report(why.kind, "no device can continue", tuple(states), cause, open_to_run, (), why.repair)

    def mismatch_report(self, error: BaseException) -> Report | None:
        if not isinstance(error, CallsDiffer):
            return None
        why = explain_difference(self.runtime, error)
        is_transfer = error.first[1].kind in (SEND, RECV)
        sides = []
        for device, call in sorted((error.first, error.second), key=lambda each: each[0]):
            source = f"   {call.instruction.source}" if call.instruction.source else ""
            sides.append(f"  device {device}  reaches {call.instruction.name}{source}")
        title = f"two sides of one {'transfer' if is_transfer else 'collective'}"
        kind = "transfer_mismatch" if is_transfer else "collective_mismatch"
        states = device_states(self, None, (error.first[0], error.second[0]))
        return Report(kind, why.message, states, why.rule, "", (title, *sides), why.repair)
