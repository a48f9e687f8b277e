"""The index of a trace as JSON: its form, and the check of what it states against the programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.graph import Computation, Instruction, KeptSource, Module, ModuleGroup
from ..process.recursion_limit import DEEPEST
from .columns import text_of
from .data import Spot
from .folder import FORMAT
from .forms import (
    FormError,
    anything,
    boolean,
    listed,
    loads,
    mapping,
    number,
    optional,
    parts,
    record,
    refuse,
    text,
)  # fmt: skip

IDLE = 1 << 16
"""The number by which the devices of a program may exceed the events of its trace."""

_FILES = 10**9 - 1
_WORDS = optional(text)
_DEVICE = number(0, (1 << 31) - 1)
_WAIT = record({"device": _DEVICE, "instruction": text, "waits_for": text, "behind": _WORDS}, anything)
_FAULT = record(
    {"message": text, "explanation": _WORDS, "repair": _WORDS, "note": _WORDS, "cycle": listed(_WAIT)}, anything
)
_VERDICT = record(
    {"kind": text, "refused": boolean, "text": text, "findings": listed(_FAULT),
     "repair": optional(record({"text": text}, anything))}, anything,
)  # fmt: skip
_STATE = record(
    {"device": _DEVICE, "ended": boolean, "stands_at": _WORDS, "instruction": _WORDS, "waits_for": _WORDS,
     "missing": listed(_DEVICE), "trips": listed(number()), "source": _WORDS, "cause": boolean}, anything,
)  # fmt: skip
_STOP = record(
    {"kind": text, "message": text, "text": text, "cause": _WORDS, "let_through": _WORDS, "repair": _WORDS,
     "parting": listed(text), "devices": listed(_STATE)}, anything,
)  # fmt: skip
_FINDING = record(
    {"kind": text, "what": text, "text": text, "event": optional(number()), "index": optional(listed(number())),
     "values": mapping(text), "further": number(), "device": _DEVICE}, anything,
)  # fmt: skip
_SPOT = record(
    {"at": listed(number(), 3), "path": listed(text),
     "source": optional(parts(text, number(-(1 << 31)), text, text))},
)  # fmt: skip
_BEGUN = {
    "format": text, "finished": boolean, "programs": number(1, _FILES), "group": optional(mapping(number())),
    "events": number(), "chunks": number(0, _FILES), "spots": listed(_SPOT), "verdict": optional(_VERDICT),
}  # fmt: skip
_ENDED = {"stop": optional(_STOP), "left_out": text, "findings": listed(_FINDING), "results": boolean}


def read_index(place: Path) -> dict[str, Any]:
    """The index of a folder; FormError where it does not have the form of an index."""
    index: Any = loads(text_of(place / "index.json"), "index.json")
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise FormError(f"index.json is of no trace of this form: {FORMAT!r} is read")
    boolean(index.get("finished"), "index.finished")
    record(_BEGUN | _ENDED if index["finished"] else _BEGUN)(index, "index")
    return index


def program_of(modules: Sequence[Module], group: Mapping[str, int] | None, events: int) -> Module | ModuleGroup:
    """The program of all devices; FormError where devices are missing, or far outnumber the events."""
    if group is None:
        if len(modules) > 1:
            raise FormError(f"index.group is null, and there are {len(modules)} programs")
        program: Module | ModuleGroup = modules[0]
    else:
        if [*group] != [str(device) for device in range(len(group))] or not group:
            raise FormError("index.group does not name the devices 0, 1 and so on")
        for device, which in group.items():
            number(0, len(modules) - 1)(which, f"index.group[{device}]")
        program = ModuleGroup({int(device): modules[which] for device, which in group.items()})
    if program.num_devices > events + IDLE:
        raise FormError(f"the program is for {program.num_devices:,} devices, and there are {events:,} events")
    return program


def instruction_at(modules: Sequence[Module], at: Sequence[int], where: str) -> Instruction:
    """The instruction at a place, given by the numbers of the program, the computation and the row."""
    module, computation, row = at
    number(0, len(modules) - 1)(module, f"{where}[0]")
    computations = modules[module].computations
    number(0, len(computations) - 1)(computation, f"{where}[1]")
    instructions = computations[computation].instructions
    number(0, len(instructions) - 1)(row, f"{where}[2]")
    return instructions[row]


def spots_of(modules: Sequence[Module], told: Sequence[Mapping[str, Any]]) -> list[Spot]:
    """The spots of an index in the loaded programs; source lines are those of the program that was run."""
    paths = Paths(modules)
    found = []
    for place, each in enumerate(told):
        where = f"index.spots[{place}]"
        instruction = instruction_at(modules, each["at"], f"{where}.at")
        paths.check(each["at"][0], tuple(each["path"]), instruction, f"{where}.path")
        if each["source"]:
            object.__setattr__(instruction, "where", KeptSource(*each["source"]))
        found.append(Spot(instruction, tuple(each["path"])))
    return found


class Paths:
    """The computations that the calls of a path lead to, each path looked up once."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self._known: dict[tuple[int, tuple[str, ...]], frozenset[Computation]] = {}
        self._homes: dict[Computation, frozenset[Instruction]] = {}

    def check(self, module: int, path: tuple[str, ...], instruction: Instruction, where: str) -> None:
        """FormError where a path does not lead to an instruction."""
        if len(path) > DEEPEST:
            raise FormError(f"{where} is of {len(path)} calls, and at most {DEEPEST} are followed")
        if not any(instruction in self._home(each) for each in self._reached(module, path)):
            raise refuse(where, " in ".join(reversed(path)), f"a way to {instruction.name}")

    def _home(self, computation: Computation) -> frozenset[Instruction]:
        if computation not in self._homes:
            self._homes[computation] = frozenset(computation.instructions)
        return self._homes[computation]

    def _reached(self, module: int, path: tuple[str, ...]) -> frozenset[Computation]:
        """The computations at the end of a path; each prefix of the path is looked up once."""
        done = next(n for n in range(len(path), -1, -1) if n == 0 or (module, path[:n]) in self._known)
        found = self._known[module, path[:done]] if done else frozenset({self.modules[module].entry})
        for end in range(done, len(path)):
            found = frozenset(called for each in found for called in _called(each, path[end]))
            self._known[module, path[: end + 1]] = found
        return found


def _called(computation: Computation, label: str) -> Iterable[Computation]:
    """The computations that an instruction calls, given by its label in a path."""
    name, _, branch = label.partition(" branch ")
    instruction = computation._by_name.get(name)
    if instruction is None:
        return ()
    if not branch:
        return instruction.called
    return instruction.called[int(branch) :][:1] if branch.isdecimal() and len(branch) < 10 else ()


def check_told(index: Mapping[str, Any], devices: int) -> None:
    """Raise FormError unless the report of a stop names existing devices, each once."""
    states = [state["device"] for state in (index.get("stop") or {}).get("devices", ())]
    if len({*states}) < len(states) or any(device >= devices for device in states):
        raise FormError(f"index.stop.devices tells of devices twice, or of more than there are: {devices}")
